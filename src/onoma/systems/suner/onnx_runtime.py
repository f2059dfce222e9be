"""SUNER run by onnxruntime and numpy, without PyTorch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from onoma.backends.onnx import OnnxGraph
from onoma.batches import Batch, put_before
from onoma.config import ModelConfig
from onoma.decoding import Proposals
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.subwords import Subwords
from onoma.systems.blocks.onnx_runtime import Floats, Integers, OnnxRuntime, RememberingGraph
from onoma.systems.blocks.type_texts import type_text
from onoma.systems.suner.candidates import Detected, choose, known_prefix, lowest_logit, proposals
from onoma.systems.suner.marking import Candidates
from onoma.systems.suner.options import SunerOptions

MODEL_FILE, DETECTOR_FILE = "model.onnx", "detector.onnx"

_OPENING, _CLOSING = -2, -1  # the numbers of [e] and [/e]
_MOST_CANDIDATES = 48  # whose markers are run together: the time of attention grows with their square


class _Text(NamedTuple):
    """What the encoder has left of texts."""

    states: Floats  # (texts, tokens, hidden)
    memory: list[Floats]  # keys and values of all layers, (texts, tokens, hidden) each

    def take(self, rows: Integers) -> _Text:
        """Some of the texts."""
        if len(rows) == len(self.states):
            return self
        return _Text(self.states[rows], [one[rows] for one in self.memory])


class OnnxSuner(OnnxRuntime):
    """A trained SUNER in two stages or fused, as `onoma.export` writes it."""

    def __init__(
        self,
        model: OnnxGraph,
        detector: OnnxGraph | None,
        config: ModelConfig,
        subwords: Subwords,
        threads: int | None = None,
    ) -> None:
        """`detector` is there in the two-stage form alone."""
        super().__init__(config, subwords, threads)
        self.model, self.detector = RememberingGraph(model), detector
        self.options = SunerOptions.of(config.options)
        self.prefix: list[int] = []

    @classmethod
    def load(cls, folder: str | os.PathLike[str], threads: int | None = None) -> OnnxSuner:
        """Load a model folder."""
        folder = Path(folder)
        config = ModelConfig.load(folder)
        two = SunerOptions.of(config.options).form == "two-stage"
        for name in (MODEL_FILE, DETECTOR_FILE)[: 1 + two]:
            if not (folder / name).is_file():
                raise OnomaError(f"{folder} has no {name}, which the onnx backend needs: make it with `onoma export`")
        detector = OnnxGraph(folder / DETECTOR_FILE) if two else None
        return cls(OnnxGraph(folder / MODEL_FILE), detector, config, Subwords.load(folder), threads)

    def style(self, corpus: str | None) -> OnnxSuner:
        """The same model with the name of a corpus before every text; without one for corpora it does not know."""
        styled = copy(self)
        styled.prefix = known_prefix(corpus, self.config, self.subwords)
        return styled

    def type_key(self, entity_type: EntityType) -> str:
        """The text that the type encoder reads."""
        return type_text(entity_type, self.options)

    def encode_types(self, types: Sequence[EntityType]) -> Floats:
        """e_k of each type."""
        return self.encode_texts([self.type_key(one) for one in types], self._encode_part)

    def _encode_part(self, inputs: tuple[Integers, Integers]) -> Floats:
        ids, mask = inputs
        return self.model.run(["encoded"], ids=ids, seen=mask[:, None], positions=_places(ids))[0]

    def propose(self, batch: Batch, types: Floats, floor: float) -> Proposals:
        """Candidate spans and types whose score reaches `floor`."""
        nothing = np.zeros(0, np.int64)
        found = [Proposals(nothing, nothing, nothing, nothing, np.zeros(0, np.float32))]
        found += self.workers.map(partial(self._search, batch, types, floor), self.parts(batch.mask.sum(1)))
        return Proposals(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def _search(self, batch: Batch, types: Floats, floor: float, windows: Integers) -> Proposals:
        """What is found in some windows of a batch."""
        part = put_before(_trimmed(batch.take(windows)), self.prefix)
        logits, text = self._detect(part)
        spans, logit = self._candidates(logits, part.words)
        if not len(logit):
            return Proposals(*spans, spans.window, logit)
        if text is None:  # what classifies in a pass of its own never reads the prefix
            kept = np.unique(spans.window)
            windows, spans = windows[kept], _among(spans, kept)
            part = _trimmed(batch.take(windows))
            text = self._read(part)[1]
        matched = []
        for group in _groups(spans):
            kept = np.unique(group.window)
            matched.append(self._match(part.take(kept), text.take(kept), _among(group, kept)))
        vectors, nothing = (np.concatenate(column) for column in zip(*matched, strict=True))
        margin = vectors @ types.T - nothing[:, None]
        margin += np.float32(self.options.detection_weight) * logit[:, None]
        found = proposals(spans, margin, floor, self.config)
        return found._replace(window=windows[found.window])

    def _detect(self, batch: Batch) -> tuple[Floats, _Text | None]:
        """Logits of all pairs of words and, where the classifier has the same encoder, what it has left of the text."""
        words = {"first": batch.first[..., None], "last": batch.last[..., None]}
        if self.detector is not None:
            return self.detector.run(["logits"], ids=batch.ids, mask=batch.mask, **words)[0], None
        (logits,), text = self._read(batch, "logits", **words)
        return logits, text

    def _read(self, batch: Batch, *outputs: str, **words: Integers) -> tuple[list[Floats], _Text]:
        """Outputs for texts without markers, and what markers need of them."""
        wanted = [*outputs, "states", *self.model.memory]
        inputs = {"ids": batch.ids, "seen": batch.mask[:, None], "positions": _places(batch.ids)}
        found = self.model.run(wanted, (), **inputs, **words)
        states, *memory = found[len(outputs) :]
        return found[: len(outputs)], _Text(states, memory)

    def _candidates(self, logits: Floats, words: Integers) -> Detected:
        """The spans that are likely enough to be mentions."""
        place = np.arange(logits.shape[1])
        width = place - place[:, None]
        narrow = (width >= 0) & (width < self.options.max_width)
        exists = (place < words[:, None])[:, None]  # the last word
        likely = (logits >= lowest_logit(self.options.detection_threshold)) & narrow & exists
        return choose(Candidates(*np.nonzero(likely)), logits[likely], self.options)

    def _match(self, batch: Batch, text: _Text, spans: Candidates) -> tuple[Floats, Floats]:
        """r of candidates, scaled by 1/τ, and the similarity that they must exceed: markers against the text.

        The markers of all windows, first all [e] and then all [/e], are run as one text without any padding. Each sees
        the text and the markers of its own window.
        """
        tokens, number, window = batch.ids.shape[1], len(spans.window), spans.window
        first, last = batch.first[window, spans.first], batch.last[window, spans.last]
        owner = np.concatenate([window, window])
        of_text = np.where(batch.mask, np.arange(len(batch.mask))[:, None], -1).ravel()  # padding is no window's
        place = np.stack([np.zeros(2 * number, np.int64), np.arange(2 * number)], axis=1)
        inputs = {
            "ids": np.repeat([_OPENING, _CLOSING], number)[None],
            "seen": (owner[:, None] == np.concatenate([of_text, owner])).astype(np.int64)[None],
            "positions": np.concatenate([np.tile(np.arange(tokens), len(batch.ids)), first, last])[None],
            "opening": place[:number],
            "closing": place[number:],
        }
        states = {}
        if self.options.spans == "both":
            states = {"begin": text.states[window, first], "end": text.states[window, last]}
        memory = [one.reshape(1, -1, one.shape[-1]) for one in text.memory]
        vectors, nothing = self.model.run(["vectors", "nothing"], memory, **inputs, **states)
        return vectors, nothing


def _places(ids: Integers) -> Integers:
    """The positions of tokens that stand in a row, for all texts at once."""
    return np.arange(ids.shape[1])[None]


def _trimmed(batch: Batch) -> Batch:
    """The same windows without padding that all of them have."""
    tokens, words = int(batch.mask.sum(1).max()), int(batch.words.max())
    return Batch(
        batch.ids[:, :tokens], batch.mask[:, :tokens], batch.first[:, :words], batch.last[:, :words], batch.words
    )


def _groups(spans: Candidates) -> list[Candidates]:
    """Candidates in groups of bounded size, none of which has a part of a window only."""
    group = np.searchsorted(spans.window, spans.window) // _MOST_CANDIDATES
    edges = np.flatnonzero(np.diff(group)) + 1
    return [Candidates(*columns) for columns in zip(*(np.split(column, edges) for column in spans), strict=True)]


def _among(spans: Candidates, kept: Integers) -> Candidates:
    """The same candidates when only the windows `kept` are there."""
    return spans._replace(window=np.searchsorted(kept, spans.window))
