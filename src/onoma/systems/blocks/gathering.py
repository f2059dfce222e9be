"""Instances of all processes that train together, for losses that compare the instances of a batch with each other."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def gather_instances(vectors: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The vectors and labels of all processes, by rank; with a single process, its own.

    Gradients reach the vectors of the process that made them, summed over the losses of all processes. Each process
    then computes the same loss, and the mean of the gradients over processes, which distributed training takes, is that
    of one process with all instances.

    Args:
        vectors: (instances, size); processes may have different numbers of instances.
        labels: (instances,).
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return vectors, labels
    counts = _gather(torch.tensor([len(labels)], device=labels.device)).flatten().tolist()
    missing = max(counts) - len(labels)
    padded = torch.nn.functional.pad(vectors, (0, 0, 0, missing))
    all_vectors: Tensor = _GatherWithGradient.apply(padded)  # type: ignore[no-untyped-call]
    all_labels = _gather(torch.nn.functional.pad(labels, (0, missing)))
    return _without_padding(all_vectors, counts), _without_padding(all_labels, counts)


def _gather(own: Tensor) -> Tensor:
    """Tensors of the same shape of all processes: (processes, ...)."""
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, own.contiguous())
    return torch.stack(parts)


def _without_padding(gathered: Tensor, counts: list[int]) -> Tensor:
    return torch.cat([part[:count] for part, count in zip(gathered, counts, strict=True)])


class _GatherWithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        return _gather(own)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        total = gradient.contiguous()
        dist.all_reduce(total)
        return total[dist.get_rank()]
