"""Development data as training examples, for losses on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from onoma.data.corpora import relabel
from onoma.evaluation.candidates import EvaluationSet
from onoma.training.collation import Collator
from onoma.training.examples import Example, make_examples
from onoma.training.trainer import to_device


def development_examples(development: Sequence[EvaluationSet], runtime: Any) -> list[Example]:
    """Development data as training examples; types that were not trained on are left out."""
    numbers = {name: number for number, name in enumerate(runtime.config.types)}
    known = [
        {label: kind if kind.name in numbers else None for label, kind in zip(one.labels, one.types, strict=True)}
        for one in development  # labels of the corpus, and types as the model reads them
    ]
    examples, _ = make_examples(
        [relabel(one.corpus, types) for one, types in zip(development, known, strict=True)],
        numbers,
        runtime.tokenizer,
        max_tokens=runtime.config.max_tokens,
        overlap=runtime.config.overlap,
        drop_empty=False,
    )
    return examples


@torch.no_grad()
def mean_loss(model: nn.Module, collator: Collator, examples: Sequence[Example], batch_size: int) -> float:
    """The mean loss of a model over windows, in bfloat16 on GPUs."""
    model.eval()
    device, total = next(model.parameters()).device, 0.0
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        for first in range(0, len(examples), batch_size):
            batch = examples[first : first + batch_size]
            total += len(batch) * float(model(**to_device(collator(batch), device))["loss"])
    return total / max(len(examples), 1)
