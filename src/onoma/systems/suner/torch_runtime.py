"""SUNER run by PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
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
from onoma.systems.blocks.inference_graphs import InferenceGraphs, Shape, round_up
from onoma.systems.blocks.packed_attention import PackedTokens
from onoma.systems.blocks.torch_runtime import TorchRuntime
from onoma.systems.suner.candidates import Detected, choose_candidates, detection_logit, known_prefix, proposals
from onoma.systems.suner.inference import SunerInference, best_spans
from onoma.systems.suner.marking import Candidates, Integers, mark, pack_markers, pair_numbers
from onoma.systems.suner.model import Marks, Suner
from onoma.systems.suner.single_pass import MAX_SPANS, Budget, SinglePass, read_result

_TYPES_AT_ONCE = 256
_MAX_SPAN_VALUES = 1 << 26  # of the vectors of all spans that are computed at once in the one-stage form
_LIKELY_SPANS = 32  # of a window that are looked at; all windows are looked at again if one has more
_WORD_STEP = 16  # numbers of words are rounded up to multiples of it, and those of tokens of a smaller one


class _Types(NamedTuple):
    """The types of a query."""

    query: NDArray[np.float32]
    rows: Tensor  # on the device
    padded: Tensor  # the same with zeros behind them, for CUDA graphs


class TorchSuner(TorchRuntime):
    """A trained SUNER on a device."""

    model: Suner

    def __init__(
        self, model: Suner, config: ModelConfig, tokenizer: WordTokenizer, cache: TypeCache | None = None
    ) -> None:
        super().__init__(model, config, tokenizer, cache)
        self.prefix: list[int] = []
        self.prepared: SunerInference | None = None
        self.budgets: dict[Any, Budget] = {}
        """The most spans and candidates that batches of a shape had so far."""
        self._last_query: _Types | None = None

    def prepare(self) -> None:
        """Prepare weights that will not change any more."""
        self.prepared, self.graphs = self._prepare(), InferenceGraphs(self.device)

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
            return self._propose_all(model, prefixed, types.rows, floor)
        detected, margin = (
            self._match_at_once(model, prefixed, types)
            if self.model.options.form == "fused"
            else self._match_after_detection(model, batch, prefixed, types)
        )
        margin += np.float32(self.model.options.detection_weight) * detected.logit[:, None]
        return proposals(detected.spans, margin, floor, self.config)

    def _to_device(self, query: NDArray[np.float32]) -> _Types:
        """The types on the device; those of the previous batch are kept."""
        last = self._last_query
        if last is None or last.query is not query:
            rows = torch.as_tensor(query, device=self.device)
            padded = F.pad(rows, (0, 0, 0, round_up(len(rows)) - len(rows)))
            last = self._last_query = _Types(query, rows, padded)
        return last

    def _match_at_once(
        self, model: SunerInference, batch: Batch, types: _Types
    ) -> tuple[Detected, NDArray[np.float32]]:
        """The fused form: candidates and margins (candidates, types), if possible by a single CUDA graph."""
        shapes = self.rounded_shapes(model, batch)
        noted = self.budgets.get(shapes)
        if noted is not None and noted.spans <= MAX_SPANS:
            budget = noted.with_room()
            run = SinglePass(model, budget)
            variant = budget, self.model.options
            fetched = self.run_captured("fused", run, _arrays(batch), shapes, (types.padded,), variant)
            found = None if fetched is None else read_result(fetched()[0], budget, len(types.query))
            if found is not None:
                return found
        lowest = detection_logit(self.model.options.detection_threshold)
        values, places, texts = self._find(model, batch, lowest)
        detected, number = self._choose(values, places, batch.first.shape[1], lowest)
        self.budgets[shapes] = number if noted is None else number.union(noted)
        if not len(detected.logit):
            return detected, np.zeros((0, len(types.query)), np.float32)
        with self.launching:
            fetched = self.fetch(self._match_markers(model, batch, detected.spans, texts, types.rows))
        return detected, fetched()[0]

    def _match_after_detection(
        self, model: SunerInference, batch: Batch, prefixed: Batch, types: _Types
    ) -> tuple[Detected, NDArray[np.float32]]:
        """The same in the two-stage form, whose classifier never reads the prefix."""
        detected = self._detect(model, prefixed, self.model.options.detection_threshold)
        if not len(detected.logit):
            return detected, np.zeros((0, len(types.query)), np.float32)
        return detected, self._match(model, batch, detected.spans, types)

    def rounded_shapes(self, model: SunerInference, batch: Batch) -> tuple[Shape, ...]:
        """The shapes of the arrays of a batch, rounded up."""
        rows, words = round_up(len(batch.ids)), round_up(batch.first.shape[1], _WORD_STEP)
        tokens = min(round_up(batch.ids.shape[1]), len(model.transformer.places))
        return (rows, tokens), (rows, tokens), (rows, words), (rows, words), (rows,)

    @torch.inference_mode()
    def detect(self, batch: Batch, threshold: float) -> Detected:
        """The candidates of each window, of any type."""
        self.eval()
        return self._detect(self.prepared or self._prepare(), batch.with_prefix(self.prefix), threshold)

    def _detect(self, model: SunerInference, batch: Batch, threshold: float) -> Detected:
        lowest = detection_logit(threshold)
        captured = self._find_captured(model, batch, lowest)
        if captured is None:
            captured = *self._find(model, batch, lowest)[:2], batch.first.shape[1]
        return self._choose(*captured, lowest)[0]

    def _choose(
        self, values: NDArray[np.float32], places: Integers, length: int, lowest: float
    ) -> tuple[Detected, Budget]:
        """The candidates among the best spans, and how many likely spans and candidates there are.

        A place is that of the first word times `length`, plus that of the last one.
        """
        window, rank = np.nonzero(values >= lowest)
        order = np.lexsort((places[window, rank], window))
        window, rank = window[order], rank[order]
        found = Candidates(window, *np.divmod(places[window, rank], max(1, length)))
        detected = choose_candidates(found, values[window, rank], self.model.options)
        most = int(np.bincount(window).max(initial=0))
        return detected, Budget(most, len(detected.logit))

    def _find(self, model: SunerInference, batch: Batch, lowest: float) -> tuple[NDArray[Any], Integers, EncodedTexts]:
        """The logits of the best spans of each window, with all that reach `lowest`; their places; and the texts."""
        with self.launching:
            ids, mask, first, last, words = self.copy(_arrays(batch))
            texts = model.encode(ids, mask)
            logits = model.detect(texts.states, first, last, words)  # (windows, words · words)
            fetched = self.fetch(*best_spans(logits, _LIKELY_SPANS))
        values, places = fetched()
        while values.shape[1] < logits.shape[1] and (values[:, -1] >= lowest).any():
            values, places = self.fetch(*best_spans(logits, 8 * values.shape[1]))()
        return values, places, texts

    def _find_captured(
        self, model: SunerInference, batch: Batch, lowest: float
    ) -> tuple[NDArray[Any], Integers, int] | None:
        """The same by a CUDA graph, if there is one; with the words of a window, from which places are counted."""
        shapes = self.rounded_shapes(model, batch)
        find = partial(model.find_spans, _LIKELY_SPANS)
        fetched = self.run_captured("detection", find, _arrays(batch), shapes, variant=self.model.options)
        if fetched is None:
            return None
        values, places = fetched()
        return None if (values[:, -1] >= lowest).any() else (values, places, shapes[2][1])

    def _match(self, model: SunerInference, batch: Batch, spans: Candidates, types: _Types) -> NDArray[np.float32]:
        """Margins of candidates, by a pass over text and markers."""
        options = self.model.options
        kept, window = np.unique(spans.window, return_inverse=True)  # windows without candidates are not read
        batch, spans = batch.take(kept), spans._replace(window=window.astype(np.int64))
        marked = mark(batch, spans, tied=options.tied_positions, numbers=pair_numbers(spans, options))
        marks = spans.window, marked.opening, marked.closing, *spans.tokens(batch)
        read = (marked.ids, marked.positions, marked.roles) if options.markers else (batch.ids, batch.mask)
        match = model.match_marked if options.markers else model.match_unmarked
        rows, tokens = round_up(len(batch.ids)), round_up(read[0].shape[1])
        if not options.markers:
            tokens = min(tokens, len(model.transformer.places))
        shapes = *((rows, tokens) for _ in read), *((round_up(len(spans.window), 32),) for _ in marks)
        arrays = *read, *marks
        fetched = self.run_captured("classification", match, arrays, shapes, (types.padded,), options)
        if fetched is None:
            with self.launching:
                fetched = self.fetch(*match(*self.copy(arrays), types.rows))
        (margin,) = fetched()
        return np.asarray(margin[: len(spans.window), : len(types.query)])

    @torch.inference_mode()
    def span_vectors(self, batch: Batch, window: Integers, first: Integers, last: Integers) -> NDArray[np.float32]:
        """r of some spans of a batch, sorted by window, as unit vectors, which is what is compared with types."""
        self.eval()
        options, spans = self.model.options, Candidates(window, first, last)
        if options.form != "two-stage":  # whose classifier never reads the prefix
            batch = batch.with_prefix(self.prefix)
        tokens = spans.tokens(batch)
        with self.autocast():
            if options.markers and options.form != "one-stage":
                marked = mark(batch, spans, tied=options.tied_positions, numbers=pair_numbers(spans, options))
                ids, positions, roles = self.copy((marked.ids, marked.positions, marked.roles))
                states = self.model.marked_states(ids, positions, roles)
                places = self.copy((window, marked.opening, marked.closing, *tokens))
            else:
                states = self.model.encode_text(*self.copy((batch.ids, batch.mask)))
                places = self.copy((window, *tokens, *tokens))  # there are no markers
            vectors = self.model.span_vectors(*self.model.span_states(states, Marks(*places)))
        return np.asarray(F.normalize(vectors.float(), dim=-1).cpu().numpy(), np.float32)

    def _match_markers(
        self, model: SunerInference, batch: Batch, spans: Candidates, texts: EncodedTexts, types: Tensor
    ) -> Tensor:
        """The same by a pass of markers alone, against the encoded texts."""
        markers = pack_markers(spans, *spans.tokens(batch), self.model.options)
        inside = np.repeat(spans.window, 2) * batch.ids.shape[1] + markers.positions  # of all tokens of the batch
        positions, windows, edges, roles, tokens = self.copy((*markers, inside))
        packed = PackedTokens(positions, windows, edges, int(np.diff(markers.edges).max()))
        states = model.mark(texts, packed, roles)
        inner = texts.states.flatten(0, 1)[tokens]
        return model.match_markers(states[0::2], states[1::2], inner[0::2], inner[1::2], types)

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


def _arrays(batch: Batch) -> tuple[Integers, ...]:
    return batch.ids, batch.mask, batch.first, batch.last, batch.words


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
