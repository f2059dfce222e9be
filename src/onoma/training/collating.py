"""Examples to arrays: the text side, the types that the batch asks for, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from onoma.batches import collate
from onoma.entities import EntityType
from onoma.subwords import Subwords, pad_rows
from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.type_texts import TypeOptions, type_text
from onoma.training.examples import Example
from onoma.training.prototypes import Prototypes

Integers = NDArray[np.int64]
Arrays = dict[str, NDArray[np.int64] | NDArray[np.bool_]]
"""The arguments of a model's `forward`, still in numpy: arrays pass between processes faster than tensors do."""

Collator = Callable[[Sequence[Example]], Arrays]


class AskedTypes:
    """The types that batches ask for, and how they are given.

    A batch asks for the types that are annotated in any of its windows; if there are more than `most_types`,
    those with a mention and a sample of the others. Types are given by their names alone with probability
    `type_dropout`, else by name and description, so that a model learns to work with both; the same for all of a
    batch, because a few long descriptions among names would be padding for the rest.
    """

    def __init__(
        self,
        types: Sequence[EntityType],
        subwords: Subwords,
        options: TypeOptions,
        *,
        most_types: int | None = None,
        type_dropout: float = 0.0,
    ) -> None:
        self.most_types, self.type_dropout = most_types, type_dropout
        self.tokens = subwords.encode_rows([type_text(one, options) for one in types])
        self.name_tokens = subwords.encode_rows([one.name for one in types])

    def choose(self, examples: Sequence[Example], generator: np.random.Generator) -> Integers:
        """The numbers of the types that a batch asks for, in ascending order."""
        present = np.unique(np.concatenate([example.gold[:, 2] for example in examples]))
        others = np.setdiff1d(np.unique(np.concatenate([example.known for example in examples])), present)
        room = len(others) if self.most_types is None else max(0, self.most_types - len(present))
        if room < len(others):
            others = generator.choice(others, room, replace=False)
        return np.sort(np.concatenate([present, others])).astype(np.int64)

    def rows(self, kinds: Integers, generator: np.random.Generator) -> list[list[int]]:
        """The tokens of types."""
        tokens = self.name_tokens if generator.random() < self.type_dropout else self.tokens
        return [tokens[kind] for kind in kinds]


def batch_generator(examples: Sequence[Example], seed: int) -> np.random.Generator:
    """Chance that the batch itself seeds, so that it does not depend on the worker or on a restart."""
    return np.random.default_rng((seed, len(examples), *(int(e.pieces.ids.sum()) for e in examples[:8])))


def gold_rows(examples: Sequence[Example], kinds: Integers) -> Integers:
    """Mentions as rows (window, first word, last word, place of the type among `kinds`)."""
    rows = np.concatenate([np.insert(example.gold, 0, window, axis=1) for window, example in enumerate(examples)])
    rows[:, 3] = np.searchsorted(kinds, rows[:, 3])
    return rows.astype(np.int64)


def known_types(examples: Sequence[Example], kinds: Integers) -> NDArray[np.bool_]:
    """Which of the types are annotated in which window: (windows, types)."""
    return np.stack([np.isin(kinds, example.known) for example in examples])


CLEARLY = 1.5  # times as many partners has a type that is clearly broader


def breadths(examples: Sequence[Example], types: int) -> Integers:
    """With how many other types each type shares mentions: many for "person", few for "poet" (types,)."""
    rows = np.concatenate([np.insert(example.gold, 0, number, axis=1) for number, example in enumerate(examples)])
    pairs = np.concatenate([rows[both, 3] for both in _same_span(rows)], axis=1)  # (2, pairs)
    distinct = np.unique(np.concatenate([pairs, pairs[::-1]], axis=1), axis=1)
    return np.bincount(distinct[0], minlength=types)


def ranked_pairs(gold: Integers, breadth: Integers) -> Integers:
    """Rows (window, first word, last word, narrow type, broad type) of mentions that have a clearly broader type too.

    `gold` has rows (window, first word, last word, type) and `breadth` is that of each type.
    """
    one, other = np.concatenate(_same_span(gold), axis=1)  # places in `gold`
    swapped = breadth[gold[one, 3]] > breadth[gold[other, 3]]
    narrow, broad = np.where(swapped, other, one), np.where(swapped, one, other)
    clear = CLEARLY * breadth[gold[narrow, 3]] <= breadth[gold[broad, 3]]
    return np.concatenate([gold[narrow[clear]], gold[broad[clear], 3:]], axis=1)


def _same_span(rows: Integers, most: int = 4) -> list[Integers]:
    """Pairs of rows (2, pairs) that agree in all but the last column; of more than `most` in one place, not all."""
    order = np.lexsort(rows.T[::-1])
    spans = rows[order, :-1]
    pairs = []
    for apart in range(1, most):
        same = np.flatnonzero((spans[apart:] == spans[:-apart]).all(1))
        pairs.append(np.stack([order[same], order[same + apart]]))
    return pairs


class BinderCollator:
    """Builds the arguments of `Binder.forward`."""

    def __init__(
        self,
        types: Sequence[EntityType],
        subwords: Subwords,
        options: BinderOptions,
        *,
        most_types: int | None = None,
        type_dropout: float = 0.0,
        seed: int = 0,
        prototypes: Prototypes | None = None,
        breadth: Integers | None = None,
    ) -> None:
        """`breadth` of each type is needed where the narrower type of a mention is to fit better."""
        self.subwords, self.options, self.seed, self.prototypes = subwords, options, seed, prototypes
        self.breadth = breadth
        self.asked = AskedTypes(types, subwords, options, most_types=most_types, type_dropout=type_dropout)

    def __call__(self, examples: Sequence[Example]) -> Arrays:
        """The arrays of one batch."""
        generator = batch_generator(examples, self.seed)
        batch = collate([example.pieces for example in examples], self.subwords)
        kinds = self.asked.choose(examples, generator)
        rows, places = self._type_inputs(kinds, generator)
        ids, mask = pad_rows(rows, self.subwords.pad)
        arrays: Arrays = {
            "ids": batch.ids,
            "mask": batch.mask,
            "first": batch.first,
            "last": batch.last,
            "words": batch.words,
            "gold": gold_rows(examples, kinds),
            "known": known_types(examples, kinds),
            "type_ids": ids,
            "type_mask": mask,
            "type_numbers": kinds,
        }
        if places is not None:
            arrays["type_places"] = np.array(places)
        if self.breadth is not None:
            ranked = ranked_pairs(arrays["gold"].astype(np.int64), self.breadth[kinds])
            widths = self.options.train_width or batch.first.shape[1]
            arrays["ranked"] = ranked[ranked[:, 2] - ranked[:, 1] < widths]
        return arrays

    def _type_inputs(
        self, kinds: Integers, generator: np.random.Generator
    ) -> tuple[Sequence[Sequence[int]], list[int] | None]:
        """The tokens of every type, and the marked places where types are shown by instances."""
        if self.options.types == "atomic":
            return kinds[:, None].tolist(), None
        if self.prototypes is not None:
            instances = [self.prototypes.draw(int(kind), generator) for kind in kinds]
            return [tokens for tokens, _ in instances], [place for _, place in instances]
        return self.asked.rows(kinds, generator), None
