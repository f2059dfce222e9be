"""NerCo's batches: the arguments of `NerCo.forward` from training examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onoma.inputs.tokenizer import WordTokenizer
from onoma.systems.blocks.tagging import TagScheme
from onoma.systems.nerco.inputs import LatticeInputs
from onoma.training.collation import Arrays, collate_examples, gold_rows, known_types, masked_rows
from onoma.training.examples import Example


class NerCoCollator:
    """Builds the arguments of `NerCo.forward`."""

    def __init__(self, scheme: TagScheme, tokenizer: WordTokenizer, inputs: LatticeInputs | None) -> None:
        self.scheme, self.tokenizer, self.inputs = scheme, tokenizer, inputs
        self.types = np.arange(scheme.types)

    def __call__(self, examples: Sequence[Example]) -> Arrays:
        """The arrays of one batch."""
        batch = collate_examples(examples, self.tokenizer)
        gold, known = gold_rows(examples, self.types), known_types(examples, self.types)
        masked, width = masked_rows(examples).get("masked"), batch.first.shape[1]
        arrays: Arrays = {
            "ids": batch.ids,
            "mask": batch.mask,
            "first": batch.first,
            "words": batch.words,
            "tags": self.scheme.encode(gold, batch.words, width),
        }
        if masked is not None or not known.all():
            arrays["possible"] = self.scheme.possible(gold, batch.words, width, known, masked)
        return arrays if self.inputs is None else {**arrays, **self.inputs.arrays(batch)}
