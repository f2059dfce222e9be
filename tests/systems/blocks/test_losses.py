"""Losses against re-computations with loops."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onoma.systems.blocks.losses import (
    breadth_loss,
    contrastive_loss,
    focal_loss,
    narrow_type_loss,
    supervised_contrastive_loss,
)

torch.set_num_threads(1)


def slow_contrastive_loss(
    sim: Tensor, anchor: Tensor | None, gold: Tensor, candidate: Tensor, known: Tensor
) -> tuple[float, float]:
    """The formulas in the docstring of `contrastive_loss`."""
    windows, types, places = sim.shape
    entity_terms, threshold_terms = [], []
    for window in range(windows):
        existing = [place for place in range(places) if candidate[window, 0, place]]
        for kind in range(types):
            if not known[window, kind]:
                continue
            values = sim[window, kind].tolist()
            against = sum(math.exp(values[place]) for place in existing if not gold[window, kind, place])
            if anchor is not None:
                threshold = math.exp(float(anchor[window, kind]))
                threshold_terms.append(-math.log(threshold / (threshold + against)))
                against += threshold
            for place in existing:
                if gold[window, kind, place]:
                    own = math.exp(values[place])
                    entity_terms.append(-math.log(own / (own + against)))
    return _mean(entity_terms), _mean(threshold_terms)


@given(st.integers(0, 10_000))
def test_thresholds_may_be_learned_for_present_types_only(seed: int) -> None:
    sim, anchor, gold, candidate, known = random_case(seed)
    entity, threshold = contrastive_loss(sim, anchor, gold, candidate, known, present_only=True)
    assert float(entity) == pytest.approx(slow_contrastive_loss(sim, anchor, gold, candidate, known)[0])
    present = known & gold.any(-1)
    assert float(threshold) == pytest.approx(slow_contrastive_loss(sim, anchor, gold, candidate, present)[1])


def _mean(terms: list[float]) -> float:
    return sum(terms) / len(terms) if terms else 0.0


def random_case(seed: int, windows: int = 3, types: int = 4, places: int = 6) -> tuple[Tensor, ...]:
    """Similarities, thresholds and masks; each window has another length, only existing places are gold."""
    generator = torch.Generator().manual_seed(seed)
    sim = torch.randn(windows, types, places, generator=generator, dtype=torch.float64) * 4
    anchor = torch.randn(windows, types, generator=generator, dtype=torch.float64) * 4
    lengths = torch.randint(1, places + 1, (windows,), generator=generator)
    candidate = (torch.arange(places) < lengths[:, None])[:, None]
    gold = (torch.rand(windows, types, places, generator=generator) < 0.3) & candidate
    known = torch.rand(windows, types, generator=generator) < 0.7
    return sim, anchor, gold, candidate, known


@given(st.integers(0, 10_000), st.booleans())
def test_contrastive_loss_has_the_terms_of_the_paper(seed: int, with_threshold: bool) -> None:
    sim, anchor, gold, candidate, known = random_case(seed)
    case = (sim, anchor if with_threshold else None, gold, candidate, known)
    assert [float(term) for term in contrastive_loss(*case)] == pytest.approx(slow_contrastive_loss(*case), abs=1e-9)


def test_contrastive_loss_of_a_small_case_by_hand() -> None:
    # one window, one type; place 1 is gold; the threshold has a similarity of 0
    sim = torch.tensor([[[0.0, math.log(3.0), math.log(2.0)]]])
    gold = torch.tensor([[[False, True, False]]])
    everywhere = torch.ones(1, 1, 3, dtype=torch.bool)
    entity, threshold = contrastive_loss(sim, torch.zeros(1, 1), gold, everywhere, torch.ones(1, 1, dtype=torch.bool))
    assert float(entity) == pytest.approx(-math.log(3 / (3 + 1 + 2 + 1)))
    assert float(threshold) == pytest.approx(-math.log(1 / (1 + 1 + 2)))


def test_another_gold_place_of_the_type_is_not_a_negative() -> None:
    sim = torch.tensor([[[2.0, 1.0, 0.5]]])
    anchor, known = torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool)
    first, second = torch.tensor([[[True, False, False]]]), torch.tensor([[[False, True, False]]])
    everywhere = torch.ones(1, 1, 3, dtype=torch.bool)
    together = contrastive_loss(sim, anchor, first | second, everywhere, known)
    # each mention's term is what it would be if the other did not exist
    alone = [
        contrastive_loss(sim, anchor, one, everywhere & ~other, known)
        for one, other in ((first, second), (second, first))
    ]
    assert float(together[0]) == pytest.approx(float(alone[0][0] + alone[1][0]) / 2)
    # a mention of another type at the same place is a negative
    other_type = contrastive_loss(sim, anchor, first, everywhere, known)
    assert float(other_type[0]) > float(alone[0][0])


def test_unknown_types_and_padding_have_no_influence() -> None:
    sim, anchor, gold, candidate, known = random_case(5)
    known[0, 1], known[1, 2] = False, True
    before = [float(term) for term in contrastive_loss(sim, anchor, gold, candidate, known)]
    changed, moved = sim.clone(), anchor.clone()
    changed.masked_fill_(~candidate, 50.0)
    changed[0, 1], moved[0, 1] = 40.0, -40.0
    assert [float(term) for term in contrastive_loss(changed, moved, gold, candidate, known)] == pytest.approx(before)


def test_gold_places_of_unknown_types_or_padding_are_ignored() -> None:
    sim, anchor, gold, candidate, known = random_case(7)
    nothing = contrastive_loss(sim, anchor, gold, candidate, torch.zeros_like(known))
    assert [float(term) for term in nothing] == [0.0, 0.0]
    assert float(contrastive_loss(sim, anchor, ~candidate.expand_as(gold), candidate, known)[0]) == 0.0


def test_types_without_mentions_raise_the_threshold() -> None:
    sim, anchor, gold, candidate, known = random_case(9)
    anchor.requires_grad_()
    entity, threshold = contrastive_loss(sim, anchor, torch.zeros_like(gold), candidate, torch.ones_like(known))
    threshold.backward()
    assert float(entity.detach()) == 0.0
    assert anchor.grad is not None
    assert bool((anchor.grad < 0).all())  # a higher threshold would make the loss smaller, for every pair


@pytest.mark.parametrize("with_threshold", [True, False])
def test_gradients_are_finite_without_negatives(with_threshold: bool) -> None:
    sim = torch.tensor([[[3.0, 1.0]], [[2.0, 60.0]]], requires_grad=True)
    anchor = torch.zeros(2, 1, requires_grad=True)
    candidate = torch.tensor([[[True, False]], [[True, True]]])
    gold = torch.tensor([[[True, False]], [[True, True]]])  # every place that exists is a mention
    terms = contrastive_loss(
        sim, anchor if with_threshold else None, gold, candidate, torch.ones(2, 1, dtype=torch.bool)
    )
    sum(terms, start=torch.zeros(())).backward()
    assert sim.grad is not None
    assert bool(torch.isfinite(sim.grad).all())
    if not with_threshold:
        assert float(terms[0].detach()) == pytest.approx(0.0)


def test_large_similarities_do_not_overflow() -> None:
    sim = torch.tensor([[[300.0, -300.0, 300.0]]])
    gold = torch.tensor([[[True, False, False]]])
    everywhere = torch.ones(1, 1, 3, dtype=torch.bool)
    entity, threshold = contrastive_loss(sim, torch.zeros(1, 1), gold, everywhere, torch.ones(1, 1, dtype=torch.bool))
    assert float(entity) == pytest.approx(math.log(2), rel=1e-4)
    assert float(threshold) == pytest.approx(300.0)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 2.0]))
def test_focal_loss_is_the_formula_of_its_docstring(seed: int, gamma: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    margin = 3 * torch.randn(2, 3, 4, generator=generator)
    gold = torch.rand(2, 3, 4, generator=generator) < 0.3
    candidate = torch.rand(2, 1, 4, generator=generator) < 0.8
    known = torch.rand(2, 3, generator=generator) < 0.7
    total, count = 0.0, 0
    for window in range(2):
        for kind in range(3):
            for place in range(4):
                if not (known[window, kind] and candidate[window, 0, place]):
                    continue
                p = 1 / (1 + math.exp(-float(margin[window, kind, place])))
                if gold[window, kind, place]:
                    total, count = total - (1 - p) ** gamma * math.log(p), count + 1
                else:
                    total -= p**gamma * math.log(1 - p)
    assert float(focal_loss(margin, gold, candidate & known.unsqueeze(-1), gamma)) == pytest.approx(
        total / max(count, 1), abs=1e-4
    )


@given(st.lists(st.tuples(st.floats(-20, 20), st.floats(-20, 20)), max_size=5))
def test_narrow_type_loss_is_the_formula_of_its_docstring(margins: list[tuple[float, float]]) -> None:
    narrow, broad = torch.tensor(margins, dtype=torch.float64).reshape(-1, 2).T
    expected = _mean([math.log(1 + math.exp(1 + wide - own)) for own, wide in margins])
    assert float(narrow_type_loss(narrow, broad)) == pytest.approx(expected, abs=1e-8)


def test_only_the_narrow_type_has_a_gradient() -> None:
    narrow = torch.tensor([0.0, 30.0], requires_grad=True)
    broad = torch.tensor([2.0, 0.0], requires_grad=True)
    narrow_type_loss(narrow, broad).backward()
    assert narrow.grad is not None
    assert float(narrow.grad[0]) < -0.4  # a higher margin would make the loss smaller
    assert float(narrow.grad[1]) == pytest.approx(0.0, abs=1e-6)  # it fits much better already
    assert broad.grad is None


@given(
    st.lists(st.floats(-9, 9), min_size=4, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1),
)
def test_breadth_loss_is_the_formula_of_its_docstring(values: list[float], pairs: list[tuple[int, int]]) -> None:
    found = breadth_loss(torch.tensor(values, dtype=torch.float64), torch.tensor(pairs))
    terms = [math.log(1 + math.exp(values[narrow] - values[broad])) for narrow, broad in pairs]
    assert float(found) == pytest.approx(sum(terms) / len(terms), abs=1e-8)


def test_only_types_that_share_mentions_have_a_breadth_gradient() -> None:
    breadths = torch.zeros(4, requires_grad=True)
    breadth_loss(breadths, torch.tensor([[0, 2]])).backward()
    assert breadths.grad is not None
    assert breadths.grad.tolist() == [0.5, 0.0, -0.5, 0.0]  # the narrow type falls, the broad one rises


def test_breadth_loss_without_pairs_is_zero() -> None:
    breadths = torch.ones(3, requires_grad=True)
    loss = breadth_loss(breadths, torch.zeros((0, 2), dtype=torch.int64))
    loss.backward()
    assert breadths.grad is not None
    assert (float(loss.detach()), breadths.grad.tolist()) == (0.0, [0.0] * 3)


def test_narrow_type_loss_without_pairs_is_zero() -> None:
    nothing = torch.zeros(0, requires_grad=True)
    loss = narrow_type_loss(nothing, nothing)
    loss.backward()
    assert float(loss.detach()) == 0.0


def slow_supervised_contrastive_loss(vectors: Tensor, labels: list[int], temperature: float, with_own: bool) -> float:
    """The formula in the docstring of `supervised_contrastive_loss`."""
    unit = (vectors / vectors.norm(dim=1, keepdim=True)).tolist()
    terms = []
    for i, own in enumerate(labels):
        exponents = [math.exp(sum(a * b for a, b in zip(unit[i], other, strict=True)) / temperature) for other in unit]
        positives = [j for j, label in enumerate(labels) if label == own and j != i]
        against = sum(exponents[n] for n, label in enumerate(labels) if label != own)
        if positives and against:
            terms.append(_mean([-math.log(exponents[j] / (against + exponents[j] * with_own)) for j in positives]))
    return _mean(terms)


@given(st.integers(0, 10_000), st.lists(st.integers(0, 2), min_size=1, max_size=9), st.booleans())
def test_supervised_contrastive_loss_is_its_formula(seed: int, labels: list[int], with_own: bool) -> None:
    vectors = torch.randn(len(labels), 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = supervised_contrastive_loss(vectors, torch.tensor(labels), 0.3, positive_in_denominator=with_own)
    assert found.item() == pytest.approx(slow_supervised_contrastive_loss(vectors, labels, 0.3, with_own))


def test_only_anchors_count_in_the_supervised_contrastive_loss() -> None:
    vectors, labels = torch.randn(6, 5, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 0, 1, 1, 1, 2])
    parts = [supervised_contrastive_loss(vectors, labels, 0.5, anchors=labels == label).item() for label in range(3)]
    assert parts[2] == 0  # the only one of its label
    whole = supervised_contrastive_loss(vectors, labels, 0.5)
    assert whole.item() == pytest.approx((2 * parts[0] + 3 * parts[1]) / 5)
