"""Scores on development data while training: documents are prepared once, then only the model runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from onoma.asking import asked_types
from onoma.backends.base import Backend
from onoma.chunks import Proposed, prepare, propose
from onoma.entities import Corpus, Entity
from onoma.evaluation.runs import usual_overlap
from onoma.word_tokens import WordTokens


class DevelopmentSet:
    """A corpus cut into windows for one backend."""

    def __init__(self, corpus: Corpus, backend: Backend, *, batch_size: int = 64) -> None:
        self.corpus, self.batch_size, self.overlap = corpus, batch_size, usual_overlap(corpus)
        self.types = asked_types(corpus.types)
        self.prepared = prepare([one.text for one in corpus], WordTokens(backend.subwords), backend.config)

    def propose(self, backend: Backend, floor: float) -> Proposed:
        """Everything that the model gives a score of at least `floor`."""
        limits = np.full(len(self.types), floor, np.float32)
        backend = backend.style(self.corpus.name)
        return propose(self.prepared, backend, backend.encode_types(self.types), limits, self.batch_size)

    def decode(self, proposed: Proposed, threshold: float) -> list[list[Entity]]:
        """The entities of every document at a threshold."""
        return proposed.above(threshold).entities([one.name for one in self.types], self.overlap)

    def scores(self, predicted: Sequence[Sequence[Entity]]) -> dict[str, float]:
        """Strict precision, recall and F1, in percent."""
        right = found = gold = 0
        for document, entities in zip(self.corpus, predicted, strict=True):
            known = self.corpus.annotated(document)
            true = {entity.key for entity in document.entities}
            guess = {entity.key for entity in entities if entity.label in known}
            right, found, gold = right + len(true & guess), found + len(guess), gold + len(true)
        precision, recall = right / max(found, 1), right / max(gold, 1)
        f1 = 2 * precision * recall / max(precision + recall, 1e-12)
        return {"precision": 100 * precision, "recall": 100 * recall, "f1": 100 * f1}

    def evaluate(self, backend: Backend) -> dict[str, float]:
        """The scores of a model at its own threshold."""
        threshold = backend.config.threshold
        return self.scores(self.decode(self.propose(backend, threshold), threshold))

    def calibration_data(self, proposed: Proposed) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The score of every mention that would be reported without a threshold, and whether it is right.

        What loses to a better overlapping mention is never reported, so it does not count here.
        """
        scores, right = [], []
        for document, entities in zip(self.corpus, self.decode(proposed, 0.0), strict=True):
            known = self.corpus.annotated(document)
            gold = {entity.key for entity in document.entities}
            reported = [entity for entity in entities if entity.label in known]
            scores += [entity.score for entity in reported]
            right += [entity.key in gold for entity in reported]
        return np.array(scores), np.array(right, np.bool_)
