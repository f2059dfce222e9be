"""A tiny BINDER that really is trained, in a few seconds, on sentences of our own.

It knows persons and cities (and bands, which contain cities) well enough for tests to ask for them by name.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel

from onoma import Corpus, Document, EntityType
from onoma.backends.torch import save
from onoma.batches import Batch, collate
from onoma.config import ModelConfig
from onoma.subwords import Subwords
from onoma.systems.binder.model import Binder
from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.type_texts import type_text
from onoma.text import align

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
OPTIONS = BinderOptions(size=32, width_size=16, max_width=8, shared_encoder=True)


def documents() -> list[Document]:
    """Every pattern with every person and every city."""
    filled = (pattern.format(person=p, city=c) for pattern, p, c in product(PATTERNS, PEOPLE, CITIES))
    return [document(marked) for marked in dict.fromkeys(filled)]


def document(marked: str) -> Document:
    """A document out of a text such as "[person|Tom] sang"; marks may be nested."""
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


def together(parts: Sequence[Document]) -> Document:
    """Documents one after the other, as one."""
    text, spans = "", []
    for part in parts:
        spans += [(len(text) + one.start, len(text) + one.end, one.label) for one in part.entities]
        text += part.text + " "
    return Document.from_spans(text, spans)


def corpus() -> Corpus:
    """What the tiny model has learned, as a corpus."""
    return Corpus("tiny", documents(), TYPES)


def tiny_binder(folder: Path, *, max_tokens: int = 64) -> Path:
    """Train the tiny model and save it as a model folder."""
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = train_tokenizer([one.text for one in documents()])
    tokenizer.save(str(folder / "tokenizer.json"))
    model = _model(tokenizer.get_vocab_size(), max_tokens)
    _train(model, Subwords(tokenizer), steps=200)
    config = ModelConfig(
        "binder",
        encoder="tiny",
        max_tokens=max_tokens,
        overlap=8,
        types={one.name: one.description for one in TYPES},
        options={"size": 32, "width_size": 16, "max_width": 8, "shared_encoder": True},
    )
    save(model, config, folder, folder)
    return folder


def train_tokenizer(texts: list[str]) -> Tokenizer:
    """A WordPiece tokenizer for texts of ours and the descriptions of the types; always the same for the same texts.

    Short words are tokens, long ones two; all letters are there, so that other words can be read, too.
    """
    normalizer, splitter = normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer()
    read = " ".join(texts + [type_text(one, OPTIONS) for one in TYPES])
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
    return Binder(encoder, None, OPTIONS, max_tokens, len(TYPES))


def _train(model: Binder, subwords: Subwords, steps: int) -> None:
    examples = documents()
    names = [one.name for one in TYPES]
    writings = [[EntityType(name) for name in names], TYPES, [_with_examples(one) for one in TYPES]]
    type_inputs = [subwords.encode([type_text(one, OPTIONS) for one in types]) for types in writings]
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = np.random.default_rng(0)
    model.train()
    for step in range(steps):
        chosen = [together([examples[i] for i in generator.choice(len(examples), size)]) for size in (1, 2, 3, 5) * 4]
        batch, gold = _batch(chosen, names, subwords)
        text = model.encode_text(*(torch.from_numpy(x) for x in (batch.ids, batch.mask, batch.first, batch.last)))
        types = model.encode_types(*map(torch.from_numpy, type_inputs[step % len(type_inputs)]))
        sims = model.similarities(text, types, OPTIONS.max_width)
        known = torch.ones(len(batch.ids), len(names), dtype=torch.bool)
        loss = model.loss(sims, torch.from_numpy(batch.words), torch.from_numpy(gold), known)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.eval()


def _with_examples(entity_type: EntityType) -> EntityType:
    return replace(entity_type, examples={"city": CITIES, "person": PEOPLE}.get(entity_type.name, ())[:2])


def _batch(chosen: list[Document], names: list[str], subwords: Subwords) -> tuple[Batch, np.ndarray]:
    aligned = [align(one) for one in chosen]
    pieces = subwords.split((one.text, alignment.words) for one, alignment in zip(chosen, aligned, strict=True))
    gold = [
        (window, first, last, names.index(entity.label))
        for window, (one, alignment) in enumerate(zip(chosen, aligned, strict=True))
        for entity, (first, last) in zip(one.entities, alignment.mentions.tolist(), strict=True)
    ]
    return collate(pieces, subwords), np.array(gold, np.int64).reshape(-1, 4)
