"""SUNER run by onnxruntime and numpy, without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from onoma.decoding.proposals import Proposals
from onoma.entities import EntityType
from onoma.inputs.batches import Batch
from onoma.models.folder import ONNX_FILE, ModelFolder
from onoma.onnx.runtime import CachedSession, Floats, Integers, OnnxRuntime
from onoma.onnx.session import OnnxSession
from onoma.systems.base import RuntimeSettings
from onoma.systems.options import parse_options
from onoma.systems.suner.candidates import Detected, choose_candidates, detection_logit, known_prefix, proposals
from onoma.systems.suner.marking import Candidates, pair_numbers
from onoma.systems.suner.options import RENAMED, SunerOptions

DETECTOR_FILE = "detector.onnx"

_MAX_CANDIDATES = 48  # whose markers are run together: the time of attention grows with their square


class _EncodedText(NamedTuple):
    """What the encoder computed for texts."""

    states: Floats  # (texts, tokens, hidden)
    cache: list[Floats]  # keys and values of all layers, (texts, tokens, hidden) each

    def take(self, rows: Integers) -> _EncodedText:
        """Some of the texts."""
        if len(rows) == len(self.states):
            return self
        return _EncodedText(self.states[rows], [one[rows] for one in self.cache])


class OnnxSuner(OnnxRuntime):
    """A trained SUNER, two-stage or fused, as `onoma export` writes it."""

    def __init__(self, folder: ModelFolder, settings: RuntimeSettings) -> None:
        super().__init__(folder, settings)
        self.options = parse_options(SunerOptions, self.config.options, RENAMED)
        self.model = CachedSession(OnnxSession(folder.path / ONNX_FILE))
        two_stage = self.options.form == "two-stage"
        self.detector = OnnxSession(folder.path / DETECTOR_FILE) if two_stage else None
        self.prefix: list[int] = []

    def with_style(self, corpus: str | None) -> OnnxSuner:
        """The same model with the name of a corpus before every text, if it knows that corpus."""
        styled = copy(self)
        styled.prefix = known_prefix(corpus, self.config, self.tokenizer)
        return styled

    def type_text(self, entity_type: EntityType) -> str:
        """The text that the type encoder reads."""
        return entity_type.as_text() if self.options.types == "description" else entity_type.name

    def encode_types(self, types: Sequence[EntityType]) -> Floats:
        """e_k of each type."""
        return self.encode_texts([self.type_text(one) for one in types], self._encode)

    def _encode(self, ids: Integers, mask: Integers) -> Floats:
        return self.model.run(["encoded"], ids=ids, visible=mask[:, None], positions=_positions(ids))[0]

    def propose(self, batch: Batch, query: Floats, floor: float) -> Proposals:
        """The candidates and types whose score reaches `floor`."""
        if not len(batch.ids):  # graphs cannot read texts without tokens
            return Proposals.concatenate([])
        prefixed = batch.with_prefix(self.prefix)
        logits, text = self._detect(prefixed)
        spans, logit = self._candidates(logits, batch.words)
        if not len(logit):
            return Proposals.concatenate([])
        windows, part = np.arange(len(batch.words)), prefixed
        if text is None:  # the classifier of the two-stage form never reads the prefix
            windows = np.unique(spans.window)
            part, spans = batch.take(windows), _renumber(spans, windows)
            text = self._read(part)[1]
        matched = []
        for group in _groups(spans):
            kept = np.unique(group.window)
            matched.append(self._match(part, kept, text.take(kept), _renumber(group, kept)))
        vectors, nothing = (np.concatenate(column) for column in zip(*matched, strict=True))
        margin = vectors @ query.T - nothing[:, None]
        margin += np.float32(self.options.detection_weight) * logit[:, None]
        found = proposals(spans, margin, floor, self.config)
        return found._replace(window=windows[found.window])

    def _detect(self, batch: Batch) -> tuple[Floats, _EncodedText | None]:
        """Logits of all pairs of words and, in the fused form, the encoded text."""
        words = {"first": batch.first[..., None], "last": batch.last[..., None]}
        if self.detector is not None:
            return self.detector.run(["logits"], ids=batch.ids, mask=batch.mask, **words)[0], None
        (logits,), text = self._read(batch, "logits", **words)
        return logits, text

    def _read(self, batch: Batch, *outputs: str, **words: Integers) -> tuple[list[Floats], _EncodedText]:
        """Outputs for texts without markers, and what markers need of the texts."""
        wanted = [*outputs, "states", *self.model.cache]
        inputs = {"ids": batch.ids, "visible": batch.mask[:, None], "positions": _positions(batch.ids)}
        found = self.model.run(wanted, (), **inputs, **words)
        states, *cache = found[len(outputs) :]
        return found[: len(outputs)], _EncodedText(states, cache)

    def _candidates(self, logits: Floats, words: Integers) -> Detected:
        """The spans whose probability of being a mention is high enough."""
        place = np.arange(logits.shape[1])
        width = place - place[:, None]
        narrow = (width >= 0) & (width < self.options.max_width)
        exists = (place < words[:, None])[:, None]  # the last word
        likely = (logits >= detection_logit(self.options.detection_threshold)) & narrow & exists
        return choose_candidates(Candidates(*np.nonzero(likely)), logits[likely], self.options)

    def _match(self, batch: Batch, windows: Integers, text: _EncodedText, spans: Candidates) -> tuple[Floats, Floats]:
        """r of candidates, scaled by 1/τ, and the similarity that must be exceeded: markers against the text.

        The markers of all windows, first all [e] and then all [/e], are run as one sequence without padding. Each one
        attends to the text and the markers of its own window; paired markers only to those of their own pair.
        """
        mask, tokens = batch.mask[windows], batch.ids.shape[1]
        number, window = len(spans.window), spans.window
        first, last = batch.first[windows[window], spans.first], batch.last[windows[window], spans.last]
        owner = np.concatenate([window, window])
        of_text = np.where(mask, np.arange(len(mask))[:, None], -1).ravel()  # padding belongs to no window
        place = np.stack([np.zeros(2 * number, np.int64), np.arange(2 * number)], axis=1)
        pair = np.arange(number) if self.options.marker_identity == "paired" else window  # whose markers see each other
        group = np.concatenate([pair, pair])
        visible = np.concatenate([owner[:, None] == of_text, group[:, None] == group], axis=1)
        inputs = {
            "ids": self._marker_ids(spans)[None],
            "visible": visible.astype(np.int64)[None],
            "positions": np.concatenate([np.tile(np.arange(tokens), len(mask)), first, last])[None],
            "opening": place[:number],
            "closing": place[number:],
        }
        states = {}
        if self.options.spans == "both":
            states = {"begin": text.states[window, first], "end": text.states[window, last]}
        past = [one.reshape(1, -1, one.shape[-1]) for one in text.cache]
        vectors, nothing = self.model.run(["vectors", "nothing"], past, **inputs, **states)
        return vectors, nothing

    def _marker_ids(self, spans: Candidates) -> Integers:
        """The ids of all [e_i], then of all [/e_i]: negative, the last [/e_i] has -1."""
        rows = 2 * self.options.marker_numbers
        opening = 2 * pair_numbers(spans, self.options) % rows - rows
        return np.concatenate([opening, opening + 1])


def _positions(ids: Integers) -> Integers:
    """Consecutive positions, the same for all texts."""
    return np.arange(ids.shape[1])[None]


def _groups(spans: Candidates) -> list[Candidates]:
    """Candidates in groups of limited size, each with whole windows."""
    group = np.searchsorted(spans.window, spans.window) // _MAX_CANDIDATES
    edges = np.flatnonzero(np.diff(group)) + 1
    return [Candidates(*columns) for columns in zip(*(np.split(column, edges) for column in spans), strict=True)]


def _renumber(spans: Candidates, kept: Integers) -> Candidates:
    """The same candidates, with windows counted among those that are kept."""
    return spans._replace(window=np.searchsorted(kept, spans.window))
