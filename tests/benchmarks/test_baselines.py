"""The system that BINDER's speed is compared with."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from baselines import Biaffine
from onoma.inputs.batches import Batch


class Lookup(nn.Module):
    """Stands for an encoder: a vector for every token, whatever is around it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.config = SimpleNamespace(model_type="lookup")

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        return SimpleNamespace(last_hidden_state=self.table(input_ids))


def test_the_classifier_finds_what_it_has_learned() -> None:
    torch.manual_seed(0)
    ids = np.array([[1, 10, 11, 12, 2], [1, 12, 10, 2, 0]])
    first = np.array([[1, 2, 3], [1, 2, 0]])
    batch = Batch(
        ids, (ids > 0).astype(np.int64), first, first, np.array([3, 2]), [""] * 2, [np.zeros((0, 2), np.int32)] * 2
    )
    gold = np.array([[0, 0, 0, 1], [0, 1, 2, 0], [1, 1, 1, 1]])
    arrays = {name: getattr(batch, name) for name in ("ids", "mask", "first", "words")}
    inputs = {name: torch.from_numpy(x) for name, x in {**arrays, "gold": gold}.items()}
    model = Biaffine(Lookup(), 16, 2)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.03)
    for _ in range(60):
        optimiser.zero_grad()
        model(**inputs).backward()
        optimiser.step()
    assert model.eval().extract(batch).tolist() == gold.tolist()
