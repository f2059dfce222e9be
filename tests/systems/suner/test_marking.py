"""Positions of markers, against markers that are inserted into a list of tokens."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onoma.inputs.batches import Batch
from onoma.inputs.tokenizer import WordTokenIds
from onoma.systems.suner.marking import CLOSING, OPENING, PADDING, TEXT, Candidates, mark, pack_markers, pair_numbers
from onoma.systems.suner.options import MAX_MARKED, SunerOptions
from tiny_batches import batch_of

Spans = list[tuple[int, int]]


def numbered_batch(counts: list[list[int]]) -> Batch:
    """Windows given by the number of tokens of each word; the tokens are 3, 4, 5, ..."""
    return batch_of(
        [WordTokenIds(np.arange(3, 3 + sum(one), dtype=np.int32), np.array(one, np.int32)) for one in counts]
    )


def candidates_of(spans: list[Spans]) -> Candidates:
    rows = [(window, first, last) for window, own in enumerate(spans) for first, last in own]
    return Candidates(*np.array(rows, np.int64).reshape(-1, 3).T)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[int]], list[Spans]]:
    """Windows, some without candidates, and candidates in any order, some with the same first word."""
    counts = draw(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=5), min_size=1, max_size=3))
    spans = []
    for own in counts:
        places = [(first, last) for first in range(len(own)) for last in range(first, len(own))]
        spans.append(draw(st.lists(st.sampled_from(places), max_size=5, unique=True)))
    return counts, spans


def test_markers_follow_the_text_with_the_positions_of_their_tokens() -> None:
    batch = numbered_batch([[1, 2, 1], [1, 1]])  # 6 tokens with [CLS] and [SEP], and 4
    marked = mark(batch, candidates_of([[(0, 1), (1, 1)], [(0, 0)]]))
    assert marked.ids.tolist() == [[1, 3, 4, 5, 6, 2, 0, 0, 0, 0], [1, 3, 4, 2, 0, 0, 0, 0, 0, 0]]
    e, f, t, p = OPENING, CLOSING, TEXT, PADDING
    assert marked.roles.tolist() == [[t, t, t, t, t, t, e, e, f, f], [t, t, t, t, p, p, e, p, f, p]]
    assert marked.opening.tolist() == [6, 7, 6]
    assert marked.closing.tolist() == [8, 9, 8]
    assert marked.positions[:, :6].tolist() == [[0, 1, 2, 3, 4, 5]] * 2
    assert marked.positions[[0, 0, 1], marked.opening].tolist() == [1, 2, 1]
    assert marked.positions[[0, 0, 1], marked.closing].tolist() == [3, 3, 1]


def test_without_candidates_there_is_only_text() -> None:
    batch = numbered_batch([[1, 2], [1]])
    for tied in (True, False):
        marked = mark(batch, candidates_of([[], []]), tied=tied)
        assert marked.ids.tolist() == batch.ids.tolist()
        assert marked.roles.tolist() == batch.mask.tolist()
        assert marked.positions.tolist() == [[0, 1, 2, 3, 4]] * 2
        assert len(marked.opening) == len(marked.closing) == 0


@given(cases())
def test_slots_count_within_windows(case: tuple[list[list[int]], list[Spans]]) -> None:
    expected = [number for own in case[1] for number in range(len(own))]
    assert candidates_of(case[1]).slot.tolist() == expected


@given(cases())
def test_tied_markers_share_the_positions_of_their_tokens(case: tuple[list[list[int]], list[Spans]]) -> None:
    counts, spans = case
    batch, candidates = numbered_batch(counts), candidates_of(spans)
    marked = mark(batch, candidates)
    tokens = batch.ids.shape[1]
    places = list(zip(candidates.window.tolist(), marked.opening.tolist(), marked.closing.tolist(), strict=True))
    assert len({(w, place) for w, *both in places for place in both}) == 2 * len(places)  # all places differ
    for (window, opening, closing), first, last in zip(places, candidates.first, candidates.last, strict=True):
        assert min(opening, closing) >= tokens
        assert (marked.roles[window, opening], marked.roles[window, closing]) == (OPENING, CLOSING)
        own = counts[window]
        assert marked.positions[window, opening] == 1 + sum(own[:first])
        assert marked.positions[window, closing] == sum(own[: last + 1])
    assert np.count_nonzero(marked.roles >= OPENING) == 2 * len(places)
    assert marked.roles[:, :tokens].tolist() == batch.mask.tolist()
    assert (marked.positions[:, :tokens] == np.arange(tokens)).all()


@given(cases())
def test_untied_markers_have_the_positions_of_inserted_markers(
    case: tuple[list[list[int]], list[Spans]],
) -> None:
    counts, spans = case
    batch, candidates = numbered_batch(counts), candidates_of(spans)
    marked = mark(batch, candidates, tied=False)
    number = 0
    for window, own in enumerate(spans):
        firsts = [int(batch.first[window, first]) for first, _ in own]
        lasts = [int(batch.last[window, last]) for _, last in own]
        written: list[tuple[str, int]] = []  # tokens and markers in the order of the text
        for token in range(batch.ids.shape[1]):
            written += [("e", one) for one, first in enumerate(firsts) if first == token]
            written.append(("token", token))
            written += [("/e", one) for one, last in enumerate(lasts) if last == token]
        for token in range(int(batch.mask[window].sum())):
            assert marked.positions[window, token] == written.index(("token", token))
        for one in range(len(own)):
            assert marked.positions[window, marked.opening[number]] == written.index(("e", one))
            assert marked.positions[window, marked.closing[number]] == written.index(("/e", one))
            number += 1
    tied = mark(batch, candidates)
    assert all((a == b).all() for name, a, b in zip(tied._fields, tied, marked, strict=True) if name != "positions")


@given(cases())
def test_packed_markers_are_those_of_the_padded_ones(case: tuple[list[list[int]], list[Spans]]) -> None:
    counts, spans = case
    batch, candidates = numbered_batch(counts), candidates_of(spans)
    marked, packed = mark(batch, candidates), pack_markers(candidates, *candidates.tokens(batch), SunerOptions())
    window = candidates.window
    assert packed.positions[0::2].tolist() == marked.positions[window, marked.opening].tolist()
    assert packed.positions[1::2].tolist() == marked.positions[window, marked.closing].tolist()
    assert packed.roles.tolist() == [OPENING, CLOSING] * len(window)
    assert packed.windows.tolist() == [number for number, own in enumerate(spans) if own]
    assert np.diff(packed.edges).tolist() == [2 * len(own) for own in spans if own]
    paired = pack_markers(candidates, *candidates.tokens(batch), SunerOptions(marker_identity="paired"))
    assert paired.positions.tolist() == packed.positions.tolist()
    assert paired.windows.tolist() == window.tolist()
    assert set(np.diff(paired.edges).tolist()) <= {2}
    assert paired.roles[0::2].tolist() == (OPENING + 2 * candidates.slot).tolist()


# --- the identity of pairs


@given(cases())
def test_the_roles_of_markers_tell_the_numbers_of_their_pairs(case: tuple[list[list[int]], list[Spans]]) -> None:
    batch, candidates = numbered_batch(case[0]), candidates_of(case[1])
    shared, marked = mark(batch, candidates), mark(batch, candidates, numbers=candidates.slot)
    window, slot = candidates.window, candidates.slot
    assert marked.roles[window, marked.opening].tolist() == (OPENING + 2 * slot).tolist()
    assert marked.roles[window, marked.closing].tolist() == (CLOSING + 2 * slot).tolist()
    assert ((marked.roles >= OPENING) == (shared.roles >= OPENING)).all()


def test_pairs_have_numbers_in_the_order_of_the_text_and_random_ones_in_training() -> None:
    candidates = candidates_of([[(0, 0), (0, 2), (1, 2)], [], [(3, 3), (4, 5)]])
    numbered = SunerOptions(marker_identity="numbered", max_candidates=40)
    assert pair_numbers(candidates, SunerOptions()).tolist() == [0, 0, 0, 0, 0]
    for options in (numbered, SunerOptions(marker_identity="paired")):
        assert pair_numbers(candidates, options).tolist() == [0, 1, 2, 0, 1]
    generator, seen = np.random.default_rng(0), set()
    for _ in range(200):
        numbers = pair_numbers(candidates, numbered, generator).tolist()
        assert len(set(numbers[:3])) == 3
        assert len(set(numbers[3:])) == 2
        seen.update(numbers)
    assert seen == set(range(40))  # all numbers are trained
    assert pair_numbers(candidates_of([[], []]), numbered, generator).shape == (0,)


def test_there_are_enough_numbers_for_training_and_extraction() -> None:
    for most in (3, 64):
        options = SunerOptions(marker_identity="numbered", max_candidates=most)
        assert options.marker_numbers == max(most, MAX_MARKED)
    assert SunerOptions().marker_numbers == 1
