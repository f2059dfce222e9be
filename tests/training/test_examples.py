"""Training windows: no mention is lost, and types without annotation are unknown."""

from __future__ import annotations

import numpy as np
import pytest

from onoma import Corpus, Document, EntityType
from onoma.inputs.tokenizer import WordTokenizer
from onoma.text import segment
from onoma.training.examples import Example, ExampleCounts, make_examples
from tiny import TYPES, corpus, document

NUMBERS = {one.name: number for number, one in enumerate(TYPES)}


def examples_of(
    corpora: Corpus | list[Corpus],
    tokenizer: WordTokenizer,
    *,
    max_tokens: int = 130,
    overlap: int = 8,
    drop_empty: bool = True,
) -> tuple[list[Example], ExampleCounts]:
    """Examples with the numbers of the tiny types."""
    given = corpora if isinstance(corpora, list) else [corpora]
    return make_examples(given, NUMBERS, tokenizer, max_tokens=max_tokens, overlap=overlap, drop_empty=drop_empty)


def mentions(example: Example, tokenizer: WordTokenizer) -> list[tuple[str, str]]:
    """The gold mentions of a window as text and type, decoded from their tokens."""
    ends = np.cumsum(example.tokens.counts)
    found = []
    for first, last, kind in example.gold.tolist():
        ids = example.tokens.ids[ends[first] - example.tokens.counts[first] : ends[last]].tolist()
        found.append((tokenizer.tokenizer.decode(ids).replace(" ##", ""), TYPES[kind].name))
    return found


def long_document(sentences: int) -> Document:
    """Many sentences of the tiny corpus in one text, without full stops to cut at."""
    marked = "[person|Tom] flew to [city|New York] and [band|The [city|Rome] Players] sang , "
    return document(marked * sentences)


def test_every_mention_of_short_documents_is_in_a_window(tokenizer: WordTokenizer) -> None:
    tiny = corpus()
    examples, counts = examples_of(tiny, tokenizer)
    found = [pair for example in examples for pair in mentions(example, tokenizer)]
    expected = [(entity.text, entity.label) for one in tiny for entity in one.entities]
    assert sorted(found) == sorted(expected)
    assert counts.mentions == len(expected)
    assert (counts.split_words, counts.cut_mentions) == (0, 0)
    assert counts.windows == len(examples)


def test_mentions_at_the_edges_of_a_window_are_kept(tokenizer: WordTokenizer) -> None:
    edges = document("[person|Tom] has seen [city|New York]")
    examples, _ = examples_of(Corpus("tiny", [edges], TYPES), tokenizer)
    assert mentions(examples[0], tokenizer) == [("Tom", "person"), ("New York", "city")]


def test_windows_without_a_mention_are_dropped_only_on_request(tokenizer: WordTokenizer) -> None:
    tiny = corpus()
    empty = sum(not one.entities for one in tiny)
    dropped, counts = examples_of(tiny, tokenizer)
    everything, full = examples_of(tiny, tokenizer, drop_empty=False)
    assert empty > 0
    assert counts.dropped_windows == empty
    assert len(everything) == len(dropped) + empty == len(tiny)
    assert full.dropped_windows == 0


@pytest.mark.parametrize("max_tokens", [20, 40, 130])
def test_every_mention_of_a_long_document_is_whole_in_some_window(tokenizer: WordTokenizer, max_tokens: int) -> None:
    long = long_document(30)
    tiny = Corpus("tiny", [long], TYPES)
    examples, counts = examples_of(tiny, tokenizer, max_tokens=max_tokens)
    assert len(examples) > 1
    assert all(len(example.tokens.ids) <= max_tokens - 2 for example in examples)
    assert counts.cut_mentions == 0
    found = {pair for example in examples for pair in mentions(example, tokenizer)}
    assert found == {("Tom", "person"), ("New York", "city"), ("The Rome Players", "band"), ("Rome", "city")}
    assert sum(len(example.gold) for example in examples) >= len(long.entities)


def test_a_mention_wider_than_any_window_is_counted_as_cut(tokenizer: WordTokenizer) -> None:
    marked = "[band|" + "The Rome Players and " * 20 + "Tom] sang ."
    examples, counts = examples_of(Corpus("tiny", [document(marked)], TYPES), tokenizer, max_tokens=20)
    assert counts.cut_mentions == 1
    assert examples == []


def test_words_are_split_where_a_mention_starts_inside(tokenizer: WordTokenizer) -> None:
    text = "pre-Parisian"
    one = Document.from_spans(text, [(4, 9, "city")])
    examples, counts = examples_of(Corpus("tiny", [one], TYPES), tokenizer)
    assert counts.split_words == 1
    assert mentions(examples[0], tokenizer) == [("Paris", "city")]
    assert len(examples[0].tokens.counts) == len(segment(text)) + 1


def test_words_are_segmented_anew_even_if_the_source_has_words(tokenizer: WordTokenizer) -> None:
    text = "Tom sang."
    one = Document.from_spans(text, [(0, 3, "person")], words=[(0, 3), (4, 9)])
    examples, _ = examples_of(Corpus("tiny", [one], TYPES), tokenizer)
    assert len(examples[0].tokens.counts) == len(segment(text)) == 3


def test_known_types_are_the_annotated_ones(tokenizer: WordTokenizer) -> None:
    whole = document("[person|Tom] sang .")
    partly = Document.from_spans("Tom sang .", [(0, 3, "person")], annotated=["person", "city"])
    people = Corpus("people", [document("[person|Ann] sang .")], (EntityType("person"),))
    examples, _ = examples_of([Corpus("tiny", [whole, partly], TYPES), people], tokenizer)
    assert [[TYPES[kind].name for kind in example.known] for example in examples] == [
        ["band", "city", "person"],
        ["city", "person"],
        ["person"],
    ]
    assert [example.corpus for example in examples] == [0, 0, 1]


def test_documents_without_annotated_types_give_no_window(tokenizer: WordTokenizer) -> None:
    silent = Document.from_spans("Tom sang .", [], annotated=[])
    examples, _ = examples_of(Corpus("tiny", [silent], TYPES), tokenizer, drop_empty=False)
    assert examples == []


def test_documents_without_words_give_no_window(tokenizer: WordTokenizer) -> None:
    examples, counts = examples_of(Corpus("tiny", [Document(""), Document(" \n ")], TYPES), tokenizer, drop_empty=False)
    assert examples == []
    assert counts.mentions == 0


def test_a_window_knows_its_text_and_the_offsets_of_its_words(tokenizer: WordTokenizer) -> None:
    tiny = Corpus("tiny", [long_document(10), document("[person|Ann] sang .")], TYPES)
    examples, _ = examples_of(tiny, tokenizer, max_tokens=40)
    assert len(examples) > 3
    for example in examples:
        assert len(example.words) == len(example.tokens.counts)
        for (first, last, _), (text, _) in zip(example.gold.tolist(), mentions(example, tokenizer), strict=True):
            assert example.text[example.words[first, 0] : example.words[last, 1]] == text
