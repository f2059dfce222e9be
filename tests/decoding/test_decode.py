from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import OnomaError
from onoma.decoding import Overlap, Proposals, decode
from onoma.decoding.decode import best_labels, decode_rows
from onoma.inputs.packing import PackedTexts
from onoma.models.config import CATCH_ALL_LABELS

TEXT = "Bank of New York in New York"
LABELS = ["city", "organization", "state"]


def proposals(*rows: tuple[int, int, int, int, float]) -> Proposals:
    return Proposals(*(np.array(column) for column in zip(*rows, strict=True)))


FOUND = proposals((0, 0, 3, 1, 0.9), (0, 2, 3, 0, 0.8), (0, 5, 6, 0, 0.7), (0, 5, 6, 2, 0.7), (0, 3, 5, 2, 0.6))
BANK, CITY, STATE = ("Bank of New York", "organization"), ("New York", "city"), ("New York", "state")


def named(decoded: Proposals, labels: list[str] = LABELS, text: str = TEXT) -> list[tuple[str, str]]:
    (entities,) = PackedTexts.pack([text]).entities(decoded, labels)
    return [(one.text, one.label) for one in entities]


def test_flat_nested_and_any() -> None:
    assert named(decode(FOUND, LABELS)) == [BANK, CITY]
    assert named(decode(FOUND, LABELS, overlap="nested")) == [BANK, CITY, CITY]
    assert ("York in New", "state") in named(decode(FOUND, LABELS, overlap="any"))
    assert named(decode(FOUND, LABELS, several_labels=True)) == [BANK, CITY, STATE]


def test_ties_between_labels_go_to_the_one_that_comes_first() -> None:
    tie = proposals((0, 5, 6, 0, 0.7), (0, 5, 6, 1, 0.7))
    assert named(decode(tie, ["city", "state"]), ["city", "state"]) == [CITY]
    assert named(decode(tie, ["state", "city"]), ["state", "city"]) == [STATE]


def test_without_ties_the_order_of_labels_has_no_influence() -> None:
    distinct = FOUND._replace(score=np.array([0.9, 0.8, 0.7, 0.65, 0.6]))
    expected = named(decode(distinct, LABELS))
    for order in ([2, 1, 0], [1, 2, 0], [0, 2, 1]):
        shuffled = distinct._replace(type=np.array([order.index(i) for i in distinct.type]))
        labels = [LABELS[i] for i in order]
        assert named(decode(shuffled, labels), labels) == expected


def test_one_threshold_per_label() -> None:
    assert named(decode(FOUND, LABELS, thresholds=[0.75, 0.95, 0.5])) == [CITY, STATE]
    assert named(decode(FOUND, LABELS, thresholds=0.75)) == [BANK]
    with pytest.raises(OnomaError, match="2 thresholds were given for 3 labels"):
        decode(FOUND, LABELS, thresholds=[0.5, 0.5])


def test_a_score_that_is_not_a_number_is_never_reported() -> None:
    assert named(decode(proposals((0, 0, 0, 0, float("nan"))), ["x"], thresholds=0.0), ["x"]) == []


@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
def test_row_numbers_lead_to_the_decoded_proposals(overlap: str) -> None:
    rows = decode_rows(FOUND, LABELS, thresholds=[0.75, 0.95, 0.5], overlap=overlap)  # type: ignore[arg-type]
    decoded = decode(FOUND, LABELS, thresholds=[0.75, 0.95, 0.5], overlap=overlap)  # type: ignore[arg-type]
    assert len(rows)
    assert all(map(np.array_equal, FOUND.take(rows), decoded))


OPERA = "Oslo Opera House , Viking Age"
OPERA_ROWS = proposals((0, 0, 2, 0, 0.9), (0, 0, 0, 1, 0.5), (0, 4, 5, 0, 0.8))


@pytest.mark.parametrize("label", ["miscellaneous", "Misc", " other ", "其他"])
def test_catch_all_labels_rank_below_all_others(label: str) -> None:
    labels = [label, "city"]
    decoded = decode(OPERA_ROWS, labels, catch_all=CATCH_ALL_LABELS)
    assert named(decoded, labels, OPERA) == [("Oslo", "city"), ("Viking Age", label)]
    assert decoded.score.tolist() == [0.5, 0.8]  # the scores that are reported do not change


def test_labels_that_only_contain_a_catch_all_word_rank_as_usual() -> None:
    labels = ["other building", "city"]
    decoded = decode(OPERA_ROWS, labels, catch_all=CATCH_ALL_LABELS)
    assert [text for text, _ in named(decoded, labels, OPERA)] == ["Oslo Opera House", "Viking Age"]


def test_without_a_list_of_catch_all_labels_all_labels_rank_alike() -> None:
    labels = ["misc", "city"]
    assert [text for text, _ in named(decode(OPERA_ROWS, labels), labels, OPERA)] == ["Oslo Opera House", "Viking Age"]


@given(st.integers(0, 10_000), st.sampled_from(["flat", "nested", "any"]), st.booleans())
def test_the_best_label_of_each_span_is_all_that_decoding_needs(seed: int, overlap: Overlap, coarse: bool) -> None:
    generator = np.random.default_rng(seed)
    rows = np.unique(generator.integers(0, (8, 4, 5), (generator.integers(0, 120), 3)), axis=0)  # first, width, type
    score = generator.random(len(rows)).astype(np.float32)
    if coarse:  # many equal scores
        score = np.round(score, 1)
    proposals = Proposals(np.zeros(len(rows), np.int64), rows[:, 0], rows[:, 0] + rows[:, 1], rows[:, 2], score)
    labels, catch_all = ["a", "b", "misc", "c", "d"], ["misc"]
    reduced = best_labels(proposals, labels, catch_all)
    spans = set(zip(proposals.first.tolist(), proposals.last.tolist(), strict=True))
    assert len(reduced.first) == len(spans)
    expected = decode(proposals, labels, overlap=overlap, catch_all=catch_all)
    found = decode(reduced, labels, overlap=overlap, catch_all=catch_all)
    assert [column.tolist() for column in found] == [column.tolist() for column in expected]
