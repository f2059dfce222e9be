"""SUNER run by PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onoma.backends.base import lowest_margin
from onoma.batches import Batch, put_before
from onoma.config import ModelConfig
from onoma.decoding import Proposals
from onoma.entities import EntityType
from onoma.subwords import Subwords
from onoma.systems.blocks.torch_runtime import TorchRuntime
from onoma.systems.blocks.transformer import Memory
from onoma.systems.suner.candidates import Detected, choose, known_prefix, lowest_logit, marker_groups, proposals
from onoma.systems.suner.marking import Candidates, mark
from onoma.systems.suner.model import Marks, Suner, at_words

_SPAN_NUMBERS = 1 << 26  # of the vectors of all spans of some windows, made at once in the one-stage form


class _Text(NamedTuple):
    """What the encoder has left of a text when detection and classification share it."""

    states: Tensor
    memory: Memory


class TorchSuner(TorchRuntime):
    """A trained SUNER on a device."""

    model: Suner

    def __init__(self, model: Suner, config: ModelConfig, subwords: Subwords) -> None:
        super().__init__(model, config, subwords)
        self.prefix: list[int] = []

    def style(self, corpus: str | None) -> TorchSuner:
        """The same model with the name of a corpus before every text; without one for corpora it does not know."""
        styled = copy(self)
        styled.prefix = known_prefix(corpus, self.config, self.subwords)
        return styled

    @torch.inference_mode()
    def encode_types(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """e_k of each type."""
        self.ready()
        rows = []
        for start in range(0, len(types), 256):
            texts = [self.type_key(one) for one in types[start : start + 256]]
            ids, mask = self.copy(self.subwords.encode(texts))
            with self.precision():
                rows.append(self.model.encode_types(ids, mask).float().cpu().numpy())
        return np.concatenate(rows)

    @torch.inference_mode()
    def propose(self, batch: Batch, types: NDArray[np.float32], floor: float) -> Proposals:
        """Candidate spans and types whose score reaches `floor`."""
        self.ready()
        asked = torch.as_tensor(types, device=self.device)
        prefixed = put_before(batch, self.prefix)
        if self.model.options.form == "one-stage":
            return self._propose_all(prefixed, asked, floor)
        detected, text = self._detect(prefixed, self.model.options.detection_threshold)
        if not len(detected.logit):
            return proposals(detected.spans, np.zeros((0, len(types)), np.float32), floor, self.config)
        with self.precision():
            if text is not None:
                sim, nothing = self._match_markers(prefixed, detected.spans, text, asked)
            else:  # a pass of its own, which never reads the prefix
                sim, nothing = self._match(batch, detected.spans, asked)
        margin = (sim - nothing[:, None]).cpu().numpy()
        margin += np.float32(self.model.options.detection_weight) * detected.logit[:, None]
        return proposals(detected.spans, margin, floor, self.config)

    @torch.inference_mode()
    def detect(self, batch: Batch, threshold: float) -> Detected:
        """The candidates of each window, of whatever type."""
        self.ready()
        return self._detect(put_before(batch, self.prefix), threshold)[0]

    def _detect(self, batch: Batch, threshold: float) -> tuple[Detected, _Text | None]:
        model = self.model
        ids, mask, first, last, words = self.copy((batch.ids, batch.mask, batch.first, batch.last, batch.words))
        text: _Text | None = None
        with self.precision():
            if model.options.form == "fused":
                text = _Text(*model.text_states(ids, mask))
                states = text.states
            else:
                states = model.detect_pass(ids, mask)
            logits = model.detector(*at_words(states, first, last), words)  # (windows, words, words)
        likely = (logits >= lowest_logit(threshold)).tril(model.options.max_width - 1)
        places = torch.nonzero(likely.flatten()).squeeze(1)
        values = logits.flatten()[places].float().cpu().numpy()
        found = Candidates(*np.unravel_index(places.cpu().numpy(), logits.shape))
        return choose(found, values, model.options), text

    def _match(self, batch: Batch, spans: Candidates, types: Tensor) -> tuple[Tensor, Tensor]:
        """Similarities of candidates, by a pass over text and markers."""
        options = self.model.options
        kept, window = np.unique(spans.window, return_inverse=True)  # windows without a candidate need not be read
        batch, spans = batch.take(kept), spans._replace(window=window.astype(np.int64))
        marked = mark(batch, spans, tied=options.tied_positions)
        marks = spans.window, marked.opening, marked.closing, *spans.tokens(batch)
        if options.markers:
            ids, positions, roles, *rest = self.copy((marked.ids, marked.positions, marked.roles, *marks))
            return self.model.match(self.model.marked_pass(ids, positions, roles), Marks(*rest), types)
        ids, mask, *rest = self.copy((batch.ids, batch.mask, *marks))
        return self.model.match(self.model.text_pass(ids, mask), Marks(*rest), types)

    def _match_markers(self, batch: Batch, spans: Candidates, text: _Text, types: Tensor) -> tuple[Tensor, Tensor]:
        """The same, by passes of markers alone, against what detection has left of the text.

        Windows with few candidates and windows with many go separately, so that little of a pass is padding.
        """
        found = [self._match_group(batch, spans, text, types, rows) for rows in marker_groups(spans, len(batch.ids))]
        order = torch.argsort(torch.cat([rows for rows, _, _ in found]))
        sim, nothing = (torch.cat(parts)[order] for parts in list(zip(*found, strict=True))[1:])
        return sim, nothing

    def _match_group(
        self, batch: Batch, spans: Candidates, text: _Text, types: Tensor, rows: NDArray[np.int64]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The numbers of some candidates, and what `_match_markers` gives for them."""
        window = spans.window[rows]
        windows, own = np.unique(window, return_inverse=True)
        some, group = batch.take(windows), Candidates(own.astype(np.int64), spans.first[rows], spans.last[rows])
        tokens = batch.ids.shape[1]
        marked = mark(some, group)
        place = np.concatenate([marked.opening, marked.closing]) - tokens
        markers = marked.positions[:, tokens:], marked.roles[:, tokens:]
        arrays = some.mask, *markers, np.tile(group.window, 2), place, windows, rows, window, *group.tokens(some)
        mask, positions, roles, marker, places, chosen, number, inside, first, last = self.copy(arrays)
        states = self.model.marker_states(
            text.memory, mask, positions, roles, marker, places, chosen if len(windows) < len(batch.ids) else None
        )
        opening, closing = states.chunk(2)
        begin, end = text.states[inside, first], text.states[inside, last]
        return number, *self.model.match_markers(opening, closing, begin, end, types)

    def _propose_all(self, batch: Batch, types: Tensor, floor: float) -> Proposals:
        """The one-stage form: every span is a candidate. Windows are taken some at a time, to bound memory."""
        model = self.model
        length = max(batch.first.shape[1], 1)
        size = max(1, _SPAN_NUMBERS // (length * length * max(model.options.size, len(types))))
        found = []
        for start in range(0, len(batch.ids), size):
            part = batch.take(np.arange(start, min(start + size, len(batch.ids))))
            ids, mask, first, last, words = self.copy((part.ids, part.mask, part.first, part.last, part.words))
            with self.precision():
                spans, sim, nothing = model.match_all(model.text_pass(ids, mask), first, last, words, types)
            margin = sim - nothing[:, None]
            lowest = max(lowest_margin(floor, self.config), torch.finfo(margin.dtype).min)
            row, kind = torch.nonzero(margin >= lowest, as_tuple=True)
            score = torch.sigmoid(self.config.scale * margin[row, kind] + self.config.bias)
            window, begin, end = spans[row].T.cpu().numpy()
            found.append(Proposals(window + start, begin, end, kind.cpu().numpy(), score.float().cpu().numpy()))
        return Proposals(*(np.concatenate(column) for column in zip(*found, strict=True)))


class DetectorAlone:
    """A SUNER's detector as a system of its own, whose only type is "mention"."""

    name = "torch"
    batches_together = 1

    def __init__(self, suner: TorchSuner) -> None:
        self.suner, self.subwords = suner, suner.subwords
        self.config = replace(suner.config, threshold=suner.model.options.detection_threshold, scale=1.0, bias=0.0)

    def style(self, corpus: str | None) -> DetectorAlone:
        """See `TorchSuner.style`."""
        return DetectorAlone(self.suner.style(corpus))

    def type_key(self, entity_type: EntityType) -> str:
        """All types are one."""
        return ""

    def encode_types(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """Nothing is said about types."""
        return np.zeros((len(types), 1), np.float32)

    def propose(self, batch: Batch, types: NDArray[np.float32], floor: float) -> Proposals:
        """Candidates with the detector's probability."""
        spans, logit = self.suner.detect(batch, floor)
        score = (1 / (1 + np.exp(-logit))).astype(np.float32)
        return Proposals(*spans, np.zeros(len(logit), np.int64), score)
