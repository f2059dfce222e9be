"""BINDER: text and types in one vector space (Zhang et al., ICLR 2023), in PyTorch.

Symbols are the paper's. A span's vector is linear in its parts (equation 4),

    s_ij = Linear^S(h_i ⊕ h_j ⊕ D(j-i)) = l_i + r_j + d_(j-i),

so its product with a type e_k is a sum of three numbers, and its length a sum of products between l, r and d.
No vector is ever made for a span: memory grows with spans × types, not with spans × 128.

Words stand for positions: a span begins with the first token of a word and ends with the last of one.
Place 0 of every text is [CLS]; its similarities are the thresholds (equations 8 and 9).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.contrast import contrast
from onoma.systems.blocks.encoders import mean_pool


class TextVectors(NamedTuple):
    """What a text gives for matching; place 0 is [CLS], place n the n-th word."""

    start: Tensor  # u (windows, 1 + words, d), of length 1
    end: Tensor  # v (windows, 1 + words, d), of length 1
    left: Tensor  # l (windows, 1 + words, d)
    right: Tensor  # r (windows, 1 + words, d)


class TypeVectors(NamedTuple):
    """What a type gives, each of length 1/τ, so that products with unit vectors are similarities."""

    start: Tensor  # e^B (types, d)
    end: Tensor  # e^Q (types, d)
    span: Tensor  # e (types, d)


class Similarities(NamedTuple):
    """sim(·, e_k) for all places; spans as (first word, width - 1)."""

    start: Tensor  # (windows, types, words)
    end: Tensor  # (windows, types, words)
    span: Tensor  # (windows, types, words, widths)
    start_anchor: Tensor  # (windows, types)
    end_anchor: Tensor  # (windows, types)
    span_anchor: Tensor  # (windows, types)


class Binder(nn.Module):
    """Bi-encoder with start, end and span heads on both sides."""

    def __init__(
        self,
        text_encoder: nn.Module,
        type_encoder: nn.Module | None,
        options: BinderOptions,
        max_words: int,
        type_count: int = 0,
    ) -> None:
        """`type_encoder` None shares the text encoder. `type_count` is needed for atomic types and global thresholds."""
        super().__init__()
        self.options = options
        self.text_encoder = text_encoder
        self.own_type_encoder = type_encoder
        hidden, size = text_encoder.config.hidden_size, options.size
        self.text_heads = nn.ModuleDict({"left": nn.Linear(hidden, size, bias=False), "right": nn.Linear(hidden, size)})
        self.type_heads = nn.ModuleDict({"span": nn.Linear(hidden, size)})
        if not options.shared_linear:
            for position in ("start", "end"):
                self.text_heads[position] = nn.Linear(hidden, size)
                self.type_heads[position] = nn.Linear(hidden, size)
        self.width = nn.Embedding(max_words, options.width_size)  # D
        self.width_head = nn.Linear(options.width_size, size, bias=False)
        self.log_scale = nn.Parameter(torch.full((3,), -float(torch.tensor(options.temperature).log())))  # log 1/τ
        if options.types == "atomic":
            self.atoms = nn.Embedding(type_count, hidden)
        if options.thresholds == "global":
            self.global_thresholds = nn.Parameter(torch.zeros(3, type_count))
        self.dropout = nn.Dropout(0.1)

    def forward(
        self,
        ids: Tensor,
        mask: Tensor,
        first: Tensor,
        last: Tensor,
        words: Tensor,
        gold: Tensor,
        known: Tensor,
        type_ids: Tensor,
        type_mask: Tensor,
        type_numbers: Tensor,
        type_places: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The loss of a training batch, as `onoma.training.collating` builds it."""
        text = self.encode_text(ids, mask, first, last)
        types = self.encode_types(type_ids, type_mask, type_places)
        widths = self.options.train_width or first.shape[1]
        sims = self.similarities(text, types, widths, type_numbers)
        return {"loss": self.loss(sims, words, gold, known)}

    # --- encoding

    def encode_text(self, ids: Tensor, mask: Tensor, first: Tensor, last: Tensor) -> TextVectors:
        """Equation 3 and the text side's linear layers, at the first and last token of each word."""
        states = self.dropout(self.text_encoder(input_ids=ids, attention_mask=mask).last_hidden_state)
        return self.text_vectors(*(_at(states, places) for places in (first, last)))

    def text_vectors(self, first_states: Tensor, last_states: Tensor) -> TextVectors:
        """Linear layers on the states at word starts and ends, in float32 so that similarities are exact."""
        left = self.text_heads["left"](first_states).float()
        right = self.text_heads["right"](last_states).float()
        if self.options.shared_linear:
            start, end = left, right
        else:
            start = self.text_heads["start"](first_states).float()
            end = self.text_heads["end"](last_states).float()
        return TextVectors(F.normalize(start, dim=-1), F.normalize(end, dim=-1), left, right)

    def encode_types(self, ids: Tensor, mask: Tensor, places: Tensor | None = None) -> TypeVectors:
        """Equations 1 and 2. `places` are the marked tokens of prototypical instances, else pooling is as chosen.

        Atomic types ignore the tokens: row k of `ids` starts with the number of the type.
        """
        if self.options.types == "atomic":
            pooled = self.atoms(ids[:, 0])
        else:
            encoder = self.own_type_encoder or self.text_encoder
            states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
            if places is not None:
                pooled = states[torch.arange(len(states), device=states.device), places]
            else:
                pooled = mean_pool(states, mask) if self.options.pooling == "mean" else states[:, 0]
        return self.type_vectors(self.dropout(pooled))

    def type_vectors(self, pooled: Tensor) -> TypeVectors:
        """Linear layers on the pooled states, scaled by the learned 1/τ."""
        scale = self.log_scale.clamp(max=4.6052).exp()  # at most 100
        names = ("span",) * 3 if self.options.shared_linear else ("start", "end", "span")
        vectors = [F.normalize(self.type_heads[name](pooled).float(), dim=-1) for name in names]
        return TypeVectors(*(vector * scale[i] for i, vector in enumerate(vectors)))

    def width_vectors(self, widths: int) -> Tensor:
        """d for the first widths: (widths, d)."""
        vectors: Tensor = self.width_head(self.width.weight[:widths]).float()
        return vectors

    # --- matching

    @torch.autocast("cuda", enabled=False)  # similarities in float32
    def similarities(
        self, text: TextVectors, types: TypeVectors, widths: int, numbers: Tensor | None = None
    ) -> Similarities:
        """sim(u_i, e^B_k), sim(v_j, e^Q_k) and sim(s_ij, e_k) for all words, and for [CLS] the thresholds.

        `numbers` says which of the model's own types these are; only global thresholds need it.
        """
        start = torch.einsum("bnd,kd->bkn", text.start, types.start)
        end = torch.einsum("bnd,kd->bkn", text.end, types.end)
        widths = min(widths, text.left.shape[1] - 1)
        span = _span_similarity(text.left[:, 1:], text.right[:, 1:], self.width_vectors(widths), types.span)
        anchor = _span_similarity(text.left[:, :1], text.right[:, :1], self.width_vectors(1), types.span)
        anchors = [start[:, :, 0], end[:, :, 0], anchor[:, :, 0, 0]]
        if self.options.thresholds == "global":
            anchors = [row[numbers].expand_as(start[:, :, 0]) for row in self.global_thresholds]
        elif self.options.thresholds == "tuned":  # one on the similarity itself, found after training
            anchors = [torch.zeros_like(row) for row in anchors]
        return Similarities(start[:, :, 1:], end[:, :, 1:], span, *anchors)

    def loss(self, sims: Similarities, words: Tensor, gold: Tensor, known: Tensor) -> Tensor:
        """Equation 10. `gold` has rows (window, first word, last word, type); `known` is (windows, types)."""
        windows, types, length, widths = sims.span.shape
        window, first, last, kind = gold.T
        place = torch.arange(length, device=words.device)
        exists = place < words[:, None]  # (windows, words)
        fits = place[:, None] + place[:widths] < words[:, None, None]  # (windows, words, widths)
        narrow = last - first < widths

        starts = _flags((windows, types, length), words, window, kind, first)
        ends = _flags((windows, types, length), words, window, kind, last)
        spans = _flags((windows, types, length, widths), words, *(x[narrow] for x in (window, kind, first, last - first)))
        dynamic = self.options.thresholds != "tuned"
        parts = [
            contrast(sims.start, sims.start_anchor if dynamic else None, starts, exists[:, None], known),
            contrast(sims.end, sims.end_anchor if dynamic else None, ends, exists[:, None], known),
            contrast(
                sims.span.flatten(2),
                sims.span_anchor if dynamic else None,
                spans.flatten(2),
                fits.flatten(1)[:, None],
                known,
            ),
        ]
        beta = self.options.beta if dynamic else 1.0
        weights = self.options.weights if self.options.positions else (0.0, 0.0, 1.0)
        augmented = [beta * entity + (1 - beta) * threshold for entity, threshold in parts]  # equations 8 and 9
        return sum((w * part for w, part in zip(weights, augmented, strict=True)), start=sims.span.new_zeros(()))

    def margins(self, sims: Similarities, words: Tensor) -> Tensor:
        """sim(s_ij, e_k) - threshold, -inf where there is no span or (joint inference) a position fails: algorithm 1."""
        margin = sims.span - sims.span_anchor[..., None, None]
        length, widths = sims.span.shape[2:]
        place = torch.arange(length, device=words.device)
        ends = place[:, None] + place[:widths]  # (words, widths)
        allowed = (ends < words[:, None, None])[:, None]
        if self.options.inference == "joint":
            starts_pass = sims.start >= sims.start_anchor[..., None]
            ends_pass = sims.end >= sims.end_anchor[..., None]
            allowed = allowed & starts_pass[..., None] & ends_pass[..., ends.clamp(max=length - 1)]
        return margin.masked_fill(~allowed, -torch.inf)


def _at(states: Tensor, places: Tensor) -> Tensor:
    """[CLS] and the states at the given places: (windows, 1 + words, hidden)."""
    with_first = F.pad(places, (1, 0))
    return states.gather(1, with_first.unsqueeze(-1).expand(-1, -1, states.shape[-1]))


def _flags(shape: tuple[int, ...], like: Tensor, *indices: Tensor) -> Tensor:
    flags = torch.zeros(shape, dtype=torch.bool, device=like.device)
    flags[indices] = True
    return flags


def _span_similarity(left: Tensor, right: Tensor, width: Tensor, types: Tensor) -> Tensor:
    """cos(l_i + r_(i+w) + d_w, e_k) / τ for all words i and widths w: (windows, types, words, widths)."""
    words, widths = left.shape[1], len(width)
    spare = widths - 1  # zeros beyond the last word, so that i + w always exists
    w = torch.arange(widths, device=left.device)
    j = torch.arange(words, device=left.device)[:, None] + w  # (words, widths)
    product = (
        (left @ types.T)[..., None]  # (windows, words, types, 1)
        + F.pad(right @ types.T, (0, 0, 0, spare)).unfold(1, widths, 1)  # (windows, words, types, widths)
        + types @ width.T  # (types, widths)
    )
    length = (  # |l + r + d|² (windows, words, widths)
        left.square().sum(-1)[..., None]
        + F.pad(right.square().sum(-1), (0, spare))[:, j]
        + width.square().sum(-1)
        + 2 * F.pad(left @ right.transpose(1, 2), (0, spare)).gather(2, j.expand(len(left), -1, -1))
        + 2 * left @ width.T
        + 2 * F.pad(right @ width.T, (0, 0, 0, spare))[:, j, w]
    )
    return (product * length.clamp(min=1e-6).rsqrt()[:, :, None]).transpose(1, 2)
