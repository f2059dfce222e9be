"""SCL-RAI's batches: the arguments of `SclRai.forward` from training examples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onoma.inputs.tokenizer import WordTokenizer
from onoma.systems.scl_rai.options import SclRaiOptions
from onoma.training.collation import Arrays, batch_generator, collate_examples, gold_rows, known_types, masked_rows
from onoma.training.examples import Example


class SclRaiCollator:
    """Builds the arguments of `SclRai.forward`. The model knows a closed set of types, so a batch asks for all."""

    def __init__(self, types: int, tokenizer: WordTokenizer, options: SclRaiOptions, *, seed: int = 0) -> None:
        self.types, self.tokenizer, self.options, self.seed = np.arange(types), tokenizer, options, seed

    def __call__(self, examples: Sequence[Example]) -> Arrays:
        """The arrays of one batch."""
        generator = batch_generator(examples, self.seed)
        batch = collate_examples(examples, self.tokenizer)
        gold = gold_rows(examples, self.types)
        gold = gold[np.unique(gold[:, :3], axis=0, return_index=True)[1]]  # a span has one label here
        words = batch.first.shape[1]
        widths = min(words, self.options.max_train_width or words)
        return {
            "ids": batch.ids,
            "mask": batch.mask,
            "first": batch.first,
            "last": batch.last,
            "words": batch.words,
            "gold": gold,
            "known": known_types(examples, self.types),
            "chances": generator.integers(0, 2**31, (len(examples), words, widths)),
            **masked_rows(examples),
        }
