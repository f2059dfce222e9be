"""A tiny BINDER that is trained in a few seconds on made-up sentences.

It knows persons and cities (and bands, which contain cities) well enough for tests to ask for them by name.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel

from onoma import Corpus, Document, EntityType
from onoma.inputs.batches import Batch, pad_rows
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.models.weights import save_model
from onoma.systems.binder.model import Binder
from onoma.systems.binder.options import BinderOptions
from onoma.training.collation import collate_examples, gold_rows
from onoma.training.examples import make_examples

TYPES = (
    EntityType("band", "a group of people who make music together"),
    EntityType("city", "a large town"),
    EntityType("person", "a human being with a name"),
)
PEOPLE = ("Tom", "Ann", "Maria Silva", "Omar Haddad", "Li Wei", "Greta")
CITIES = ("Paris", "Rome", "Oslo", "Lima", "New York", "Kyoto")
PATTERNS = (
    "[person|{person}] flew to [city|{city}] .",
    "In [city|{city}] it rains , says [person|{person}] .",
    "[band|The [city|{city}] Players] will sing for [person|{person}] today .",
    "Nobody has seen [person|{person}] since the concert in [city|{city}] .",
    "We eat soup and bread every day .",
)
OPTIONS: dict[str, Any] = {"vector_size": 32, "width_size": 16, "max_width": 8, "shared_encoder": True}


def documents() -> list[Document]:
    """Every pattern with every person and every city."""
    filled = (pattern.format(person=p, city=c) for pattern, p, c in product(PATTERNS, PEOPLE, CITIES))
    return [document(marked) for marked in dict.fromkeys(filled)]


def document(marked: str) -> Document:
    """A document from a text such as "[person|Tom] sang"; marks may be nested."""
    text, spans, opened = "", [], []
    for token in re.findall(r"\[[a-z]+\||\]|[^\[\]]+", marked):
        if token.endswith("|"):
            opened.append((len(text), token[1:-1]))
        elif token == "]":
            start, label = opened.pop()
            spans.append((start, len(text), label))
        else:
            text += token
    return Document.from_spans(text, spans)


def joined(parts: Sequence[Document]) -> Document:
    """Documents one after the other, as one document."""
    text, spans = "", []
    for part in parts:
        spans += [(len(text) + one.start, len(text) + one.end, one.label) for one in part.entities]
        text += part.text + " "
    return Document.from_spans(text, spans)


def corpus() -> Corpus:
    """The training data of the tiny model as a corpus."""
    return Corpus("tiny", documents(), TYPES)


def tiny_binder(folder: Path, *, max_tokens: int = 64) -> Path:
    """Train the tiny model and save it as a model folder."""
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer([one.text for one in documents()])
    tokenizer.save(str(folder / "tokenizer.json"))
    model = _model(tokenizer.get_vocab_size(), max_tokens)
    _train(model, WordTokenizer(tokenizer), steps=200)
    config = ModelConfig(
        "binder",
        encoder="tiny",
        max_tokens=max_tokens,
        overlap=8,
        types={one.name: one.description for one in TYPES},
        options=OPTIONS,
    )
    save_model(model, config, folder, folder)
    return folder


def train_tokenizer(texts: list[str]) -> Tokenizer:
    """A WordPiece tokenizer for texts and the descriptions of the types; the same texts give the same tokenizer.

    Short words are one token, long ones two. All letters are tokens, so that other words can be read as well.
    """
    normalizer, splitter = normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer()
    read = " ".join(texts + [one.as_text() for one in TYPES])
    words = sorted({word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(read))})
    letters = sorted({letter for word in words for letter in word} | set(string.ascii_letters + string.digits))
    pieces = [piece for word in words for piece in ((word,) if len(word) < 7 else (word[:4], f"##{word[4:]}"))]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *(f"##{letter}" for letter in letters), *pieces]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    tokenizer.post_processor = TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def _model(vocabulary: int, max_tokens: int) -> Binder:
    encoder = BertModel(
        BertConfig(
            vocab_size=vocabulary,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=max(max_tokens, 128),
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        ),
        add_pooling_layer=False,
    )
    return Binder(encoder, None, BinderOptions(**OPTIONS), max_tokens, len(TYPES))


def _train(model: Binder, tokenizer: WordTokenizer, steps: int) -> None:
    """Joined documents of several lengths; types are given by name, with description, or with examples as well."""
    examples = documents()
    forms = [[EntityType(one.name) for one in TYPES], TYPES, [_with_examples(one) for one in TYPES]]
    type_inputs = [pad_rows(tokenizer.encode([one.as_text() for one in form]), tokenizer.pad) for form in forms]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = np.random.default_rng(0)
    model.train()
    for step in range(steps):
        chosen = [joined([examples[i] for i in generator.choice(len(examples), size)]) for size in (1, 2, 3, 5) * 4]
        batch, gold = _batch(chosen, tokenizer)
        text = model.encode_text(*(torch.from_numpy(x) for x in (batch.ids, batch.mask, batch.first, batch.last)))
        types = model.encode_types(*map(torch.from_numpy, type_inputs[step % len(type_inputs)]))
        sims = model.similarities(text, types, model.options.max_width)
        known = torch.ones(len(batch.ids), len(TYPES), dtype=torch.bool)
        loss = model.loss(sims, torch.from_numpy(batch.words), torch.from_numpy(gold), known)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


def _with_examples(entity_type: EntityType) -> EntityType:
    return replace(entity_type, examples={"city": CITIES, "person": PEOPLE}.get(entity_type.name, ())[:2])


def _batch(chosen: list[Document], tokenizer: WordTokenizer) -> tuple[Batch, np.ndarray]:
    numbers = {one.name: number for number, one in enumerate(TYPES)}
    source = Corpus("chosen", chosen, TYPES)
    examples, _ = make_examples([source], numbers, tokenizer, max_tokens=128, overlap=0, drop_empty=False)
    return collate_examples(examples, tokenizer), gold_rows(examples, np.arange(len(TYPES)))
