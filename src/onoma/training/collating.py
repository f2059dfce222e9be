"""Examples to tensors: the text side, the types that the batch asks for, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from onoma.batches import collate
from onoma.entities import EntityType
from onoma.subwords import Subwords, pad_rows
from onoma.systems.binder.options import BinderOptions
from onoma.systems.binder.type_texts import type_text
from onoma.training.examples import Example
from onoma.training.prototypes import Prototypes


class BinderCollator:
    """Builds the arguments of `Binder.forward`.

    A batch asks for the types that are annotated in any of its windows; if there are more than `most_types`,
    those with a mention and a sample of the others. A type is given by its name alone with probability
    `type_dropout`, else by name and description, so that a model learns to work with both.
    """

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
    ) -> None:
        self.subwords, self.options, self.prototypes = subwords, options, prototypes
        self.most_types, self.type_dropout, self.seed = most_types, type_dropout, seed
        self.tokens = subwords.encode_rows([type_text(one, options) for one in types])
        self.name_tokens = subwords.encode_rows([one.name for one in types])

    def __call__(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """The tensors of one batch."""
        # The batch itself seeds the choice, so that it does not depend on the worker or on a restart.
        generator = np.random.default_rng((self.seed, len(examples), *(int(e.pieces.ids.sum()) for e in examples[:8])))
        batch = collate([example.pieces for example in examples], self.subwords)
        kinds = self._choose(examples, generator)
        column = {int(kind): place for place, kind in enumerate(kinds)}
        gold = [
            (window, first, last, column[kind])
            for window, example in enumerate(examples)
            for first, last, kind in example.gold.tolist()
        ]
        known = np.zeros((len(examples), len(kinds)), np.bool_)
        for window, example in enumerate(examples):
            known[window, np.isin(kinds, example.known)] = True
        rows, places = self._type_inputs(kinds, generator)
        ids, mask = pad_rows(rows, self.subwords.pad)
        arrays = {
            "ids": batch.ids,
            "mask": batch.mask,
            "first": batch.first,
            "last": batch.last,
            "words": batch.words,
            "gold": np.array(gold, np.int64).reshape(-1, 4),
            "known": known,
            "type_ids": ids,
            "type_mask": mask,
            "type_numbers": kinds,
        }
        if places is not None:
            arrays["type_places"] = np.array(places)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def _choose(self, examples: Sequence[Example], generator: np.random.Generator) -> np.ndarray:
        present = np.unique(np.concatenate([example.gold[:, 2] for example in examples]))
        others = np.setdiff1d(np.unique(np.concatenate([example.known for example in examples])), present)
        room = len(others) if self.most_types is None else max(0, self.most_types - len(present))
        if room < len(others):
            others = generator.choice(others, room, replace=False)
        return np.sort(np.concatenate([present, others])).astype(np.int64)

    def _type_inputs(
        self, kinds: np.ndarray, generator: np.random.Generator
    ) -> tuple[Sequence[Sequence[int]], list[int] | None]:
        """The tokens of every type, and the marked places where types are shown by instances."""
        if self.options.types == "atomic":
            return kinds[:, None].tolist(), None
        if self.prototypes is not None:
            instances = [self.prototypes.draw(int(kind), generator) for kind in kinds]
            return [tokens for tokens, _ in instances], [place for _, place in instances]
        by_name = generator.random(len(kinds)) < self.type_dropout
        return [(self.name_tokens if short else self.tokens)[k] for k, short in zip(kinds, by_name, strict=True)], None
