"""SUNER: detect spans, mark them, match them with types (Mao et al., IJCAI 2024), in PyTorch.

Symbols are the paper's. Positions are words: a span starts at the first token of a word and ends at the last token of
one. Three forms share their parts:

- two-stage, the paper's: one encoder detects spans, another one reads the text with markers around them.
- one-stage, the paper's comparison: no detection; all spans are matched with the types.
- fused, ours: one encoder for both. Text does not attend to markers, so its states are the same with and without them;
  the text is encoded once, and markers run through the layers against the text's keys and values.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onoma.systems.blocks.cuda_graphs import GraphedFunction
from onoma.systems.blocks.encoders import encoder_function, mean_pool
from onoma.systems.blocks.inference import InferenceTransformer
from onoma.systems.blocks.losses import contrastive_loss
from onoma.systems.blocks.negatives import counted_spans
from onoma.systems.blocks.transformer import Transformer
from onoma.systems.suner.marking import CLOSING, OPENING, TEXT
from onoma.systems.suner.options import STAGES, StageName, SunerOptions

NO_SPAN = -1e4  # the detector's logit for pairs of words that are no span


class Marks(NamedTuple):
    """Candidates in a batch: the places of their markers, and their tokens."""

    window: Tensor  # (candidates,)
    opening: Tensor  # (candidates,): the place of [e]
    closing: Tensor  # (candidates,): the place of [/e]
    first: Tensor  # (candidates,): the span's first token
    last: Tensor  # (candidates,): the span's last token


class SpanDetector(nn.Module):
    """Equations 2 to 7: which spans are mentions of any type.

    Equation 3 is linear in R, and R in its parts: W_p U and W_p W are again a matrix and a vector, so the logits of all
    spans are one bilinear form, and the n × n × d_r values of R are never computed.
    """

    def __init__(self, encoder_size: int, options: SunerOptions) -> None:
        super().__init__()
        size = options.detector_size
        self.boundary_weight = options.boundary_weight
        self.negative_sampling, self.negative_rate = options.negative_sampling, options.negative_rate
        self.start = _feed_forward(encoder_size, size)
        self.end = _feed_forward(encoder_size, size)
        self.bilinear = nn.Parameter(torch.randn(size, size) / size)  # W_p U
        self.start_linear = nn.Linear(size, 1)  # W_p W, and the biases b and b_p
        self.end_linear = nn.Linear(size, 1, bias=False)
        self.start_boundary = nn.Sequential(nn.Linear(encoder_size, size), nn.GELU(), nn.Linear(size, 1))
        self.end_boundary = nn.Sequential(nn.Linear(encoder_size, size), nn.GELU(), nn.Linear(size, 1))
        nn.init.constant_(self.start_linear.bias, -3.0)  # few spans are mentions

    def forward(self, first: Tensor, last: Tensor, words: Tensor) -> Tensor:
        """Logits of all spans (windows, words, words), of states at word starts and ends (windows, words, hidden)."""
        start, end = self.start(first), self.end(last)
        logits = (start @ self.bilinear) @ end.transpose(1, 2)
        logits = logits + self.start_linear(start) + self.end_linear(end).transpose(1, 2)
        found: Tensor = logits.float().masked_fill(~spans_of(words, first.shape[1]), NO_SPAN)
        return found

    def loss(
        self,
        first: Tensor,
        last: Tensor,
        words: Tensor,
        gold: Tensor,
        masked: Tensor | None = None,
        complete: Tensor | None = None,
    ) -> Tensor:
        """Equation 7, the mean over windows; `gold` and `masked` have rows (window, first word, last word).

        Masked spans, and unlabelled ones that are not sampled, have no part in it. In windows that are not `complete`,
        where some types are not annotated, only unlabelled spans that overlap a mention have.
        """
        window, begin, end = gold.T
        logits = self(first, last, words)
        is_span = torch.zeros_like(logits)
        is_span[window, begin, end] = 1.0
        is_start, is_end = is_span.amax(2), is_span.amax(1)
        counted = counted_spans(
            words,
            (first.shape[1],) * 2,
            gold,
            sampling=self.negative_sampling,
            rate=self.negative_rate,
            masked=masked,
            complete=complete,
        )
        weights = by_edges(counted.spans).float()
        spans = F.binary_cross_entropy_with_logits(logits, is_span, weights, reduction="sum")  # equation 4
        sides = (
            (self.start_boundary, first, is_start, counted.starts.float()),
            (self.end_boundary, last, is_end, counted.ends.float()),
        )
        boundary = sum(
            F.binary_cross_entropy_with_logits(head(states).squeeze(-1).float(), target, chosen, reduction="sum")
            for head, states, target, chosen in sides
        )  # equations 5 and 6
        return ((1 - self.boundary_weight) * spans + self.boundary_weight * boundary) / len(words)


class BiaffineVectors(nn.Module):
    """Equation 2 for single pairs: r = h^s U h^e + W (h^s ⊕ h^e) + b."""

    def __init__(self, encoder_size: int, hidden: int, size: int) -> None:
        super().__init__()
        self.start = _feed_forward(encoder_size, hidden)
        self.end = _feed_forward(encoder_size, hidden)
        self.bilinear = nn.Parameter(torch.randn(hidden, size, hidden) / hidden)  # U
        self.start_linear = nn.Linear(hidden, size)
        self.end_linear = nn.Linear(hidden, size, bias=False)

    def forward(self, opening: Tensor, closing: Tensor) -> Tensor:
        """The vectors (pairs, size) of pairs of states (pairs, hidden)."""
        start, end = self.start(opening), self.end(closing)
        crossed = (start @ self.bilinear.flatten(1)).view(len(start), -1, end.shape[1])  # (pairs, size, hidden)
        vectors: Tensor = (crossed @ end.unsqueeze(-1)).squeeze(-1) + self.start_linear(start) + self.end_linear(end)
        return vectors

    def all_spans(self, first: Tensor, last: Tensor) -> Tensor:
        """The vectors of all pairs of words: (windows, words, words, size)."""
        start, end = self.start(first), self.end(last)
        windows, words = start.shape[:2]
        crossed = (start @ self.bilinear.flatten(1)).view(windows, -1, end.shape[2])  # (windows, words · size, hidden)
        crossed = (crossed @ end.transpose(1, 2)).view(windows, words, self.bilinear.shape[1], words).transpose(2, 3)
        vectors: Tensor = crossed + self.start_linear(start)[:, :, None] + self.end_linear(end)[:, None]
        return vectors


class Suner(nn.Module):
    """All three forms; parts that a form does not need do not exist."""

    def __init__(self, encoder: nn.Module, detection_encoder: nn.Module | None, options: SunerOptions) -> None:
        """Only the two-stage form has a `detection_encoder`; `encoder` reads marked texts and types."""
        super().__init__()
        self.options = options
        self.stage: StageName = STAGES[options.form][-1]
        self.text_encoder = encoder
        self.detection_encoder = detection_encoder
        self.transformer = Transformer(encoder)
        size = int(self.transformer.config.hidden_size)
        if options.form != "one-stage":
            self.detector = SpanDetector(size, options)
            self.markers = nn.Parameter(0.02 * torch.randn(2, size))  # the embeddings of [e] and [/e]
        if options.marker_identity == "numbered":
            self.marker_numbers = nn.Parameter(0.02 * torch.randn(options.marker_numbers, size))  # i of [e_i], added
        self.span_vectors = BiaffineVectors(size, options.matcher_size, options.vector_size)
        self.type_head = nn.Sequential(
            nn.Linear(size, size), nn.GELU(), nn.Linear(size, options.vector_size)
        )  # MLP_ety
        self.nothing = nn.Parameter(torch.randn(options.vector_size))  # similar to spans that are no mention
        self.log_scale = nn.Parameter(-torch.tensor(options.temperature).log())  # log 1/τ
        self.dropout = nn.Dropout(0.1)
        self.encode_for_detection = encoder_function(detection_encoder or encoder)
        self.encode_type = encoder_function(encoder)
        self.encode_text = encoder_function(encoder)
        self.encode_marked = GraphedFunction(self, self.marked_states)

    @property
    def graphed_functions(self) -> list[GraphedFunction]:
        """The functions that training may run as CUDA graphs."""
        return [self.encode_for_detection, self.encode_type, self.encode_text, self.encode_marked]

    def select_stage(self, stage: StageName) -> None:
        """Choose what `forward` trains; all other weights are frozen."""
        self.stage = stage
        for name, weight in self.named_parameters():
            detects = name.startswith(("detection_encoder.", "detector."))
            fixed = name == "log_scale" and not self.options.learned_temperature
            weight.requires_grad_(not fixed and (stage == "fused" or detects == (stage == "detection")))

    @torch.no_grad()
    def initialize_markers(self, token: int) -> None:
        """Initialise markers as a token of the encoder: a [MASK] already attends to the token at its position."""
        if self.options.form != "one-stage":
            start = self.transformer.token_vectors(torch.tensor(token, device=self.markers.device))
            self.markers.copy_(start + 0.1 * start.std() * torch.randn_like(self.markers))
        if self.options.marker_identity == "numbered":
            self.marker_numbers.copy_(0.5 * start.std() * torch.randn_like(self.marker_numbers))

    # --- training

    def forward(
        self,
        ids: Tensor,
        mask: Tensor,
        first: Tensor,
        last: Tensor,
        words: Tensor,
        gold: Tensor,
        positions: Tensor | None = None,
        roles: Tensor | None = None,
        marks: Tensor | None = None,
        labels: Tensor | None = None,
        known: Tensor | None = None,
        type_ids: Tensor | None = None,
        type_mask: Tensor | None = None,
        masked: Tensor | None = None,
        complete: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The loss of a training batch, as `SunerCollator` builds it.

        Args:
            gold: mentions of any type: rows (window, first word, last word), each once.
            masked: spans that are neither mentions nor negatives: rows as in `gold`.
            complete: windows in which all types of their corpus are annotated (windows,); None: all.
            ids, positions, roles: texts followed by markers, if the stage has markers.
            marks: candidates: rows (window, place of [e], place of [/e], first token, last token).
            labels: rows (candidate, type): which candidates are mentions of which type. In the one-stage form rows
                (window, first word, last word, type).
            known: types that are annotated: (candidates, types), or (windows, types) in the one-stage form.
        """
        if self.stage == "detection":
            states = self.dropout(self.encode_for_detection(ids, mask))
            return {"loss": self.detector.loss(*at_words(states, first, last), words, gold, masked, complete)}
        if labels is None or known is None or type_ids is None or type_mask is None:
            raise TypeError(f"the stage {self.stage!r} needs types and labels")
        types = self.encode_types(type_ids, type_mask)
        if self.stage == "one-stage":
            states = self.dropout(self.encode_text(ids, mask))
            chosen = self._counted(words, first.shape[1], gold, masked)
            return {"loss": self._one_stage_loss(*at_words(states, first, last), chosen, types, labels, known)}
        if positions is None or roles is None or marks is None:
            raise TypeError(f"the stage {self.stage!r} needs markers")
        if self.options.markers:
            states = self.dropout(self.encode_marked(ids, positions, roles))
        else:
            states = self.dropout(self.encode_text(ids, mask))
        loss = self.match_loss(self.match(states, Marks(*marks.T), types), labels, known)
        if self.stage == "fused":
            loss = loss + self.detector.loss(*at_words(states, first, last), words, gold, masked, complete)
        return {"loss": loss}

    def match_loss(self, sims: tuple[Tensor, Tensor], labels: Tensor, known: Tensor) -> Tensor:
        """Equation 13 for candidates, with the learned "nothing" vector between their own types and all others."""
        sim, nothing = sims
        gold = torch.zeros_like(sim, dtype=torch.bool)
        gold[labels[:, 0], labels[:, 1]] = True
        if self.options.rejection == "cosine":
            return self._paper_loss(sim, gold, known)
        exists = known.any(1)
        entity, threshold = contrastive_loss(sim[None], nothing[None], gold[None], known[None], exists[None])
        return entity + threshold

    def _paper_loss(self, sim: Tensor, gold: Tensor, known: Tensor) -> Tensor:
        """Equation 13; other types of the same span are not in the denominator."""
        negatives = ~gold & known
        against = torch.logsumexp(sim.masked_fill(~negatives, -1e4), dim=-1, keepdim=True)
        if self.options.positive_in_denominator:
            against = torch.logaddexp(sim, against)
        else:  # as printed; a span without negatives has no loss then
            gold = gold & negatives.any(-1, keepdim=True)
        return (against - sim).masked_fill(~gold, 0.0).sum() / gold.sum().clamp(min=1)

    def _counted(self, words: Tensor, length: int, gold: Tensor, masked: Tensor | None) -> Tensor:
        """The mentions and negatives among all pairs of words: (windows, words, words)."""
        options = self.options
        counted = counted_spans(
            words, (length, length), gold, sampling=options.negative_sampling, rate=options.negative_rate, masked=masked
        )
        return by_edges(counted.spans)

    def _one_stage_loss(
        self, first: Tensor, last: Tensor, chosen: Tensor, types: Tensor, labels: Tensor, known: Tensor
    ) -> Tensor:
        """The same with all chosen spans of a text as candidates. Terms are divided by the number of mentions, not of
        spans, because nearly all spans are no mention, and most of these are easy."""
        window, begin, end, kind = labels.T
        places, sim, nothing = self._match_spans(first, last, chosen, types)
        number = torch.zeros(chosen.shape, dtype=torch.long, device=chosen.device)
        number[tuple(places.T)] = torch.arange(len(places), device=number.device)
        gold = torch.zeros_like(sim, dtype=torch.bool)
        gold[number[window, begin, end], kind] = True
        allowed = known[places[:, 0]]
        exists = allowed.any(1)
        entity, threshold = contrastive_loss(sim[None], nothing[None], gold[None], allowed[None], exists[None])
        share = exists.sum() / (gold.sum() + len(chosen))
        return entity + share * threshold

    # --- encoding

    def encode_types(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Equations 9 and 10: e_k of length 1, (types, size)."""
        states = self.encode_type(ids, mask)
        pooled = mean_pool(states, mask) if self.options.pooling == "mean" else states[:, 0]
        return F.normalize(self.type_head(self.dropout(pooled)).float(), dim=-1)

    def marker_vectors(self) -> Tensor:
        """The embeddings of markers by their role: [e_1], [/e_1], [e_2], ...; all pairs share them if not numbered."""
        if self.options.marker_identity != "numbered":
            return self.markers
        return (self.marker_numbers[:, None] + self.markers).flatten(0, 1)

    def _embed(
        self, ids: Tensor, positions: Tensor, roles: Tensor, transformer: Transformer | InferenceTransformer
    ) -> Tensor:
        vectors = transformer.token_vectors(ids)
        for kind, vector in zip((OPENING, CLOSING), self.markers, strict=True):
            own = (roles >= OPENING) & (roles % 2 == kind % 2)
            vectors = torch.where(own[..., None], vector.to(vectors.dtype), vectors)
        if self.options.marker_identity == "numbered":
            numbers = F.embedding((roles - OPENING).clamp(min=0) // 2, self.marker_numbers)
            vectors = vectors + numbers.to(vectors.dtype) * (roles >= OPENING)[..., None]
        return transformer.embed(vectors, positions)

    def _hide_other_pairs(self, visible: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """Paired markers see each other, but no other markers; `visible` is (windows, queries, keys), given roles."""
        if self.options.marker_identity != "paired":
            return visible
        markers = (queries >= OPENING)[..., None] & (keys >= OPENING)[:, None]
        return visible & (~markers | ((queries // 2)[..., None] == (keys // 2)[:, None]))

    def marked_states(
        self, ids: Tensor, positions: Tensor, roles: Tensor, prepared: InferenceTransformer | None = None
    ) -> Tensor:
        """Equation 11: the states of text and markers in one pass over both."""
        transformer = prepared or self.transformer
        exists = roles != 0
        visible = exists[:, None].expand(-1, ids.shape[1], -1)
        if self.options.attention_mask:  # text attends to text; markers attend to text and markers
            visible = visible & ((roles >= OPENING)[..., None] | (roles == TEXT)[:, None])
        visible = self._hide_other_pairs(visible, roles, roles)
        x = self._embed(ids, positions, roles, transformer)
        return transformer.run(x, transformer.attention_bias(positions, positions, visible))

    # --- matching

    def match(
        self, states: Tensor, marks: Marks, types: Tensor, prepared: BiaffineVectors | None = None
    ) -> tuple[Tensor, Tensor]:
        """Equation 12: cos(r_i, e_k) / τ (candidates, types), and the threshold for it (candidates,)."""
        return self._similarities((prepared or self.span_vectors)(*self.span_states(states, marks)), types)

    def span_states(self, states: Tensor, marks: Marks) -> tuple[Tensor, Tensor]:
        """The two states (candidates, hidden) that the vector of each candidate is computed from."""
        window, opening, closing, first, last = marks
        begin, end = states[window, first], states[window, last]
        if not self.options.markers or self.options.form == "one-stage":
            return begin, end
        return self._marker_states(states[window, opening], states[window, closing], begin, end)

    def _marker_states(self, opening: Tensor, closing: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        return (opening + first, closing + last) if self.options.spans == "both" else (opening, closing)

    def match_markers(
        self,
        opening: Tensor,
        closing: Tensor,
        first: Tensor,
        last: Tensor,
        types: Tensor,
        prepared: BiaffineVectors | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The same from the states of markers and of the first and last tokens of spans (candidates, hidden)."""
        pair = self._marker_states(opening, closing, first, last)
        return self._similarities((prepared or self.span_vectors)(*pair), types)

    def match_all(
        self, states: Tensor, first: Tensor, last: Tensor, words: Tensor, types: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same for all spans up to `max_width`: rows (window, first word, last word), and results as in `match`."""
        chosen = spans_of(words, first.shape[1]).tril(self.options.max_width - 1)
        return self._match_spans(*at_words(states, first, last), chosen, types)

    def _match_spans(self, first: Tensor, last: Tensor, chosen: Tensor, types: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same for chosen pairs of words (windows, words, words)."""
        vectors = self.span_vectors.all_spans(first, last)[chosen]  # (spans, size)
        return chosen.nonzero(), *self._similarities(vectors, types)

    def _similarities(self, vectors: Tensor, types: Tensor) -> tuple[Tensor, Tensor]:
        vectors = F.normalize(vectors.float(), dim=-1)
        scale = self.log_scale.clamp(max=4.6052).exp()  # at most 100
        with torch.autocast(vectors.device.type, enabled=False):
            sim = scale * (vectors @ types.T)
            if self.options.rejection == "cosine":
                return sim, (scale * self.options.match_threshold).expand(len(sim))
            return sim, scale * (vectors @ F.normalize(self.nothing, dim=0))


def _feed_forward(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, outputs), nn.GELU(), nn.Dropout(0.1))


def spans_of(words: Tensor, length: int) -> Tensor:
    """Which pairs of words are spans of their window: (windows, length, length)."""
    place = torch.arange(length, device=words.device)
    return (place[:, None] <= place) & (place < words[:, None, None])


def by_edges(spans: Tensor) -> Tensor:
    """Flags of spans by first word and width (windows, words, words) as flags by first and last word."""
    place = torch.arange(spans.shape[1], device=spans.device)
    width = place - place[:, None]  # (words, words)
    return spans.gather(2, width.clamp(min=0).expand_as(spans)) & (width >= 0)


def at_words(states: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """The states at the first and at the last token of every word: (windows, words, hidden) each."""
    return at_tokens(states, first), at_tokens(states, last)


def at_tokens(states: Tensor, tokens: Tensor) -> Tensor:
    """The states at some tokens of each window: (windows, tokens, hidden)."""
    return states.gather(1, tokens.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
