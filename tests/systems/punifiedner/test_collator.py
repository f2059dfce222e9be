"""Batches: which types an example asks for, the answers, and texts cut in two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onoma import Corpus, Document, EntityType
from onoma.inputs.tokenizer import WordTokenizer
from onoma.systems.punifiedner.collator import PrefixCollator, PromptCollator
from onoma.systems.punifiedner.model import IGNORED
from onoma.systems.punifiedner.options import PUnifiedNerOptions
from onoma.systems.punifiedner.prompts import PromptTokenizer
from onoma.training.examples import Example, make_examples
from tiny_t5 import t5_tokenizer

TYPES = [EntityType(name) for name in ("person", "city", "band", "year")]  # not in the order of their names
TEXT = "Tom met Ann in New York and Tom left New York"
DOCUMENT = Document.from_spans(
    TEXT,
    [(0, 3, "person"), (8, 11, "person"), (15, 23, "city"), (28, 31, "person"), (37, 45, "city")],
    annotated=("person", "city", "band"),
)
TOKENIZER = WordTokenizer(t5_tokenizer([TEXT, *(one.name for one in TYPES)]))
PROMPTS = PromptTokenizer(TOKENIZER)


def examples(*documents: Document) -> list[Example]:
    numbers = {one.name: number for number, one in enumerate(TYPES)}
    made, _ = make_examples(
        [Corpus("c", list(documents), TYPES)], numbers, TOKENIZER, max_tokens=99, overlap=0, drop_empty=False
    )
    return made


def collated(*documents: Document, **options: Any) -> tuple[list[str], list[str]]:
    """The inputs and answers of a batch in words."""
    collator = PromptCollator(TYPES, PROMPTS, PUnifiedNerOptions(**options))
    arrays = collator(examples(*documents))
    inputs = [ids[mask == 1].tolist() for ids, mask in zip(arrays["ids"], arrays["mask"], strict=True)]
    answers = [row[row != IGNORED].tolist() for row in arrays["labels"]]
    return [_words(row) for row in inputs], [PROMPTS.show(row) for row in answers]


def _words(ids: list[int]) -> str:
    names = {PROMPTS.symbols.entity: "<entity>", PROMPTS.symbols.text: "<text>", PROMPTS.end: ""}
    return "".join(names[one] if one in names else PROMPTS.strings([[one]])[0] + " " for one in ids)


def types_of(prompt: str) -> list[str]:
    return [one.strip() for one in prompt.partition("<text>")[0].split("<entity>")[1:]]


def test_a_prompt_of_the_dataset_asks_for_all_annotated_types_in_the_order_of_their_names() -> None:
    inputs, answers = collated(DOCUMENT)
    assert inputs == [f"<entity>band <entity>city <entity>person <text>{TEXT} "]
    assert answers == ["((band):(NULL),(city):(New York),(person):(Tom),(person):(Ann))"]


def many(setup: str, **options: Any) -> set[tuple[str, ...]]:
    """The sets of types that one document is asked for in many different batches."""
    collator = PromptCollator(TYPES, PROMPTS, PUnifiedNerOptions(prompts=setup, **options))
    generator = np.random.default_rng(0)
    (one,) = examples(DOCUMENT)
    return {tuple(TYPES[number].name for number in collator.choose_types(one, generator)) for _ in range(200)}


def test_random_prompts_ask_for_any_annotated_types() -> None:
    found = many("random")
    assert found == {
        *(("band",), ("city",), ("person",), ("band", "city"), ("band", "person"), ("city", "person")),
        ("band", "city", "person"),
    }


def test_exact_prompts_ask_for_the_types_with_a_mention() -> None:
    collator = PromptCollator(TYPES, PROMPTS, PUnifiedNerOptions(prompts="random+exact"))
    generator = np.random.default_rng(0)
    (one,) = examples(DOCUMENT)
    found = [tuple(collator.choose_types(one, generator)) for _ in range(400)]
    share = np.mean([numbers == (1, 0) for numbers in found])  # city, person
    assert 0.5 < share < 0.7  # half of the prompts, and one in nine of the others
    assert len(set(found)) == 7
    (empty,) = examples(Document.from_spans("Nobody is here", [], annotated=("band",)))
    assert collator.choose_types(empty, generator) == [2]


def test_mixed_prompts_ask_for_all_types_or_for_some() -> None:
    assert len(many("dataset+random")) == 7
    assert many("dataset") == {("band", "city", "person")}


def test_a_prompt_has_at_most_so_many_types_those_with_mentions_first() -> None:
    assert many("dataset", max_types=2) == {("city", "person")}
    assert many("dataset", max_types=1) == {("city",), ("person",)}


def test_a_long_answer_is_cut_between_pairs() -> None:
    _, answers = collated(DOCUMENT, max_answer_tokens=1)
    assert answers == ["((band):(NULL),(city):(New York),(person):(Tom))"]


@pytest.mark.parametrize("text", [TEXT, "Tom", "New York"])
def test_a_text_is_cut_in_two_between_words(text: str) -> None:
    (one,) = examples(Document.from_spans(text, []))
    source = PROMPTS.read([text], [one.words])[0]
    cuts = set()
    for seed in range(40):
        arrays = PrefixCollator(PROMPTS, seed=seed)([one])
        first, second = arrays["ids"][0].tolist(), arrays["labels"][0].tolist()
        assert first[-1] == second[-1] == PROMPTS.end
        assert first[:-1] + second[:-1] == source.ids.tolist()
        assert len(first) > 1
        cuts.add(len(first) - 1)
    assert cuts == set(source.edges[1:-1].tolist()) or (len(source.edges) == 2 and cuts == {len(source.ids)})


def test_batches_do_not_depend_on_chance() -> None:
    documents = [DOCUMENT, Document.from_spans("Tom left", [(0, 3, "person")])]
    assert collated(*documents, prompts="random") == collated(*documents, prompts="random")
