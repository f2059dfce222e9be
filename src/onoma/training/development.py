"""Scores on development data while training: documents are prepared once, then only the model runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onoma.asking import asked_types
from onoma.backends.base import Backend
from onoma.chunks import Proposed, prepare, propose
from onoma.decoding import select, to_choose_by
from onoma.entities import Corpus
from onoma.evaluation.runs import usual_overlap
from onoma.word_tokens import WordTokens

Integers = NDArray[np.int64]


class DevelopmentSet:
    """A corpus cut into windows for one backend.

    Mentions are compared as numbers, one for each document, start, end and type; a threshold is tried in
    milliseconds, however many of them there are.
    """

    def __init__(self, corpus: Corpus, backend: Backend, *, batch_size: int = 64) -> None:
        self.corpus, self.batch_size, self.overlap = corpus, batch_size, usual_overlap(corpus)
        self.types = asked_types(corpus.types)
        self.prepared = prepare([one.text for one in corpus], WordTokens(backend.subwords), backend.config)
        number = {one.name: place for place, one in enumerate(self.types)}
        self.longest = max((len(one.text) for one in corpus), default=0) + 1
        gold = [
            (place, one.start, one.end, number[one.label])
            for place, document in enumerate(corpus)
            for one in document.entities
        ]
        self.gold = np.unique(self._keys(*np.array(gold, np.int64).reshape(-1, 4).T))
        self.known = np.zeros((len(corpus), len(self.types)), np.bool_)  # which types are annotated in which document
        for place, document in enumerate(corpus):
            self.known[place, [number[name] for name in corpus.annotated(document)]] = True

    def propose(self, backend: Backend, floor: float) -> Proposed:
        """Everything that the model gives a score of at least `floor`."""
        limits = np.full(len(self.types), floor, np.float32)
        backend = backend.style(self.corpus.name)
        return propose(self.prepared, backend, backend.encode_types(self.types), limits, self.batch_size)

    def scores(self, proposed: Proposed, threshold: float) -> dict[str, float]:
        """Strict precision, recall and F1 at a threshold, in percent."""
        _, right = self.reported(proposed, threshold)
        precision, recall = right.sum() / max(len(right), 1), right.sum() / max(len(self.gold), 1)
        f1 = 2 * precision * recall / max(precision + recall, 1e-12)
        return {"precision": 100 * float(precision), "recall": 100 * float(recall), "f1": 100 * float(f1)}

    def evaluate(self, backend: Backend) -> dict[str, float]:
        """The scores of a model at its own threshold."""
        threshold = backend.config.threshold
        return self.scores(self.propose(backend, threshold), threshold)

    def reported(self, proposed: Proposed, threshold: float) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The score of every mention that would be reported at a threshold, and whether it is right.

        What loses to a better overlapping mention is never reported, so it does not count here.
        """
        found = proposed.above(threshold)
        first, last, kind, score = found.proposals[1:]
        document = found.line.document(first)
        known = self.known[document, kind]  # what is not annotated in a document is not asked of it
        asked = np.flatnonzero(known)
        best = to_choose_by(score, kind, [one.name for one in self.types])[asked]
        kept = asked[select(first[asked], last[asked] + 1, kind[asked], best, overlap=self.overlap)]
        start, end = found.line.words[first[kept], 0], found.line.words[last[kept], 1]
        return score[kept], np.isin(self._keys(document[kept], start, end, kind[kept]), self.gold)

    def _keys(self, document: Integers, start: Integers, end: Integers, kind: Integers) -> Integers:
        """A number for each mention; equal mentions have equal ones."""
        return ((document * self.longest + start) * self.longest + end) * len(self.types) + kind
