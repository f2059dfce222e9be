from __future__ import annotations

import math

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


# --- penalties: which of the labels of one span is reported

POETS = "John Keats met Ann in Rome"
POET_LABELS = ["misc", "person", "poet"]


def test_the_label_with_the_smaller_penalty_is_reported_with_its_own_score() -> None:
    found = proposals((0, 0, 1, 1, 0.95), (0, 0, 1, 2, 0.6), (0, 3, 3, 1, 0.9))
    plain = decode(found, POET_LABELS)
    narrow = decode(found, POET_LABELS, penalties=[0.0, 0.5, 0.0])
    assert named(plain, POET_LABELS, POETS) == [("John Keats", "person"), ("Ann", "person")]
    assert named(narrow, POET_LABELS, POETS) == [("John Keats", "poet"), ("Ann", "person")]
    assert narrow.score.tolist() == [0.6, 0.9]
    weak = decode(found, POET_LABELS, penalties=[0.0, 0.4, 0.0])  # log(0.95) - log(0.6) is 0.46
    assert named(weak, POET_LABELS, POETS) == named(plain, POET_LABELS, POETS)


def test_a_label_below_its_threshold_is_never_preferred() -> None:
    found = proposals((0, 0, 1, 1, 0.95), (0, 0, 1, 2, 0.6))
    decoded = decode(found, POET_LABELS, thresholds=[0.5, 0.5, 0.7], penalties=[0.0, 9.0, 0.0])
    assert named(decoded, POET_LABELS, POETS) == [("John Keats", "person")]


def test_spans_are_compared_by_their_best_scores_whatever_is_reported() -> None:
    found = proposals((0, 0, 1, 1, 0.95), (0, 0, 1, 2, 0.3), (0, 1, 1, 1, 0.8))
    decoded = decode(found, POET_LABELS, penalties=[0.0, 9.0, 0.0])
    assert named(decoded, POET_LABELS, POETS) == [("John Keats", "poet")]


def test_a_catch_all_label_is_not_preferred_whatever_the_penalties_are() -> None:
    found = proposals((0, 0, 1, 0, 0.99), (0, 0, 1, 1, 0.2))
    decoded = decode(found, POET_LABELS, penalties=[-50.0, 50.0, 0.0], catch_all=["misc"])
    assert named(decoded, POET_LABELS, POETS) == [("John Keats", "person")]


def test_scores_of_1_and_0_can_be_compared_by_penalties() -> None:
    found = proposals((0, 0, 1, 1, 1.0), (0, 0, 1, 2, 1.0), (0, 3, 3, 1, 0.0), (0, 3, 3, 2, 0.0))
    decoded = decode(found._replace(score=found.score.astype(np.float32)), POET_LABELS, penalties=[0.0, 0.1, 0.0])
    assert [label for _, label in named(decoded, POET_LABELS, POETS)] == ["poet", "poet"]


def test_a_narrow_label_that_clearly_fits_wins_against_a_broad_one_that_is_almost_certain() -> None:
    found = proposals((0, 0, 1, 1, 0.999), (0, 0, 1, 2, 0.8), (0, 3, 3, 1, 0.8), (0, 3, 3, 2, 0.6))
    decoded = decode(found, POET_LABELS, penalties=[0.0, 0.25, 0.0])
    assert [label for _, label in named(decoded, POET_LABELS, POETS)] == ["poet", "person"]


def test_several_labels_are_reported_as_without_penalties() -> None:
    found = proposals((0, 0, 1, 1, 0.95), (0, 0, 1, 2, 0.6), (0, 1, 1, 2, 0.9))
    expected = decode(found, POET_LABELS, several_labels=True)
    decoded = decode(found, POET_LABELS, several_labels=True, penalties=[0.0, 9.0, 0.0])
    assert [column.tolist() for column in decoded] == [column.tolist() for column in expected]


@given(st.integers(0, 10_000), st.sampled_from(["flat", "nested", "any"]), st.booleans())
def test_penalties_change_the_labels_of_spans_and_nothing_else(seed: int, overlap: Overlap, coarse: bool) -> None:
    generator = np.random.default_rng(seed)
    rows = np.unique(generator.integers(0, (8, 4, 5), (generator.integers(0, 120), 3)), axis=0)  # first, width, type
    rows = rows[generator.permutation(len(rows))]
    score = generator.random(len(rows)).astype(np.float32)
    penalties = generator.normal(0, 3, 5)
    if coarse:  # many equal preferences
        score, penalties = np.round(score, 1), np.zeros(5)
    found = Proposals(np.zeros(len(rows), np.int64), rows[:, 0], rows[:, 0] + rows[:, 1], rows[:, 2], score)
    labels, catch_all = ["a", "b", "misc", "c", "d"], ["misc"]
    plain = decode(found, labels, overlap=overlap, catch_all=catch_all, thresholds=0.2)
    decoded = decode(found, labels, overlap=overlap, catch_all=catch_all, thresholds=0.2, penalties=penalties)
    expected = [
        (first, last, *slow_label(found, int(first), int(last), penalties))
        for first, last in zip(plain.first, plain.last, strict=True)
    ]
    assert list(zip(decoded.first, decoded.last, decoded.type, decoded.score, strict=True)) == expected
    reduced = best_labels(found.above(0.2), labels, catch_all, penalties)
    again = decode(reduced, labels, overlap=overlap, catch_all=catch_all, penalties=penalties)
    assert [column.tolist() for column in again] == [column.tolist() for column in decoded]
    spans = set(zip(reduced.first.tolist(), reduced.last.tolist(), strict=True))
    assert len(reduced.first) <= 2 * len(spans)


def slow_label(found: Proposals, first: int, last: int, penalties: np.ndarray) -> tuple[int, float]:
    """Type and score of the label of a span that is preferred; type 2 is a catch-all label."""

    def preference(row: tuple[int, float]) -> tuple[bool, float, int]:
        kind, score = row
        return kind != 2, math.log(max(float(score), 2.0**-24)) - penalties[kind], -kind

    rows = zip(found.first, found.last, found.type, found.score, strict=True)
    own = [(kind, score) for one, other, kind, score in rows if (one, other) == (first, last)]
    return max(((kind, score) for kind, score in own if score >= np.float32(0.2)), key=preference)
