"""SUNER run by PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Self

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
from onoma.systems.blocks.inference import EncodedTexts, inference_dtype
from onoma.systems.blocks.packed_attention import PackedTokens
from onoma.systems.blocks.torch_runtime import TorchRuntime
from onoma.systems.suner.candidates import Detected, choose_candidates, detection_logit, known_prefix, proposals
from onoma.systems.suner.inference import SunerInference, best_spans
from onoma.systems.suner.marking import Candidates, mark, pack_markers, pair_numbers
from onoma.systems.suner.model import Marks, Suner

_TYPES_AT_ONCE = 256
_MAX_SPAN_VALUES = 1 << 26  # of the vectors of all spans that are computed at once in the one-stage form
_LIKELY_SPANS = 32  # of a window that are looked at; all windows are looked at again if one has more


class TorchSuner(TorchRuntime):
    """A trained SUNER on a device."""

    model: Suner

    def __init__(
        self, model: Suner, config: ModelConfig, tokenizer: WordTokenizer, cache: TypeCache | None = None
    ) -> None:
        super().__init__(model, config, tokenizer, cache)
        self.prefix: list[int] = []
        self.prepared: SunerInference | None = None
        self._last_query: tuple[NDArray[np.float32], Tensor] | None = None

    def prepare(self) -> None:
        """Prepare weights that will not change any more."""
        self.prepared = self._prepare()

    def _prepare(self) -> SunerInference:
        """The model for inference with the present weights."""
        return SunerInference(self.model, inference_dtype(self.device))

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
        model, types = self.prepared or self._prepare(), self._to_device(query)
        prefixed = batch.with_prefix(self.prefix)
        if self.model.options.form == "one-stage":
            return self._propose_all(model, prefixed, types, floor)
        detected, texts = self._detect(model, prefixed, self.model.options.detection_threshold)
        if not len(detected.logit):
            return Proposals.concatenate([])
        with self.launching:
            if self.model.options.form == "fused":
                sim, nothing = self._match_markers(model, prefixed, detected.spans, texts, types)
            else:  # the classifier of the two-stage form never reads the prefix
                sim, nothing = self._match(model, batch, detected.spans, types)
            fetched = self.fetch(sim - nothing[:, None])
        (margin,) = fetched()
        margin += np.float32(self.model.options.detection_weight) * detected.logit[:, None]
        return proposals(detected.spans, margin, floor, self.config)

    def _to_device(self, query: NDArray[np.float32]) -> Tensor:
        """The types on the device; those of the previous batch are kept."""
        last = self._last_query
        if last is None or last[0] is not query:
            last = self._last_query = query, torch.as_tensor(query, device=self.device)
        return last[1]

    @torch.inference_mode()
    def detect(self, batch: Batch, threshold: float) -> Detected:
        """The candidates of each window, of any type."""
        self.eval()
        return self._detect(self.prepared or self._prepare(), batch.with_prefix(self.prefix), threshold)[0]

    def _detect(self, model: SunerInference, batch: Batch, threshold: float) -> tuple[Detected, EncodedTexts]:
        lowest, length = detection_logit(threshold), batch.first.shape[1]
        with self.launching:
            ids, mask, first, last, words = self.copy((batch.ids, batch.mask, batch.first, batch.last, batch.words))
            texts = model.encode(ids, mask)
            logits = model.detect(texts.states, first, last, words)  # (windows, words · words)
            fetched = self.fetch(*best_spans(logits, _LIKELY_SPANS))
        values, places = fetched()
        while values.shape[1] < logits.shape[1] and (values[:, -1] >= lowest).any():
            values, places = self.fetch(*best_spans(logits, 8 * values.shape[1]))()
        window, rank = np.nonzero(values >= lowest)
        order = np.lexsort((places[window, rank], window))
        window, rank = window[order], rank[order]
        found = Candidates(window, *np.divmod(places[window, rank], max(1, length)))
        return choose_candidates(found, values[window, rank], self.model.options), texts

    def _match(self, model: SunerInference, batch: Batch, spans: Candidates, types: Tensor) -> tuple[Tensor, Tensor]:
        """Similarities of candidates, by a pass over text and markers."""
        options = self.model.options
        kept, window = np.unique(spans.window, return_inverse=True)  # windows without candidates are not read
        batch, spans = batch.take(kept), spans._replace(window=window.astype(np.int64))
        marked = mark(batch, spans, tied=options.tied_positions, numbers=pair_numbers(spans, options))
        marks = spans.window, marked.opening, marked.closing, *spans.tokens(batch)
        if options.markers:
            ids, positions, roles, *rest = self.copy((marked.ids, marked.positions, marked.roles, *marks))
            states = model.encode_marked(ids, positions, roles)
        else:
            ids, mask, *rest = self.copy((batch.ids, batch.mask, *marks))
            states = model.transformer.encode(ids, mask)
        with self.autocast():
            return self.model.match(states, Marks(*rest), types)

    def _match_markers(
        self, model: SunerInference, batch: Batch, spans: Candidates, texts: EncodedTexts, types: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same by a pass of markers alone, against the encoded texts."""
        markers = pack_markers(spans, *spans.tokens(batch), self.model.options)
        inside = np.repeat(spans.window, 2) * batch.ids.shape[1] + markers.positions  # of all tokens of the batch
        positions, windows, edges, roles, tokens = self.copy((*markers, inside))
        packed = PackedTokens(positions, windows, edges, int(np.diff(markers.edges).max()))
        states = model.mark(texts, packed, roles)
        inner = texts.states.flatten(0, 1)[tokens]
        with self.autocast():
            return self.model.match_markers(states[0::2], states[1::2], inner[0::2], inner[1::2], types)

    def _propose_all(self, prepared: SunerInference, batch: Batch, types: Tensor, floor: float) -> Proposals:
        """The one-stage form: every span is a candidate. Windows are read in parts, to bound memory."""
        model = self.model
        length = max(batch.first.shape[1], 1)
        size = max(1, _MAX_SPAN_VALUES // (length * length * max(model.options.vector_size, len(types))))
        found = []
        for start in range(0, len(batch.ids), size):
            part = batch.take(np.arange(start, min(start + size, len(batch.ids))))
            ids, mask, first, last, words = self.copy((part.ids, part.mask, part.first, part.last, part.words))
            states = prepared.encode(ids, mask).states
            with self.autocast():
                spans, sim, nothing = model.match_all(states, first, last, words, types)
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
