"""Prompts and answers as token ids: equations 1 and 2 of the paper.

    x_input  = <entity> city <entity> person <text> Tom flew to Rome
    y_output = ((city):(Rome),(person):(Tom))

What is not text in them is one reserved token each: <entity>, <text>, NULL, "):(" between a type and a mention, and
"),(" between two pairs. The outer parentheses are implied: "((" by the start of the answer, "))" by its end. So a
mention may contain parentheses, and an answer costs two tokens per pair beside its words. The vocabulary of a T5 has
tokens to reserve: the sentinels of its pre-training.

A text is tokenised word by word, so that a mention has the same tokens in the answer as in the text. A word that
follows white space has the mark of a word start ("▁Rome"), one that follows directly has none, as in running text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from onoma.errors import OnomaError
from onoma.inputs.tokenizer import WordTokenIds, WordTokenizer
from onoma.text.words import Spans

Integers = NDArray[np.int64]
Ids = tuple[int, ...]

_SPARE = (r"▁?<extra_id_(\d+)>", r"extra(\d+)", r"\[unused(\d+)\]")
"""Tokens that T5 models of different makers have for other purposes than text."""


class Symbols(NamedTuple):
    """The reserved tokens."""

    entity: int  # s_e of equation 1
    text: int  # s_t
    colon: int  # "):(" of equation 2
    comma: int  # "),("
    null: int  # NULL


SHOWN = {"entity": "<entity>", "text": "<text>", "colon": "):(", "comma": "),(", "null": "NULL"}


class Source(NamedTuple):
    """The tokens of a window."""

    ids: Integers
    edges: Integers  # (words + 1,): the first token of each word, and at the end the number of tokens

    def words(self, first: int, last: int) -> Ids:
        """The tokens from one word to another, inclusive."""
        return tuple(self.ids[self.edges[first] : self.edges[last + 1]].tolist())


class PromptTokenizer:
    """Makes prompts, sources and answers of token ids, and strings of them."""

    def __init__(self, tokenizer: WordTokenizer) -> None:
        self.spaced, self.glued = tokenizer, _without_word_starts(tokenizer)
        self.symbols = reserve_symbols(tokenizer.tokenizer)
        self.pad, self.unk, self.end = tokenizer.pad, tokenizer.unk, tokenizer.sep

    def read(self, texts: Sequence[str], offsets: Sequence[Spans]) -> list[Source]:
        """The tokens of windows, given by their texts and the offsets of their words."""
        words = [text[a:b] for text, spans in zip(texts, offsets, strict=True) for a, b in spans.tolist()]
        glued = np.concatenate([np.zeros(0, np.bool_), *map(_follows_directly, offsets)])
        tokens = self._tokenize(words, glued)
        edges = np.concatenate([[0], np.cumsum(tokens.counts, dtype=np.int64)])
        ids = np.where(np.isin(tokens.ids, self.symbols), self.unk, tokens.ids).astype(np.int64)
        last = np.cumsum([len(spans) for spans in offsets])
        return [
            Source(
                ids[edges[end - len(spans)] : edges[end]], edges[end - len(spans) : end + 1] - edges[end - len(spans)]
            )
            for spans, end in zip(offsets, last.tolist(), strict=True)
        ]

    def _tokenize(self, words: Sequence[str], glued: NDArray[np.bool_]) -> WordTokenIds:
        if self.glued is self.spaced:
            return self.spaced.tokenize(words)
        counts = np.zeros(len(words), np.int32)
        parts = []
        for tokenizer, chosen in ((self.spaced, ~glued), (self.glued, glued)):
            part = tokenizer.tokenize([words[i] for i in np.flatnonzero(chosen).tolist()])
            counts[chosen] = part.counts
            parts.append(part)
        ids, from_glued = np.zeros(counts.sum(), np.int32), np.repeat(glued, counts)
        ids[~from_glued], ids[from_glued] = (part.ids for part in parts)
        return WordTokenIds(ids, counts)

    def type_ids(self, names: Sequence[str]) -> list[Ids]:
        """The tokens of names of types."""
        own = {self.spaced.cls, self.spaced.sep}
        rows = [[one for one in row if one not in own] for row in self.spaced.encode(names)]
        return [tuple(self.unk if one in self.symbols else one for one in row) or (self.unk,) for row in rows]

    def prompt(self, types: Iterable[Ids]) -> list[int]:
        """Equation 1 without the text: each type behind <entity>, then <text>."""
        return [one for ids in types for one in (self.symbols.entity, *ids)] + [self.symbols.text]

    def answer(self, mentions: Iterable[tuple[Ids, Sequence[Ids]]], max_tokens: int) -> list[int]:
        """Equation 2: the mentions of each type, NULL if it has none.

        Pairs that do not fit into `max_tokens` are left out, and then there is no end token either, so that nobody
        learns to end an answer early.
        """
        ids: list[int] = []
        for kind, found in mentions:
            for mention in found or [(self.symbols.null,)]:
                pair = [self.symbols.comma] * bool(ids) + [*kind, self.symbols.colon, *mention]
                if len(ids) + len(pair) > max_tokens:
                    return ids
                ids += pair
        return [*ids, self.end]

    def show(self, ids: Sequence[int]) -> str:
        """An answer in words, as the paper writes it."""
        kept = list(ids)
        kept = kept[: kept.index(self.end)] if self.end in kept else kept
        names = dict(zip(self.symbols, SHOWN.values(), strict=True))
        parts: list[list[int]] = [[]]
        signs = []
        for one in kept:
            if one in names:
                signs.append(names[one])
                parts.append([])
            else:
                parts[-1].append(one)
        texts = self.strings(parts)
        return f"(({texts[0]}{''.join(a + b for a, b in zip(signs, texts[1:], strict=True))}))"

    def strings(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Token ids as texts."""
        return [text.strip() for text in self.spaced.tokenizer.decode_batch(list(map(list, rows)))]


def reserve_symbols(tokenizer: Tokenizer) -> Symbols:
    """Tokens of a vocabulary that stand for no text, in a fixed order."""
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    for pattern in _SPARE:
        matches = [(match, number) for name, number in vocabulary.items() if (match := re.fullmatch(pattern, name))]
        found = sorted((int(match[1]), number) for match, number in matches)
        if len(found) >= len(Symbols._fields):
            return Symbols(*(number for _, number in found[: len(Symbols._fields)]))
    raise OnomaError(
        "the vocabulary has no tokens to reserve for prompts. Fix: use a T5 whose tokenizer has sentinels, such as "
        "<extra_id_0> or [unused1]"
    )


def _follows_directly(spans: Spans) -> NDArray[np.bool_]:
    """Whether each word follows the one before without white space."""
    return np.concatenate([[False], spans[1:, 0] == spans[:-1, 1]])[: len(spans)]


def _without_word_starts(tokenizer: WordTokenizer) -> WordTokenizer:
    """The tokenizer for words that follow others directly; the same one if it does not mark the starts of words."""
    settings = json.loads(tokenizer.tokenizer.to_str())
    if not _switch_off_prefix(settings["pre_tokenizer"]):
        return tokenizer
    return WordTokenizer(Tokenizer.from_str(json.dumps(settings)))


def _switch_off_prefix(settings: Any) -> bool:
    """Change the settings of a pre-tokenizer such that it adds no mark; whether it added one."""
    if not isinstance(settings, dict):
        return False
    parts = list(map(_switch_off_prefix, settings.get("pretokenizers", ())))
    if settings.get("prepend_scheme", "never") == "never":
        return any(parts)
    settings["prepend_scheme"] = "never"
    return True
