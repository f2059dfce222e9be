"""Candidates before decoding. `tests/serve/test_app.py` decodes them again as another program would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import Extractor, OnomaError
from onoma.candidates import _best_of_groups

TEXT = "The Rome Players will sing for Ann today ."
LABELS = ["band", "city", "person"]


def test_entities_are_those_of_extraction(ner: Extractor) -> None:
    texts = [TEXT, "", "Tom flew to Paris ."]
    for overlap in ("flat", "nested", "any"):
        found = ner.candidates(texts, LABELS, overlap=overlap, threshold=0.4)
        expected = ner.extract(texts, LABELS, overlap=overlap, threshold=0.4)
        assert [[one.key for one in own.entities] for own in found] == [[one.key for one in own] for own in expected]
        assert found[0].thresholds == pytest.approx(dict.fromkeys(LABELS, 0.4))
        assert found[0].tokens > 8


def test_all_labels_of_a_span_are_candidates(ner: Extractor) -> None:
    (found,) = ner.candidates([TEXT], LABELS, floor=0.0)
    rome = {one.label: one.score for one in found.candidates if TEXT[one.start : one.end] == "Rome"}
    assert rome.keys() == set(LABELS)
    assert max(rome, key=rome.__getitem__) == "city"
    assert len(ner.candidates([TEXT], LABELS, floor=0.9)[0].candidates) < len(found.candidates)


def test_many_candidates_are_reduced_without_changing_entities(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join([TEXT] * 8), TEXT]
    everything = ner.candidates(texts, LABELS, floor=0.0, threshold=0.1, overlap="nested")
    monkeypatch.setattr("onoma.systems.base.MANY_PROPOSALS", 10)
    monkeypatch.setattr("onoma.candidates.MAX_CANDIDATES", 20)
    reduced = ner.candidates(texts, LABELS, floor=0.0, threshold=0.1, overlap="nested")
    assert [one.entities for one in reduced] == [one.entities for one in everything]
    assert [len(one.candidates) for one in reduced] == [20, 20]
    assert [one.score for one in reduced[0].candidates] == [one.score for one in everything[0].candidates[:20]]


@pytest.mark.parametrize("floor", [-0.1, 1.5, "precise", None])
def test_bad_floors_are_errors(ner: Extractor, floor: float) -> None:
    with pytest.raises(OnomaError, match="floor of candidates"):
        ner.candidates([TEXT], LABELS, floor=floor)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=40), st.integers(1, 5))
def test_the_best_of_each_group_agree_with_plain_loops(rows: list[tuple[int, int]], count: int) -> None:
    group, score = np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.float32)
    expected = []
    for number in sorted(set(group.tolist())):
        own = [place for place in range(len(rows)) if group[place] == number]
        expected += sorted(own, key=lambda place: (-score[place], place))[:count]
    assert _best_of_groups(group, score, count).tolist() == expected


def test_a_reader_keeps_its_questions(ner: Extractor) -> None:
    reader = ner.prepare(LABELS, section_tokens=20)
    long = " ".join([TEXT] * 20)
    sections = list(reader.sections([long]))
    assert len(sections) > 3
    assert sections[-1].tokens > 100
    assert [one.key for section in sections for one in section.entities] == [
        one.key for one in ner.extract(long, LABELS)
    ]
    question = reader.question(0)
    assert reader.with_options(parallel=False).question(0) is question
