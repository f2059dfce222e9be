"""SCL-RAI: span classification with span-based contrastive learning (Si et al., COLING 2022), in PyTorch.

Symbols are the paper's. Positions are words: a span starts at the first token of a word and ends at the last token of
one. Equations 2 and 3 are

    r_ij = tanh(W (h_i ⊕ h_j ⊕ (h_i − h_j) ⊕ (h_i ⊙ h_j))) = tanh(A h_i + B h_j + C (h_i ⊙ h_j)),

where A and B collect the blocks of W for h_i, h_j and their difference. A h_i and B h_j are computed once per word.

Label 0 is "non-entity", label k + 1 is type k.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onoma.systems.blocks.cuda_graphs import GraphedFunction
from onoma.systems.blocks.encoders import encoder_function
from onoma.systems.blocks.gathering import gather_instances
from onoma.systems.blocks.losses import supervised_contrastive_loss
from onoma.systems.blocks.negatives import span_flags
from onoma.systems.scl_rai.options import SclRaiOptions
from onoma.systems.scl_rai.retrieval import NON_ENTITY

MAX_CONTRASTED = 2048  # spans of a batch in the contrastive loss, whose cost grows with their square


class Spans(NamedTuple):
    """Spans of a batch, one per row."""

    window: Tensor
    first: Tensor  # word
    last: Tensor  # word, inclusive


class WordStates(NamedTuple):
    """What a text contributes to its spans."""

    first: Tensor  # h_i at the first token of words (windows, words, hidden)
    last: Tensor  # h_j at the last token of words
    left: Tensor  # A h_i (windows, words, vector size)
    right: Tensor  # B h_j


class SclRai(nn.Module):
    """Encoder, span vectors and label scores."""

    def __init__(self, encoder: nn.Module, options: SclRaiOptions, types: int) -> None:
        super().__init__()
        self.options = options
        self.text_encoder = encoder
        self.encode = encoder_function(encoder)
        config: Any = encoder.config
        hidden, size = int(config.hidden_size), options.vector_size
        self.left = nn.Linear(hidden, size)  # A
        self.right = nn.Linear(hidden, size, bias=False)  # B
        self.product = nn.Linear(hidden, size, bias=False)  # C
        self.label_scores = nn.Linear(size, types + 1, bias=False)  # V
        self.dropout = nn.Dropout(options.dropout)
        self.sampling_temperature = 1.0  # of weighted negative sampling; lower as the model gets better

    @property
    def graphed_functions(self) -> list[GraphedFunction]:
        """The functions that training may run as CUDA graphs."""
        return [self.encode]

    def forward(
        self,
        ids: Tensor,
        mask: Tensor,
        first: Tensor,
        last: Tensor,
        words: Tensor,
        gold: Tensor,
        known: Tensor,
        chances: Tensor,
        masked: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The loss of a training batch, as `SclRaiCollator` builds it (equation 10).

        Args:
            gold: mentions, each span once: rows (window, first word, last word, type).
            known: types that are annotated (windows, types).
            chances: random numbers from 0 to 2^31 for the sampling of negatives (windows, words, widths).
            masked: spans that are neither mentions nor negatives: rows (window, first word, last word).
        """
        states = self.word_states(ids, mask, first, last)
        positives = Spans(*gold[:, :3].T)
        negatives = self.sample_negatives(states, words, gold, chances, masked)
        spans = Spans(*(torch.cat(pair) for pair in zip(positives, negatives, strict=True)))
        labels = torch.cat([gold[:, 3] + 1, torch.full_like(negatives.window, NON_ENTITY)])
        vectors = self.span_vectors(states, spans)
        logits = self.label_scores(self.dropout(vectors)).float()
        allowed = F.pad(known, (1, 0), value=True)[spans.window]  # unknown types have no part in the softmax
        loss = F.cross_entropy(logits.masked_fill(~allowed, -1e4), labels)  # equation 6, as a mean
        weight = self.options.contrast_weight
        if weight:
            chosen = self._contrasted(labels)
            vectors, labels = vectors[chosen].float(), labels[chosen]
            if self.options.gather_negatives and self.training:
                vectors, labels = gather_instances(vectors, labels)
            contrast = supervised_contrastive_loss(
                vectors,
                labels,
                self.options.temperature,
                anchors=None if self.options.contrast_non_entities else labels != NON_ENTITY,
                positive_in_denominator=self.options.positive_in_denominator,
            )
            loss = (1 - weight) * loss + weight * contrast
        return {"loss": loss}

    # --- spans

    def word_states(self, ids: Tensor, mask: Tensor, first: Tensor, last: Tensor) -> WordStates:
        """Equation 1, and the linear parts of equation 3."""
        states = self.dropout(self.encode(ids, mask))
        begin, end = (states.gather(1, one.unsqueeze(-1).expand(-1, -1, states.shape[-1])) for one in (first, last))
        return WordStates(begin, end, self.left(begin), self.right(end))

    def span_vectors(self, states: WordStates, spans: Spans) -> Tensor:
        """r of some spans (equations 2 and 3): (spans, vector size)."""
        window, first, last = spans
        product = self.product(states.first[window, first] * states.last[window, last])
        vectors: Tensor = torch.tanh(states.left[window, first] + states.right[window, last] + product)
        return vectors

    def vectors_of_width(self, states: WordStates, width: int) -> Tensor:
        """r of all spans of so many words: (windows, words - width + 1, vector size)."""
        count = states.first.shape[1] - width + 1
        begin, end = slice(0, count), slice(width - 1, None)
        product = self.product(states.first[:, begin] * states.last[:, end])
        vectors: Tensor = torch.tanh(states.left[:, begin] + states.right[:, end] + product)
        return vectors

    # --- negatives

    def sample_negatives(
        self, states: WordStates, words: Tensor, gold: Tensor, chances: Tensor, masked: Tensor | None = None
    ) -> Spans:
        """The unlabelled spans that count as negatives."""
        place = torch.arange(chances.shape[1], device=words.device)
        width = torch.arange(chances.shape[2], device=words.device)
        candidates = (place[:, None] + width) < words[:, None, None]  # (windows, words, widths)
        candidates &= ~span_flags(gold, candidates.shape)
        if masked is not None:
            candidates &= ~span_flags(masked, candidates.shape)
        if self.options.negative_sampling != "none":
            candidates &= self._sampled(states, words, candidates, chances)
        window, first, extent = torch.nonzero(candidates, as_tuple=True)
        return Spans(window, first, first + extent)

    def _sampled(self, states: WordStates, words: Tensor, candidates: Tensor, chances: Tensor) -> Tensor:
        """int(rate · n) + 1 random candidates of each window, uniformly or by weight."""
        keys = torch.log((chances.float() + 0.5) / 2**31)  # log of a uniform number
        if self.options.negative_sampling == "weighted":
            # argmax of log(u) / w is a draw with chances proportional to w (Efraimidis and Spirakis, 2006)
            keys = keys / self._weights(states, candidates).clamp(min=1e-12)
        keys = keys.masked_fill(~candidates, -torch.inf).flatten(1)
        count = (self.options.negative_rate * words).long() + 1
        rank = keys.argsort(dim=1, descending=True).argsort(dim=1)
        return (rank < count[:, None]).view_as(candidates)

    @torch.no_grad()
    def _weights(self, states: WordStates, candidates: Tensor) -> Tensor:
        """Weights of candidates for sampling: likely non-entities, and of these the uncertain ones.

        After Li et al. (2022): with the model's own distribution p, the weight is exp(v / T), v = c (1 + u), where
        c = p(non-entity) - max p(type) says how surely a span is no mention, and u is the entropy of p from 0 to 1.
        T falls as the model gets better.
        """
        weights = torch.zeros(candidates.shape, device=candidates.device)
        for extent in range(min(candidates.shape[2], states.first.shape[1])):
            logits = self.label_scores(self.vectors_of_width(states, extent + 1)).float()
            p = torch.softmax(logits, dim=-1)
            sure = p[..., NON_ENTITY] - p[..., 1:].amax(-1)
            entropy = -(p * torch.log(p.clamp(min=1e-9))).sum(-1) / torch.log(torch.tensor(float(p.shape[-1])))
            weights[:, : p.shape[1], extent] = torch.exp((sure * (1 + entropy) - 2.0) / self.sampling_temperature)
        return weights

    def _contrasted(self, labels: Tensor) -> Tensor:
        """The spans of the contrastive loss: all mentions, and as many others as there is room for."""
        if len(labels) <= MAX_CONTRASTED:
            return torch.arange(len(labels), device=labels.device)
        order = torch.argsort((labels == NON_ENTITY).long() + torch.rand(len(labels), device=labels.device) * 0.5)
        return order[:MAX_CONTRASTED]
