"""CUDA graphs for tests without a GPU: when functions are captured is real, and replaying calls the function."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from onoma.systems.blocks.inference_graphs import Function, InferenceGraphs, Outputs, Replay, Shape, unpack


class SimulatedGraphs(InferenceGraphs):
    """Keeps how often functions were captured and replayed."""

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self.enabled = True
        self.captured = self.replayed = 0

    def _capture(
        self, function: Function, packed: Tensor, shapes: Sequence[Shape], tensors: Sequence[Tensor]
    ) -> Replay:
        self.captured += 1

        def replay(packed: Tensor, tensors: Sequence[Tensor]) -> Outputs:
            self.replayed += 1
            return function(*unpack(packed, shapes), *tensors)

        return replay

    def _synchronize(self) -> None:
        pass
