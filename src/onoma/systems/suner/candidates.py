"""What becomes of the detector's and the classifier's numbers, whatever runs the model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.backends.base import lowest_margin, scores
from onoma.config import ModelConfig
from onoma.decoding import Proposals, select
from onoma.subwords import Subwords
from onoma.systems.suner.marking import Candidates
from onoma.systems.suner.options import SunerOptions

GROUPS = np.array([4])  # candidates of a window at most, in each group but the last; each group is a pass of its own
MUCH_PADDING = 1024  # places for candidates that stay empty


class Detected(NamedTuple):
    """Candidates and the detector's logits for them."""

    spans: Candidates
    logit: NDArray[np.float32]


def dataset_prefix(corpus: str, subwords: Subwords) -> list[int]:
    """The tokens that stand between [CLS] and a text: the name of its corpus, and [SEP]."""
    (tokens,) = subwords.encode_rows([corpus.replace("_", " ")])
    return tokens[1:]


def known_prefix(corpus: str | None, config: ModelConfig, subwords: Subwords) -> list[int]:
    """The same for a corpus that the model was trained on with it; nothing for any other."""
    known = corpus is not None and corpus in config.options.get("datasets", ())
    return dataset_prefix(corpus, subwords) if known and corpus is not None else []


def lowest_logit(threshold: float) -> float:
    """The detector's logit for a probability; where that asks for all spans, one that only non-spans do not reach."""
    return max(lowest_margin(threshold, ModelConfig("suner")), -1e3)


def choose(found: Candidates, logit: NDArray[np.float32], options: SunerOptions) -> Detected:
    """The candidates that stay: none in conflict with a better one, and of each window only the best ones."""
    window, first, last = found
    overlap, most = options.candidates, options.most_candidates
    if overlap != "any":
        rank = np.zeros(len(window), np.int64)
        rows = np.sort(select(first, last + 1, rank, logit, overlap=overlap, group=window))
        window, first, last, logit = window[rows], first[rows], last[rows], logit[rows]
    if len(window) and int(np.bincount(window).max()) > most:
        order = np.lexsort((-logit, window))
        rank = np.arange(len(order)) - np.searchsorted(window[order], window[order])
        rows = np.sort(order[rank < most])
        window, first, last, logit = window[rows], first[rows], last[rows], logit[rows]
    return Detected(Candidates(window, first, last), logit)


def marker_groups(spans: Candidates, windows: int) -> list[NDArray[np.int64]]:
    """Candidates (their numbers) in groups of windows with similarly many of them, where that saves much padding."""
    counts = np.bincount(spans.window, minlength=windows)
    if windows * int(counts.max(initial=0)) - len(spans.window) <= MUCH_PADDING:
        return [np.arange(len(spans.window))]
    kind = np.searchsorted(GROUPS, counts)[spans.window]
    return [rows for rows in (np.flatnonzero(kind == number) for number in range(len(GROUPS) + 1)) if len(rows)]


def proposals(spans: Candidates, margin: NDArray[np.float32], floor: float, config: ModelConfig) -> Proposals:
    """Candidates and types, by their margins (candidates, types), whose score reaches `floor`."""
    row, kind = np.nonzero(margin >= lowest_margin(floor, config))
    return Proposals(spans.window[row], spans.first[row], spans.last[row], kind, scores(margin[row, kind], config))
