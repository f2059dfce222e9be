"""Which spans without a label count as negatives, for training data in which mentions may be unlabelled."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from onoma.systems.options import NegativeSampling


class Counted(NamedTuple):
    """What takes part in a loss: mentions of any type, and negatives. Everything else is ignored."""

    starts: Tensor  # (windows, words)
    ends: Tensor  # (windows, words)
    spans: Tensor  # (windows, words, widths); spans as (first word, width - 1)


def counted_spans(
    words: Tensor,
    shape: tuple[int, int],
    gold: Tensor,
    *,
    sampling: NegativeSampling = "none",
    rate: float = 0.0,
    masked: Tensor | None = None,
    complete: Tensor | None = None,
) -> Counted:
    """Choose the negatives of a batch, anew at each call.

    Args:
        words: number of words of each window.
        shape: words of the longest window, and widths.
        gold: mentions: rows that start with (window, first word, last word).
        rate: a sample has int(rate · n) + 1 spans of a window with n words (Li et al., 2021).
        masked: spans that are neither mentions nor negatives: rows (window, first word, last word).
        complete: windows in which all mentions are labelled (windows,). In the others, only spans that overlap a
            mention are negatives. None: all windows.
    """
    length, widths = shape
    place = torch.arange(length, device=words.device)
    exists = place < words[:, None]  # (windows, words)
    last = place[:, None] + place[:widths]  # (words, widths): the last word of each span
    fits = last < words[:, None, None]  # (windows, words, widths)
    if sampling == "none" and masked is None and complete is None:
        return Counted(exists, exists, fits)
    inside = _inside(gold, exists)
    if complete is not None:
        fits = fits & (complete[:, None, None] | _overlaps(inside, last))
        exists = exists & (complete[:, None] | inside)
    labelled = span_flags(gold, fits.shape)
    hidden = torch.zeros_like(fits) if masked is None else span_flags(masked, fits.shape)
    if sampling == "none":
        starts, ends, spans = exists.clone(), exists.clone(), fits
    else:
        spans = _sample(fits & ~labelled & ~hidden, words, rate)
        starts, ends = spans.any(2), _ends(spans, last)
    if sampling == "overlapping":
        spans = spans | (fits & _overlaps(inside, last))
        starts, ends = starts | inside, ends | inside
    if masked is not None:
        starts[masked[:, 0], masked[:, 1]], ends[masked[:, 0], masked[:, 2]] = False, False
    starts[gold[:, 0], gold[:, 1]], ends[gold[:, 0], gold[:, 2]] = True, True
    return Counted(starts, ends, (spans & ~hidden) | labelled)


def span_flags(rows: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Flags (windows, words, widths) of spans, given by rows (window, first word, last word); wide ones are ignored."""
    flags = torch.zeros(shape, dtype=torch.bool, device=rows.device)
    window, first, last = rows[:, :3].T
    width = last - first
    if shape[2] < shape[1]:  # only if needed: masks synchronise
        narrow = width < shape[2]
        window, first, width = window[narrow], first[narrow], width[narrow]
    flags[window, first, width] = True
    return flags


def _sample(candidates: Tensor, words: Tensor, rate: float) -> Tensor:
    """A random choice of int(rate · n) + 1 of the candidate spans of each window, or all if there are fewer."""
    flat = candidates.flatten(1)
    most = min(flat.shape[1], int(rate * candidates.shape[1]) + 1)
    chances = torch.rand(flat.shape, device=flat.device).masked_fill(~flat, -1.0)
    best = chances.topk(most, dim=1).indices
    chosen = torch.arange(most, device=flat.device) < ((rate * words).long() + 1)[:, None]
    return (torch.zeros_like(flat).scatter_(1, best, chosen) & flat).view_as(candidates)


def _ends(spans: Tensor, last: Tensor) -> Tensor:
    """The last words of flagged spans: (windows, words)."""
    windows, length, widths = spans.shape
    counts = torch.zeros((windows, length + widths), device=spans.device)
    return counts.index_add_(1, last.flatten(), spans.flatten(1).float())[:, :length] > 0


def _inside(gold: Tensor, exists: Tensor) -> Tensor:
    """The words inside mentions: (windows, words)."""
    change = torch.zeros((len(exists), exists.shape[1] + 1), dtype=torch.long, device=exists.device)
    one = torch.ones_like(gold[:, 0])
    change.index_put_((gold[:, 0], gold[:, 1]), one, accumulate=True)
    change.index_put_((gold[:, 0], gold[:, 2] + 1), -one, accumulate=True)
    return change.cumsum(1)[:, :-1] > 0


def _overlaps(inside: Tensor, last: Tensor) -> Tensor:
    """The spans that contain a word inside a mention: (windows, words, widths)."""
    before = F.pad(inside.long().cumsum(1), (1, 0))  # (windows, words + 1): such words before each place
    until = before[:, (last + 1).clamp(max=inside.shape[1])]
    return until > before[:, :-1, None]
