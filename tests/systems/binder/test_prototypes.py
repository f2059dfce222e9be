"""Prototypical instances: mentions in context, as representations of types."""

from __future__ import annotations

import numpy as np
import pytest

from onoma import Corpus, OnomaError
from onoma.inputs.tokenizer import WordTokenizer
from onoma.systems.binder.prototypes import CONTEXT, INSTANCES, Prototypes
from onoma.training.examples import Example, make_examples
from tiny import TYPES, corpus, document, documents, train_tokenizer

PERSON = [one.name for one in TYPES].index("person")


def examples_of(source: Corpus, tokenizer: WordTokenizer) -> list[Example]:
    numbers = {one.name: number for number, one in enumerate(TYPES)}
    return make_examples([source], numbers, tokenizer, max_tokens=130, overlap=8, drop_empty=False)[0]


def test_an_instance_is_a_marked_mention_of_its_type(tokenizer: WordTokenizer) -> None:
    prototypes = Prototypes(examples_of(corpus(), tokenizer), len(TYPES), tokenizer)
    opening, closing = prototypes.markers
    generator = np.random.default_rng(0)
    for kind, one in enumerate(TYPES):
        mentions = {entity.text for text in corpus() for entity in text.entities if entity.label == one.name}
        found = set()
        for _ in range(50):
            tokens, place = prototypes.draw(kind, generator)
            assert (tokens[0], tokens[-1], tokens[place]) == (tokenizer.cls, tokenizer.sep, opening)
            inside = tokens[place + 1 : tokens.index(closing)]
            found.add(tokenizer.tokenizer.decode(inside).replace(" ##", ""))
        assert found <= mentions
        assert len(found) > 3


def test_instances_of_long_sentences_have_limited_context(tokenizer: WordTokenizer) -> None:
    words = "We eat soup and bread every day , " * 12
    long = examples_of(Corpus("tiny", [document(words + "[person|Tom] sang , " + words)], TYPES), tokenizer)
    holding = [example for example in long if len(example.gold)]
    tokens, place = Prototypes(holding, len(TYPES), tokenizer).draw(PERSON, np.random.default_rng(0))
    mention = int(holding[0].tokens.counts[holding[0].gold[0, 0]])
    assert place == 1 + CONTEXT
    assert len(tokens) <= 2 * CONTEXT + mention + 4


def test_a_type_without_mentions_has_empty_instances(tokenizer: WordTokenizer) -> None:
    prototypes = Prototypes(examples_of(corpus(), tokenizer), len(TYPES) + 1, tokenizer)
    assert prototypes.draw(len(TYPES), np.random.default_rng(0)) == ([tokenizer.cls, tokenizer.sep], 0)


def test_the_instances_of_a_trained_model_depend_on_the_seed_alone(tokenizer: WordTokenizer) -> None:
    prototypes = Prototypes(examples_of(corpus(), tokenizer), len(TYPES), tokenizer)
    kept = prototypes.sample(0)
    assert [len(instances) for instances in kept] == [INSTANCES] * len(TYPES)
    assert kept == prototypes.sample(0) != prototypes.sample(1)


def test_an_encoder_without_marker_tokens_is_refused(tokenizer: WordTokenizer) -> None:
    bare = WordTokenizer(train_tokenizer([one.text for one in documents()]))
    with pytest.raises(OnomaError, match="unused1"):
        Prototypes(examples_of(corpus(), tokenizer), len(TYPES), bare)
