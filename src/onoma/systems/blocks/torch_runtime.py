"""What all systems need that are run by PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onoma.config import ModelConfig
from onoma.entities import EntityType
from onoma.subwords import Subwords
from onoma.systems.blocks.type_texts import type_text


class TorchRuntime:
    """A trained model on a device; numbers that need it are computed in bfloat16 on GPUs."""

    name = "torch"
    batches_together = 1

    def __init__(self, model: Any, config: ModelConfig, subwords: Subwords) -> None:
        self.model, self.config, self.subwords = model, config, subwords

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = self.model.log_scale.device
        return device

    def type_key(self, entity_type: EntityType) -> str:
        """The text that the type encoder reads."""
        return type_text(entity_type, self.model.options)

    def precision(self) -> torch.autocast:
        """bfloat16 on GPUs, float32 elsewhere."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    def ready(self) -> None:
        """No dropout; asked first, because `eval` walks through all modules."""
        if self.model.training:
            self.model.eval()

    def copy(self, arrays: Sequence[NDArray[np.int64]]) -> list[Tensor]:
        """Arrays on the device, by a single copy: each copy costs time of its own, however small it is."""
        together = torch.as_tensor(np.concatenate([array.ravel() for array in arrays]), device=self.device)
        parts = torch.split(together, [array.size for array in arrays])
        return [part.view(array.shape) for part, array in zip(parts, arrays, strict=True)]
