"""The fused form from tokens to scores as one function of tensors with fixed shapes, which never waits for the GPU.

A batch has a budget of candidates, whose number is not known when the work is passed to the GPU: markers that are not
used are computed and ignored. The result says whether the budget was enough; if not, it is not used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onoma.systems.blocks.inference_graphs import round_up
from onoma.systems.blocks.packed_attention import PackedTokens
from onoma.systems.suner.candidates import Detected, detection_logit
from onoma.systems.suner.inference import SunerInference
from onoma.systems.suner.marking import OPENING, Candidates
from onoma.systems.suner.options import SunerOptions

MAX_SPANS = 64
"""Likely spans of a window up to which they are compared with each other on the device."""
_ROUNDS = 5  # in which overlaps are resolved
_HEADER = 4  # most likely spans of a window, candidates, whether overlaps are resolved, unused
_COLUMNS = 4  # window, first word, last word, logit


class Budget(NamedTuple):
    """How many spans and candidates a batch may have, or has."""

    spans: int  # of a window, which reach the detection threshold
    candidates: int  # of the batch

    def union(self, other: Budget) -> Budget:
        """The larger one of each."""
        return Budget(max(self.spans, other.spans), max(self.candidates, other.candidates))

    def with_room(self) -> Budget:
        """A budget for similar batches: a little more, rounded up so that it changes rarely."""
        wanted = self.candidates + self.candidates // 16
        step = max(32, (1 << wanted.bit_length()) // 32)
        return Budget(round_up(self.spans + self.spans // 8), max(1, -(-wanted // step)) * step)


class _Chosen(NamedTuple):
    """Candidates in the order of the texts; those behind the last one are meaningless."""

    window: Tensor  # (candidates,)
    first: Tensor  # (candidates,): word
    last: Tensor  # (candidates,): word, inclusive
    logit: Tensor  # (candidates,)
    number: Tensor  # (candidates,): index within the window
    counts: Tensor  # (windows,): candidates of each window
    header: Tensor  # see `_HEADER`


class SinglePass:
    """Encode, detect, choose candidates, mark and match."""

    def __init__(self, model: SunerInference, budget: Budget) -> None:
        self.model, self.budget = model, budget
        self.options = model.model.options

    def __call__(
        self, ids: Tensor, mask: Tensor, first: Tensor, last: Tensor, words: Tensor, types: Tensor
    ) -> tuple[Tensor]:
        """Header, candidates and margins of all types in one row of integers, for a single copy; see `read_result`."""
        texts = self.model.encode(ids, mask)
        chosen = self.choose(self.model.detect(texts.states, first, last, words), first.shape[1])
        start, end = (
            edges.flatten()[chosen.window * edges.shape[1] + word]
            for edges, word in ((first, chosen.first), (last, chosen.last))
        )
        positions = torch.stack([start, end], dim=1)  # (candidates, 2)
        inner = texts.states.flatten(0, 1)[positions + chosen.window[:, None] * ids.shape[1]]
        numbers = chosen.number * (self.options.marker_identity != "shared")
        roles = 2 * numbers[:, None] + OPENING + torch.arange(2, device=ids.device)
        states = self.model.mark(texts, self._packed(positions.flatten(), chosen), roles.flatten())
        margin = self.model.match_markers(states[0::2], states[1::2], inner[:, 0], inner[:, 1], types)
        columns = torch.stack([chosen.window, chosen.first, chosen.last]).int()
        floats = torch.cat([chosen.logit.float(), margin.flatten()])
        return (torch.cat([chosen.header, columns.flatten(), floats.view(torch.int32)]),)

    def choose(self, logits: Tensor, length: int) -> _Chosen:
        """What `choose_candidates` keeps of the likely spans, given the logits of pairs of words (windows, pairs)."""
        likely = logits.float() >= detection_logit(self.options.detection_threshold)
        place, exists, total = _first_true(likely, self.budget.spans)  # (windows, spans)
        logit = logits.gather(1, place)
        kept, settled = _without_overlaps(place // length, place % length, logit, exists, self.options)
        counts = kept.sum(1)
        index = _first_true(kept.flatten()[None], self.budget.candidates)[0][0]
        header = torch.stack([one.int() for one in (total.amax(), counts.sum(), settled, settled)])
        chosen = place.flatten()[index]
        number = kept.cumsum(1).flatten()[index] - 1
        window = index // self.budget.spans
        return _Chosen(window, chosen // length, chosen % length, logit.flatten()[index], number, counts, header)

    def _packed(self, positions: Tensor, chosen: _Chosen) -> PackedTokens:
        """The markers in groups that see each other: those of a window, or pairs."""
        pairs, windows = len(chosen.window), len(chosen.counts)
        if self.options.marker_identity == "paired":
            texts, most = chosen.window, 1
            last = torch.arange(1, pairs + 1, device=positions.device).clamp(max=chosen.counts.sum())
        else:
            texts, most = torch.arange(windows, device=positions.device), self.budget.spans
            last = chosen.counts.cumsum(0).clamp(max=pairs)
        edges = 2 * torch.cat([last.new_zeros(1), last])
        return PackedTokens(positions, texts, edges, 2 * min(most, self.options.max_candidates) + 1)


def _first_true(flags: Tensor, number: int) -> tuple[Tensor, Tensor, Tensor]:
    """The places of the first true values of each row (rows, number), whether there are so many, and how many there
    are (rows, 1)."""
    counts = flags.cumsum(1, dtype=torch.int32)
    rank = torch.arange(1, number + 1, device=flags.device, dtype=torch.int32).expand(len(flags), -1)
    total = counts[:, -1:]
    place = torch.searchsorted(counts, rank.contiguous())
    return place.clamp(max=flags.shape[1] - 1), rank <= total, total


def _without_overlaps(
    first: Tensor, last: Tensor, logit: Tensor, exists: Tensor, options: SunerOptions
) -> tuple[Tensor, Tensor]:
    """Which spans are candidates (windows, spans), sorted by place, and whether that was settled.

    Best first, a span stays unless it conflicts with one that stays. So a span stays if no better one that conflicts
    with it stays. This is repeated for all spans at once: when nothing changes any more, it holds for all of them.
    """
    order = torch.arange(first.shape[1], device=first.device)
    earlier = order < order[:, None]
    own, other = logit[:, :, None], logit[:, None]
    better = (other > own) | ((other == own) & earlier)  # (windows, spans, others)
    kept, settled = exists, exists.new_ones(())
    if options.candidates != "any":
        beaten = better & _conflicts(first, last, nested=options.candidates == "nested")
        for _ in range(_ROUNDS):
            before, kept = kept, exists & ~(beaten & kept[:, None]).any(2)
        settled = (before == kept).all()
    if first.shape[1] > options.max_candidates:
        kept = kept & ((better & kept[:, None]).sum(2) < options.max_candidates)
    return kept, settled


def _conflicts(first: Tensor, last: Tensor, *, nested: bool) -> Tensor:
    """Which spans exclude each other (windows, spans, spans): those that share words, or that cross."""
    starts, ends = first[:, :, None] <= first[:, None], last[:, :, None] <= last[:, None]
    shared = (first[:, :, None] <= last[:, None]) & (first[:, None] <= last[:, :, None])
    if not nested:
        return shared
    inside = (starts & ends.transpose(1, 2)) | (starts.transpose(1, 2) & ends)  # one contains the other
    return shared & ~inside


def read_result(result: NDArray[np.int32], budget: Budget, types: int) -> tuple[Detected, NDArray[np.float32]] | None:
    """Candidates and margins (candidates, types) from the result of `SinglePass`; None if the budget was exceeded."""
    spans, number, settled = result[: _HEADER - 1].tolist()
    if spans > budget.spans or number > budget.candidates or not settled:
        return None
    columns, margins = np.split(result[_HEADER:], [_COLUMNS * budget.candidates])
    *found, logit = columns.reshape(_COLUMNS, -1)[:, :number]
    margin = margins.view(np.float32).reshape(budget.candidates, -1)[:number, :types]
    return Detected(Candidates(*(one.astype(np.int64) for one in found)), logit.view(np.float32)), margin
