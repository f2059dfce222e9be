"""The decoder: which proposals are reported. Extraction, training and evaluation all use this function."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onoma.decoding.overlap import Overlap, resolve_overlaps
from onoma.decoding.proposals import Integers, Proposals
from onoma.errors import OnomaError

_LEAST_SCORE = 2.0**-24  # the logarithm of smaller ones would be infinite or mere rounding


def decode(
    proposals: Proposals,
    labels: Sequence[str],
    *,
    thresholds: ArrayLike | None = None,
    overlap: Overlap = "flat",
    several_labels: bool = False,
    catch_all: Collection[str] = (),
    penalties: ArrayLike | None = None,
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
        penalties: one per label. Of the labels of one span, the one with the highest log(score) - penalty is reported
            instead of the one with the highest score. Spans are still compared by their best scores.

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
        penalties=penalties,
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
    penalties: ArrayLike | None = None,
) -> Integers:
    """The same as row numbers."""
    if thresholds is not None:
        if np.ndim(thresholds) and len(np.asarray(thresholds)) != len(labels):
            raise OnomaError(f"{len(np.asarray(thresholds))} thresholds were given for {len(labels)} labels")
        reached = np.flatnonzero(proposals.reaches(thresholds))
        rows = decode_rows(
            proposals.take(reached),
            labels,
            overlap=overlap,
            several_labels=several_labels,
            catch_all=catch_all,
            penalties=penalties,
        )
        return reached[rows]
    rows = resolve_overlaps(
        proposals.first,
        proposals.last + 1,
        proposals.type,
        ranking_scores(proposals.score, proposals.type, labels, catch_all),
        overlap=overlap,
        several_labels=several_labels,
    )
    if penalties is None or several_labels:
        return rows
    preference = label_preferences(proposals, labels, catch_all, penalties)
    return preferred_rows(_span_numbers(proposals), proposals.type, preference, rows)


def preferred_rows(span: Integers, kind: Integers, preference: NDArray[np.floating], rows: Integers) -> Integers:
    """Of the span of each of these rows, the row with the label that is preferred.

    `span` has the same number for rows of the same span.
    """
    preferred = _best_rows(span, kind, preference)
    chosen = np.zeros(int(span.max(initial=-1)) + 1, np.int64)
    chosen[span[rows]] = rows  # for scores that are not numbers
    chosen[span[preferred]] = preferred
    return np.asarray(chosen[span[rows]])


def best_labels(
    proposals: Proposals, labels: Sequence[str], catch_all: Collection[str] = (), penalties: ArrayLike | None = None
) -> Proposals:
    """The best label of each span, which is all that `decode` needs unless several labels are reported.

    With `penalties`, these are up to two: the label with the best score, by which spans are compared, and the one that
    is reported. With thousands of types and low thresholds this saves most of the memory, if it is done part by part.

    >>> rows = Proposals(*map(np.array, ([0, 0, 0], [3, 3, 4], [3, 3, 4], [0, 1, 0], [0.2, 0.9, 0.1])))
    >>> best_labels(rows, ["city", "town"]).type.tolist()
    [1, 0]
    """
    return proposals.take(is_best_label(proposals, labels, catch_all, penalties))


def is_best_label(
    proposals: Proposals, labels: Sequence[str], catch_all: Collection[str] = (), penalties: ArrayLike | None = None
) -> NDArray[np.bool_]:
    """The rows of `best_labels` as a mask."""
    span, kept = _span_numbers(proposals), np.zeros(len(proposals.first), np.bool_)
    kept[_best_rows(span, proposals.type, ranking_scores(proposals.score, proposals.type, labels, catch_all))] = True
    if penalties is not None:
        kept[_best_rows(span, proposals.type, label_preferences(proposals, labels, catch_all, penalties))] = True
    return kept


def ranking_scores(
    score: NDArray[np.float32], kind: Integers, labels: Sequence[str], catch_all: Collection[str]
) -> NDArray[np.float32]:
    """The scores by which overlapping proposals are ranked: catch-all labels rank below all others.

    >>> scores, types = np.array([0.9, 0.4], np.float32), np.array([0, 1])
    >>> ranking_scores(scores, types, ["MISC", "person"], ["misc"]).round(1).tolist()
    [-1.1, 0.4]
    """
    return score - 2 * _is_catch_all(kind, labels, catch_all).astype(score.dtype) if catch_all else score


def label_preferences(
    proposals: Proposals, labels: Sequence[str], catch_all: Collection[str], penalties: ArrayLike | None
) -> NDArray[np.floating]:
    """By what the label of a span is chosen: log(score) - penalty, below all others for catch-all labels.

    The logarithm hardly tells high scores apart, so a label that clearly fits can win against a broad one that is even
    more certain. Without penalties, labels are chosen by `ranking_scores`.
    """
    if penalties is None:
        return ranking_scores(proposals.score, proposals.type, labels, catch_all)
    score = np.maximum(proposals.score.astype(np.float64), _LEAST_SCORE)
    value = np.log(score) - np.asarray(penalties, np.float64)[proposals.type]
    if catch_all and len(value):
        value -= _is_catch_all(proposals.type, labels, catch_all) * (1 + np.ptp(value))
    return value


def _is_catch_all(kind: Integers, labels: Sequence[str], catch_all: Collection[str]) -> NDArray[np.bool_]:
    return _catch_all_labels(tuple(labels), frozenset(catch_all))[kind]


@lru_cache(maxsize=4)  # asked for the same labels batch by batch
def _catch_all_labels(labels: tuple[str, ...], catch_all: frozenset[str]) -> NDArray[np.bool_]:
    return np.array([label.strip().casefold() in catch_all for label in labels], np.bool_)


def _span_numbers(proposals: Proposals) -> Integers:
    """The same number for proposals of the same span."""
    if not len(proposals.first):
        return proposals.first
    width = proposals.last - proposals.first
    return np.asarray((proposals.first - proposals.first.min()) * (int(width.max()) + 1) + width)


def _best_rows(span: Integers, kind: Integers, value: NDArray[np.floating]) -> Integers:
    """The row of each span with the highest value; of labels with equal values, the first one."""
    highest = np.full(int(span.max(initial=-1)) + 1, -np.inf, value.dtype)
    np.maximum.at(highest, span, value)
    rows = np.flatnonzero(value == highest[span])
    lowest = np.full(len(highest), kind.max(initial=0), np.int64)
    np.minimum.at(lowest, span[rows], kind[rows])
    return np.asarray(rows[kind[rows] == lowest[span[rows]]])
