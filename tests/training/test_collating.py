"""Batches for the model: which types are asked, what is known of them, and how they are shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import Corpus, Document, EntityType, OnomaError
from onoma.subwords import Pieces, Subwords
from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.type_texts import type_text
from onoma.training.collating import CLEARLY, BinderCollator, breadths, ranked_pairs
from onoma.training.examples import Example, make_examples
from onoma.training.prototypes import CONTEXT, Prototypes
from tiny import TYPES, corpus, document

MANY = (*TYPES, *(EntityType(f"thing {number}", f"the thing with the number {number}") for number in range(20)))


@pytest.fixture(scope="module")
def examples(subwords: Subwords) -> list[Example]:
    """Windows of the tiny corpus, all of whose documents are annotated for the tiny types."""
    return _examples(corpus(), subwords)


def _examples(given: Corpus, subwords: Subwords) -> list[Example]:
    numbers = {one.name: number for number, one in enumerate(MANY)}
    return make_examples([given], numbers, subwords, max_tokens=130, overlap=8, drop_empty=False)[0]


def collator(subwords: Subwords, **settings: Any) -> BinderCollator:
    return BinderCollator(MANY, subwords, settings.pop("options", BinderOptions()), **settings)


def strings(rows: Any, mask: Any, subwords: Subwords) -> list[str]:
    """What the type encoder reads, as text."""
    texts = [subwords.tokenizer.decode(row[keep > 0].tolist()) for row, keep in zip(rows, mask, strict=True)]
    return [text.replace(" ##", "") for text in texts]


def expected_text(text: str, subwords: Subwords) -> str:
    return subwords.tokenizer.decode(subwords.tokenizer.encode(text).ids).replace(" ##", "")


def test_the_text_side_holds_the_windows(examples: list[Example], subwords: Subwords) -> None:
    chosen = examples[:5]
    batch = collator(subwords)(chosen)
    assert batch["words"].tolist() == [len(example.pieces.counts) for example in chosen]
    for row, example in enumerate(chosen):
        length = len(example.pieces.ids)
        assert batch["ids"][row, : length + 2].tolist() == [
            subwords.first,
            *example.pieces.ids.tolist(),
            subwords.last,
        ]
        assert batch["mask"][row].sum() == length + 2


def test_gold_points_to_the_columns_of_its_types(examples: list[Example], subwords: Subwords) -> None:
    batch = collator(subwords)(examples)
    numbers = batch["type_numbers"].tolist()
    found = [(w, first, last, numbers[column]) for w, first, last, column in batch["gold"].tolist()]
    assert found == [(w, *row) for w, example in enumerate(examples) for row in example.gold.tolist()]
    assert batch["known"].shape == (len(examples), len(numbers))
    assert strings(batch["type_ids"], batch["type_mask"], subwords) == [
        expected_text(type_text(MANY[number], BinderOptions()), subwords) for number in numbers
    ]


def test_only_annotated_types_are_asked_and_known(subwords: Subwords) -> None:
    both = Document.from_spans("Tom sang .", [(0, 3, "person")], annotated=["person", "city"])
    bands = Document.from_spans("Tom sang .", [], annotated=["band"])
    batch = collator(subwords)(_examples(Corpus("partly", [both, bands], TYPES), subwords))
    assert batch["type_numbers"].tolist() == [0, 1, 2]  # band, city, person
    assert batch["known"].tolist() == [[False, True, True], [True, False, False]]


def test_of_too_many_types_those_with_a_mention_stay(subwords: Subwords) -> None:
    tiny = Corpus("tiny", [document("[person|Tom] flew to [city|Paris] .")], MANY)
    windows = _examples(tiny, subwords)
    seen = set()
    for seed in range(30):
        batch = collator(subwords, most_types=5, seed=seed)(windows)
        numbers = batch["type_numbers"].tolist()
        assert len(numbers) == len(set(numbers)) == 5
        assert numbers == sorted(numbers)
        assert {1, 2} <= set(numbers)
        assert bool(batch["known"].all())
        seen.update(numbers)
    assert len(seen) > 15  # the others change from batch to batch
    assert collator(subwords, most_types=1)(windows)["type_numbers"].tolist() == [1, 2]


def test_the_same_batch_is_the_same_again(examples: list[Example], subwords: Subwords) -> None:
    settings = {"type_dropout": 0.5, "seed": 3}
    first, again = (collator(subwords, **settings)(examples[:6]) for _ in range(2))
    assert all(bool((first[name] == again[name]).all()) for name in first)


@pytest.mark.parametrize(("share", "expected"), [(0.0, "with"), (1.0, "without"), (0.5, "both")])
def test_descriptions_are_left_out_now_and_then(
    examples: list[Example], subwords: Subwords, share: float, expected: str
) -> None:
    make = collator(subwords, type_dropout=share)
    shown = set()
    for start in range(0, 60, 4):
        batch = make(examples[start : start + 4])
        shown.update(strings(batch["type_ids"], batch["type_mask"], subwords))
    names = {expected_text(one.name, subwords) for one in TYPES}
    full = {expected_text(type_text(one, BinderOptions()), subwords) for one in TYPES}
    assert shown == {"with": full, "without": names, "both": names | full}[expected]


def test_types_by_name_and_by_number(examples: list[Example], subwords: Subwords) -> None:
    named = collator(subwords, options=BinderOptions(types="name"))(examples)
    names = [expected_text(one.name, subwords) for one in TYPES]
    assert strings(named["type_ids"], named["type_mask"], subwords) == names
    atomic = collator(subwords, options=BinderOptions(types="atomic"))(examples)
    assert atomic["type_ids"].tolist() == [[0], [1], [2]]


def test_long_descriptions_are_cut_as_in_use(subwords: Subwords) -> None:
    wordy = (EntityType("person", "a human being with a name " * 50), *TYPES[:2])
    example = make_examples(
        [Corpus("tiny", [document("[person|Tom] sang .")], wordy)],
        {one.name: number for number, one in enumerate(wordy)},
        subwords,
        max_tokens=130,
        overlap=8,
        drop_empty=True,
    )[0]
    batch = BinderCollator(wordy, subwords, BinderOptions())(example)
    in_use, mask = subwords.encode([type_text(one, BinderOptions()) for one in wordy])
    assert batch["type_ids"].tolist() == in_use.tolist()
    assert batch["type_mask"].tolist() == mask.tolist()


def test_instances_stand_between_markers_in_their_sentence(examples: list[Example], subwords: Subwords) -> None:
    prototypes = Prototypes(examples, len(MANY), subwords)
    options = BinderOptions(types="prototype")
    batch = collator(subwords, options=options, prototypes=prototypes)(examples[:8])
    opening, closing = prototypes.markers
    wanted = {one.name: {e.text for d in corpus() for e in d.entities if e.label == one.name} for one in TYPES}
    columns = (batch[name] for name in ("type_numbers", "type_places", "type_ids", "type_mask"))
    for number, place, ids, mask in zip(*columns, strict=True):
        tokens = ids[mask > 0].tolist()
        assert (tokens[0], tokens[-1]) == (subwords.first, subwords.last)
        assert tokens[place] == opening
        inside = tokens[place + 1 : tokens.index(closing)]
        assert subwords.tokenizer.decode(inside).replace(" ##", "") in wanted[MANY[number].name]


def test_instances_of_long_sentences_show_only_what_is_near(subwords: Subwords) -> None:
    words = "We eat soup and bread every day , " * 12
    long = _examples(Corpus("tiny", [document(words + "[person|Tom] sang , " + words)], TYPES), subwords)
    holding = [example for example in long if len(example.gold)]
    tokens, place = Prototypes(holding, len(MANY), subwords).draw(2, np.random.default_rng(0))
    mention = int(holding[0].pieces.counts[holding[0].gold[0, 0]])
    assert place == 1 + CONTEXT
    assert len(tokens) <= 2 * CONTEXT + mention + 4


def test_a_type_without_instances_and_an_encoder_without_markers(examples: list[Example], subwords: Subwords) -> None:
    prototypes = Prototypes(examples, len(MANY), subwords)
    assert prototypes.draw(len(MANY) - 1, np.random.default_rng(0)) == ([subwords.first, subwords.last], 0)
    kept = prototypes.for_use(0)
    assert [len(instances) for instances in kept] == [3] * len(MANY)
    assert kept == prototypes.for_use(0)
    bare = _without_markers(subwords)
    with pytest.raises(OnomaError, match="unused1"):
        Prototypes([replace(one) for one in examples], len(MANY), bare)


def _without_markers(subwords: Subwords) -> Subwords:
    from tiny import documents, train_tokenizer

    return Subwords(train_tokenizer([one.text for one in documents()]))


KINDS = 6
Window = list[tuple[int, int, int]]  # first word, last word, type


def some_windows(most: int) -> st.SearchStrategy[list[Window]]:
    """Windows whose places are mentions of up to so many types each, in any order."""
    places = st.tuples(st.integers(0, 3), st.integers(4, 5))
    window = st.dictionaries(places, st.sets(st.integers(0, KINDS - 1), min_size=1, max_size=most), max_size=4)
    rows = window.map(lambda one: [(*place, kind) for place, kinds in one.items() for kind in kinds])
    return st.lists(rows.flatmap(st.permutations), min_size=1, max_size=4)


def of_windows(windows: list[Window]) -> list[Example]:
    """Training examples with these mentions and no text."""
    nothing = Pieces(np.zeros(0, np.int32), np.zeros(0, np.int32))
    mentions = [np.array(window, np.int64).reshape(-1, 3) for window in windows]
    return [Example(nothing, gold, np.arange(KINDS), 0) for gold in mentions]


def slow_pairs(windows: list[Window]) -> set[tuple[int, int, int, int, int]]:
    """(window, first word, last word, type, another type) of all places that have both."""
    return {
        (number, *one, other[2])
        for number, window in enumerate(windows)
        for one in window
        for other in window
        if one[:2] == other[:2] and one[2] != other[2]
    }


def slow_breadths(windows: list[Window]) -> list[int]:
    distinct = {(one, other) for *_, one, other in slow_pairs(windows)}
    return [sum(one == kind for one, _ in distinct) for kind in range(KINDS)]


def rows_of(windows: list[Window]) -> np.ndarray:
    rows = [(number, *row) for number, window in enumerate(windows) for row in window]
    return np.array(rows, np.int64).reshape(-1, 4)


@given(some_windows(4))
def test_the_breadth_of_a_type_is_how_many_others_share_mentions_with_it(windows: list[Window]) -> None:
    assert breadths(of_windows(windows), KINDS).tolist() == slow_breadths(windows)


@given(some_windows(4), st.lists(st.integers(1, 9), min_size=KINDS, max_size=KINDS))
def test_mentions_with_a_clearly_broader_type_are_ranked_once(windows: list[Window], breadth: list[int]) -> None:
    found = [tuple(row) for row in ranked_pairs(rows_of(windows), np.array(breadth)).tolist()]
    expected = {pair for pair in slow_pairs(windows) if breadth[pair[4]] >= CLEARLY * breadth[pair[3]]}
    assert len(found) == len(set(found))
    assert set(found) == expected


@given(some_windows(KINDS))
def test_of_a_mention_with_very_many_types_some_pairs_may_be_left_out_but_none_is_made_up(
    windows: list[Window],
) -> None:
    breadth = breadths(of_windows(windows), KINDS)
    assert all(0 <= found <= most for found, most in zip(breadth.tolist(), slow_breadths(windows), strict=True))
    ranked = {tuple(row) for row in ranked_pairs(rows_of(windows), breadth).tolist()}
    assert ranked <= {pair for pair in slow_pairs(windows) if breadth[pair[4]] >= CLEARLY * breadth[pair[3]]}


def test_a_batch_says_which_types_of_its_mentions_are_narrower(subwords: Subwords) -> None:
    texts = ["[person|[band|Tom]] met [person|Ann] .", "[city|Oslo] sang .", "In [city|[person|[band|Rome]]] .", "So ."]
    windows = _examples(Corpus("tiny", [document(text) for text in texts], TYPES), subwords)
    breadth = np.array([1, 3, 9])  # band, city, person
    batch = collator(subwords, breadth=breadth)(windows)
    ranked = {tuple(row) for row in batch["ranked"].tolist()}
    assert ranked == {(0, 0, 0, 0, 2), (2, 1, 1, 0, 1), (2, 1, 1, 0, 2), (2, 1, 1, 1, 2)}
    without = collator(subwords, breadth=breadth)(windows[1:2])
    assert without["ranked"].shape == (0, 5)
    assert "ranked" not in collator(subwords)(windows)
    wide = _examples(Corpus("tiny", [document("[person|[band|Tom Ann]] met .")], TYPES), subwords)
    for width, rows in (1, 0), (2, 1):
        narrow = collator(subwords, breadth=breadth, options=BinderOptions(train_width=width))
        assert len(narrow(wide)["ranked"]) == rows


def test_ranked_types_are_columns_of_the_batch(subwords: Subwords) -> None:
    windows = _examples(Corpus("tiny", [document("[city|[person|Rome]] sang .")], MANY), subwords)
    breadth = 2 ** np.arange(len(MANY))  # each type is broader than the one before
    batch = collator(subwords, breadth=breadth, most_types=2)(windows)
    ((_, _, _, narrow, broad),) = batch["ranked"].tolist()
    assert [MANY[batch["type_numbers"][column]].name for column in (narrow, broad)] == ["city", "person"]
