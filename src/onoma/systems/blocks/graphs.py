"""CUDA graphs: in training, a pass through an encoder is recorded once a shape and then replayed.

A step of a small encoder is a thousand short operations; the GPU is done with each before Python has asked for the
next. A recorded pass is asked for at once. Shapes are rounded up, so that few have to be recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SEEN_BEFORE = 3  # a shape is recorded when it comes again after that many times
MOST = 8  # recorded shapes, because each keeps gradients of all weights; others run as usual
MOST_TOKENS = 8_192  # of a recorded batch: larger ones keep the GPU busy anyway, and would hold much memory
_GRID = torch.tensor([8, 16, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512])


class _Sample(NamedTuple):
    """What a pass was given, and the precision that it ran in where that was chosen automatically."""

    tensors: list[Tensor]
    automatic: torch.dtype | None


class Recorded:
    """A function of a module and of tensors (rows, columns, ...), recorded and replayed where that is possible.

    The function must give a tensor (rows, columns, ...), must not wait for the GPU, and rows and columns that are
    all zero must not change the others. Other than in training on one GPU it is simply called.

    A shape that has come often enough is noted, and recorded by `record`, which training calls between steps:
    a recording fails while another pass through the same weights waits for its gradients.
    """

    def __init__(self, module: nn.Module, function: Callable[..., Tensor]) -> None:
        self.module, self.function = module, function
        self.restart(enabled=False)

    def restart(self, *, enabled: bool) -> None:
        """Forget what was recorded, and from now on record, or not."""
        self.enabled = enabled
        self.seen: Counter[tuple[int, ...]] = Counter()
        self.recordings: dict[tuple[int, ...], nn.Module] = {}
        self.noted: dict[tuple[int, ...], _Sample] = {}
        self.pool: tuple[int, int] | None = None

    def __call__(self, *tensors: Tensor) -> Tensor:
        first = tensors[0]
        if not (self.enabled and first.is_cuda and torch.is_grad_enabled() and self.module.training):
            return self.function(*tensors)
        rows, columns = first.shape[:2]
        shape = _rounded(rows), _rounded(columns)
        padded = [F.pad(one, (0, shape[1] - columns, 0, shape[0] - rows)) for one in tensors]
        self.seen[shape] += 1
        if self._worth_recording(shape):
            automatic = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
            self.noted[shape] = _Sample([one.clone() for one in padded], automatic)
        run = self.recordings.get(shape, self.function)
        result: Tensor = run(*padded)
        return result[:rows, :columns]

    def _worth_recording(self, shape: tuple[int, int]) -> bool:
        small = shape[0] * shape[1] <= MOST_TOKENS
        room = len(self.recordings) + len(self.noted) < MOST
        return small and room and self.seen[shape] >= SEEN_BEFORE and shape not in self.recordings | self.noted

    def record(self) -> None:
        """Record the shapes that are noted; only between steps."""
        for shape, sample in self.noted.items():
            self.recordings[shape] = self._record(sample)
        self.noted.clear()

    def _record(self, sample: _Sample) -> nn.Module:
        if self.pool is None:
            self.pool = torch.cuda.graph_pool_handle()
        call = _Pass(self.module, self.function)
        dtype = sample.automatic or torch.bfloat16
        # The cache of converted weights must not be used by what is recorded.
        with torch.autocast("cuda", dtype, enabled=sample.automatic is not None, cache_enabled=False):
            record: Any = torch.cuda.make_graphed_callables
            record(call, tuple(sample.tensors), allow_unused_input=True, pool=self.pool)  # changes its `forward`
        return call


class _Pass(nn.Module):
    """The function as a module, so that gradients reach the weights of the module that it uses."""

    def __init__(self, module: nn.Module, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.module, self.function = module, function
        self.training = module.training

    def forward(self, *tensors: Tensor) -> Tensor:
        return self.function(*tensors)


def _rounded(length: int) -> int:
    """The next length of the grid."""
    return int(_GRID[torch.searchsorted(_GRID, length)]) if length <= int(_GRID[-1]) else -(-length // 128) * 128
