"""From tag scores to proposals, in numpy, for both backends: the mentions of the best tags and their probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals
from onoma.models.config import ModelConfig
from onoma.systems.base import margin_of, scores_of
from onoma.systems.blocks.tagging import TagScheme
from onoma.systems.blocks.viterbi import TransitionScores, span_log_odds, viterbi

Floats = NDArray[np.float32]


def propose_tagged(
    emissions: Floats,
    words: NDArray[np.int64],
    transitions: TransitionScores,
    scheme: TagScheme,
    config: ModelConfig,
    query: Floats,
    floor: float,
) -> Proposals:
    """The mentions of the best tag sequence whose type is asked for and whose score reaches `floor`.

    Args:
        emissions: tag scores (windows, words, tags).
        words: number of words of each window.
        query: the number of each type that is asked for (types, 1).
    """
    window, first, last, kind = scheme.spans(viterbi(emissions, words, transitions), words)
    place = np.full(scheme.types, -1)
    place[query[:, 0].astype(np.int64)] = np.arange(len(query))
    asked = np.flatnonzero(place[kind] >= 0)
    window, first, last, kind = (column[asked] for column in (window, first, last, kind))
    margin = span_log_odds(emissions, words, transitions, scheme, window, first, last, kind)
    found = Proposals(window, first, last, place[kind], scores_of(margin, config))
    return found.take(np.flatnonzero(margin >= margin_of(floor, config)))
