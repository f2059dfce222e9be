"""CUDA graphs: in training, a pass through an encoder is captured once per shape and then replayed.

A training step of a small encoder is a thousand short kernels, and the GPU finishes each before Python has launched
the next one. A captured graph is launched at once. Shapes are rounded up, so that few have to be captured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CAPTURE_AFTER = 3  # a shape is captured when it has occurred so often
MAX_GRAPHS = 8  # captured shapes, because each keeps gradients of all weights; others run without a graph
MAX_TOKENS = 8_192  # of a captured batch: larger ones keep the GPU busy anyway, and would need much memory
_GRID = torch.tensor([8, 16, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512])


class _Sample(NamedTuple):
    """Inputs of a call, and the dtype of autocast if it was on."""

    tensors: list[Tensor]
    autocast: torch.dtype | None


class GraphedFunction:
    """A function of a module and tensors (rows, columns, ...) that runs as a CUDA graph where possible.

    All tensors have the same rows; their columns may differ. The function must return a tensor with the rows and
    columns of the first one, must not wait for the GPU, and rows and columns of zeros must not change the others. It is
    called directly except in training on one GPU.

    Shapes that occur often are noted, and captured by `capture`, which training calls between steps: capturing fails
    while another pass through the same weights waits for its gradients.
    """

    prepared: Any = None
    """The weights for calls without gradients, if they are prepared."""

    def __init__(self, module: nn.Module, function: Callable[..., Tensor]) -> None:
        self.module, self.function = module, function
        self.reset(enabled=False)

    def reset(self, *, enabled: bool) -> None:
        """Drop all graphs, and use graphs from now on, or not."""
        self.enabled = enabled
        self.seen: Counter[tuple[int, ...]] = Counter()
        self.graphs: dict[tuple[int, ...], nn.Module] = {}
        self.pending: dict[tuple[int, ...], _Sample] = {}
        self.pool: tuple[int, int] | None = None

    def prepare(self, dtype: torch.dtype) -> None:
        """Prepare weights, which must not change any more, for calls without gradients, if there is a way to do so."""

    def __call__(self, *tensors: Tensor) -> Tensor:
        first = tensors[0]
        if not (self.enabled and first.is_cuda and torch.is_grad_enabled() and self.module.training):
            return self.function(*tensors)
        rows, columns = first.shape[:2]
        shape = _round_up(rows), *(_round_up(one.shape[1]) for one in tensors)
        padded = [_pad(one, shape[0], width) for one, width in zip(tensors, shape[1:], strict=True)]
        self.seen[shape] += 1
        if self._is_worth_capturing(shape):
            autocast = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
            copies = [one.detach().clone().requires_grad_(one.requires_grad) for one in padded]
            self.pending[shape] = _Sample(copies, autocast)
        run = self.graphs.get(shape, self.function)
        result: Tensor = run(*padded)
        return result[:rows, :columns]

    def _is_worth_capturing(self, shape: tuple[int, ...]) -> bool:
        small = shape[0] * max(shape[1:]) <= MAX_TOKENS
        room = len(self.graphs) + len(self.pending) < MAX_GRAPHS
        return small and room and self.seen[shape] >= CAPTURE_AFTER and shape not in self.graphs | self.pending

    def capture(self) -> None:
        """Capture the shapes that were noted; only between steps."""
        for shape, sample in self.pending.items():
            self.graphs[shape] = self._capture(sample)
        self.pending.clear()

    def _capture(self, sample: _Sample) -> nn.Module:
        if self.pool is None:
            self.pool = torch.cuda.graph_pool_handle()
        call = _Call(self.module, self.function)
        dtype = sample.autocast or torch.bfloat16
        # a captured graph must not use autocast's cache of converted weights
        with torch.autocast("cuda", dtype, enabled=sample.autocast is not None, cache_enabled=False):
            make_graphed: Any = torch.cuda.make_graphed_callables
            make_graphed(call, tuple(sample.tensors), allow_unused_input=True, pool=self.pool)  # replaces `forward`
        return call


class _Call(nn.Module):
    """The function as a module, so that gradients reach the weights of the module that it uses."""

    def __init__(self, module: nn.Module, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.module, self.function = module, function
        self.training = module.training

    def forward(self, *tensors: Tensor) -> Tensor:
        return self.function(*tensors)


def _pad(tensor: Tensor, rows: int, columns: int) -> Tensor:
    """The tensor with rows and columns of zeros behind its own."""
    inner = (0, 0) * (tensor.ndim - 2)
    return F.pad(tensor, (*inner, 0, columns - tensor.shape[1], 0, rows - tensor.shape[0]))


def _round_up(length: int) -> int:
    """The next length of the grid."""
    return int(_GRID[torch.searchsorted(_GRID, length)]) if length <= int(_GRID[-1]) else -(-length // 128) * 128
