"""Tests of losses on development data."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from onoma.training.development import mean_loss


def test_the_mean_loss_counts_every_window_once() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": x.float().mean() * self.weight}

    numbers: Any = list(range(7))
    found = mean_loss(Sum(), lambda batch: {"x": torch.tensor(batch).numpy()}, numbers, 3)  # type: ignore[arg-type,call-overload]
    assert found == pytest.approx(3.0)
