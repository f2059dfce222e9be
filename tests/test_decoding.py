import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import OnomaError
from onoma.decoding import Proposals, decode, select
from onoma.text import cut_windows, segment

ROW = st.tuples(st.integers(0, 12), st.integers(1, 8), st.integers(0, 2), st.sampled_from([0.1, 0.2, 0.5, 0.9])).map(
    lambda row: (row[0], row[0] + row[1], row[2], row[3])
)


def conflict(a, b, overlap):
    """Whether two different spans may not stand together, by the definition."""
    if overlap == "flat":
        return a[0] < b[1] and b[0] < a[1]
    return overlap == "nested" and (a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1])


def obvious_select(rows, overlap, several_labels):
    kept = []
    for row in sorted(rows, key=lambda row: (-row[3], row[0], row[1], row[2])):
        same = [other for other in kept if other[:2] == row[:2]]
        if same:
            if several_labels and row[2] not in {other[2] for other in same}:
                kept.append(row)
        elif not any(conflict(row, other, overlap) for other in kept):
            kept.append(row)
    return sorted(kept)


@given(st.lists(ROW, max_size=25), st.sampled_from(["flat", "nested", "any"]), st.booleans())
def test_select_agrees_with_the_obvious_way(rows, overlap, several_labels):
    columns = np.array(rows, float).reshape(-1, 4).T
    kept = select(*columns, overlap=overlap, several_labels=several_labels)
    assert [rows[i] for i in kept] == obvious_select(rows, overlap, several_labels)


@pytest.mark.parametrize("overlap", ["flat", "nested"])
def test_select_agrees_with_the_obvious_way_over_several_batches(overlap):
    generator = np.random.default_rng(0)
    start = generator.integers(0, 9_000, 12_000)
    rows = list(zip(start, start + generator.integers(1, 9, 12_000), start * 0, generator.random(12_000), strict=True))
    kept = {rows[i] for i in select(*np.array(rows).T, overlap=overlap)}
    best_first, by_place = sorted(rows, key=lambda row: -row[3]), {}
    for row in best_first:  # the obvious way, looking only at near spans
        near = [other for place in range(row[0] - 9, row[0] + 10) for other in by_place.get(place, ())]
        clash = any(row[:2] == other[:2] or conflict(row, other, overlap) for other in near)
        assert (row in kept) == (not clash)
        if not clash:
            by_place.setdefault(row[0], []).append(row)


@given(st.lists(st.tuples(st.integers(0, 3), ROW), max_size=25), st.sampled_from(["flat", "nested", "any"]))
def test_documents_in_one_call_do_not_touch_each_other(rows, overlap):
    group = [document for document, _ in rows]
    columns = np.array([row for _, row in rows], float).reshape(-1, 4).T
    together = [rows[i] for i in select(*columns, overlap=overlap, group=group)]
    apart = [(d, row) for d in range(4) for row in obvious_select([r for g, r in rows if g == d], overlap, False)]
    assert together == apart


def proposals(*rows):
    return Proposals(*(np.array(column) for column in zip(*rows, strict=True)))


TEXT = "Bank of New York in New York"
WORDS = segment(TEXT)
FOUND = proposals((0, 0, 3, 0, 0.9), (0, 2, 3, 1, 0.8), (0, 5, 6, 1, 0.7), (0, 5, 6, 2, 0.7), (0, 3, 5, 2, 0.6))


def texts(entities):
    return [(entity.text, entity.label) for entity in entities]


def test_decode_flat_nested_any():
    labels = ["organization", "city", "state"]
    bank, inner, outer = ("Bank of New York", "organization"), ("New York", "city"), ("New York", "city")
    assert texts(decode(TEXT, WORDS, FOUND, labels)) == [bank, outer]
    assert texts(decode(TEXT, WORDS, FOUND, labels, overlap="nested")) == [bank, inner, outer]
    assert ("York in New", "state") in texts(decode(TEXT, WORDS, FOUND, labels, overlap="any"))
    several = texts(decode(TEXT, WORDS, FOUND, labels, several_labels=True))
    assert several == [bank, outer, ("New York", "state")]


def test_the_order_of_labels_has_no_influence():
    names = ["organization", "city", "state"]
    expected = decode(TEXT, WORDS, FOUND, names)
    for order in ([2, 1, 0], [1, 2, 0], [0, 2, 1]):
        shuffled = FOUND._replace(type=np.array([order.index(i) for i in FOUND.type]))
        assert decode(TEXT, WORDS, shuffled, [names[i] for i in order]) == expected


def test_thresholds_per_label():
    assert texts(decode(TEXT, WORDS, FOUND, ["organization", "city", "state"], threshold=[0.95, 0.75, 0.5])) == [
        ("New York", "city"),
        ("New York", "state"),
    ]


def test_a_score_that_is_not_a_number_never_passes():
    assert decode(TEXT, WORDS, proposals((0, 0, 0, 0, float("nan"))), ["x"], threshold=0.0) == []


def test_stitching_gives_each_mention_once():
    text = " ".join(f"w{i}" for i in range(50))
    words = segment(text)
    windows = cut_windows([1] * 50, 20, 6)
    spans = [(first, first + width - 1) for first in range(50) for width in range(1, 7) if first + width <= 50]
    rows = [
        (window, first - start, last - start, 0, 0.9)
        for window, (start, end) in enumerate(zip(windows.start, windows.end, strict=True))
        for first, last in spans
        if start <= first and last < end
    ]
    entities = decode(text, words, proposals(*rows), ["x"], windows=windows, overlap="any")
    assert [(e.start, e.end) for e in entities] == sorted((words[a, 0], words[b, 1]) for a, b in spans)


def test_unknown_overlap_is_an_error():
    with pytest.raises(OnomaError, match="flat, nested, any"):
        select([0], [1], [0], [0.5], overlap="crossing")


@pytest.mark.parametrize("label", ["miscellaneous", "Misc", " other ", "其他"])
def test_what_is_none_of_the_others_gets_what_they_leave(label: str) -> None:
    words = segment("Oslo Opera House , Viking Age")
    rows = [(0, 0, 2, 0, 0.9), (0, 0, 0, 1, 0.5), (0, 4, 5, 0, 0.8)]
    proposals = Proposals(*(np.array(column) for column in zip(*rows, strict=True)))
    found = decode("Oslo Opera House , Viking Age", words, proposals, [label, "city"])
    assert [(one.text, one.label, one.score) for one in found] == [("Oslo", "city", 0.5), ("Viking Age", label, 0.8)]
    named = decode("Oslo Opera House , Viking Age", words, proposals, ["other building", "city"])
    assert [one.text for one in named] == ["Oslo Opera House", "Viking Age"]  # a type of its own
