"""Scores on development data while training: documents are prepared once, then only the model runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from onoma.backends.base import Backend
from onoma.batches import bucket, collate, slice_windows
from onoma.decoding import Proposals, decode
from onoma.entities import Corpus, Entity, EntityType
from onoma.subwords import Pieces
from onoma.text import Windows, cut_windows, segment, sentence_starts


class DevelopmentSet:
    """A corpus cut into windows for one backend."""

    def __init__(self, corpus: Corpus, backend: Backend, *, batch_size: int = 64) -> None:
        self.corpus, self.batch_size = corpus, batch_size
        config = backend.config
        self.words = [segment(document.text) for document in corpus]
        pieces = backend.subwords.split(zip((one.text for one in corpus), self.words, strict=True))
        self.windows: list[Windows] = []
        self.parts: list[Pieces] = []
        owners: list[tuple[int, int]] = []  # (document, window in it)
        for number, (document, words, tokens) in enumerate(zip(corpus, self.words, pieces, strict=True)):
            cut = cut_windows(
                tokens.counts, config.max_tokens - 2, config.overlap, sentence_starts(document.text, words)
            )
            self.windows.append(cut)
            self.parts += slice_windows(tokens, cut)
            owners += [(number, window) for window in range(len(cut))]
        self.owners = np.array(owners, np.int64).reshape(-1, 2)
        overlapping = any(a.end > b.start for d in corpus for a, b in zip(d.entities, d.entities[1:], strict=False))
        self.overlap = "nested" if overlapping else "flat"

    def propose(self, backend: Backend, floor: float, types: Sequence[EntityType] | None = None) -> list[Proposals]:
        """What the model proposes in each document, windows counted within the document."""
        rows = backend.encode_types(types or self.corpus.types)
        found: list[list[np.ndarray]] = []
        for batch in bucket([len(part.ids) for part in self.parts], self.batch_size, 16384):
            one = backend.propose(collate([self.parts[i] for i in batch], backend.subwords), rows, floor)
            document, window = self.owners[batch[one.window]].T
            found.append([document, window, *one[1:]])
        columns = [np.concatenate(column) for column in zip(*found, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        columns = [column[order] for column in columns]
        edges = np.searchsorted(columns[0], np.arange(len(self.corpus) + 1))
        return [Proposals(*(column[start:end] for column in columns[1:])) for start, end in pairwise(edges)]

    def decode(self, proposals: Sequence[Proposals], threshold: float | np.ndarray) -> list[list[Entity]]:
        """The entities of every document at a threshold."""
        labels = self.corpus.labels
        rows = zip(self.corpus, self.words, self.windows, proposals, strict=True)
        return [
            decode(document.text, words, found, labels, threshold=threshold, overlap=self.overlap, windows=windows)  # type: ignore[arg-type]
            for document, words, windows, found in rows
        ]

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

    def calibration_data(self, proposals: Sequence[Proposals]) -> tuple[np.ndarray, np.ndarray]:
        """The score of every mention that would be reported without a threshold, and whether it is right.

        What loses to a better overlapping mention is never reported, so it does not count here.
        """
        scores, right = [], []
        for document, entities in zip(self.corpus, self.decode(proposals, 0.0), strict=True):
            known = self.corpus.annotated(document)
            gold = {entity.key for entity in document.entities}
            reported = [entity for entity in entities if entity.label in known]
            scores += [entity.score for entity in reported]
            right += [entity.key in gold for entity in reported]
        return np.array(scores), np.array(right, np.bool_)

