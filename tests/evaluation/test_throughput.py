"""Measurement of speed, with a clock that the tests control."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest

from onoma import OnomaError
from onoma.evaluation import measure_throughput

TEXTS = ["Tom flew to Paris.", "Ann sat.", "Go!"]  # 5 + 3 + 2 words, 18 + 8 + 3 characters


class ManualClock:
    """A clock that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)


def test_rates_computed_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, runs = ManualClock(monkeypatch), iter([100.0, 4.0, 1.0, 2.0])  # the first is the warm-up

    def extract(texts: Sequence[str]) -> list[object]:
        clock.now += next(runs)
        return [[] for _ in texts]

    result = measure_throughput(extract, TEXTS, repeats=3)
    assert (result.sentences, result.words, result.characters) == (3, 10, 29)
    assert result.seconds == (4.0, 1.0, 2.0)
    words = result.words_per_second
    assert (words.median, words.low, words.high) == (5.0, 2.5, 10.0)
    assert result.sentences_per_second.median == 1.5
    assert result.characters_per_second.median == 14.5


def test_texts_are_passed_in_batches() -> None:
    sizes: list[int] = []

    def extract(texts: Sequence[str]) -> list[object]:
        sizes.append(len(texts))
        return [[] for _ in texts]

    measure_throughput(extract, TEXTS, batch_size=2, warmup=0, repeats=2)
    assert sizes == [2, 1, 2, 1]


def test_iterators_are_consumed_within_the_measured_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock(monkeypatch)

    def stream(texts: Sequence[str]) -> Iterator[object]:
        for _ in texts:
            clock.now += 1.0
            yield []

    assert measure_throughput(stream, TEXTS, warmup=0, repeats=1).seconds == (3.0,)


@pytest.mark.parametrize("options", [{"repeats": 0}, {"warmup": -1}, {"batch_size": 0}])
def test_invalid_options_are_errors(options: dict[str, int]) -> None:
    with pytest.raises(OnomaError, match="repeats >= 1"):
        measure_throughput(lambda texts: [[] for _ in texts], TEXTS, **options)


def test_no_text_is_an_error() -> None:
    with pytest.raises(OnomaError, match="at least one text"):
        measure_throughput(lambda texts: [], [])
