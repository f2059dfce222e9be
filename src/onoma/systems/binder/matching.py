"""BINDER's matching in numpy, for the runtime without PyTorch (the same as `Binder.similarities` and `margins`).

A margin is (l_i·e_k + r_j·e_k + d_w·e_k) / |l_i + r_j + d_w| - threshold: three numbers a type, one length a
span. Types that cannot reach the wanted margin anywhere in a window are left out first, by an upper bound that
costs two maxima; so asking for a thousand types costs little more than asking for a few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Found = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Floats]


def match(left: Floats, right: Floats, width: Floats, types: Floats, words: NDArray[np.int64], lowest: float) -> Found:
    """All spans with a margin of at least `lowest`, as (window, first word, last word, type, margin).

    Args:
        left, right: l and r (windows, 1 + words, d); place 0 is [CLS].
        width: d for the allowed widths (widths, d).
        types: e, scaled by 1/τ (types, d).
        words: how many words each window has (windows,).
    """
    widths = min(len(width), left.shape[1] - 1)
    width = width[:widths]
    length = _lengths(left, right, width, words)  # (windows, words, widths), infinite where there is no span
    by_width = width @ types.T  # (widths, types)
    by_left, by_right = left @ types.T, right @ types.T  # (windows, 1 + words, types)
    first_vector = left[:, 0] + right[:, 0] + width[0] if widths else left[:, 0]
    anchor = (first_vector @ types.T) / np.linalg.norm(first_vector, axis=-1, keepdims=True)  # (windows, types)
    wanted = anchor + lowest
    window, kind = np.nonzero(_reachable(by_left, by_right, by_width, length, words, wanted))
    found = [_spans(by_left, by_right, by_width, length, wanted, window, kind, w) for w in range(widths)]
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] if found else [np.zeros(0, np.int64)] * 5
    rows, first, last, kinds, excess = columns
    return rows, first, last, kinds, (excess + np.float32(lowest)).astype(np.float32)


def _lengths(left: Floats, right: Floats, width: Floats, words: NDArray[np.int64]) -> Floats:
    """|l_i + r_(i+w) + d_w| for every span, infinite beyond the end of a window."""
    windows, places = left.shape[0], left.shape[1] - 1
    left, right, widths = left[:, 1:], right[:, 1:], len(width)
    own = np.square(left).sum(-1), np.square(right).sum(-1), np.square(width).sum(-1)
    left_right, left_width, right_width = left @ right.transpose(0, 2, 1), left @ width.T, right @ width.T
    length = np.full((windows, places, widths), np.inf, np.float32)
    for w in range(widths):
        i, j = slice(0, places - w), slice(w, places)
        square = own[0][:, i] + own[1][:, j] + own[2][w]
        square += 2 * (left_width[:, i, w] + right_width[:, j, w] + np.diagonal(left_right, w, 1, 2))
        exists = np.arange(w, places) < words[:, None]
        length[:, i, w] = np.where(exists, np.sqrt(np.maximum(square, 1e-6)), np.inf)
    return length


def _reachable(
    by_left: Floats, by_right: Floats, by_width: Floats, length: Floats, words: NDArray[np.int64], wanted: Floats
) -> NDArray[np.bool_]:
    """Which types may reach the wanted similarity somewhere in which window: an upper bound, never too low."""
    exists = (np.arange(by_left.shape[1] - 1) < words[:, None])[..., None]
    most = sum(np.where(exists, side[:, 1:], -np.inf).max(1, initial=-np.inf) for side in (by_left, by_right))
    most = most + by_width.max(0, initial=-np.inf)  # (windows, types): no span has a greater product
    shortest = length.min((1, 2), initial=np.inf)[:, None]
    longest = np.where(np.isfinite(length), length, 0.0).max((1, 2), initial=0.0)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        bound = most / np.where(most > 0, shortest, longest)
    return np.asarray(bound >= wanted - 1e-4)


def _spans(
    by_left: Floats,
    by_right: Floats,
    by_width: Floats,
    length: Floats,
    wanted: Floats,
    window: NDArray[np.intp],
    kind: NDArray[np.intp],
    w: int,
) -> Found:
    """The spans of one width that reach the wanted similarity, for the given pairs of window and type."""
    places = length.shape[1] - w
    similarity = by_left[window, 1 : places + 1, kind] + by_right[window, w + 1 : w + places + 1, kind]  # (pairs, places)
    similarity += by_width[w, kind][:, None]
    similarity /= length[window, :places, w]
    excess = similarity - wanted[window, kind][:, None]
    excess[np.isinf(length[window, :places, w])] = -np.inf
    pair, first = np.nonzero(excess >= 0)
    return window[pair], first, first + w, kind[pair], excess[pair, first]
