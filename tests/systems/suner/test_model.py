"""SUNER against its equations, re-computed with loops."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from onoma import OnomaError
from onoma.inputs.batches import Batch
from onoma.systems.suner.marking import Candidates, Marked, mark, pair_numbers
from onoma.systems.suner.model import NO_SPAN, BiaffineVectors, Marks, SpanDetector, Suner, at_words
from onoma.systems.suner.options import STAGES, SunerOptions
from tiny_encoders import HIDDEN
from tiny_suner import random_batch, tiny_suner

torch.set_num_threads(1)
FAMILIES = ["bert", "roberta", "mpnet"]
COUNTS = ([1, 2, 1, 3, 1, 1], [2, 1], [1, 1, 1, 2])  # tokens of each word of three windows
SPANS = [(0, 0, 2), (0, 1, 1), (0, 3, 5), (1, 0, 1), (1, 1, 1), (2, 2, 3)]  # window, first word, last word
TYPES = 4


def tensors(*arrays: np.ndarray) -> list[Tensor]:
    return [torch.from_numpy(array) for array in arrays]


def candidates_of(spans: list[tuple[int, int, int]]) -> Candidates:
    return Candidates(*np.array(spans, np.int64).reshape(-1, 3).T)


def marks_of(batch: Batch, candidates: Candidates, marked: Marked) -> Marks:
    window = candidates.window
    tokens = batch.first[window, candidates.first], batch.last[window, candidates.last]
    return Marks(*tensors(window, marked.opening, marked.closing, *tokens))


def marked_batch(model: Suner, batch: Batch, candidates: Candidates) -> Marked:
    numbers = pair_numbers(candidates, model.options)
    return mark(batch, candidates, tied=model.options.tied_positions, numbers=numbers)


def marked_states(model: Suner, batch: Batch, spans: list[tuple[int, int, int]]) -> tuple[Tensor, Marks]:
    """The states of a pass over texts and markers, and the places of the markers."""
    candidates = candidates_of(spans)
    marked = marked_batch(model, batch, candidates)
    states = model.encode_marked(*tensors(marked.ids, marked.positions, marked.roles))
    return states, marks_of(batch, candidates, marked)


def type_vectors() -> Tensor:
    vectors = torch.randn(TYPES, 8, generator=torch.Generator().manual_seed(5))
    return nn.functional.normalize(vectors, dim=-1)


# --- markers and text


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("form", ["two-stage", "fused"])
@torch.no_grad()
def test_markers_do_not_change_the_states_of_text(family: str, form: str) -> None:
    model, batch = tiny_suner(family, form=form), random_batch(COUNTS, family)
    ids, mask = tensors(batch.ids, batch.mask)
    states, _ = marked_states(model, batch, SPANS)
    plain = model.encode_text(ids, mask)
    torch.testing.assert_close(states[:, : ids.shape[1]][mask > 0], plain[mask > 0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_without_the_attention_mask_markers_change_the_states_of_text(family: str) -> None:
    model, batch = tiny_suner(family, attention_mask=False), random_batch(COUNTS, family)
    ids, mask = tensors(batch.ids, batch.mask)
    states, _ = marked_states(model, batch, SPANS)
    change = (states[:, : ids.shape[1]] - model.encode_text(ids, mask)).abs().amax(-1)
    assert bool((change[mask > 0] > 1e-3).all())


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_the_order_of_candidates_has_no_influence(family: str) -> None:
    model, batch = tiny_suner(family), random_batch(COUNTS, family)
    scores: dict[tuple[int, int, int], Any] = {}
    for order in ([0, 1, 2, 3, 4, 5], [2, 0, 1, 4, 3, 5], [1, 2, 0, 3, 4, 5]):  # within windows
        spans = [SPANS[place] for place in order]
        sim, nothing = model.match(*marked_states(model, batch, spans), type_vectors())
        for span, *found in zip(spans, sim.tolist(), nothing.tolist(), strict=True):
            scores.setdefault(span, found)
            assert found[0] == pytest.approx(scores[span][0], abs=1e-4)
            assert found[1] == pytest.approx(scores[span][1], abs=1e-4)


@torch.no_grad()
def test_markers_attend_to_candidates_of_their_own_window_only() -> None:
    model, batch = tiny_suner(), random_batch(COUNTS)
    states, marks = marked_states(model, batch, SPANS)
    fewer, their = marked_states(model, batch, [SPANS[0], *SPANS[3:]])  # two candidates of the first window are gone
    assert not torch.allclose(states[0, marks.opening[0]], fewer[0, their.opening[0]], atol=1e-2)
    for now, then in ((3, 1), (4, 2), (5, 3)):
        window = marks.window[now]
        torch.testing.assert_close(
            states[window, marks.closing[now]], fewer[window, their.closing[then]], atol=1e-5, rtol=1e-4
        )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("form", ["two-stage", "fused"])
@pytest.mark.parametrize("identity", ["shared", "numbered", "paired"])
@torch.no_grad()
def test_nested_pairs_with_a_common_edge_differ_only_if_they_have_an_identity(
    family: str, form: str, identity: str
) -> None:
    model, batch = tiny_suner(family, form=form, marker_identity=identity), random_batch(COUNTS, family)
    states, marks = marked_states(model, batch, [(0, 0, 1), (0, 0, 3), (0, 2, 3)])
    same_start = states[0, marks.opening[0]] - states[0, marks.opening[1]]
    same_end = states[0, marks.closing[1]] - states[0, marks.closing[2]]
    for difference in (same_start, same_end):
        assert bool((difference == 0).all()) == (identity == "shared")
        assert float(difference.abs().max()) > 1e-2 or identity == "shared"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mask", [True, False])
@torch.no_grad()
def test_paired_markers_do_not_see_other_pairs(family: str, mask: bool) -> None:
    model = tiny_suner(family, marker_identity="paired", attention_mask=mask)
    batch = random_batch(COUNTS, family)
    states, marks = marked_states(model, batch, SPANS)
    for number, span in enumerate(SPANS[:5]):  # the last one is alone in its window
        alone, own = marked_states(model, batch, [span])
        window = span[0]
        for now, then in ((marks.opening[number], own.opening[0]), (marks.closing[number], own.closing[0])):
            same = torch.allclose(states[window, now], alone[window, then], atol=1e-5, rtol=1e-4)
            assert same == mask  # without the mask, pairs have an influence on each other by way of the text


@pytest.mark.parametrize("identity", ["numbered", "paired"])
def test_a_marker_identity_needs_markers(identity: Any) -> None:
    for options in ({"markers": False}, {"form": "one-stage"}):
        with pytest.raises(OnomaError, match=f"`marker_identity: {identity}` needs markers. Fix:"):
            SunerOptions(marker_identity=identity, **options)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("identity", ["shared", "numbered", "paired"])
@torch.no_grad()
def test_padding_with_zeros_changes_nothing(family: str, identity: str) -> None:
    """CUDA graphs rely on this: their inputs have more rows and columns than there are."""
    model, batch = tiny_suner(family, marker_identity=identity), random_batch(COUNTS, family)
    marked = marked_batch(model, batch, candidates_of(SPANS))
    pad = nn.ConstantPad2d((0, 5, 0, 2), 0)
    for run in model.graphed_functions:
        given = (
            (batch.ids, batch.mask) if run is not model.encode_marked else (marked.ids, marked.positions, marked.roles)
        )
        inputs = tensors(*given)
        exists = inputs[-1] > 0
        states, padded = run(*inputs), run(*map(pad, inputs))
        assert bool(padded.isfinite().all())
        torch.testing.assert_close(
            padded[: len(states), : states.shape[1]][exists], states[exists], atol=1e-5, rtol=1e-4
        )


# --- detection


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


def cross_entropy(probability: float, target: bool) -> float:
    """Both terms of binary cross-entropy, of which equations 4 and 6 print the first."""
    return -log(probability) if target else -log(1 - probability)


@pytest.fixture
def detector() -> SpanDetector:
    torch.manual_seed(1)
    return SpanDetector(HIDDEN, SunerOptions(detector_size=12)).eval()


def word_states() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    first, last = torch.randn(2, 3, 5, HIDDEN, generator=generator)
    return first, last, torch.tensor([5, 2, 0])


@torch.no_grad()
def test_logits_of_spans_are_equations_2_and_3(detector: SpanDetector) -> None:
    hidden, size = 12, 7  # d_h, d_r
    generator = torch.Generator().manual_seed(3)
    u, w = torch.randn(hidden, size, hidden, generator=generator), torch.randn(size, 2 * hidden, generator=generator)
    b, w_p, b_p = torch.randn(size, generator=generator), torch.randn(size, generator=generator), 0.3
    detector.bilinear.copy_(torch.einsum("irj,r->ij", u, w_p))
    detector.start_linear.weight.copy_(w_p @ w[:, :hidden])
    detector.end_linear.weight.copy_(w_p @ w[:, hidden:])
    detector.start_linear.bias.copy_(w_p @ b + b_p)

    first, last, words = word_states()
    logits = detector(first, last, words)
    assert logits.shape == (3, 5, 5)
    for window in range(3):
        for i in range(5):
            for j in range(5):
                if not i <= j < words[window]:
                    assert logits[window, i, j] == NO_SPAN
                    continue
                h_s, h_e = detector.start(first[window, i]), detector.end(last[window, j])
                r = torch.stack([h_s @ u[:, k] @ h_e for k in range(size)]) + w @ torch.cat([h_s, h_e]) + b
                assert float(logits[window, i, j]) == pytest.approx(float(w_p @ r + b_p), abs=1e-3)


def equation_7(
    detector: SpanDetector, gold: list[tuple[int, int, int]], is_negative: Callable[[int, int, int], bool]
) -> float:
    """The detector's loss on `word_states`; spans (window, first, last) without a mention may be no negatives."""
    first, last, words = word_states()
    logits, spans, boundaries = detector(first, last, words), 0.0, 0.0
    for window, length in enumerate(words.tolist()):
        own = [(i, j) for w, i, j in gold if w == window]
        for i in range(length):
            for j in range(i, length):
                if is_negative(window, i, j) or (i, j) in own:
                    spans += cross_entropy(sigmoid(float(logits[window, i, j])), (i, j) in own)  # equation 4
            if is_negative(window, i, i):
                start = sigmoid(float(detector.start_boundary(first[window, i])))  # equation 5
                end = sigmoid(float(detector.end_boundary(last[window, i])))
                boundaries += cross_entropy(start, i in [i for i, _ in own])  # equation 6
                boundaries += cross_entropy(end, i in [j for _, j in own])
    weight = detector.boundary_weight
    return ((1 - weight) * spans + weight * boundaries) / len(words)


@pytest.mark.parametrize("weight", [0.7, 0.0, 1.0])
@torch.no_grad()
def test_the_detectors_loss_is_equation_7(detector: SpanDetector, weight: float) -> None:
    gold = [(0, 0, 2), (0, 2, 2), (0, 0, 0), (1, 1, 1)]
    detector.boundary_weight = weight
    loss = detector.loss(*word_states(), torch.tensor(gold))
    assert float(loss) == pytest.approx(equation_7(detector, gold, lambda window, i, j: True), rel=1e-4)


@torch.no_grad()
def test_masked_spans_have_no_part_in_the_detectors_loss(detector: SpanDetector) -> None:
    first, last, words = word_states()
    gold, masked = torch.tensor([(0, 0, 2), (1, 1, 1)]), torch.tensor([(0, 1, 3), (0, 0, 1)])
    logits = detector(first, last, words)
    spans = sum(cross_entropy(sigmoid(float(logits[tuple(row)])), False) for row in masked)
    edges = cross_entropy(sigmoid(float(detector.start_boundary(first[0, 1]))), False)  # the other start is a mention's
    edges += sum(cross_entropy(sigmoid(float(detector.end_boundary(last[0, j]))), False) for j in (1, 3))
    less = detector.loss(first, last, words, gold) - detector.loss(first, last, words, gold, masked)
    expected = ((1 - detector.boundary_weight) * spans + detector.boundary_weight * edges) / len(words)
    assert float(less) == pytest.approx(expected, rel=1e-3)


@torch.no_grad()
def test_in_incomplete_windows_only_spans_that_overlap_a_mention_are_negatives(detector: SpanDetector) -> None:
    first, last, words = word_states()
    gold = [(0, 1, 2), (1, 1, 1)]
    rows, complete = torch.tensor(gold), torch.tensor([False, True, True])
    loss = detector.loss(first, last, words, rows, complete=complete)
    expected = equation_7(detector, gold, lambda window, i, j: window > 0 or (i <= 2 and j >= 1))
    assert float(loss) == pytest.approx(expected, rel=1e-4)
    everywhere = detector.loss(first, last, words, rows, complete=torch.ones(3, dtype=torch.bool))
    assert float(everywhere) == pytest.approx(float(detector.loss(first, last, words, rows)), rel=1e-6)
    nothing = detector.loss(first, last, words, rows[:0], complete=torch.zeros(3, dtype=torch.bool))
    assert float(nothing) == 0.0


@torch.no_grad()
def test_the_detector_is_trained_with_a_sample_of_unlabelled_spans(detector: SpanDetector) -> None:
    first, last, words = word_states()
    gold = torch.tensor([(0, 0, 2), (1, 1, 1)])
    whole = float(detector.loss(first, last, words, gold))
    detector.negative_sampling, detector.negative_rate = "uniform", 0.35
    torch.manual_seed(0)
    sampled = [float(detector.loss(first, last, words, gold)) for _ in range(20)]
    assert len(set(sampled)) > 10
    assert max(sampled) < whole
    detector.negative_rate = 99.0
    assert float(detector.loss(first, last, words, gold)) == pytest.approx(whole, rel=1e-5)


def test_an_untrained_detector_rejects_all_spans() -> None:
    torch.manual_seed(0)
    first, last, words = word_states()
    logits = SpanDetector(HIDDEN, SunerOptions()).eval()(first, last, words)
    assert bool((logits < 0).all())


# --- span vectors and similarities


@torch.no_grad()
def test_span_vectors_are_equation_2() -> None:
    torch.manual_seed(4)
    vectors = BiaffineVectors(HIDDEN, 6, 5).eval()
    nn.init.normal_(vectors.bilinear)
    opening, closing = torch.randn(2, 3, HIDDEN)
    found = vectors(opening, closing)
    for pair in range(3):
        h_s, h_e = vectors.start(opening[pair]), vectors.end(closing[pair])
        r = torch.stack([h_s @ vectors.bilinear[:, k] @ h_e for k in range(5)])
        expected = r + vectors.start_linear.weight @ h_s + vectors.end_linear.weight @ h_e + vectors.start_linear.bias
        torch.testing.assert_close(found[pair], expected, atol=1e-4, rtol=1e-4)
    everything = vectors.all_spans(opening[None], closing[None])
    for i in range(3):
        for j in range(3):
            torch.testing.assert_close(
                everything[0, i, j], vectors(opening[i : i + 1], closing[j : j + 1])[0], atol=1e-4, rtol=1e-4
            )


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"spans": "markers"}, "markers"),
        ({"spans": "both"}, "both"),
        ({"markers": False}, "text"),
        ({"spans": "markers", "rejection": "cosine", "match_threshold": 0.3}, "markers"),
    ],
    ids=str,
)
@torch.no_grad()
def test_similarities_are_cosines_by_temperature(options: dict[str, Any], parts: str) -> None:
    model, batch = tiny_suner(temperature=0.2, **options), random_batch(COUNTS)
    states, marks = marked_states(model, batch, SPANS)
    sim, nothing = model.match(states, marks, type_vectors())
    assert sim.shape == (len(SPANS), TYPES)
    for number, (window, opening, closing, first, last) in enumerate(zip(*(x.tolist() for x in marks), strict=True)):
        text, marker = (states[window, [first, last]], states[window, [opening, closing]])
        begin, end = {"markers": marker, "both": marker + text, "text": text}[parts]
        r = model.span_vectors(begin[None], end[None])[0]
        for kind, e in enumerate(type_vectors()):
            cosine = float(r @ e / (r.norm() * e.norm()))
            assert float(sim[number, kind]) == pytest.approx(cosine / 0.2, abs=1e-3)
        if model.options.rejection == "cosine":
            assert float(nothing[number]) == pytest.approx(0.3 / 0.2, abs=1e-4)
        else:
            cosine = float(r @ model.nothing / (r.norm() * model.nothing.norm()))
            assert float(nothing[number]) == pytest.approx(cosine / 0.2, abs=1e-3)


@torch.no_grad()
def test_the_scale_never_exceeds_100() -> None:
    model = tiny_suner()
    states, marks = marked_states(model, random_batch(COUNTS), SPANS)
    model.log_scale.fill_(20.0)
    sim, _ = model.match(states, marks, type_vectors())
    assert float(sim.abs().max()) < 100.01
    assert float(sim.abs().max()) > 30


@torch.no_grad()
def test_the_one_stage_form_matches_every_span_as_a_single_pair() -> None:
    model, batch = tiny_suner(form="one-stage", max_width=3), random_batch(COUNTS)
    ids, mask, first, last, words = tensors(batch.ids, batch.mask, batch.first, batch.last, batch.words)
    states = model.encode_text(ids, mask)
    places, sim, nothing = model.match_all(states, first, last, words, type_vectors())
    expected = [
        (w, i, j) for w, one in enumerate(COUNTS) for i in range(len(one)) for j in range(i, min(i + 3, len(one)))
    ]
    assert list(map(tuple, places.tolist())) == expected
    for number, (w, i, j) in enumerate(expected):
        r = model.span_vectors(states[w, first[w, i]][None], states[w, last[w, j]][None])
        torch.testing.assert_close(
            torch.cat([sim[number], nothing[number][None]]),
            torch.cat([part.flatten() for part in model._similarities(r, type_vectors())]),
            atol=1e-4,
            rtol=1e-4,
        )


@pytest.mark.parametrize("pooling", ["first", "mean"])
@torch.no_grad()
def test_types_are_pooled_states_of_length_1(pooling: str) -> None:
    model = tiny_suner(pooling=pooling)
    ids, mask = torch.tensor([[3, 8, 9, 4], [3, 7, 4, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    found = model.encode_types(ids, mask)
    for row, length in enumerate((4, 3)):
        states = model.text_encoder(input_ids=ids[row : row + 1, :length]).last_hidden_state[0]
        vector = model.type_head(states.mean(0) if pooling == "mean" else states[0])
        torch.testing.assert_close(found[row], vector / vector.norm(), atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_markers_are_initialized_close_to_a_token() -> None:
    model = tiny_suner()
    model.initialize_markers(7)
    token = model.text_encoder.embeddings.word_embeddings.weight[7]  # type: ignore[union-attr, index]
    assert bool((nn.functional.cosine_similarity(model.markers, token[None]) > 0.9).all())
    numbered = tiny_suner(marker_identity="numbered")
    numbered.initialize_markers(7)
    assert len(torch.unique(numbered.marker_vectors(), dim=0)) == 2 * numbered.options.marker_numbers
    assert not torch.equal(model.markers[0], model.markers[1])
    tiny_suner(form="one-stage").initialize_markers(7)  # it has no markers


# --- losses of matching


LABELS = [(0, 1), (2, 0), (2, 3), (3, 2)]  # candidate, type; the third has two types, the second and fifth none
KNOWN = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]).bool()


def similarities() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(6)
    return 3 * torch.randn(6, TYPES, generator=generator), torch.randn(6, generator=generator)


def negatives(sim: Tensor, candidate: int, known: Tensor) -> list[float]:
    """exp(cos/τ) of the types that are known not to be the candidate's."""
    own = [kind for number, kind in LABELS if number == candidate]
    return [exp(float(sim[candidate, k])) for k in range(TYPES) if known[candidate, k] and k not in own]


def test_the_match_loss_with_a_learned_nothing_vector_is_its_formula() -> None:
    sim, nothing = similarities()
    model = tiny_suner(rejection="learned")
    entity = [
        -log(exp(float(sim[c, k])) / (exp(float(sim[c, k])) + sum(negatives(sim, c, KNOWN)) + exp(float(nothing[c]))))
        for c, k in LABELS
    ]
    threshold = [
        -log(exp(float(nothing[c])) / (exp(float(nothing[c])) + sum(negatives(sim, c, KNOWN))))
        for c in range(5)  # the last candidate has no known types
    ]
    loss = model.match_loss((sim, nothing), torch.tensor(LABELS), KNOWN)
    assert float(loss) == pytest.approx(sum(entity) / len(entity) + sum(threshold) / len(threshold), rel=1e-5)


@pytest.mark.parametrize("standard", [True, False])
def test_the_match_loss_of_the_paper_is_equation_13(standard: bool) -> None:
    sim, nothing = similarities()
    model = tiny_suner(rejection="cosine", positive_in_denominator=standard)
    terms = []
    for candidate, kind in LABELS:
        positive = exp(float(sim[candidate, kind]))
        below = sum(negatives(sim, candidate, KNOWN)) + (positive if standard else 0.0)
        terms.append(-log(positive / below))
    loss = model.match_loss((sim, nothing), torch.tensor(LABELS), KNOWN)
    assert float(loss) == pytest.approx(sum(terms) / len(terms), rel=1e-5)


REJECTIONS = [
    {"rejection": "learned"},
    {"rejection": "cosine"},
    {"rejection": "cosine", "positive_in_denominator": False},
]


@pytest.mark.parametrize("options", REJECTIONS, ids=str)
def test_unknown_types_are_ignored(options: dict[str, Any]) -> None:
    sim, nothing = similarities()
    model = tiny_suner(**options)
    loss = model.match_loss((sim, nothing), torch.tensor(LABELS), KNOWN)
    other = torch.where(KNOWN, sim, 40.0).requires_grad_()
    again = model.match_loss((other, nothing), torch.tensor(LABELS), KNOWN)
    assert again.item() == pytest.approx(loss.item())
    again.backward()  # type: ignore[no-untyped-call]
    assert other.grad is not None
    assert not other.grad[~KNOWN].any()
    assert bool(other.grad[0].all())  # all known types count


@pytest.mark.parametrize("options", REJECTIONS, ids=str)
def test_the_types_of_a_span_are_not_negatives_of_each_other(options: dict[str, Any]) -> None:
    sim, nothing = similarities()
    sim.requires_grad_()
    tiny_suner(**options).match_loss((sim, nothing), torch.tensor(LABELS), KNOWN).backward()  # type: ignore[no-untyped-call]
    assert sim.grad is not None
    assert float(sim.grad[2, 0]) < -1e-4
    assert float(sim.grad[2, 3]) < -1e-4
    assert float(sim.grad[2, 1]) > 1e-6


@pytest.mark.parametrize("options", REJECTIONS, ids=str)
def test_candidates_without_a_type_have_a_finite_loss(options: dict[str, Any]) -> None:
    sim, nothing = similarities()
    sim.requires_grad_()
    nobody = torch.zeros((0, 2), dtype=torch.long)
    loss = tiny_suner(**options).match_loss((sim, nothing), nobody, KNOWN)
    loss.backward()  # type: ignore[no-untyped-call]
    assert bool(loss.isfinite())
    assert sim.grad is not None
    assert bool((sim.grad[:5][KNOWN[:5]] > 0).all()) == (options["rejection"] == "learned")
    empty = tiny_suner(**options).match_loss((sim[:0], nothing[:0]), nobody, KNOWN[:0])
    assert empty.item() == 0.0


@torch.no_grad()
def test_the_one_stage_loss_is_over_all_spans() -> None:
    model, batch = tiny_suner(form="one-stage", max_width=2), random_batch(COUNTS)
    ids, mask, first, last, words = tensors(batch.ids, batch.mask, batch.first, batch.last, batch.words)
    known = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]]).bool()
    labels = [(0, 0, 2, 1), (0, 0, 2, 0), (0, 4, 4, 2), (1, 0, 1, 3)]
    types, states = type_vectors(), model.encode_text(ids, mask)
    entity, threshold = [], []
    for w, one in enumerate(COUNTS):
        for i in range(len(one)):
            for j in range(i, len(one)):  # no width limit in training
                r = model.span_vectors(states[w, first[w, i]][None], states[w, last[w, j]][None])
                sim, nothing = (part.squeeze(0) for part in model._similarities(r, types))
                own = [kind for *span, kind in labels if span == [w, i, j]]
                others = [exp(float(sim[k])) for k in range(TYPES) if known[w, k] and k not in own]
                anchor = exp(float(nothing))
                entity += [-log(exp(float(sim[k])) / (exp(float(sim[k])) + sum(others) + anchor)) for k in own]
                if known[w].any():
                    threshold.append(-log(anchor / (anchor + sum(others))))
    expected = sum(entity) / len(entity) + sum(threshold) / (len(labels) + len(COUNTS))
    rows = torch.tensor(labels)
    chosen = model._counted(words, first.shape[1], rows[:, :3], None)
    loss = model._one_stage_loss(*at_words(states, first, last), chosen, types, rows, known)
    assert float(loss) == pytest.approx(expected, rel=1e-4)


# --- stages


def arguments(model: Suner) -> dict[str, Tensor]:
    """A training batch for the stage of the model."""
    batch, candidates = random_batch(COUNTS), candidates_of(SPANS)
    marked = marked_batch(model, batch, candidates)
    names = ("ids", "mask", "first", "last", "words")
    given = dict(zip(names, tensors(*(getattr(batch, name) for name in names)), strict=True))
    given["gold"] = torch.tensor([SPANS[0], SPANS[2], SPANS[3]])
    if model.stage == "detection":
        return given
    given["type_ids"], given["type_mask"] = torch.arange(12).view(TYPES, 3) + 5, torch.ones(TYPES, 3).long()
    if model.stage == "one-stage":
        labels = [(*SPANS[c], k) for c, k in LABELS]
        return given | {"labels": torch.tensor(labels), "known": torch.ones(len(COUNTS), TYPES).bool()}
    if model.options.markers:
        given["ids"] = torch.from_numpy(marked.ids)
    positions, roles = tensors(marked.positions, marked.roles)
    marks = torch.stack(marks_of(batch, candidates, marked), dim=1)
    return given | {
        "positions": positions,
        "roles": roles,
        "marks": marks,
        "labels": torch.tensor(LABELS),
        "known": KNOWN,
    }


def changed_parts(model: Suner) -> set[str]:
    """The parts that a training step changes."""
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-3, weight_decay=0.1)
    model(**arguments(model))["loss"].backward()
    for weight in (one for one in model.parameters() if one.requires_grad and one.grad is None):
        weight.grad = torch.zeros_like(weight)  # as with several processes: weight decay is applied to them, too
    optimizer.step()
    return {name.split(".")[0] for name, now in model.named_parameters() if not torch.equal(now, before[name])}


CLASSIFICATION = {"text_encoder", "markers", "span_vectors", "type_head", "nothing", "log_scale"}
DETECTION = {"detection_encoder", "detector"}


@pytest.mark.parametrize(
    ("form", "stage", "expected"),
    [
        ("two-stage", "detection", DETECTION),
        ("two-stage", "classification", CLASSIFICATION),
        ("fused", "fused", CLASSIFICATION | {"detector"}),
        ("one-stage", "one-stage", CLASSIFICATION - {"markers"}),
    ],
)
def test_a_stage_trains_only_its_own_parts(form: str, stage: Any, expected: set[str]) -> None:
    assert stage in STAGES[form]
    model = tiny_suner(form=form)
    model.select_stage(stage)
    assert changed_parts(model) == expected


@pytest.mark.parametrize("form", ["two-stage", "fused"])
def test_numbers_of_markers_are_trained_and_a_fixed_temperature_is_not(form: str) -> None:
    model = tiny_suner(form=form, marker_identity="numbered", learned_temperature=False)
    stage: Any = STAGES[form][-1]  # type: ignore[index]
    model.select_stage(stage)
    expected = CLASSIFICATION | {"marker_numbers"} | ({"detector"} if form == "fused" else set())
    assert changed_parts(model) == expected - {"log_scale"}


def test_stages_can_follow_each_other() -> None:
    model = tiny_suner()
    for stage, expected in (("detection", DETECTION), ("classification", CLASSIFICATION), ("detection", DETECTION)):
        model.select_stage(stage)  # type: ignore[arg-type]
        assert changed_parts(model) == expected
        model.zero_grad()


@torch.no_grad()
def test_the_fused_loss_is_the_sum_of_detection_and_matching() -> None:
    model = tiny_suner(form="fused")
    given = arguments(model)
    batch = random_batch(COUNTS)
    ids, mask = tensors(batch.ids, batch.mask)
    plain = model.encode_text(ids, mask)  # text is the same with and without markers
    detection = model.detector.loss(*at_words(plain, given["first"], given["last"]), given["words"], given["gold"])
    types = model.encode_types(given["type_ids"], given["type_mask"])
    match = model.match_loss(model.match(*marked_states(model, batch, SPANS), types), given["labels"], KNOWN)
    assert float(model(**given)["loss"]) == pytest.approx(float(detection + match), rel=1e-4)


@torch.no_grad()
def test_without_markers_spans_are_made_of_text_states() -> None:
    model = tiny_suner(markers=False)
    given, batch = arguments(model), random_batch(COUNTS)
    types = model.encode_types(given["type_ids"], given["type_mask"])
    states = model.encode_text(*tensors(batch.ids, batch.mask))
    match = model.match_loss(model.match(states, Marks(*given["marks"].T), types), given["labels"], KNOWN)
    assert float(model(**given)["loss"]) == pytest.approx(float(match), rel=1e-4)


@pytest.mark.parametrize("option", ["markers", "attention_mask", "tied_positions"])
def test_the_fused_form_needs_text_that_does_not_depend_on_markers(option: str) -> None:
    with pytest.raises(OnomaError, match=option):
        SunerOptions(**{"form": "fused", option: False})
    SunerOptions(**{"form": "two-stage", option: False})
