"""The benchmark of fine-tuning: its plan, its means and its records."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from fine_tune_embedded import CORPORA, Job, groups, plan, records, table
from onoma.models.hub import EMBEDDED


def job(corpus: str, draw: int) -> Job:
    return Job(corpus, 20, draw, "data", "runs", None, (), 1, False)


def result(f1: float) -> dict[str, float]:
    return {"f1_start": 50.0, "f1": f1, "f1_int8": f1 - 1, "minutes": 1.5}


FOUND = {job("one", 0): result(60), job("one", 1): result(70), job("two", 0): result(80)}


def test_means_are_over_draws_and_averages_over_corpora() -> None:
    grouped = groups(FOUND)
    assert grouped[20, "average-of-2"] == {0: {"f1_start": 50.0, "f1": 70.0, "f1_int8": 69.0, "minutes": 1.5}}
    written = {one.metric: one for one in records(FOUND, "python x.py")}
    mean = written["embedded/tuned-20/one/gte-small/f1_int8"]
    assert (mean.value, mean.seeds) == (64.0, (0, 1))
    assert mean.spread == pytest.approx(7.07, abs=0.01)
    assert any(line.split() == ["one", "20", "2", "50.00", "65.00", "64.00", "1.50"] for line in table(FOUND))


def test_every_corpus_size_and_draw_is_planned_once() -> None:
    arguments = Namespace(
        parallel=1,
        corpora=None,
        dev=False,
        draws=2,
        sizes=[20, 100],
        data=Path("d"),
        runs=Path("r"),
        limit=None,
        set=[],
        threads=None,
        time=False,
    )
    jobs = list(plan(arguments))
    assert len({one.folder for one in jobs}) == len(jobs) == 2 * 2 * len(CORPORA)


def test_the_embedded_model_was_not_trained_on_the_corpora_of_the_benchmark() -> None:
    card = (EMBEDDED / "README.md").read_text("utf-8")
    trained = {line.split("|")[1].strip() for line in card.splitlines() if line.count("|") == 4}
    assert len(trained) > 20
    assert not trained & set(CORPORA)
