"""BINDER against its equations, re-computed with loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, linear
from transformers import BertConfig, BertModel

from onoma.inputs.batches import pad_rows
from onoma.inputs.tokenizer import WordTokenIds
from onoma.systems.binder.model import BREADTH_LOSS_WEIGHT, Binder, Similarities
from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.negatives import counted_spans
from tiny_batches import batch_of, random_tokens

torch.set_num_threads(1)

TYPE_TOKENS = [[1, 30, 31, 2], [1, 32, 2], [1, 33, 34, 35, 2]]
WINDOWS = ([1, 2, 1, 3, 1], [2], [1, 1, 2, 1])  # the number of tokens of each word
GOLD = [(0, 0, 1, 0), (0, 3, 3, 0), (0, 1, 4, 1), (1, 0, 0, 2), (2, 0, 2, 1), (2, 1, 1, 1), (2, 2, 3, 0)]
TYPE_PAIRS = [
    (0, 0, 1, 1, 0),
    (0, 1, 4, 0, 1),
    (1, 0, 0, 2, 1),
    (2, 1, 1, 0, 2),
]  # a narrow and a broad type
KNOWN = [[True, True, False], [True, False, True], [True, True, True]]


def make_model(**options: Any) -> Binder:
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=40, max_position_embeddings=32, **size)
    chosen = BinderOptions(**{"vector_size": 8, "width_size": 6, **options})
    separate = not chosen.shared_encoder and chosen.types != "atomic"
    encoders = [BertModel(config, add_pooling_layer=False) for _ in range(1 + separate)]
    model = Binder(encoders[0], encoders[1] if separate else None, chosen, 16, len(TYPE_TOKENS))
    if chosen.thresholds == "global":
        torch.nn.init.normal_(model.global_thresholds)
    return model.eval()


def windows(counts: Sequence[Sequence[int]] = WINDOWS) -> list[WordTokenIds]:
    return random_tokens(counts, 3, 30, seed=3)


def similarities(model: Binder, tokens: list[WordTokenIds], widths: int | None = None) -> tuple[Similarities, Tensor]:
    """The similarities of the model, and the number of words of each window."""
    batch = batch_of(tokens)
    ids, mask, first, last = (torch.from_numpy(x) for x in (batch.ids, batch.mask, batch.first, batch.last))
    text, types = model.encode_text(ids, mask, first, last), model.encode_types(*type_inputs(model))
    numbers = torch.arange(len(TYPE_TOKENS))
    return model.similarities(text, types, widths or first.shape[1], numbers), torch.from_numpy(batch.words)


def type_inputs(model: Binder) -> tuple[Tensor, Tensor]:
    rows = [[k] for k in range(len(TYPE_TOKENS))] if model.options.types == "atomic" else TYPE_TOKENS
    ids, mask = pad_rows(rows, 0)
    return torch.from_numpy(ids), torch.from_numpy(mask)


class Explicit(NamedTuple):
    """Similarities of one window and one type, by place; None is [CLS]."""

    start: dict[int | None, float]
    end: dict[int | None, float]
    span: dict[tuple[int, int] | None, float]


def explicit(model: Binder, tokens: WordTokenIds, kind: int) -> Explicit:
    """Equations 1 to 4, one window and one type at a time, with an explicit vector for every span."""
    ids = torch.tensor([[1, *tokens.ids.tolist(), 2]])
    states = model.text_encoder(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
    ends = np.cumsum(tokens.counts).tolist()
    first = [end - count + 1 for end, count in zip(ends, tokens.counts.tolist(), strict=True)]
    if model.options.types == "atomic":
        pooled = model.atoms.weight[kind]
    else:
        type_tokens = torch.tensor([TYPE_TOKENS[kind]])
        type_states = (model.own_type_encoder or model.text_encoder)(input_ids=type_tokens).last_hidden_state[0]
        pooled = type_states.mean(0) if model.options.pooling == "mean" else type_states[0]
    heads, shared = model.text_heads, model.options.shared_linear
    start_head, end_head = (heads["left"], heads["right"]) if shared else (heads["start"], heads["end"])
    start_type, end_type, span_type = (
        model.type_heads["span" if shared else name](pooled) for name in ("start", "end", "span")
    )
    scale = model.log_scale.exp().tolist()
    linear_weight = torch.cat([heads["left"].weight, heads["right"].weight, model.width_head.weight], dim=1)

    def span_similarity(i: int, j: int, width: int) -> float:
        vector = linear(
            torch.cat([states[i], states[j], model.width.weight[width]]), linear_weight, heads["right"].bias
        )
        return scale[2] * float(cosine_similarity(vector, span_type, dim=0))

    def position(head: Any, place: int, type_vector: Tensor, temperature: float) -> float:
        return temperature * float(cosine_similarity(head(states[place]), type_vector, dim=0))

    words = range(len(ends))
    return Explicit(
        {None: position(start_head, 0, start_type, scale[0])}
        | {i: position(start_head, first[i], start_type, scale[0]) for i in words},
        {None: position(end_head, 0, end_type, scale[1])}
        | {j: position(end_head, ends[j], end_type, scale[1]) for j in words},
        {None: span_similarity(0, 0, 0)}
        | {(i, j): span_similarity(first[i], ends[j], j - i) for i in words for j in words if i <= j},
    )


def slow_loss(model: Binder, tokens: list[WordTokenIds], widths: int = 99) -> float:
    """Equations 5 to 10 with loops: each of the three objectives, means over mentions and over known pairs."""
    options = model.options
    entity: list[list[float]] = [[], [], []]
    threshold: list[list[float]] = [[], [], []]
    for window, one in enumerate(tokens):
        for kind in range(len(TYPE_TOKENS)):
            if not KNOWN[window][kind]:
                continue
            mentions = [(first, last) for w, first, last, k in GOLD if (w, k) == (window, kind)]
            sims = explicit(model, one, kind)
            spans = {place: s for place, s in sims.span.items() if place is None or place[1] - place[0] < widths}
            golds = [{i for i, _ in mentions}, {j for _, j in mentions}, {m for m in mentions if m[1] - m[0] < widths}]
            for objective, (values, gold) in enumerate(zip((sims.start, sims.end, spans), golds, strict=True)):
                against = sum(math.exp(s) for place, s in values.items() if place is not None and place not in gold)
                if options.thresholds != "tuned":
                    cls = values[None]
                    if options.thresholds == "global":
                        cls = float(model.global_thresholds[objective, kind])
                    threshold[objective].append(-math.log(math.exp(cls) / (math.exp(cls) + against)))
                    against += math.exp(cls)
                for place in gold:
                    own = math.exp(values[place])  # type: ignore[index]
                    entity[objective].append(-math.log(own / (own + against)))
    weights = options.loss_weights if options.position_losses else (0.0, 0.0, 1.0)
    total = 0.0
    for weight, golds_, pairs in zip(weights, entity, threshold, strict=True):
        if options.thresholds == "tuned":  # the paper's "simplified loss without thresholding"
            total += weight * np.mean(golds_)
        else:
            total += weight * (options.beta * np.mean(golds_) + (1 - options.beta) * np.mean(pairs))
    return float(total)


def loss_of(
    model: Binder,
    tokens: list[WordTokenIds],
    gold: list[tuple[int, int, int, int]],
    known: list[list[bool]],
    type_pairs: Tensor | None = None,
    breadth_pairs: Tensor | None = None,
    known_pairs: Tensor | None = None,
) -> Tensor:
    """The loss that `forward` returns, as in training."""
    batch = batch_of(tokens)
    ids, mask = type_inputs(model)
    arrays = (batch.ids, batch.mask, batch.first, batch.last, batch.words)
    rows = (torch.from_numpy(x) for x in arrays)
    numbers = torch.arange(len(TYPE_TOKENS))
    places = torch.tensor(gold, dtype=torch.int64).reshape(-1, 4)
    outputs = model(
        *rows,
        places,
        torch.tensor(known),
        ids,
        mask,
        numbers,
        type_pairs=type_pairs,
        breadth_pairs=breadth_pairs,
        known_pairs=known_pairs,
    )
    loss: Tensor = outputs["loss"]
    return loss


VARIANTS: list[dict[str, Any]] = [
    {},
    {"shared_linear": True},
    {"shared_encoder": True, "pooling": "mean"},
    {"types": "atomic"},
]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
@torch.no_grad()
def test_similarities_are_those_of_explicit_vectors(options: dict[str, Any]) -> None:
    model, tokens = make_model(**options), windows()
    sims, _ = similarities(model, tokens)
    for window, one in enumerate(tokens):
        for kind in range(len(TYPE_TOKENS)):
            expected = explicit(model, one, kind)
            anchors = [float(x[window, kind]) for x in (sims.start_anchor, sims.end_anchor, sims.span_anchor)]
            assert anchors == pytest.approx([expected.start[None], expected.end[None], expected.span[None]], abs=1e-3)
            for place in range(len(one.counts)):
                assert float(sims.start[window, kind, place]) == pytest.approx(expected.start[place], abs=1e-3)
                assert float(sims.end[window, kind, place]) == pytest.approx(expected.end[place], abs=1e-3)
            for span, value in expected.span.items():
                if span is not None:
                    found = float(sims.span[window, kind, span[0], span[1] - span[0]])
                    assert found == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"position_losses": False},
        {"thresholds": "tuned"},
        {"thresholds": "global"},
        {"shared_linear": True},
        {"types": "atomic", "thresholds": "global", "position_losses": False},
        {"loss_weights": (0.5, 0.1, 0.4), "beta": 0.3},
        {"max_train_width": 2},
    ],
    ids=str,
)
@torch.no_grad()
def test_the_loss_is_equation_10(options: dict[str, Any]) -> None:
    model, tokens = make_model(**options), windows()
    expected = slow_loss(model, tokens, options.get("max_train_width", 99))
    assert float(loss_of(model, tokens, GOLD, KNOWN)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("thresholds", ["dynamic", "global"])
@pytest.mark.parametrize("widths", [None, 2])
def test_the_loss_of_pairs_is_that_of_all_windows_and_types(thresholds: Any, widths: int | None) -> None:
    options = {"objective": "sigmoid", "shared_linear": True, "thresholds": thresholds, "max_train_width": widths}
    gradients, losses = [], []
    for pairs in (None, torch.tensor(KNOWN).nonzero()):
        model = make_model(**options)
        loss = loss_of(model, windows(), GOLD, KNOWN, known_pairs=pairs)
        loss.backward()  # type: ignore[no-untyped-call]
        losses.append(float(loss.detach()))
        gradients.append(torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None]))
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert torch.allclose(gradients[1], gradients[0], atol=1e-5)


@pytest.mark.parametrize("thresholds", ["dynamic", "global", "tuned"])
@pytest.mark.parametrize("widths", [None, 2])
@torch.no_grad()
def test_the_narrow_type_loss_compares_the_margins_of_a_mention(thresholds: Any, widths: int | None) -> None:
    model, tokens = make_model(thresholds=thresholds, narrow_type_weight=0.3, max_train_width=widths), windows()
    rows = [row for row in TYPE_PAIRS if row[2] - row[1] < (widths or 99)]
    assert len(rows) == (3 if widths else 4)
    terms = []
    for window, first, last, *kinds in rows:
        narrow, broad = (slow_margin(model, tokens[window], kind, first, last) for kind in kinds)
        terms.append(math.log(1 + math.exp(1 + broad - narrow)))
    sims, _ = similarities(model, tokens, widths)
    pairs = torch.tensor(rows)
    assert float(model.narrow_type_loss(sims, pairs)) == pytest.approx(np.mean(terms), rel=1e-3)
    more = loss_of(model, tokens, GOLD, KNOWN, pairs) - loss_of(model, tokens, GOLD, KNOWN)
    assert float(more) == pytest.approx(0.3 * np.mean(terms), rel=1e-3)
    assert float(model.narrow_type_loss(sims, pairs[:0])) == 0.0


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_the_breadth_head_learns_from_pairs_and_leaves_all_other_weights_alone(options: dict[str, Any]) -> None:
    plain, model = make_model(**options), make_model(breadth_head=True, **options)
    assert plain.state_dict().keys() | {"breadth_head.weight"} == model.state_dict().keys()
    assert all(torch.equal(weight, model.state_dict()[name]) for name, weight in plain.state_dict().items())
    torch.nn.init.normal_(model.breadth_head.weight)
    pairs = torch.tensor([[0, 1], [2, 1]])
    ids, mask = type_inputs(model)
    pooled = model.pool_types(ids, mask).detach().double().numpy()
    unit = pooled / np.linalg.norm(pooled, axis=1, keepdims=True) * pooled.shape[1] ** 0.5
    breadths = unit @ model.breadth_head.weight.detach().double().numpy()[0]
    expected = np.mean([math.log(1 + math.exp(breadths[narrow] - breadths[broad])) for narrow, broad in pairs.tolist()])
    with_pairs, without = (
        loss_of(model, windows(), GOLD, KNOWN, breadth_pairs=pairs),
        loss_of(plain, windows(), GOLD, KNOWN),
    )
    assert float((with_pairs - without).detach()) == pytest.approx(BREADTH_LOSS_WEIGHT * expected, abs=1e-5)
    with_pairs.backward()
    without.backward()
    assert model.breadth_head.weight.grad is not None
    assert model.breadth_head.weight.grad.norm() > 0
    gradients = {name: weight.grad for name, weight in model.named_parameters()}
    for name, weight in plain.named_parameters():
        other = gradients[name]
        assert (weight.grad is None and other is None) or torch.equal(weight.grad, other), name


def slow_margin(model: Binder, tokens: WordTokenIds, kind: int, first: int, last: int) -> float:
    """sim(s_ij, e_k) minus its threshold."""
    sims = explicit(model, tokens, kind).span
    threshold = {"dynamic": sims[None], "tuned": 0.0}.get(model.options.thresholds)
    return sims[first, last] - (float(model.global_thresholds[2, kind]) if threshold is None else threshold)


@torch.no_grad()
def test_temperatures_start_at_the_option_and_the_scale_never_exceeds_100() -> None:
    model = make_model(temperature=0.05)
    vectors = model.encode_types(*type_inputs(model))
    assert [float(part.norm(dim=-1).mean()) for part in vectors] == pytest.approx([20.0] * 3, rel=1e-4)
    model.log_scale.fill_(10.0)
    assert float(model.encode_types(*type_inputs(model)).span.norm(dim=-1).max()) == pytest.approx(100.0, rel=1e-3)


@torch.no_grad()
def test_a_window_is_the_same_alone_and_batched_with_longer_ones() -> None:
    model, tokens = make_model(), windows()
    batched, words = similarities(model, tokens)
    margins = model.margins(batched, words)
    for window, one in enumerate(tokens):
        alone, count = similarities(model, [one])
        n = len(one.counts)
        assert torch.allclose(batched.start[window, :, :n], alone.start[0], atol=1e-4)
        assert torch.allclose(batched.end_anchor[window], alone.end_anchor[0], atol=1e-4)
        assert torch.allclose(margins[window, :, :n, :n], model.margins(alone, count)[0], atol=1e-4)
        beyond = margins[window].clone()
        beyond[:, :n, :n] = -torch.inf
        assert bool(torch.isneginf(beyond).all())


@torch.no_grad()
def test_the_order_of_windows_and_mentions_does_not_change_the_loss() -> None:
    model, tokens = make_model(), windows()
    before = float(loss_of(model, tokens, GOLD, KNOWN))
    order = [2, 0, 1]
    gold = [(order.index(window), first, last, kind) for window, first, last, kind in GOLD]
    assert float(loss_of(model, [tokens[i] for i in order], gold[::-1], [KNOWN[i] for i in order])) == pytest.approx(
        before, rel=1e-5
    )


@torch.no_grad()
def test_a_width_limit_excludes_only_wider_spans() -> None:
    model, tokens = make_model(), windows()
    full, words = similarities(model, tokens)
    limited, _ = similarities(model, tokens, widths=2)
    assert limited.span.shape[-1] == 2
    assert torch.allclose(limited.span, full.span[..., :2], atol=1e-5)
    more, _ = similarities(model, tokens, widths=14)  # than there are words
    assert more.span.shape == full.span.shape
    ends = torch.isfinite(model.margins(limited, words)).nonzero()
    assert int(ends[:, 3].max()) == 1


@pytest.mark.parametrize("thresholds", ["dynamic", "global"])
@torch.no_grad()
def test_joint_inference_keeps_spans_whose_start_and_end_pass_as_well(thresholds: Any) -> None:
    tokens = windows()
    span_only, joint = (make_model(inference=way, thresholds=thresholds) for way in ("span", "joint"))
    sims, words = similarities(joint, tokens)
    margins, pruned = span_only.margins(sims, words), joint.margins(sims, words)
    kept = 0
    for window, kind, first, width in torch.isfinite(margins).nonzero().tolist():
        start_passes = sims.start[window, kind, first] >= sims.start_anchor[window, kind]
        end_passes = sims.end[window, kind, first + width] >= sims.end_anchor[window, kind]
        value = pruned[window, kind, first, width]
        if start_passes and end_passes:
            kept += 1
            assert value == margins[window, kind, first, width]
        else:
            assert value == -torch.inf
    assert 0 < kept < int(torch.isfinite(margins).sum())
    assert bool((torch.isfinite(pruned) <= torch.isfinite(margins)).all())


@torch.no_grad()
def test_margins_are_relative_to_the_chosen_threshold() -> None:
    tokens = windows()
    for thresholds in ("dynamic", "global", "tuned"):
        model = make_model(thresholds=thresholds)
        sims, words = similarities(model, tokens)
        margin = model.margins(sims, words)[0, 1, 0, 2]
        expected = explicit(model, tokens[0], 1)
        zero = {"dynamic": expected.span[None], "tuned": 0.0}.get(thresholds)
        if zero is None:
            zero = float(model.global_thresholds[2, 1])
        assert float(margin) == pytest.approx(expected.span[0, 2] - zero, abs=1e-3)


@pytest.mark.parametrize(
    "options",
    [{}, {"thresholds": "tuned"}, {"thresholds": "global"}, {"position_losses": False}, {"types": "atomic"}],
    ids=str,
)
def test_every_weight_has_a_gradient(options: dict[str, Any]) -> None:
    # several processes can train batched only if each of them has a gradient for every weight
    model = make_model(**options)
    loss_of(model, windows(), GOLD, KNOWN).backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []
    assert all(bool(torch.isfinite(weight.grad).all()) for weight in model.parameters() if weight.grad is not None)


@pytest.mark.parametrize("objective", ["contrast", "sigmoid"])
@pytest.mark.parametrize("sampling", ["none", "uniform", "overlapping"])
def test_only_mentions_and_chosen_negatives_have_gradients(sampling: Any, objective: Any) -> None:
    model = make_model(negative_sampling=sampling, objective=objective)
    words, gold, masked = torch.tensor([6, 4]), torch.tensor([[0, 1, 2, 0], [1, 0, 0, 2]]), torch.tensor([[0, 4, 5]])
    sims = Similarities(
        *(torch.randn(shape, requires_grad=True) for shape in ((2, 3, 6), (2, 3, 6), (2, 3, 6, 6))),
        *(torch.randn(2, 3, requires_grad=True) for _ in range(3)),
    )
    torch.manual_seed(1)
    model.loss(sims, words, gold, torch.ones(2, 3, dtype=torch.bool), masked).backward()  # type: ignore[no-untyped-call]
    torch.manual_seed(1)
    counted = counted_spans(words, (6, 6), gold, sampling=sampling, rate=0.35, masked=masked)
    parts = [(sims.span, counted.spans)]
    if objective == "contrast":
        parts += [(sims.start, counted.starts), (sims.end, counted.ends)]
    for sim, flags in parts:
        assert sim.grad is not None
        assert torch.equal(sim.grad != 0, flags[:, None].expand_as(sim))


def test_without_position_losses_only_span_heads_have_gradients() -> None:
    model = make_model(position_losses=False)
    loss_of(model, windows(), GOLD, KNOWN).backward()
    for heads in (model.text_heads, model.type_heads):
        assert float(heads["start"].weight.grad.abs().max()) == 0.0
        assert float(heads["end"].weight.grad.abs().max()) == 0.0
    assert float(model.text_heads["left"].weight.grad.abs().max()) > 0.0


@pytest.mark.parametrize("thresholds", ["dynamic", "tuned"])
def test_batches_without_mentions_or_of_single_words_have_finite_gradients(thresholds: Any) -> None:
    model = make_model(thresholds=thresholds)
    for tokens, gold in ((windows(), []), (windows(([1],) * 3), [(0, 0, 0, 0)])):
        loss = loss_of(model, tokens, gold, KNOWN)
        loss.backward()
        assert bool(torch.isfinite(loss))
        assert all(bool(torch.isfinite(weight.grad).all()) for weight in model.parameters() if weight.grad is not None)


def test_prototypes_are_pooled_at_their_markers() -> None:
    model = make_model()
    ids, mask = type_inputs(model)
    with torch.no_grad():
        marked = model.encode_types(ids, mask, torch.tensor([1, 1, 2]))
        assert model.own_type_encoder is not None
        states = model.own_type_encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        expected = model.type_vectors(torch.stack([states[0, 1], states[1, 1], states[2, 2]]))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(marked, expected, strict=True))
