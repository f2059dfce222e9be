"""Candidate spans and their scores, for both backends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.overlap import resolve_overlaps
from onoma.decoding.proposals import Proposals
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.systems.base import margin_of, scores_of
from onoma.systems.suner.marking import Candidates
from onoma.systems.suner.options import SunerOptions


class Detected(NamedTuple):
    """Candidates and the detector's logits for them."""

    spans: Candidates
    logit: NDArray[np.float32]


def dataset_prefix(corpus: str, tokenizer: WordTokenizer) -> list[int]:
    """The tokens between [CLS] and a text: the name of its corpus, and [SEP]."""
    (tokens,) = tokenizer.encode([corpus.replace("_", " ")])
    return tokens[1:]


def known_prefix(corpus: str | None, config: ModelConfig, tokenizer: WordTokenizer) -> list[int]:
    """The prefix of a corpus that the model was trained on; empty for any other."""
    return dataset_prefix(corpus, tokenizer) if corpus is not None and corpus in config.datasets else []


def detection_logit(threshold: float) -> float:
    """The detector's logit for a probability; for a probability of 0, one that all spans exceed."""
    return max(margin_of(threshold, ModelConfig("suner")), -1e3)


def choose_candidates(found: Candidates, logit: NDArray[np.float32], options: SunerOptions) -> Detected:
    """The candidates without overlaps that the options exclude, and only the best ones of each window."""
    window, first, last = found
    overlap, most = options.candidates, options.max_candidates
    if overlap != "any":
        rank = np.zeros(len(window), np.int64)
        rows = np.sort(resolve_overlaps(first, last + 1, rank, logit, overlap=overlap, group=window))
        window, first, last, logit = window[rows], first[rows], last[rows], logit[rows]
    if len(window) and int(np.bincount(window).max()) > most:
        order = np.lexsort((-logit, window))
        rank = np.arange(len(order)) - np.searchsorted(window[order], window[order])
        rows = np.sort(order[rank < most])
        window, first, last, logit = window[rows], first[rows], last[rows], logit[rows]
    return Detected(Candidates(window, first, last), logit)


def proposals(spans: Candidates, margin: NDArray[np.float32], floor: float, config: ModelConfig) -> Proposals:
    """The candidates and types whose score reaches `floor`, given their margins (candidates, types)."""
    row, kind = np.nonzero(margin >= margin_of(floor, config))
    return Proposals(spans.window[row], spans.first[row], spans.last[row], kind, scores_of(margin[row, kind], config))
