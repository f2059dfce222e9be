"""CUDA graphs for inference: the work of a batch is captured once per shape and then launched at once.

A small encoder is hundreds of short kernels, and Python launches them more slowly than the GPU runs them. Shapes are
rounded up, so that few have to be captured; what is frequent is captured, and everything else runs without a graph.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

CAPTURE_AFTER = 3  # a shape is captured when it occurs for this time
MAX_GRAPHS = 32  # of a model
_HALVE_AFTER = 1024  # calls: occurrences are then divided by 2, so that shapes of long ago lose their places
_STEP = 8  # shapes are multiples of it, and large ones of a larger step
_WARM_UP = 2  # calls before capturing: libraries then choose algorithms and allocate, which a capture does not allow

Shape = tuple[int, ...]
Outputs = tuple[Tensor, ...]
Function = Callable[..., Outputs]
"""From tensors of fixed shapes to tensors of fixed shapes; it must not wait for the GPU."""
Replay = Callable[[Tensor, Sequence[Tensor]], Outputs]
"""From integers in one buffer, and other tensors, to outputs that the next call of any graph may overwrite."""


class _Graph(NamedTuple):
    variant: Hashable
    replay: Replay


class InferenceGraphs:
    """The graphs of a model on a device; off except on GPUs.

    All use the same memory, so only one may be launched at a time, and all on the same stream: the caller holds a lock
    while it calls `run` and passes on what reads the outputs. If capturing fails, there are no graphs from then on.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.enabled = device, device.type == "cuda"
        self.seen: Counter[Hashable] = Counter()
        self.graphs: OrderedDict[Hashable, _Graph] = OrderedDict()  # least recently used first
        self.calls = 0
        self.pool: Any = None
        self.stream: Any = None

    def wants(self, key: Hashable) -> bool:
        """Whether this kind of work has a graph, or should get one; counts how often it occurs."""
        if not self.enabled:
            return False
        self.seen[key] += 1
        self.calls += 1
        if self.calls % _HALVE_AFTER == 0:
            self.seen = Counter({one: number // 2 for one, number in self.seen.items() if number > 1})
        return key in self.graphs or self._is_worth_capturing(key)

    def _is_worth_capturing(self, key: Hashable) -> bool:
        """Capturing takes as long as many batches: a graph is only replaced by one that is needed far more often."""
        if len(self.graphs) < MAX_GRAPHS:
            return self.seen[key] >= CAPTURE_AFTER
        return self.seen[key] >= max(CAPTURE_AFTER, 2 * self.seen[next(iter(self.graphs))])

    def run(
        self,
        key: Hashable,
        variant: Hashable,
        function: Function,
        packed: Tensor,
        shapes: Sequence[Shape],
        tensors: Sequence[Tensor] = (),
    ) -> Outputs | None:
        """The outputs of a function by a graph, which is captured if there is none; None if that fails.

        Args:
            key: names the function and the shapes of its inputs.
            variant: all else that the function depends on; another variant replaces the graph.
            packed, shapes: inputs of integers, one after the other in a buffer that the device can read, and their
                shapes.
            tensors: further inputs, on the device.
        """
        graph = self.graphs.get(key)
        if graph is None or graph.variant != variant:
            if not self.enabled:  # since `wants` was called
                return None
            replay = self._try_capture(function, packed, shapes, tensors)
            if replay is None:
                return None
            self._make_room(key)
            graph = self.graphs[key] = _Graph(variant, replay)
        self.graphs.move_to_end(key)
        return graph.replay(packed, tensors)

    def _make_room(self, key: Hashable) -> None:
        if key not in self.graphs and len(self.graphs) < MAX_GRAPHS:
            return
        self._synchronize()  # a graph that still runs must not be deleted
        if key not in self.graphs:
            self.graphs.popitem(last=False)

    def _try_capture(
        self, function: Function, packed: Tensor, shapes: Sequence[Shape], tensors: Sequence[Tensor]
    ) -> Replay | None:
        try:
            return self._capture(function, packed, shapes, tensors)
        except Exception as error:  # of PyTorch, CUDA or Triton
            self.enabled = False
            logger.warning("no CUDA graphs are used from now on, because capturing one failed: %s", error)
            return None

    def _capture(
        self, function: Function, packed: Tensor, shapes: Sequence[Shape], tensors: Sequence[Tensor]
    ) -> Replay:
        if self.pool is None:
            make_stream: Any = torch.cuda.Stream
            self.pool, self.stream = torch.cuda.graph_pool_handle(), make_stream(self.device)
        return _CapturedFunction(function, packed.to(self.device), shapes, tensors, self.pool, self.stream)

    def _synchronize(self) -> None:
        torch.cuda.synchronize(self.device)


class _CapturedFunction:
    """A function as a CUDA graph."""

    def __init__(
        self,
        function: Function,
        packed: Tensor,
        shapes: Sequence[Shape],
        tensors: Sequence[Tensor],
        pool: Any,
        stream: Any,
    ) -> None:
        self.packed, self.tensors = packed, [one.clone() for one in tensors]
        self.copied = list(tensors)
        inputs = *unpack(packed, shapes), *self.tensors
        stream.wait_stream(torch.cuda.current_stream(packed.device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                function(*inputs)
        torch.cuda.current_stream(packed.device).wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        # other threads may wait for the GPU and allocate memory meanwhile
        with torch.cuda.graph(self.graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
            self.outputs = function(*inputs)

    def __call__(self, packed: Tensor, tensors: Sequence[Tensor]) -> Outputs:
        self.packed.copy_(packed, non_blocking=True)
        for place, tensor in enumerate(tensors):
            if tensor is not self.copied[place]:
                self.tensors[place].copy_(tensor)
                self.copied[place] = tensor
        self.graph.replay()
        return self.outputs


def unpack(packed: Tensor, shapes: Sequence[Shape]) -> list[Tensor]:
    """The tensors of these shapes that stand one after the other in a buffer."""
    parts = torch.split(packed, [torch.Size(shape).numel() for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def round_up(length: int, step: int = _STEP) -> int:
    """The next multiple of a step, which is larger for large lengths: never more than the step or an eighth is added.

    >>> [round_up(length) for length in (0, 8, 9, 70, 252, 300)]
    [8, 8, 16, 72, 256, 320]
    """
    step = max(step, (1 << max(length - 1, 1).bit_length() - 1) // _STEP)
    return max(1, -(-length // step)) * step
