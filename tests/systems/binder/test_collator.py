"""BINDER's batches: which types are asked for, which are annotated, and how they are represented."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import Corpus, Document, EntityType
from onoma.inputs.batches import pad_rows
from onoma.inputs.tokenizer import WordTokenIds, WordTokenizer
from onoma.systems.binder.collator import CLEARLY_BROADER, BinderCollator, narrow_broad_pairs, type_breadths
from onoma.systems.binder.options import BinderOptions
from onoma.systems.binder.prototypes import Prototypes
from onoma.training.examples import Example, make_examples
from tiny import TYPES, corpus, document

MANY = (*TYPES, *(EntityType(f"thing {number}", f"the thing with the number {number}") for number in range(20)))


@pytest.fixture(scope="module")
def examples(tokenizer: WordTokenizer) -> list[Example]:
    """Windows of the tiny corpus; all documents are annotated for the tiny types."""
    return _examples(corpus(), tokenizer)


def _examples(given: Corpus, tokenizer: WordTokenizer) -> list[Example]:
    numbers = {one.name: number for number, one in enumerate(MANY)}
    return make_examples([given], numbers, tokenizer, max_tokens=130, overlap=8, drop_empty=False)[0]


def collator(tokenizer: WordTokenizer, **settings: Any) -> BinderCollator:
    return BinderCollator(MANY, tokenizer, settings.pop("options", BinderOptions()), **settings)


def strings(rows: Any, mask: Any, tokenizer: WordTokenizer) -> list[str]:
    """The inputs of the type encoder as text."""
    texts = [tokenizer.tokenizer.decode(row[keep > 0].tolist()) for row, keep in zip(rows, mask, strict=True)]
    return [text.replace(" ##", "") for text in texts]


def expected_text(text: str, tokenizer: WordTokenizer) -> str:
    return tokenizer.tokenizer.decode(tokenizer.tokenizer.encode(text).ids).replace(" ##", "")


def test_texts_are_the_windows(examples: list[Example], tokenizer: WordTokenizer) -> None:
    chosen = examples[:5]
    batch = collator(tokenizer)(chosen)
    assert batch["words"].tolist() == [len(example.tokens.counts) for example in chosen]
    for row, example in enumerate(chosen):
        length = len(example.tokens.ids)
        assert batch["ids"][row, : length + 2].tolist() == [
            tokenizer.cls,
            *example.tokens.ids.tolist(),
            tokenizer.sep,
        ]
        assert batch["mask"][row].sum() == length + 2


def test_gold_refers_to_the_types_of_the_batch(examples: list[Example], tokenizer: WordTokenizer) -> None:
    batch = collator(tokenizer)(examples)
    numbers = batch["type_numbers"].tolist()
    found = [(w, first, last, numbers[column]) for w, first, last, column in batch["gold"].tolist()]
    assert found == [(w, *row) for w, example in enumerate(examples) for row in example.gold.tolist()]
    assert batch["known"].shape == (len(examples), len(numbers))
    assert strings(batch["type_ids"], batch["type_mask"], tokenizer) == [
        expected_text(MANY[number].as_text(), tokenizer) for number in numbers
    ]


def test_only_annotated_types_are_asked_for_and_known(tokenizer: WordTokenizer) -> None:
    both = Document.from_spans("Tom sang .", [(0, 3, "person")], annotated=["person", "city"])
    bands = Document.from_spans("Tom sang .", [], annotated=["band"])
    batch = collator(tokenizer)(_examples(Corpus("partly", [both, bands], TYPES), tokenizer))
    assert batch["type_numbers"].tolist() == [0, 1, 2]  # band, city, person
    assert batch["known"].tolist() == [[False, True, True], [True, False, False]]


def test_types_with_a_mention_are_kept_when_others_are_sampled(tokenizer: WordTokenizer) -> None:
    tiny = Corpus("tiny", [document("[person|Tom] flew to [city|Paris] .")], MANY)
    windows = _examples(tiny, tokenizer)
    seen = set()
    for seed in range(30):
        batch = collator(tokenizer, max_types=5, seed=seed)(windows)
        numbers = batch["type_numbers"].tolist()
        assert len(numbers) == len(set(numbers)) == 5
        assert numbers == sorted(numbers)
        assert {1, 2} <= set(numbers)
        assert bool(batch["known"].all())
        seen.update(numbers)
    assert len(seen) > 15  # the others change from batch to batch
    assert collator(tokenizer, max_types=1)(windows)["type_numbers"].tolist() == [1, 2]


def test_nonsense_is_asked_for_and_has_no_mention(examples: list[Example], tokenizer: WordTokenizer) -> None:
    batch = collator(tokenizer, nonsense_types=3)(examples[:4])
    asked = len(batch["type_ids"])
    assert batch["known"].shape == (4, asked)
    assert batch["known"][:, -3:].all()
    assert len(batch["type_numbers"]) == asked
    assert batch["gold"][:, 3].max() < asked - 3
    plain = collator(tokenizer)(examples[:4])
    assert len(plain["type_ids"]) == asked - 3
    assert plain["gold"].tolist() == batch["gold"].tolist()


def test_the_same_examples_give_the_same_batch(examples: list[Example], tokenizer: WordTokenizer) -> None:
    settings = {"description_dropout": 0.5, "seed": 3}
    first, again = (collator(tokenizer, **settings)(examples[:6]) for _ in range(2))
    assert all(bool((first[name] == again[name]).all()) for name in first)


@pytest.mark.parametrize(("share", "expected"), [(0.0, "with"), (1.0, "without"), (0.5, "both")])
def test_descriptions_are_dropped_with_their_probability(
    examples: list[Example], tokenizer: WordTokenizer, share: float, expected: str
) -> None:
    make = collator(tokenizer, description_dropout=share)
    found = set()
    for start in range(0, 60, 4):
        batch = make(examples[start : start + 4])
        found.update(strings(batch["type_ids"], batch["type_mask"], tokenizer))
    names = {expected_text(one.name, tokenizer) for one in TYPES}
    full = {expected_text(one.as_text(), tokenizer) for one in TYPES}
    assert found == {"with": full, "without": names, "both": names | full}[expected]


def test_types_may_be_given_by_name_or_by_number(examples: list[Example], tokenizer: WordTokenizer) -> None:
    named = collator(tokenizer, options=BinderOptions(types="name"))(examples)
    names = [expected_text(one.name, tokenizer) for one in TYPES]
    assert strings(named["type_ids"], named["type_mask"], tokenizer) == names
    atomic = collator(tokenizer, options=BinderOptions(types="atomic"))(examples)
    assert atomic["type_ids"].tolist() == [[0], [1], [2]]


def test_long_descriptions_are_truncated_as_in_extraction(tokenizer: WordTokenizer) -> None:
    wordy = (EntityType("person", "a human being with a name " * 50), *TYPES[:2])
    example = make_examples(
        [Corpus("tiny", [document("[person|Tom] sang .")], wordy)],
        {one.name: number for number, one in enumerate(wordy)},
        tokenizer,
        max_tokens=130,
        overlap=8,
        drop_empty=True,
    )[0]
    batch = BinderCollator(wordy, tokenizer, BinderOptions())(example)
    ids, mask = pad_rows(tokenizer.encode([one.as_text() for one in wordy]), tokenizer.pad)
    assert ids.shape[1] == 128
    assert batch["type_ids"].tolist() == ids.tolist()
    assert batch["type_mask"].tolist() == mask.tolist()


def test_types_may_be_given_by_marked_mentions(examples: list[Example], tokenizer: WordTokenizer) -> None:
    prototypes = Prototypes(examples, len(MANY), tokenizer)
    options = BinderOptions(types="prototype")
    batch = collator(tokenizer, options=options, prototypes=prototypes)(examples[:8])
    opening, closing = prototypes.markers
    wanted = {one.name: {e.text for d in corpus() for e in d.entities if e.label == one.name} for one in TYPES}
    columns = (batch[name] for name in ("type_numbers", "type_places", "type_ids", "type_mask"))
    for number, place, ids, mask in zip(*columns, strict=True):
        tokens = ids[mask > 0].tolist()
        assert (tokens[0], tokens[-1]) == (tokenizer.cls, tokenizer.sep)
        assert tokens[place] == opening
        inside = tokens[place + 1 : tokens.index(closing)]
        assert tokenizer.tokenizer.decode(inside).replace(" ##", "") in wanted[MANY[number].name]


KINDS = 6
Window = list[tuple[int, int, int]]  # first word, last word, type


def some_windows(most: int) -> st.SearchStrategy[list[Window]]:
    """Windows whose spans are mentions of up to `most` types each, in any order."""
    places = st.tuples(st.integers(0, 3), st.integers(4, 5))
    window = st.dictionaries(places, st.sets(st.integers(0, KINDS - 1), min_size=1, max_size=most), max_size=4)
    rows = window.map(lambda one: [(*place, kind) for place, kinds in one.items() for kind in kinds])
    return st.lists(rows.flatmap(st.permutations), min_size=1, max_size=4)


def of_windows(windows: list[Window]) -> list[Example]:
    """Training examples with these mentions and no text."""
    nothing = WordTokenIds(np.zeros(0, np.int32), np.zeros(0, np.int32))
    mentions = [np.array(window, np.int64).reshape(-1, 3) for window in windows]
    return [Example(nothing, gold, np.arange(KINDS), 0) for gold in mentions]


def slow_pairs(windows: list[Window]) -> set[tuple[int, int, int, int, int]]:
    """(window, first word, last word, type, another type) of all spans that have both."""
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
def test_the_breadth_of_a_type_is_the_number_of_types_that_share_its_mentions(windows: list[Window]) -> None:
    assert type_breadths(of_windows(windows), KINDS).tolist() == slow_breadths(windows)


@given(some_windows(4), st.lists(st.integers(1, 9), min_size=KINDS, max_size=KINDS))
def test_each_mention_with_a_clearly_broader_type_is_paired_once(windows: list[Window], breadths: list[int]) -> None:
    found = [tuple(row) for row in narrow_broad_pairs(rows_of(windows), np.array(breadths)).tolist()]
    expected = {pair for pair in slow_pairs(windows) if breadths[pair[4]] >= CLEARLY_BROADER * breadths[pair[3]]}
    assert len(found) == len(set(found))
    assert set(found) == expected


@given(some_windows(KINDS))
def test_mentions_with_very_many_types_have_only_true_pairs(
    windows: list[Window],
) -> None:
    breadths = type_breadths(of_windows(windows), KINDS)
    assert all(0 <= found <= most for found, most in zip(breadths.tolist(), slow_breadths(windows), strict=True))
    pairs = {tuple(row) for row in narrow_broad_pairs(rows_of(windows), breadths).tolist()}
    assert pairs <= {pair for pair in slow_pairs(windows) if breadths[pair[4]] >= CLEARLY_BROADER * breadths[pair[3]]}


def test_a_batch_has_the_type_pairs_of_its_mentions(tokenizer: WordTokenizer) -> None:
    texts = ["[person|[band|Tom]] met [person|Ann] .", "[city|Oslo] sang .", "In [city|[person|[band|Rome]]] .", "So ."]
    windows = _examples(Corpus("tiny", [document(text) for text in texts], TYPES), tokenizer)
    breadths = np.array([1, 3, 9])  # band, city, person
    batch = collator(tokenizer, breadths=breadths)(windows)
    pairs = {tuple(row) for row in batch["type_pairs"].tolist()}
    assert pairs == {(0, 0, 0, 0, 2), (2, 1, 1, 0, 1), (2, 1, 1, 0, 2), (2, 1, 1, 1, 2)}
    without = collator(tokenizer, breadths=breadths)(windows[1:2])
    assert without["type_pairs"].shape == (0, 5)
    assert "type_pairs" not in collator(tokenizer)(windows)
    wide = _examples(Corpus("tiny", [document("[person|[band|Tom Ann]] met .")], TYPES), tokenizer)
    for width, rows in (1, 0), (2, 1):
        narrow = collator(tokenizer, breadths=breadths, options=BinderOptions(max_train_width=width))
        assert len(narrow(wide)["type_pairs"]) == rows


def test_a_breadth_head_learns_from_each_pair_of_types_once(tokenizer: WordTokenizer) -> None:
    texts = ["[person|[band|Tom]] met [person|[band|Ann]] .", "[city|[person|Oslo]] sang .", "[city|Rome] sang ."]
    windows = _examples(Corpus("tiny", [document(text) for text in texts], TYPES), tokenizer)
    with_head = collator(tokenizer, breadths=np.array([1, 2, 9]), options=BinderOptions(breadth_head=True))
    batch = with_head(windows)
    assert batch["breadth_pairs"].tolist() == [[0, 2], [1, 2]]  # band and person, city and person
    assert "type_pairs" not in batch
    assert with_head(windows[2:])["breadth_pairs"].shape == (0, 2)


def test_type_pairs_refer_to_the_types_of_the_batch(tokenizer: WordTokenizer) -> None:
    windows = _examples(Corpus("tiny", [document("[city|[person|Rome]] sang .")], MANY), tokenizer)
    breadths = 2 ** np.arange(len(MANY))  # each type is broader than the one before
    batch = collator(tokenizer, breadths=breadths, max_types=2)(windows)
    ((_, _, _, narrow, broad),) = batch["type_pairs"].tolist()
    assert [MANY[batch["type_numbers"][column]].name for column in (narrow, broad)] == ["city", "person"]
