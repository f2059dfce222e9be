"""From examples to the arrays of a batch: texts, the types that are asked for, and what is known about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from onoma.entities import EntityType
from onoma.inputs.batches import Batch, collate
from onoma.inputs.tokenizer import WordTokenizer
from onoma.training.examples import Example

Integers = NDArray[np.int64]
Arrays = dict[str, NDArray[np.int64] | NDArray[np.bool_]]
"""The arguments of a model's `forward` as arrays, which pass between processes faster than tensors."""

Collator = Callable[[Sequence[Example]], Arrays]


class TypeSampler:
    """Chooses the types that a batch asks for, and the texts that describe them.

    A batch asks for the types that are annotated in any of its windows; if there are more than `max_types`, for those
    with a mention and a sample of the others. With `any_type`, it asks for types that are annotated elsewhere as well,
    while there is room. With probability `description_dropout`, the types of a batch are given by
    their names alone, so that a model learns to work with and without descriptions. This is decided per batch, because
    a few long descriptions among names would cause much padding. With probability `alias_rate`, a type is given by one
    of its `aliases` instead.
    """

    def __init__(
        self,
        types: Sequence[EntityType],
        tokenizer: WordTokenizer,
        *,
        with_description: bool,
        max_types: int | None = None,
        description_dropout: float = 0.0,
        aliases: Mapping[str, Sequence[str]] | None = None,
        alias_rate: float = 0.0,
        any_type: bool = False,
    ) -> None:
        self.any_type = any_type
        self.max_types, self.description_dropout, self.alias_rate = max_types, description_dropout, alias_rate
        self.tokens = tokenizer.encode([one.as_text() if with_description else one.name for one in types])
        self.name_tokens = tokenizer.encode([one.name for one in types])
        self.alias_tokens: dict[int, list[list[int]]] = {
            number: tokenizer.encode(aliases[one.name])
            for number, one in enumerate(types)
            if aliases and aliases.get(one.name)
        }

    def choose(self, examples: Sequence[Example], generator: np.random.Generator) -> Integers:
        """The numbers of the types that a batch asks for, in ascending order."""
        present = np.unique(np.concatenate([example.gold[:, 2] for example in examples]))
        others = np.setdiff1d(np.unique(np.concatenate([example.known for example in examples])), present)
        room = len(others) if self.max_types is None else max(0, self.max_types - len(present))
        if room < len(others):
            others = generator.choice(others, room, replace=False)
        elif self.any_type:
            rest = np.setdiff1d(np.arange(len(self.tokens)), np.concatenate([present, others]))
            room = len(rest) if self.max_types is None else min(len(rest), room - len(others))
            others = np.concatenate([others, generator.choice(rest, room, replace=False)])
        return np.sort(np.concatenate([present, others])).astype(np.int64)

    def token_rows(self, types: Integers, generator: np.random.Generator) -> list[list[int]]:
        """The tokens of types."""
        tokens = self.name_tokens if generator.random() < self.description_dropout else self.tokens
        if not self.alias_tokens:
            return [tokens[number] for number in types]
        chosen, share = generator.random((2, len(types))).tolist()
        rows = []
        for place, number in enumerate(types.tolist()):
            others = self.alias_tokens.get(number) if chosen[place] < self.alias_rate else None
            rows.append(others[int(share[place] * len(others))] if others else tokens[number])
        return rows


def batch_generator(examples: Sequence[Example], seed: int) -> np.random.Generator:
    """A generator seeded by the batch itself, so that it does not depend on the worker process or on a restart."""
    return np.random.default_rng((seed, len(examples), *(int(e.tokens.ids.sum()) for e in examples[:8])))


def collate_examples(
    examples: Sequence[Example], tokenizer: WordTokenizer, prefixes: Sequence[Sequence[int]] = ()
) -> Batch:
    """The windows of examples as one padded batch."""
    counts = np.concatenate([example.tokens.counts for example in examples])
    end = np.cumsum([len(example.tokens.counts) for example in examples])
    return collate(
        np.concatenate([example.tokens.ids for example in examples]),
        np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
        np.concatenate([[0], end[:-1]]),
        end,
        tokenizer,
        [example.text for example in examples],
        [example.words for example in examples],
        prefixes,
    )


def gold_rows(examples: Sequence[Example], types: Integers) -> Integers:
    """Mentions as rows (window, first word, last word, place of the type among `types`)."""
    rows = np.concatenate([np.insert(example.gold, 0, window, axis=1) for window, example in enumerate(examples)])
    rows[:, 3] = np.searchsorted(types, rows[:, 3])
    return rows.astype(np.int64)


def masked_rows(examples: Sequence[Example]) -> dict[str, Integers]:
    """The argument `masked` of a model, if examples have such spans: rows (window, first word, last word)."""
    rows = [np.insert(e.masked, 0, window, axis=1) for window, e in enumerate(examples) if e.masked is not None]
    return {"masked": np.concatenate(rows).astype(np.int64)} if rows else {}


def complete_windows(examples: Sequence[Example]) -> dict[str, NDArray[np.bool_]]:
    """The argument `complete` of a model, if the annotation of some examples is incomplete: (windows,)."""
    complete = np.array([example.complete for example in examples])
    return {} if complete.all() else {"complete": complete}


def known_types(examples: Sequence[Example], types: Integers) -> NDArray[np.bool_]:
    """Which of the types are annotated in each window: (windows, types)."""
    return np.stack([np.isin(types, example.known) for example in examples])
