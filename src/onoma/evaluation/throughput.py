"""Speed of a system: words, sentences and characters per second."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from onoma.errors import OnomaError
from onoma.text.words import segment


@dataclass(frozen=True, slots=True)
class Rate:
    """Units per second: the median, the slowest and the fastest repeat."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Throughput:
    """The amount of text that was processed in each repeat, and the seconds that each repeat took.

    Each text counts as one sentence.
    """

    sentences: int
    words: int
    characters: int
    seconds: tuple[float, ...]

    @property
    def words_per_second(self) -> Rate:
        return self._rate(self.words)

    @property
    def sentences_per_second(self) -> Rate:
        return self._rate(self.sentences)

    @property
    def characters_per_second(self) -> Rate:
        return self._rate(self.characters)

    def _rate(self, units: int) -> Rate:
        rates = [units / seconds for seconds in self.seconds]
        return Rate(median(rates), min(rates), max(rates))


def measure_throughput(
    extract: Callable[[Sequence[str]], Iterable[object]],
    texts: Sequence[str],
    *,
    batch_size: int | None = None,
    warmup: int = 1,
    repeats: int = 5,
) -> Throughput:
    """Measure the time of `extract` on all texts, `repeats` times after `warmup` runs that are not measured.

    Texts are passed in batches of `batch_size`, or all at once. The result of `extract` is consumed within the measured
    time, so that lazy iterators are measured in full. Counting words is not part of the time.
    """
    if not texts or repeats < 1 or warmup < 0 or (batch_size is not None and batch_size < 1):
        raise OnomaError("a measurement needs at least one text, repeats >= 1, warmup >= 0 and batch_size >= 1 or None")
    step = len(texts) if batch_size is None else batch_size
    batches = [texts[first : first + step] for first in range(0, len(texts), step)]
    for _ in range(warmup):
        _time(extract, batches)
    return Throughput(
        len(texts),
        sum(len(segment(text)) for text in texts),
        sum(map(len, texts)),
        tuple(_time(extract, batches) for _ in range(repeats)),
    )


def _time(extract: Callable[[Sequence[str]], Iterable[object]], batches: Sequence[Sequence[str]]) -> float:
    start = time.perf_counter()
    for batch in batches:
        deque(extract(batch), maxlen=0)
    return time.perf_counter() - start
