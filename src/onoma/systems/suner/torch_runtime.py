"""SUNER run by PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onoma.decoding.proposals import Proposals
from onoma.entities import EntityType
from onoma.inputs.batches import Batch, pad_rows
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.type_cache import TypeCache
from onoma.models.config import ModelConfig
from onoma.systems.base import margin_of
from onoma.systems.blocks.torch_runtime import TorchRuntime
from onoma.systems.blocks.transformer import KeyValueCache
from onoma.systems.suner.candidates import (
    Detected,
    choose_candidates,
    detection_logit,
    known_prefix,
    marker_groups,
    proposals,
)
from onoma.systems.suner.marking import Candidates, mark, pair_numbers, place_markers
from onoma.systems.suner.model import Marks, Suner, at_words

_TYPES_AT_ONCE = 256
_MAX_SPAN_VALUES = 1 << 26  # of the vectors of all spans that are computed at once in the one-stage form


class _EncodedText(NamedTuple):
    """What the encoder computed for a text, in the fused form."""

    states: Tensor
    cache: KeyValueCache


class TorchSuner(TorchRuntime):
    """A trained SUNER on a device."""

    model: Suner

    def __init__(
        self, model: Suner, config: ModelConfig, tokenizer: WordTokenizer, cache: TypeCache | None = None
    ) -> None:
        super().__init__(model, config, tokenizer, cache)
        self.prefix: list[int] = []

    def with_style(self, corpus: str | None) -> Self:
        """The same model with the name of a corpus before every text, if it knows that corpus."""
        styled = copy(self)
        styled.prefix = known_prefix(corpus, self.config, self.tokenizer)
        return styled

    def type_text(self, entity_type: EntityType) -> str:
        """The text that the type encoder reads."""
        return entity_type.as_text() if self.model.options.types == "description" else entity_type.name

    @torch.inference_mode()
    def encode_types(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """e_k of each type."""
        self.eval()
        rows = []
        for start in range(0, len(types), _TYPES_AT_ONCE):
            tokens = self.tokenizer.encode([self.type_text(one) for one in types[start : start + _TYPES_AT_ONCE]])
            ids, mask = self.copy(pad_rows(tokens, self.tokenizer.pad))
            with self.autocast():
                rows.append(self.model.encode_types(ids, mask).float().cpu().numpy())
        return np.concatenate(rows)

    @torch.inference_mode()
    def propose(self, batch: Batch, query: NDArray[np.float32], floor: float) -> Proposals:
        """The candidates and types whose score reaches `floor`."""
        self.eval()
        types = torch.as_tensor(query, device=self.device)
        prefixed = batch.with_prefix(self.prefix)
        if self.model.options.form == "one-stage":
            return self._propose_all(prefixed, types, floor)
        detected, text = self._detect(prefixed, self.model.options.detection_threshold)
        if not len(detected.logit):
            return Proposals.concatenate([])
        with self.autocast():
            if text is not None:
                sim, nothing = self._match_markers(prefixed, detected.spans, text, types)
            else:  # the classifier of the two-stage form never reads the prefix
                sim, nothing = self._match(batch, detected.spans, types)
        margin = (sim - nothing[:, None]).cpu().numpy()
        margin += np.float32(self.model.options.detection_weight) * detected.logit[:, None]
        return proposals(detected.spans, margin, floor, self.config)

    @torch.inference_mode()
    def detect(self, batch: Batch, threshold: float) -> Detected:
        """The candidates of each window, of any type."""
        self.eval()
        return self._detect(batch.with_prefix(self.prefix), threshold)[0]

    def _detect(self, batch: Batch, threshold: float) -> tuple[Detected, _EncodedText | None]:
        model = self.model
        ids, mask, first, last, words = self.copy((batch.ids, batch.mask, batch.first, batch.last, batch.words))
        text: _EncodedText | None = None
        with self.autocast():
            if model.options.form == "fused":
                text = _EncodedText(*model.text_states(ids, mask))
                states = text.states
            else:
                states = model.encode_for_detection(ids, mask)
            logits = model.detector(*at_words(states, first, last), words)  # (windows, words, words)
        likely = (logits >= detection_logit(threshold)).tril(model.options.max_width - 1)
        places = torch.nonzero(likely.flatten()).squeeze(1)
        values = logits.flatten()[places].float().cpu().numpy()
        found = Candidates(*np.unravel_index(places.cpu().numpy(), logits.shape))
        return choose_candidates(found, values, model.options), text

    def _match(self, batch: Batch, spans: Candidates, types: Tensor) -> tuple[Tensor, Tensor]:
        """Similarities of candidates, by a pass over text and markers."""
        options = self.model.options
        kept, window = np.unique(spans.window, return_inverse=True)  # windows without candidates are not read
        batch, spans = batch.take(kept), spans._replace(window=window.astype(np.int64))
        marked = mark(batch, spans, tied=options.tied_positions, numbers=pair_numbers(spans, options))
        marks = spans.window, marked.opening, marked.closing, *spans.tokens(batch)
        if options.markers:
            ids, positions, roles, *rest = self.copy((marked.ids, marked.positions, marked.roles, *marks))
            return self.model.match(self.model.encode_marked(ids, positions, roles), Marks(*rest), types)
        ids, mask, *rest = self.copy((batch.ids, batch.mask, *marks))
        return self.model.match(self.model.encode_text(ids, mask), Marks(*rest), types)

    def _match_markers(
        self, batch: Batch, spans: Candidates, text: _EncodedText, types: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same by passes of markers alone, against the encoded text.

        Windows with few and with many candidates are run separately, so that little of a pass is padding.
        """
        found = [self._match_group(batch, spans, text, types, rows) for rows in marker_groups(spans, len(batch.ids))]
        order = torch.argsort(torch.cat([rows for rows, _, _ in found]))
        sim, nothing = (torch.cat(parts)[order] for parts in list(zip(*found, strict=True))[1:])
        return sim, nothing

    def _match_group(
        self, batch: Batch, spans: Candidates, text: _EncodedText, types: Tensor, rows: NDArray[np.int64]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The indices of some candidates, and the results of `_match_markers` for them."""
        window = spans.window[rows]
        windows, own = np.unique(window, return_inverse=True)
        group = Candidates(own.astype(np.int64), spans.first[rows], spans.last[rows])
        edges = batch.first[window, group.first], batch.last[window, group.last]  # tokens
        markers = place_markers(group, *edges, len(windows), pair_numbers(group, self.model.options))
        place = np.concatenate([markers.opening, markers.closing])
        marker_arrays = markers.positions, markers.roles, np.tile(group.window, 2), place
        mask, positions, roles, marker, places, chosen, number, inside, first, last = self.copy(
            (batch.mask[windows], *marker_arrays, windows, rows, window, *edges)
        )
        states = self.model.marker_states(
            text.cache, mask, positions, roles, marker, places, chosen if len(windows) < len(batch.ids) else None
        )
        opening, closing = states.chunk(2)
        begin, end = text.states[inside, first], text.states[inside, last]
        return number, *self.model.match_markers(opening, closing, begin, end, types)

    def _propose_all(self, batch: Batch, types: Tensor, floor: float) -> Proposals:
        """The one-stage form: every span is a candidate. Windows are read in parts, to bound memory."""
        model = self.model
        length = max(batch.first.shape[1], 1)
        size = max(1, _MAX_SPAN_VALUES // (length * length * max(model.options.vector_size, len(types))))
        found = []
        for start in range(0, len(batch.ids), size):
            part = batch.take(np.arange(start, min(start + size, len(batch.ids))))
            ids, mask, first, last, words = self.copy((part.ids, part.mask, part.first, part.last, part.words))
            with self.autocast():
                spans, sim, nothing = model.match_all(model.encode_text(ids, mask), first, last, words, types)
            margin = sim - nothing[:, None]
            lowest = max(margin_of(floor, self.config), torch.finfo(margin.dtype).min)
            row, kind = torch.nonzero(margin >= lowest, as_tuple=True)
            score = torch.sigmoid(self.config.scale * margin[row, kind] + self.config.bias)
            window, begin, end = spans[row].T.cpu().numpy()
            found.append(Proposals(window + start, begin, end, kind.cpu().numpy(), score.float().cpu().numpy()))
        return Proposals.concatenate(found)


class DetectorRuntime(TorchRuntime):
    """SUNER's detector as a model of its own, whose only type is "mention"."""

    def __init__(self, suner: TorchSuner) -> None:
        config = replace(suner.config, threshold=suner.model.options.detection_threshold, scale=1.0, bias=0.0)
        super().__init__(suner.model, config, suner.tokenizer)
        self.suner = suner

    def with_style(self, corpus: str | None) -> DetectorRuntime:
        """See `TorchSuner.with_style`."""
        return DetectorRuntime(self.suner.with_style(corpus))

    def type_text(self, entity_type: EntityType) -> str:
        """There is one type."""
        return ""

    def encode_types(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """Types are not encoded."""
        return np.zeros((len(types), 1), np.float32)

    def propose(self, batch: Batch, query: NDArray[np.float32], floor: float) -> Proposals:
        """Candidates with the detector's probability."""
        spans, logit = self.suner.detect(batch, floor)
        score = (1 / (1 + np.exp(-logit))).astype(np.float32)
        return Proposals(*spans, np.zeros(len(logit), np.int64), score)
