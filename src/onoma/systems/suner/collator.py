"""SUNER's batches: the arguments of `Suner.forward` from training examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from onoma.entities import EntityType
from onoma.inputs.batches import pad_rows
from onoma.inputs.tokenizer import WordTokenizer
from onoma.systems.suner.candidates import dataset_prefix
from onoma.systems.suner.marking import Candidates, mark, pair_numbers
from onoma.systems.suner.options import MAX_MARKED, StageName, SunerOptions
from onoma.training.collation import (
    Arrays,
    TypeSampler,
    batch_generator,
    collate_examples,
    complete_windows,
    gold_rows,
    known_types,
    masked_rows,
)
from onoma.training.examples import Example

Integers = NDArray[np.int64]


class SunerCollator:
    """Builds the arguments of `Suner.forward` for one stage."""

    def __init__(
        self,
        types: Sequence[EntityType],
        tokenizer: WordTokenizer,
        options: SunerOptions,
        stage: StageName,
        *,
        corpora: Sequence[str] = (),
        max_types: int | None = None,
        description_dropout: float = 0.0,
        aliases: Mapping[str, Sequence[str]] | None = None,
        alias_rate: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.tokenizer, self.options, self.stage, self.seed = tokenizer, options, stage, seed
        self.sampler = TypeSampler(
            types,
            tokenizer,
            with_description=options.types == "description",
            max_types=max_types,
            description_dropout=description_dropout,
            aliases=aliases,
            alias_rate=alias_rate,
        )
        prefixed = options.dataset_prefix and stage != "classification"
        self.prefixes = [dataset_prefix(name, tokenizer) for name in corpora] if prefixed else []

    def __call__(self, examples: Sequence[Example]) -> Arrays:
        """The arrays of one batch."""
        generator = batch_generator(examples, self.seed)
        prefixes = [self.prefixes[example.corpus] for example in examples] if self.prefixes else []
        batch = collate_examples(examples, self.tokenizer, prefixes)
        types = self.sampler.choose(examples, generator)
        gold = gold_rows(examples, types)  # (mentions, 4)
        spans = np.unique(gold[:, :3], axis=0)
        arrays: Arrays = {
            "ids": batch.ids,
            "mask": batch.mask,
            "first": batch.first,
            "last": batch.last,
            "words": batch.words,
            "gold": spans,
            **masked_rows(examples),
        }
        if self.stage in ("detection", "fused"):
            arrays |= complete_windows(examples)
        if self.stage == "detection":
            return arrays
        known = known_types(examples, types)
        arrays["type_ids"], arrays["type_mask"] = pad_rows(
            self.sampler.token_rows(types, generator), self.tokenizer.pad
        )
        if self.stage == "one-stage":
            return arrays | {"labels": gold, "known": known}
        candidates = self._candidates(examples, spans, generator)
        numbers = pair_numbers(candidates, self.options, generator)
        marked = mark(batch, candidates, tied=self.options.tied_positions, numbers=numbers)
        window = candidates.window
        if self.options.markers:
            arrays["ids"] = marked.ids
        number = {tuple(row): place for place, row in enumerate(np.stack(candidates, axis=1).tolist())}
        labels = [(number[row[:3]], row[3]) for row in map(tuple, gold.tolist()) if row[:3] in number]
        return arrays | {
            "positions": marked.positions,
            "roles": marked.roles,
            "marks": np.stack([window, marked.opening, marked.closing, *candidates.tokens(batch)], axis=1),
            "labels": np.array(labels, np.int64).reshape(-1, 2),
            "known": known[window],
        }

    def _candidates(self, examples: Sequence[Example], spans: Integers, generator: np.random.Generator) -> Candidates:
        """The mentions and spans that are no mention: sampled ones and the detector's mistakes."""
        rows = [spans]
        if self.options.negatives_per_mention > 0 and self.options.rejection == "learned":
            masked = masked_rows(examples).get("masked", spans[:0])
            taken = {*map(tuple, spans.tolist()), *map(tuple, masked.tolist())}
            counts = np.bincount(spans[:, 0], minlength=len(examples))
            edges = np.concatenate([[0], np.cumsum(counts)])
            negatives = []
            for window, example in enumerate(examples):
                own = spans[edges[window] : edges[window + 1], 1:]
                for first, last in sample_negatives(example, own, self.options.negatives_per_mention, generator):
                    row = (window, first, last)
                    if row not in taken:
                        taken.add(row)
                        negatives.append(row)
            rows.append(np.array(negatives, np.int64).reshape(-1, 3))
        together = np.concatenate(rows)
        together = together[np.lexsort((together[:, 2], together[:, 1], together[:, 0]))]
        candidates = Candidates(*together.T)
        if candidates.slot.max(initial=0) < MAX_MARKED:
            return candidates
        order = np.lexsort((generator.random(len(together)), together[:, 0]))  # random within each window
        kept = np.sort(order[candidates.slot < MAX_MARKED])
        return Candidates(*together[kept].T)


def sample_negatives(
    example: Example, spans: Integers, per_mention: float, generator: np.random.Generator
) -> list[tuple[int, int]]:
    """Spans of a window that are probably no mention: shifted mentions, random spans, the detector's mistakes.

    Some may be mentions after all; the caller checks that.
    """
    words = len(example.tokens.counts)
    count = int(np.ceil(per_mention * max(len(spans), 1)))
    shifted = spans[generator.integers(len(spans), size=count)] if len(spans) else np.zeros((0, 2), np.int64)
    shifted = shifted + generator.integers(-2, 3, size=shifted.shape)
    first = generator.integers(words, size=-(-count // 2))
    random = np.stack([first, first + generator.geometric(0.5, size=len(first)) - 1], axis=1)
    rows = np.concatenate([shifted, random])
    rows = rows[(rows[:, 0] >= 0) & (rows[:, 1] >= rows[:, 0]) & (rows[:, 1] < words)]
    found = [(first, last) for first, last in rows.tolist()]
    if example.hard_negatives is not None:
        found = [(first, last) for first, last in example.hard_negatives.tolist()] + found
    return found
