"""BINDER: text and types in one vector space (Zhang et al., ICLR 2023), in PyTorch.

Symbols are the paper's. A span's vector is linear in its parts (equation 4),

    s_ij = Linear^S(h_i ⊕ h_j ⊕ D(j-i)) = l_i + r_j + d_(j-i),

so its product with a type e_k is a sum of three numbers, and its length follows from products of l, r and d. The
vector of a span is never computed: memory grows with spans × types, not with spans × 128.

Positions are words: a span starts at the first token of a word and ends at the last token of one. Place 0 of each text
is [CLS], whose similarities are the thresholds (equations 8 and 9).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.cuda_graphs import GraphedFunction
from onoma.systems.blocks.encoders import add_word_shapes, by_length, encoder_function, mean_pool
from onoma.systems.blocks.losses import breadth_loss, contrastive_loss, distillation_loss, focal_loss, narrow_type_loss
from onoma.systems.blocks.negatives import counted_spans

if TYPE_CHECKING:
    from onoma.systems.binder.teacher import Teacher

BREADTH_LOSS_WEIGHT = 0.1
"""Adam learns the same with any weight; a small one keeps the gradient small, so that the clipping of all gradients
together does not depend on it."""

P = ParamSpec("P")
R = TypeVar("R")


def in_float32(method: Callable[P, R]) -> Callable[P, R]:
    """Compute vectors and similarities in float32 also where the encoder runs in bfloat16."""
    decorated: Callable[P, R] = method
    for device in ("cuda", "cpu"):
        decorated = torch.autocast(device, enabled=False)(decorated)
    return decorated


class TextVectors(NamedTuple):
    """The vectors of a text; place 0 is [CLS], place n the n-th word."""

    start: Tensor  # u (windows, 1 + words, d), of length 1
    end: Tensor  # v (windows, 1 + words, d), of length 1
    left: Tensor  # l (windows, 1 + words, d)
    right: Tensor  # r (windows, 1 + words, d)


class TypeVectors(NamedTuple):
    """The vectors of types, of length 1/τ, so that products with unit vectors are similarities."""

    start: Tensor  # e^B (types, d)
    end: Tensor  # e^Q (types, d)
    span: Tensor  # e (types, d)


class SpanKeys(NamedTuple):
    """What spans are compared with: computed once for types and widths, used for any number of texts."""

    rows: Tensor  # e and d (types + widths, d)
    products: Tensor  # d·e and d·d (widths, types + widths)

    def narrow(self, widths: int) -> SpanKeys:
        """The keys without larger widths."""
        rows = len(self.rows) - len(self.products) + widths
        return SpanKeys(self.rows[:rows], self.products[:widths, :rows])


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
        """Without a `type_encoder`, texts and types share one; `type_count` is for atomic types, global thresholds."""
        super().__init__()
        self.options = options
        if options.word_shapes:
            add_word_shapes(text_encoder)
        self.text_encoder = text_encoder
        self.own_type_encoder = type_encoder
        self.encode = encoder_function(text_encoder)
        self.encode_type = encoder_function(type_encoder or text_encoder)
        encoder: Any = text_encoder
        hidden, size = int(encoder.config.hidden_size), options.vector_size
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
        if options.breadth_head:
            # only differences of breadths matter; no random numbers are drawn, so that the rest stays as it is without
            self.breadth_head: nn.Linear = nn.utils.skip_init(nn.Linear, hidden, 1, bias=False)  # type: ignore[no-untyped-call]
            nn.init.zeros_(self.breadth_head.weight)
        self.dropout = nn.Dropout(0.1)
        self.teacher: Teacher | None = None  # in training only; it is no part of the weights
        self.teacher_weight = 1.0

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
        type_pairs: Tensor | None = None,
        breadth_pairs: Tensor | None = None,
        masked: Tensor | None = None,
        known_pairs: Tensor | None = None,
        **teacher_inputs: Tensor,
    ) -> dict[str, Tensor]:
        """The loss of a training batch, as `BinderCollator` builds it."""
        text = self.encode_text(ids, mask, first, last)
        pooled = self.pool_types(type_ids, type_mask, type_places)
        types = self.type_vectors(pooled)
        widths = self.options.max_train_width or first.shape[1]
        if known_pairs is not None:
            loss = self.pair_loss(text, types.span, widths, words, gold, known_pairs, type_numbers, masked)
        else:
            sims = self.similarities(text, types, widths, type_numbers)
            loss = self.loss(sims, words, gold, known, masked)
        if type_pairs is not None:
            loss = loss + self.options.narrow_type_weight * self.narrow_type_loss(sims, type_pairs)
        if breadth_pairs is not None:
            loss = loss + BREADTH_LOSS_WEIGHT * breadth_loss(self.breadths(pooled), breadth_pairs)
        if self.teacher is not None:
            own = {name.removeprefix("teacher_"): value for name, value in teacher_inputs.items()}
            taught = self.teacher.margins(**own, numbers=type_numbers, widths=sims.span.shape[3])
            loss = loss + self.teacher_weight * self.distillation_loss(sims, words, known, taught)
        return {"loss": loss}

    @property
    def graphed_functions(self) -> list[GraphedFunction]:
        """The functions that training may run as CUDA graphs."""
        return [self.encode, self.encode_type]

    # --- encoding

    def encode_text(self, ids: Tensor, mask: Tensor, first: Tensor, last: Tensor) -> TextVectors:
        """Equation 3 and the text side's linear layers, at the first and last token of each word."""
        return self.text_vectors(*self.states(ids, mask, F.pad(first, (1, 0)), F.pad(last, (1, 0))))

    def states(self, ids: Tensor, mask: Tensor, *places: Tensor) -> list[Tensor]:
        """The encoder's states at the given tokens (windows, places): [CLS], which is token 0, and words."""
        states = self.dropout(self.encode(ids, mask))
        return [states.gather(1, one.unsqueeze(-1).expand(-1, -1, states.shape[-1])) for one in places]

    @in_float32
    def text_vectors(self, first_states: Tensor, last_states: Tensor) -> TextVectors:
        """Linear layers on the states at word starts and ends."""
        left, right = self.span_vectors(first_states, last_states)
        if self.options.shared_linear:
            start, end = left, right
        else:
            start, end = self.text_heads["start"](first_states.float()), self.text_heads["end"](last_states.float())
        return TextVectors(F.normalize(start, dim=-1), F.normalize(end, dim=-1), left, right)

    @in_float32
    def span_vectors(self, first_states: Tensor, last_states: Tensor) -> tuple[Tensor, Tensor]:
        """l and r."""
        return self.text_heads["left"](first_states.float()), self.text_heads["right"](last_states.float())

    def encode_types(self, ids: Tensor, mask: Tensor, places: Tensor | None = None) -> TypeVectors:
        """Equations 1 and 2, for the arguments of `pool_types`."""
        return self.type_vectors(self.pool_types(ids, mask, places))

    def pool_types(self, ids: Tensor, mask: Tensor, places: Tensor | None = None) -> Tensor:
        """The pooled state of each type (types, hidden). `places` are the marked tokens of prototypical instances.

        For atomic types, `ids` are the numbers of the types.
        """
        if self.options.types == "atomic":
            pooled = self.atoms(ids[:, 0])
        elif places is not None:
            states = self.encode_type(ids, mask)
            pooled = states[torch.arange(len(states), device=states.device), places]
        elif ids.is_cpu:  # padding costs nearly as much as text there
            pooled = by_length(self._pool, ids, mask)
        else:
            pooled = self._pool(ids, mask)
        dropped: Tensor = self.dropout(pooled)
        return dropped

    def _pool(self, ids: Tensor, mask: Tensor) -> Tensor:
        states = self.encode_type(ids, mask)
        return mean_pool(states, mask) if self.options.pooling == "mean" else states[:, 0]

    def type_vectors(self, pooled: Tensor) -> TypeVectors:
        """Linear layers on the pooled states, scaled by the learned 1/τ."""
        scale = self.similarity_scales()
        names = ("span",) * 3 if self.options.shared_linear else ("start", "end", "span")
        vectors = [F.normalize(self.type_heads[name](pooled).float(), dim=-1) for name in names]
        return TypeVectors(*(vector * scale[i] for i, vector in enumerate(vectors)))

    @in_float32
    def breadths(self, pooled: Tensor) -> Tensor:
        """b of each type (types,), from its pooled state, which gets no gradient."""
        unit = F.normalize(pooled.detach().float(), dim=-1)
        breadth: Tensor = self.breadth_head(unit * pooled.shape[-1] ** 0.5)
        return breadth.squeeze(-1)

    def type_rows(self, pooled: Tensor) -> Tensor:
        """e^B, e^Q and e of each type in one row, and b behind them if there is a breadth head."""
        columns = [*self.type_vectors(pooled)]
        if self.options.breadth_head:
            columns.append(self.breadths(pooled)[:, None])
        return torch.cat(columns, dim=-1)

    def similarity_scales(self) -> Tensor:
        """1/τ of starts, ends and spans, the largest similarities that there can be."""
        return self.log_scale.clamp(max=4.6052).exp()  # at most 100

    def width_vectors(self, widths: int) -> Tensor:
        """d for the first widths: (widths, d)."""
        vectors: Tensor = self.width_head(self.width.weight[:widths]).float()
        return vectors

    # --- matching

    @in_float32
    def similarities(
        self, text: TextVectors, types: TypeVectors, widths: int, numbers: Tensor | None = None
    ) -> Similarities:
        """sim(u_i, e^B_k), sim(v_j, e^Q_k) and sim(s_ij, e_k) for all words, and for [CLS] the thresholds.

        `numbers` are the numbers of the types, for global thresholds.
        """
        start = torch.einsum("bnd,kd->bkn", text.start, types.start)
        end = torch.einsum("bnd,kd->bkn", text.end, types.end)
        keys = self.span_keys(types.span, min(widths, text.left.shape[1] - 1))
        span, span_anchor = self.span_similarities(text.left, text.right, keys, numbers)
        start_anchor, end_anchor = (self._threshold(i, sim[:, :, 0], numbers) for i, sim in enumerate((start, end)))
        return Similarities(start[:, :, 1:], end[:, :, 1:], span, start_anchor, end_anchor, span_anchor)

    @in_float32
    def span_keys(self, types: Tensor, widths: int) -> SpanKeys:
        """What spans of up to `widths` words are compared with; `types` are e."""
        width = self.width_vectors(widths)
        rows = torch.cat([types, width])
        return SpanKeys(rows, width @ rows.T)

    @in_float32
    def span_similarities(
        self, left: Tensor, right: Tensor, keys: SpanKeys, numbers: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """sim(s_ij, e_k) as (windows, types, words, widths), and its thresholds (windows, types)."""
        span = _SpanTerms.of(left, right, keys).of_all()  # (windows, types, 1 + words, widths)
        return span[:, :, 1:], self._threshold(2, span[:, :, 0, 0], numbers)

    def _threshold(self, position: int, anchor: Tensor, numbers: Tensor | None) -> Tensor:
        """The threshold of starts (0), ends (1) or spans (2); `anchor` is the similarity of [CLS]."""
        if self.options.thresholds == "global":
            return self.global_thresholds[position, numbers].expand_as(anchor)
        if self.options.thresholds == "tuned":  # on the similarity itself, after training
            return torch.zeros_like(anchor)
        return anchor

    def loss(
        self, sims: Similarities, words: Tensor, gold: Tensor, known: Tensor, masked: Tensor | None = None
    ) -> Tensor:
        """Equation 10, or the sigmoid objective on spans alone.

        `gold` has rows (window, first word, last word, type); `known` is (windows, types); `masked` has rows (window,
        first word, last word) of spans that are neither mentions nor negatives.
        """
        windows, types, length, widths = sims.span.shape
        options = self.options
        counted = counted_spans(
            words, (length, widths), gold, sampling=options.negative_sampling, rate=options.negative_rate, masked=masked
        )
        window, first, last, kind = gold.T
        starts = _flags((windows, types, length), words, window, kind, first)
        ends = _flags((windows, types, length), words, window, kind, last)
        narrow = gold if widths == length else gold[last - first < widths]  # only if needed: masks synchronise
        window, first, last, kind = narrow.T
        spans = _flags((windows, types, length, widths), words, window, kind, first, last - first).flatten(2)
        candidates = counted.spans.flatten(1)[:, None]
        if options.objective == "sigmoid":
            margin = (sims.span - sims.span_anchor[..., None, None]).flatten(2)
            return focal_loss(margin, spans, candidates & known.unsqueeze(-1), options.gamma)
        dynamic = options.thresholds != "tuned"
        places = (
            (sims.start, sims.start_anchor, starts, counted.starts[:, None]),
            (sims.end, sims.end_anchor, ends, counted.ends[:, None]),
            (sims.span.flatten(2), sims.span_anchor, spans, candidates),
        )
        parts = [
            contrastive_loss(
                sim, anchor if dynamic else None, flags, chosen, known, present_only=options.threshold_loss == "present"
            )
            for sim, anchor, flags, chosen in places
        ]
        beta = options.beta if dynamic else 1.0
        weights = options.loss_weights if options.position_losses else (0.0, 0.0, 1.0)
        augmented = [beta * entity + (1 - beta) * threshold for entity, threshold in parts]  # equations 8 and 9
        return sum((w * part for w, part in zip(weights, augmented, strict=True)), start=sims.span.new_zeros(()))

    @in_float32
    def pair_loss(
        self,
        text: TextVectors,
        types: Tensor,
        widths: int,
        words: Tensor,
        gold: Tensor,
        pairs: Tensor,
        numbers: Tensor,
        masked: Tensor | None = None,
    ) -> Tensor:
        """The sigmoid objective of `loss`, computed only for pairs of a window and a type that is annotated there.

        `pairs` has rows (window, type), and `types` are e. Where corpora with different types are mixed, a window has
        few of the types of its batch, so that most similarities do not count.
        """
        options, (window, kind) = self.options, pairs.T
        keys = self.span_keys(types, min(widths, text.left.shape[1] - 1))
        sim = _SpanTerms.of(text.left, text.right, keys).of_pairs(window, kind)  # (pairs, 1 + words, widths)
        anchor = self._threshold(2, sim[:, :1, :1], numbers[kind][:, None, None])
        _, length, widths = sim[:, 1:].shape
        counted = counted_spans(
            words, (length, widths), gold, sampling=options.negative_sampling, rate=options.negative_rate, masked=masked
        )
        narrow = gold[gold[:, 2] - gold[:, 1] < widths]
        place = torch.full((len(words), len(types)), len(pairs), device=pairs.device)
        place[window, kind] = torch.arange(len(pairs), device=pairs.device)
        row = place[narrow[:, 0], narrow[:, 3]]  # the last row is for types that are not annotated
        mentions = _flags((len(pairs) + 1, length, widths), words, row, narrow[:, 1], narrow[:, 2] - narrow[:, 1])[:-1]
        return focal_loss(sim[:, 1:] - anchor, mentions, counted.spans[window], options.gamma)

    def distillation_loss(self, sims: Similarities, words: Tensor, known: Tensor, taught: Tensor) -> Tensor:
        """The difference from margins of a teacher, for the types whose mentions in a window are not known."""
        margin = sims.span - sims.span_anchor[..., None, None]
        counted = _inside(words, margin.shape[2], margin.shape[3])[:, None] & ~known[..., None, None]
        return distillation_loss(margin, taught, counted, self.options.gamma)

    def narrow_type_loss(self, sims: Similarities, type_pairs: Tensor) -> Tensor:
        """`type_pairs` has rows (window, first word, last word, narrow type, broad type): mentions of both types.

        None of them is wider than `max_train_width`.
        """
        window, first, last, narrow, broad = type_pairs.T
        margins = [sims.span[window, k, first, last - first] - sims.span_anchor[window, k] for k in (narrow, broad)]
        return narrow_type_loss(*margins)

    def margins(self, sims: Similarities, words: Tensor) -> Tensor:
        """Algorithm 1: sim(s_ij, e_k) minus its threshold; -inf for impossible spans and, with joint inference, for
        spans whose start or end is below its threshold."""
        margin = span_margins(sims.span, sims.span_anchor, words)
        if self.options.inference == "span":
            return margin
        widths = sims.span.shape[3]
        starts_fail = sims.start < sims.start_anchor[..., None]
        ends_fail = F.pad(sims.end < sims.end_anchor[..., None], (0, widths - 1)).unfold(2, widths, 1)
        return margin.masked_fill(starts_fail[..., None] | ends_fail, -torch.inf)


def span_margins(span: Tensor, anchor: Tensor, words: Tensor) -> Tensor:
    """Span similarities minus their thresholds, -inf for spans that would leave their window."""
    beyond = ~_inside(words, span.shape[2], span.shape[3])
    return (span - anchor[..., None, None]).masked_fill_(beyond[:, None], -torch.inf)


def _inside(words: Tensor, length: int, widths: int) -> Tensor:
    """Which spans lie in their window: (windows, words, widths)."""
    place = torch.arange(length, device=words.device)
    return place[:, None] + place[:widths] < words[:, None, None]


def _flags(shape: tuple[int, ...], like: Tensor, *indices: Tensor) -> Tensor:
    flags = torch.zeros(shape, dtype=torch.bool, device=like.device)
    flags[indices] = True
    return flags


class _SpanTerms(NamedTuple):
    """What cos(l_i + r_(i+w) + d_w, e_k) / τ is made of, for places i and widths w.

    All products with l, and all with r, are computed at once: few large operations instead of many small ones.
    """

    left: Tensor  # l_i·e_k / τ (windows, types, places)
    right: Tensor  # r_j·e_k / τ (windows, types, places + widths - 1)
    width: Tensor  # d_w·e_k / τ (types, widths)
    scale: Tensor  # 1 / |l_i + r_(i+w) + d_w| (windows, places, widths)

    @classmethod
    def of(cls, left: Tensor, right: Tensor, keys: SpanKeys) -> _SpanTerms:
        windows, places = left.shape[:2]
        widths = len(keys.products)
        types = len(keys.rows) - widths
        right = F.pad(right, (0, 0, 0, widths - 1))  # zeros behind the last place, so that i + w always exists
        by_left = left @ keys.rows.T  # (windows, places, types + widths)
        rows = torch.cat([left, keys.rows.expand(windows, -1, -1)], dim=1)  # (windows, places + types + widths, d)
        left_right, type_right, width_right = torch.split(rows @ right.transpose(1, 2), [places, types, widths], dim=1)
        squares = (  # |l|² + |r|² + |d|² (windows, places, widths)
            left.square().sum(-1)[..., None]
            + right.square().sum(-1).unfold(1, widths, 1)
            + keys.products[:, types:].diagonal()
        )
        crossed = _skew(left_right, widths) + _skew(width_right, places).transpose(1, 2) + by_left[..., types:]
        length = torch.add(squares, crossed, alpha=2)  # |l + r + d|²
        scale = length.clamp(min=1e-6).rsqrt()
        return cls(by_left[..., :types].transpose(1, 2), type_right, keys.products[:, :types].T, scale)

    def of_all(self) -> Tensor:
        """The similarities of all windows and types: (windows, types, places, widths)."""
        product = self.right.unfold(2, self.width.shape[1], 1) + self.left[..., None] + self.width[:, None]
        return product * self.scale[:, None]

    def of_pairs(self, window: Tensor, kind: Tensor) -> Tensor:
        """The similarities of some pairs of a window and a type: (pairs, places, widths)."""
        row = window * len(self.width) + kind
        left, right = (one.flatten(0, 1).index_select(0, row) for one in (self.left, self.right))
        width = self.width.index_select(0, kind)
        product = right.unfold(1, self.width.shape[1], 1) + left[..., None] + width[:, None]
        return product * self.scale.index_select(0, window)


def _skew(matrix: Tensor, length: int) -> Tensor:
    """Columns i to i + length - 1 of each row i of a matrix, as a view."""
    return matrix.flatten(1).unfold(1, length, matrix.shape[2] + 1)
