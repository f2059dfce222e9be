"""The decoder: which proposals are reported. Extraction, training and evaluation all use this function."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onoma.decoding.overlap import Overlap, resolve_overlaps
from onoma.decoding.proposals import Integers, Proposals
from onoma.errors import OnomaError


def decode(
    proposals: Proposals,
    labels: Sequence[str],
    *,
    thresholds: ArrayLike | None = None,
    overlap: Overlap = "flat",
    several_labels: bool = False,
    catch_all: Collection[str] = (),
) -> Proposals:
    """The proposals that are reported, sorted by first word, last word and label.

    Proposals below their threshold are dropped. The others are taken best first, unless they conflict with a better
    one (`resolve_overlaps`). Ties go to the earlier start, then the earlier end, then the label that comes first.

    Args:
        proposals: spans in words of one text, or of packed texts, which never overlap each other.
        labels: what `proposals.type` counts into; sorted by `parse_labels`, so that their order has no influence.
        thresholds: one number, or one per label; None if all proposals have reached theirs already.
        overlap: "flat" (no shared words), "nested" (spans may contain each other) or "any".
        several_labels: report all labels of a span that reach their thresholds, not only the best one.
        catch_all: labels such as "miscellaneous", which rank below all others.

    >>> one = Proposals(*(np.array([x]) for x in (0, 3, 3, 0, 0.9)))
    >>> decode(one, ["city"], thresholds=0.5).first.tolist(), decode(one, ["city"], thresholds=0.95).first.tolist()
    ([3], [])
    """
    rows = decode_rows(
        proposals,
        labels,
        thresholds=thresholds,
        overlap=overlap,
        several_labels=several_labels,
        catch_all=catch_all,
    )
    return proposals.take(rows)


def decode_rows(
    proposals: Proposals,
    labels: Sequence[str],
    *,
    thresholds: ArrayLike | None = None,
    overlap: Overlap = "flat",
    several_labels: bool = False,
    catch_all: Collection[str] = (),
) -> Integers:
    """The same as row numbers."""
    if thresholds is not None:
        if np.ndim(thresholds) and len(np.asarray(thresholds)) != len(labels):
            raise OnomaError(f"{len(np.asarray(thresholds))} thresholds were given for {len(labels)} labels")
        reached = np.flatnonzero(proposals.reaches(thresholds))
        chosen = proposals.take(reached)
        return reached[decode_rows(chosen, labels, overlap=overlap, several_labels=several_labels, catch_all=catch_all)]
    return resolve_overlaps(
        proposals.first,
        proposals.last + 1,
        proposals.type,
        ranking_scores(proposals.score, proposals.type, labels, catch_all),
        overlap=overlap,
        several_labels=several_labels,
    )


def best_labels(proposals: Proposals, labels: Sequence[str], catch_all: Collection[str] = ()) -> Proposals:
    """The best label of each span, which is all that `decode` needs unless several labels are reported.

    With thousands of types and low thresholds this saves most of the memory, if it is done part by part.

    >>> rows = Proposals(*map(np.array, ([0, 0, 0], [3, 3, 4], [3, 3, 4], [0, 1, 0], [0.2, 0.9, 0.1])))
    >>> best_labels(rows, ["city", "town"]).type.tolist()
    [1, 0]
    """
    if not len(proposals.first):
        return proposals
    first, widths = int(proposals.first.min()), int((proposals.last - proposals.first).max()) + 1
    span = (proposals.first - first) * widths + proposals.last - proposals.first
    score = ranking_scores(proposals.score, proposals.type, labels, catch_all)
    highest = np.full(int(span.max()) + 1, -np.inf, score.dtype)
    np.maximum.at(highest, span, score)
    rows = np.flatnonzero(score == highest[span])
    lowest = np.full(len(highest), len(labels), np.int64)  # of labels with equal scores, the first one
    np.minimum.at(lowest, span[rows], proposals.type[rows])
    return proposals.take(rows[proposals.type[rows] == lowest[span[rows]]])


def ranking_scores(
    score: NDArray[np.float32], kind: Integers, labels: Sequence[str], catch_all: Collection[str]
) -> NDArray[np.float32]:
    """The scores by which overlapping proposals are ranked: catch-all labels rank below all others.

    >>> scores, types = np.array([0.9, 0.4], np.float32), np.array([0, 1])
    >>> ranking_scores(scores, types, ["MISC", "person"], ["misc"]).round(1).tolist()
    [-1.1, 0.4]
    """
    if not catch_all:
        return score
    last = np.array([label.strip().casefold() in catch_all for label in labels], np.bool_)
    return score - 2 * last[kind].astype(score.dtype)
