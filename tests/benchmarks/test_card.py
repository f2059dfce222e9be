"""The tables of the embedded model's card."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import card
from figures import Figures
from onoma import Corpus, Document, Extractor
from reliability import records, scored
from suites import SUITES
from tiny import documents

NOT_MEASURED = "Not measured yet."


def row(metric: str, value: float, **others: Any) -> dict[str, Any]:
    return {"metric": metric, "value": value, "spread": None, "seeds": [], "command": "", "commit": "", **others}


def test_the_table_of_a_suite_has_its_mean() -> None:
    names = SUITES["benchmarks"]["zh"].sets
    rows = [row(f"embedded/zero-shot/{name}/bge/f1", 40.0 + place) for place, name in enumerate(names)]
    former = [row(f"embedded/zero-shot/{name}/bert/f1", 90.0, historic="other weights") for name in names]
    assert card.render(Figures(rows[1:], {}), "benchmarks zh") == NOT_MEASURED
    assert "| 90.0 |" in card.render(Figures(former, {}), "benchmarks zh")
    assert card.render(Figures(former + rows, {}), "benchmarks zh").splitlines() == [
        "| Resume | CLUENER | E-commerce | MSRA | mean |",
        "| ---: | ---: | ---: | ---: | ---: |",
        "| 40.0 | 41.0 | 42.0 | 43.0 | **41.5** |",
    ]


def test_a_suite_of_many_corpora_has_one_line_for_each() -> None:
    names = SUITES["development"]["en"].sets
    rows = [row(f"embedded/development/{name}/gte/f1", 30.0) for name in names]
    lines = card.render(Figures(rows, {}), "development en").splitlines()
    assert len(lines) == 2 + len(names) + 1
    assert lines[-1] == "| mean | **30.0** |"


def test_shares_of_right_mentions_by_score() -> None:
    score, right = np.array([0.12, 0.55, 0.58, 1.0], np.float32), np.array([False, True, False, True])
    found = list(records("embedded", "en", "gte", score, right))
    assert {one.metric.rpartition("/")[2]: one.value for one in found} == {
        "right_percent_10_20": 0.0,
        "right_percent_50_60": 50.0,
        "right_percent_90_100": 100.0,
    }
    figures = Figures([row(one.metric, one.value) for one in found], {})
    assert card.render(figures, "reliability en").splitlines()[0] == "| 0.1 to 0.2 | 0.5 to 0.6 | 0.9 to 1.0 |"
    assert card.render(figures, "reliability zh") == NOT_MEASURED


def test_scores_of_reported_mentions(ner: Extractor) -> None:
    wrong = [Document(one.text, ()) for one in documents()[40:50]]
    corpus = Corpus("tiny", [*documents()[:40], *wrong], Corpus("tiny", documents()).types)
    score, right = scored(ner, corpus)
    assert score.min() >= np.float32(0.1)
    assert right.any()
    assert not right.all()


@pytest.mark.parametrize("key", ["benchmarks fr", "nothing en"])
def test_unknown_tables_are_errors(key: str) -> None:
    with pytest.raises(KeyError):
        card.render(Figures([], {}), key)
