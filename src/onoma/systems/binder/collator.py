"""BINDER's batches: the arguments of `Binder.forward` from training examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from onoma.entities import EntityType
from onoma.inputs.batches import pad_rows
from onoma.inputs.tokenizer import TOKEN_MASK, WordTokenizer
from onoma.systems.binder.options import BinderOptions
from onoma.systems.binder.prototypes import Prototypes
from onoma.training.aliases import nonsense_names
from onoma.training.collation import (
    Arrays,
    TypeSampler,
    batch_generator,
    collate_examples,
    gold_rows,
    known_types,
    masked_rows,
)
from onoma.training.examples import Example

Integers = NDArray[np.int64]

CLEARLY_BROADER = 1.5
"""A type is clearly broader than another if it shares mentions with at least 1.5 times as many types."""


class BinderCollator:
    """Builds the arguments of `Binder.forward`."""

    def __init__(
        self,
        types: Sequence[EntityType],
        tokenizer: WordTokenizer,
        options: BinderOptions,
        *,
        max_types: int | None = None,
        description_dropout: float = 0.0,
        aliases: Mapping[str, Sequence[str]] | None = None,
        alias_rate: float = 0.0,
        nonsense_types: int = 0,
        seed: int = 0,
        prototypes: Prototypes | None = None,
        breadths: Integers | None = None,
        teacher_tokenizer: WordTokenizer | None = None,
    ) -> None:
        """`breadths` of types (from `type_breadths`) are needed for `narrow_type_weight` and `breadth_head`.

        A batch also asks for `nonsense_types` names that have no mention anywhere.
        """
        self.tokenizer, self.options, self.seed, self.prototypes = tokenizer, options, seed, prototypes
        self.breadths, self.nonsense_types = breadths, nonsense_types
        self.teacher_tokenizer = teacher_tokenizer
        self.sampler = TypeSampler(
            types,
            tokenizer,
            with_description=options.types == "description",
            max_types=max_types,
            description_dropout=description_dropout,
            aliases=aliases,
            alias_rate=alias_rate,
            any_type=teacher_tokenizer is not None,
        )

    def __call__(self, examples: Sequence[Example]) -> Arrays:
        """The arrays of one batch."""
        generator = batch_generator(examples, self.seed)
        batch = collate_examples(examples, self.tokenizer)
        types = self.sampler.choose(examples, generator)
        rows, places = self._type_inputs(types, generator)
        nonsense = self.tokenizer.encode(nonsense_names(self.nonsense_types, generator)) if self.nonsense_types else []
        rows = [*rows, *nonsense]
        ids, mask = pad_rows(rows, self.tokenizer.pad)
        gold = gold_rows(examples, types)
        known = np.pad(known_types(examples, types), ((0, 0), (0, len(nonsense))), constant_values=True)
        arrays: Arrays = {
            "ids": self._drop_shapes(batch.ids, generator),
            "mask": batch.mask,
            "first": batch.first,
            "last": batch.last,
            "words": batch.words,
            "gold": gold,
            "known": known,
            "type_ids": ids,
            "type_mask": mask,
            "type_numbers": np.pad(types, (0, len(nonsense))),
            **masked_rows(examples),
        }
        if self.teacher_tokenizer is not None:
            arrays |= teacher_inputs(examples, self.teacher_tokenizer)
        elif self.options.objective == "sigmoid" and not self.options.narrow_type_weight:
            arrays["known_pairs"] = np.argwhere(known)
        if places is not None:
            arrays["type_places"] = np.array(places)
        if self.breadths is not None:
            pairs = narrow_broad_pairs(gold, self.breadths[types])
            if self.options.breadth_head:
                arrays["breadth_pairs"] = np.unique(pairs[:, 3:], axis=0)
            else:
                widths = self.options.max_train_width or batch.first.shape[1]
                arrays["type_pairs"] = pairs[pairs[:, 2] - pairs[:, 1] < widths]
        return arrays

    def _drop_shapes(self, ids: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
        """Token ids, of some windows without the shapes of their words."""
        if not self.options.word_shapes:
            return ids
        dropped = generator.random(len(ids)) < self.options.shape_dropout
        return np.where(dropped[:, None], ids & TOKEN_MASK, ids)

    def _type_inputs(
        self, types: Integers, generator: np.random.Generator
    ) -> tuple[Sequence[Sequence[int]], list[int] | None]:
        """The tokens of each type, and the marked places if types are represented by instances."""
        if self.options.types == "atomic":
            return types[:, None].tolist(), None
        if self.prototypes is not None:
            instances = [self.prototypes.draw(int(number), generator) for number in types]
            return [tokens for tokens, _ in instances], [place for _, place in instances]
        return self.sampler.token_rows(types, generator), None


def teacher_inputs(examples: Sequence[Example], tokenizer: WordTokenizer) -> Arrays:
    """The same windows in the tokens of a teacher."""
    own = []
    for example in examples:
        words = [example.text[start:end] for start, end in example.words.tolist()]
        own.append(replace(example, tokens=tokenizer.tokenize(words)))
    batch = collate_examples(own, tokenizer)
    return {
        "teacher_ids": batch.ids,
        "teacher_mask": batch.mask,
        "teacher_first": batch.first,
        "teacher_last": batch.last,
    }


def type_breadths(examples: Sequence[Example], types: int) -> Integers:
    """The number of other types with which each type shares mentions: large for "person", small for "poet"."""
    rows = np.concatenate([np.insert(example.gold, 0, number, axis=1) for number, example in enumerate(examples)])
    pairs = np.concatenate([rows[both, 3] for both in _same_span(rows)], axis=1)  # (2, pairs)
    distinct = np.unique(np.concatenate([pairs, pairs[::-1]], axis=1), axis=1)
    return np.bincount(distinct[0], minlength=types)


def narrow_broad_pairs(gold: Integers, breadths: Integers) -> Integers:
    """Rows (window, first word, last word, narrow type, broad type) of mentions that also have a clearly broader type.

    `gold` has rows (window, first word, last word, type) and `breadths` is the breadth of each type.
    """
    one, other = np.concatenate(_same_span(gold), axis=1)  # rows of `gold`
    swapped = breadths[gold[one, 3]] > breadths[gold[other, 3]]
    narrow, broad = np.where(swapped, other, one), np.where(swapped, one, other)
    clear = CLEARLY_BROADER * breadths[gold[narrow, 3]] <= breadths[gold[broad, 3]]
    return np.concatenate([gold[narrow[clear]], gold[broad[clear], 3:]], axis=1)


def _same_span(rows: Integers, most: int = 4) -> list[Integers]:
    """Pairs of rows (2, pairs) that agree in all but the last column; not all pairs of more than `most` rows."""
    order = np.lexsort(rows.T[::-1])
    spans = rows[order, :-1]
    pairs = []
    for apart in range(1, most):
        same = np.flatnonzero((spans[apart:] == spans[:-apart]).all(1))
        pairs.append(np.stack([order[same], order[same + apart]]))
    return pairs
