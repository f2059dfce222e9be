"""SUNER with weights that are prepared for inference: what the GPU does, without waiting for it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from onoma.systems.blocks.inference import EncodedTexts, InferenceTransformer
from onoma.systems.blocks.packed_attention import PackedTokens
from onoma.systems.blocks.transformer import Transformer
from onoma.systems.suner.marking import OPENING
from onoma.systems.suner.model import NO_SPAN, Marks, SpanDetector, Suner, at_tokens, spans_of

_ALIGNMENT = 8  # products are slow if a size is not a multiple of it


class SunerInference:
    """The encoders and the detector of a model, prepared; its weights must not change any more."""

    def __init__(self, model: Suner, dtype: torch.dtype) -> None:
        self.model, self.dtype = model, dtype
        self.transformer = InferenceTransformer(model.transformer, dtype)
        self.detection_transformer = self.transformer  # fused: one for texts with and without markers
        if model.detection_encoder is not None:
            self.detection_transformer = InferenceTransformer(Transformer(model.detection_encoder), dtype)
        if model.options.form != "one-stage":
            self.detector = DetectorInference(model.detector, dtype)
            self.marker_vectors = model.marker_vectors().detach().to(dtype)
        self.span_vectors = deepcopy(model.span_vectors).to(dtype).eval()

    def encode(self, ids: Tensor, mask: Tensor) -> EncodedTexts:
        """Texts as the detector, or the one-stage form, reads them; in the fused form with what markers need."""
        if self.model.options.form == "fused":
            return self.transformer.encode_texts(ids, mask)
        return EncodedTexts(self.detection_transformer.encode(ids, mask), [], mask)

    def detect(self, states: Tensor, first: Tensor, last: Tensor, words: Tensor) -> Tensor:
        """The detector's logits of pairs of words (windows, words · words); `NO_SPAN` if they are no or a wide span."""
        logits = self.detector(*self.detector.project(states, first, last))
        narrow = spans_of(words, first.shape[1]).tril(self.model.options.max_width - 1)
        found: Tensor = logits.masked_fill(~narrow, NO_SPAN)
        return found.flatten(1)

    def mark(self, texts: EncodedTexts, tokens: PackedTokens, roles: Tensor) -> Tensor:
        """The states of markers alone (markers, hidden), against the texts: exactly those of a pass over both."""
        own = self.marker_vectors[(roles - OPENING) % len(self.marker_vectors)]
        return self.transformer.run_packed(self.transformer.embed(own, tokens.positions), tokens, texts)

    def match_markers(self, opening: Tensor, closing: Tensor, first: Tensor, last: Tensor, types: Tensor) -> Tensor:
        """The margins (candidates, types) from the states of markers and of the tokens of spans."""
        sim, nothing = self.model.match_markers(opening, closing, first, last, types, self.span_vectors)
        return sim - nothing[:, None]

    def match_marked(self, ids: Tensor, positions: Tensor, roles: Tensor, *marks_and_types: Tensor) -> tuple[Tensor]:
        """The same by a pass over text and markers; `marks_and_types` are the parts of `Marks`, and types."""
        return self._match(self.encode_marked(ids, positions, roles), *marks_and_types)

    def match_unmarked(self, ids: Tensor, mask: Tensor, *marks_and_types: Tensor) -> tuple[Tensor]:
        """The same by a pass over text alone, for models without markers."""
        return self._match(self.transformer.encode(ids, mask), *marks_and_types)

    def _match(self, states: Tensor, *marks_and_types: Tensor) -> tuple[Tensor]:
        *marks, types = marks_and_types
        sim, nothing = self.model.match(states, Marks(*marks), types, self.span_vectors)
        return (sim - nothing[:, None],)

    def find_spans(
        self, number: int, ids: Tensor, mask: Tensor, first: Tensor, last: Tensor, words: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The most likely spans of each window; see `best_spans`."""
        return best_spans(self.detect(self.encode(ids, mask).states, first, last, words), number)

    def encode_marked(self, ids: Tensor, positions: Tensor, roles: Tensor) -> Tensor:
        """The states of text and markers in one pass over both."""
        return self.model.marked_states(ids, positions, roles, self.transformer)


class DetectorInference:
    """The logits of `SpanDetector`, by few products of aligned sizes."""

    @torch.no_grad()
    def __init__(self, detector: SpanDetector, dtype: torch.dtype) -> None:
        heads: tuple[Any, Any] = detector.start, detector.end
        start, end = (head[0] for head in heads)
        size = len(start.bias)
        wide = -(-size // _ALIGNMENT) * _ALIGNMENT
        self.weight = torch.cat([_pad(start.weight, wide), _pad(end.weight, wide)]).to(dtype)  # (2 · wide, hidden)
        self.bias = torch.cat([_pad(start.bias, wide), _pad(end.bias, wide)]).to(dtype)
        # (s U + w_e) e + (w_s s + b) is s U e + w_s s + w_e e + b; w_s and b are the last column
        cross = torch.zeros(wide + _ALIGNMENT, wide, device=start.weight.device)
        cross[:size, :size], cross[wide, :size] = detector.bilinear.T, detector.start_linear.weight[0]
        added = torch.zeros(len(cross), device=cross.device)
        added[:size], added[wide] = detector.end_linear.weight[0], detector.start_linear.bias[0]
        self.cross, self.added, self.wide = cross.to(dtype), added.to(dtype), wide

    def project(self, states: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        """H^s at the first tokens of words, H^e at their last tokens (windows, words, wide)."""
        both = F.gelu(F.linear(states, self.weight, self.bias))  # of all tokens: one product, less to gather
        start, end = both.chunk(2, dim=-1)
        return at_tokens(start, first), at_tokens(end, last)

    def __call__(self, start: Tensor, end: Tensor) -> Tensor:
        """The logits of all pairs of words (windows, words, words)."""
        crossed = F.linear(start, self.cross, self.added)
        return torch.baddbmm(crossed[..., self.wide : self.wide + 1], crossed[..., : self.wide], end.transpose(1, 2))


def best_spans(logits: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """The highest logits of each window, best first, and their places: (windows, at most `number`)."""
    best = logits.topk(min(number, logits.shape[1]), dim=1)
    return best.values.float(), best.indices


def _pad(weight: Tensor, size: int) -> Tensor:
    """A weight with rows of zeros up to a size: their outputs are 0."""
    return torch.cat([weight, weight.new_zeros((size - len(weight), *weight.shape[1:]))])
