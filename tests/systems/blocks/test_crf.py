"""The CRF against sums over all paths, and against a slow computation with logarithms and automatic gradients."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from onoma.systems.blocks.crf import Crf, log_expectations, scaled_expectations
from onoma.systems.blocks.tagging import TagScheme
from systems.blocks.all_paths import Path, log_sum, scored_paths

torch.set_num_threads(1)  # with tensors this small, more threads are slower
SCHEMES = [TagScheme(2, "bio"), TagScheme(1, "bmes")]


def random_crf(scheme: TagScheme, seed: int = 0, scale: float = 1.0) -> Crf:
    """A CRF with random scores in double precision."""
    crf, generator = Crf(scheme).double(), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * scale)
    return crf


def random_emissions(shape: tuple[int, ...], seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64) * scale


def paths_of(crf: Crf, emissions: Tensor) -> list[Path]:
    """All paths of one sentence."""
    return list(scored_paths(crf.scheme, emissions.detach().numpy(), exact_scores(crf)))


def exact_scores(crf: Crf) -> tuple[np.ndarray, ...]:
    return crf.transitions.detach().numpy(), crf.start.detach().numpy(), crf.end.detach().numpy()


def slow_log_partition(crf: Crf, emissions: Tensor, lengths: Tensor, possible: Tensor | None = None) -> Tensor:
    """The forward algorithm with logarithms, sentence by sentence; impossible tags have a score of -1e30."""
    scheme = crf.scheme
    transitions, start, end = (
        scores.masked_fill(~torch.from_numpy(allowed), -1e30)
        for scores, allowed in (
            (crf.transitions, scheme.allowed),
            (crf.start, scheme.may_start),
            (crf.end, scheme.may_end),
        )
    )
    if possible is not None:
        emissions = emissions.masked_fill(~possible, -1e30)
    sums = []
    for sentence, length in zip(emissions, lengths.tolist(), strict=True):
        alpha = start + sentence[0]
        for scores in sentence[1:length]:
            alpha = torch.logsumexp(alpha.unsqueeze(1) + transitions, 0) + scores
        sums.append(torch.logsumexp(alpha + end, 0))
    return torch.stack(sums)


def gradients(value: Tensor, crf: Crf, emissions: Tensor) -> list[Tensor]:
    """Gradients of a weighted sum over sentences."""
    weights = torch.linspace(0.5, 2.0, len(value), dtype=value.dtype)
    return list(torch.autograd.grad(value @ weights, [emissions, *crf.parameters()]))


# --- against all paths


@pytest.mark.parametrize("scheme", SCHEMES, ids=["bio", "bmes"])
@pytest.mark.parametrize("length", [1, 2, 4])
def test_log_partition_sums_over_all_paths(scheme: TagScheme, length: int) -> None:
    crf, emissions = random_crf(scheme), random_emissions((3, length, scheme.tags))
    found = crf.log_partition(emissions, torch.full((3,), length))
    expected = [log_sum([path.score for path in paths_of(crf, one)]) for one in emissions]
    assert found.tolist() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["bio", "bmes"])
def test_loss_is_the_negative_logarithm_of_the_share_of_the_gold_path(scheme: TagScheme) -> None:
    crf, emissions = random_crf(scheme), random_emissions((1, 3, scheme.tags))
    paths = paths_of(crf, emissions[0])
    total = log_sum([path.score for path in paths])
    many = emissions.expand(len(paths), -1, -1)
    loss = crf.loss(many, torch.tensor([path.tags for path in paths]), torch.full((len(paths),), 3))
    assert loss.tolist() == pytest.approx([total - path.score for path in paths], abs=1e-10)
    assert torch.exp(-loss).sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["bio", "bmes"])
def test_fuzzy_loss_sums_over_the_paths_that_may_be_right(scheme: TagScheme) -> None:
    crf, emissions = random_crf(scheme), random_emissions((4, 4, scheme.tags))
    possible = torch.from_numpy(np.random.default_rng(1).random((4, 4, scheme.tags)) < 0.6)
    possible[:, :, 0] = True
    found = crf.loss(emissions, None, torch.full((4,), 4), possible)
    for loss, sentence, flags in zip(found.tolist(), emissions, possible, strict=True):
        paths = paths_of(crf, sentence)
        right = [path.score for path in paths if all(flags[place, tag] for place, tag in enumerate(path.tags))]
        assert loss == pytest.approx(log_sum([path.score for path in paths]) - log_sum(right), abs=1e-10)


def test_fuzzy_loss_with_one_possible_path_is_the_loss_of_that_path() -> None:
    scheme = TagScheme(2, "bmes")
    crf, emissions = random_crf(scheme), random_emissions((2, 5, scheme.tags))
    gold, lengths = np.array([[0, 1, 3, 0], [1, 0, 0, 1]]), np.array([5, 2])
    tags = torch.from_numpy(scheme.encode(gold, lengths, 5))
    possible = torch.from_numpy(scheme.possible(gold, lengths, 5, np.ones((2, 2), np.bool_)))
    one, other = (
        crf.loss(emissions, *rest)
        for rest in ((tags, torch.from_numpy(lengths)), (None, torch.from_numpy(lengths), possible))
    )
    assert one.tolist() == pytest.approx(other.tolist(), abs=1e-10)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["bio", "bmes"])
@pytest.mark.parametrize("by_logarithms", [False, True])
def test_expectations_are_averages_over_all_paths(scheme: TagScheme, by_logarithms: bool) -> None:
    crf, emissions, lengths = random_crf(scheme), random_emissions((2, 4, scheme.tags)), torch.tensor([4, 3])
    scores = [one.detach() for one in crf._scores()]
    if by_logarithms:
        expected = log_expectations(emissions, *scores, lengths)
    else:
        expected, is_exact = scaled_expectations(emissions, *scores, lengths)
        assert bool(is_exact)
    for number, length in enumerate(lengths.tolist()):
        tags, pairs = torch.zeros(4, scheme.tags), torch.zeros(scheme.tags, scheme.tags)
        for path in paths_of(crf, emissions[number, :length]):
            probability = math.exp(path.score - float(expected.log_partition[number]))
            for place, tag in enumerate(path.tags):
                tags[place, tag] += probability
            for pair in pairwise(path.tags):
                pairs[pair] += probability
        assert torch.allclose(expected.tags[number].float(), tags, atol=1e-6)
        assert torch.allclose(expected.pairs[number].float(), pairs, atol=1e-6)


# --- gradients


@settings(max_examples=25)
@given(st.integers(0, 1000), st.sampled_from(SCHEMES), st.sampled_from([0.1, 3.0, 40.0, 1000.0]), st.booleans())
def test_gradients_are_those_of_the_slow_computation(seed: int, scheme: TagScheme, scale: float, fuzzy: bool) -> None:
    crf, lengths = random_crf(scheme, seed), torch.tensor([12, 1, 7, 2])
    emissions = random_emissions((4, 12, scheme.tags), seed, scale).requires_grad_()
    possible = None
    if fuzzy:
        possible = torch.rand(emissions.shape, generator=torch.Generator().manual_seed(seed)) < 0.4
        possible[:, :, 0] = True
    found = crf.log_partition(emissions, lengths, possible)
    expected = slow_log_partition(crf, emissions, lengths, possible)
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-12, abs=1e-9)
    for one, other in zip(gradients(found, crf, emissions), gradients(expected, crf, emissions), strict=True):
        assert torch.allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("scheme", SCHEMES, ids=["bio", "bmes"])
def test_gradients_are_those_of_small_changes(scheme: TagScheme) -> None:
    crf, lengths = random_crf(scheme), torch.tensor([3, 5])
    tags = torch.from_numpy(scheme.encode(np.array([[0, 0, 1, 0], [1, 4, 4, 0]]), np.array([3, 5]), 5))
    possible = torch.from_numpy(
        scheme.possible(np.array([[1, 1, 2, 0]]), np.array([3, 5]), 5, np.zeros((2, scheme.types), np.bool_))
    )
    emissions = random_emissions((2, 5, scheme.tags)).requires_grad_()
    scores = (crf.transitions, crf.start, crf.end)

    def losses(emissions: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
        return crf.loss(emissions, tags, lengths), crf.loss(emissions, None, lengths, possible)

    assert torch.autograd.gradcheck(losses, (emissions, *scores))


@pytest.mark.parametrize("scheme", SCHEMES, ids=["bio", "bmes"])
def test_what_the_scheme_forbids_has_no_gradient_and_no_probability(scheme: TagScheme) -> None:
    crf = random_crf(scheme)
    emissions = random_emissions((2, 6, scheme.tags)).requires_grad_()
    before = crf.log_partition(emissions, torch.tensor([6, 4]))
    before.sum().backward()
    for parameter, allowed in ((crf.transitions, crf.allowed), (crf.start, crf.may_start), (crf.end, crf.may_end)):
        assert parameter.grad is not None
        assert torch.equal(parameter.grad[~allowed], torch.zeros(int((~allowed).sum()), dtype=torch.float64))
        assert (parameter.grad[allowed] > 0).all()
        with torch.no_grad():
            parameter[~allowed] = 500.0
    assert torch.equal(crf.log_partition(emissions, torch.tensor([6, 4])), before)
    assert emissions.grad is not None
    assert (emissions.grad[:, 0, ~crf.may_start] == 0).all()


# --- numbers of all sizes


@pytest.mark.parametrize("scheme", [TagScheme(4, "bio"), TagScheme(4, "bmes")], ids=["bio", "bmes"])
@pytest.mark.parametrize("scale", [0.01, 30.0, 300.0, 1000.0])
def test_long_sentences_with_extreme_scores(scheme: TagScheme, scale: float) -> None:
    crf, lengths = random_crf(scheme, scale=5.0), torch.tensor([512, 300])
    emissions = (random_emissions((2, 512, scheme.tags)).sign() * scale).requires_grad_()
    found, expected = (f(emissions, lengths) for f in (crf.log_partition, lambda *a: slow_log_partition(crf, *a)))
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-12)
    for one, other in zip(gradients(found, crf, emissions), gradients(expected, crf, emissions), strict=True):
        assert torch.allclose(one, other, atol=1e-8)


def test_paths_that_are_unlikely_until_the_end_are_not_lost() -> None:
    # I is by far the best tag of the second word, but it needs B at the first word, which is by far the worst
    crf = Crf(TagScheme(1, "bio")).double()
    emissions = torch.tensor([[[1000.0, -1000.0, 0.0], [-1000.0, 0.0, 1000.0]]], dtype=torch.float64)
    loss = crf.loss(emissions.expand(2, -1, -1), torch.tensor([[0, 1], [1, 2]]), torch.tensor([2, 2]))
    assert loss.tolist() == pytest.approx([0.0, 1000.0])
    assert crf.log_partition(emissions - 1e4, torch.tensor([2])).tolist() == pytest.approx([1000.0 - 2e4])


def test_possible_tags_that_never_meet() -> None:
    # a mention of type 0 or of type 1; all words speak for type 0 until they speak for type 1
    scheme = TagScheme(2, "bio")
    crf, possible = Crf(scheme).double(), torch.zeros(1, 60, 5, dtype=torch.bool)
    possible[:, 0, [1, 3]] = possible[:, 1:, [2, 4]] = True
    emissions = torch.zeros(1, 60, 5, dtype=torch.float64)
    emissions[:, :30, 3:], emissions[:, 30:, 1:3] = -40.0, -40.0
    emissions.requires_grad_()
    found = crf.log_partition(emissions, torch.tensor([60]), possible)
    assert found.tolist() == pytest.approx([math.log(2) - 1200.0])
    assert torch.autograd.grad(found.sum(), emissions)[0][0, :, 1:].sum(1).tolist() == pytest.approx([1.0] * 60)


def test_loss_is_exact_if_it_is_almost_zero() -> None:
    scheme = TagScheme(2, "bio")
    crf, tags = Crf(scheme), torch.tensor([[1, 2] * 64])
    emissions = torch.nn.functional.one_hot(tags, scheme.tags).float() * 15 + 200
    loss = crf.loss(emissions, tags, torch.tensor([128]))
    expected = slow_log_partition(crf.double(), emissions.double() - 215, torch.tensor([128]))
    assert loss.dtype == torch.float32
    assert 0 < loss.item() == pytest.approx(expected.item(), rel=1e-3)


# --- batches and precision


def test_padding_has_no_influence() -> None:
    scheme = TagScheme(2, "bmes")
    crf, lengths = random_crf(scheme), torch.tensor([6, 2, 3])
    emissions = random_emissions((3, 6, scheme.tags))
    tags = torch.from_numpy(scheme.encode(np.array([[0, 2, 4, 1], [1, 0, 1, 0], [2, 1, 2, 1]]), lengths.numpy(), 6))
    padded = emissions.masked_fill((torch.arange(6) >= lengths[:, None]).unsqueeze(2), math.nan).requires_grad_()
    together = crf.loss(padded, tags, lengths)
    for number, length in enumerate(lengths.tolist()):
        rows = slice(number, number + 1)
        alone = crf.loss(emissions[rows, :length], tags[rows, :length], lengths[rows])
        assert together[number].item() == pytest.approx(alone.item())
    together.sum().backward()
    assert padded.grad is not None
    assert padded.grad.isfinite().all()
    assert (padded.grad[1, 2:] == 0).all()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in crf.parameters())


def test_gradients_of_short_floats_are_not_rounded_away() -> None:
    scheme = TagScheme(1, "bio")
    crf, tags, lengths = Crf(scheme), torch.zeros(1, 4, dtype=torch.int64), torch.tensor([4])
    emissions = torch.zeros(1, 4, scheme.tags, dtype=torch.bfloat16)
    emissions[..., 0] = 8.0  # O is almost certain
    emissions.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        loss = crf.loss(emissions, tags, lengths)
    loss.sum().backward()
    exact = emissions.detach().float().requires_grad_()
    crf.loss(exact, tags, lengths).sum().backward()
    assert loss.dtype == torch.float32
    assert emissions.grad is not None
    assert exact.grad is not None
    assert emissions.grad.dtype == torch.bfloat16
    assert torch.allclose(emissions.grad.float(), exact.grad, rtol=0.01, atol=0)
    assert (exact.grad[..., 0] < 0).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("scale", [2.0, 1000.0])
def test_gpus_give_the_same(scale: float) -> None:
    scheme, lengths = TagScheme(3, "bmes"), torch.tensor([40, 1, 17])
    tags = torch.from_numpy(scheme.encode(np.array([[0, 3, 5, 1], [2, 16, 16, 0]]), lengths.numpy(), 40))
    possible = torch.from_numpy(np.random.default_rng(0).random((3, 40, scheme.tags)) < 0.5)
    possible[:, :, 0] = True
    results = []
    for device in ("cpu", "cuda"):
        crf = random_crf(scheme).to(device)
        emissions = random_emissions((3, 40, scheme.tags), scale=scale).to(device).requires_grad_()
        on_device = [one.to(device) for one in (tags, lengths, possible)]
        with torch.autocast(device, torch.bfloat16):
            losses = crf.loss(emissions, *on_device[:2]), crf.loss(emissions, None, *on_device[1:])
        losses[0].sum().add(losses[1].sum()).backward()
        gradients = [one.grad for one in (emissions, *crf.parameters()) if one.grad is not None]
        results.append([one.detach().cpu() for one in (*losses, *gradients)])
    assert len(results[0]) == 6
    assert all(torch.allclose(one, other) for one, other in zip(*results, strict=True))


def test_weights_are_the_scores_and_nothing_else() -> None:
    crf = Crf(TagScheme(3, "bmes"))
    assert {name: tuple(one.shape) for name, one in crf.state_dict().items()} == {
        "transitions": (13, 13),
        "start": (13,),
        "end": (13,),
    }
    transitions, start, end = crf.transition_scores()
    assert np.array_equal(np.isneginf(transitions), ~crf.scheme.allowed)
    assert np.array_equal(np.isneginf(start), ~crf.scheme.may_start)
    assert np.array_equal(np.isneginf(end), ~crf.scheme.may_end)
    assert {one.dtype for one in (transitions, start, end)} == {np.dtype(np.float32)}


def test_training_finds_the_tags() -> None:
    scheme, generator = TagScheme(2, "bio"), np.random.default_rng(0)
    gold = np.array([[0, 0, 1, 0], [0, 4, 4, 1], [1, 2, 4, 1], [2, 0, 0, 1]])
    words = np.array([6, 5, 1])
    tags, lengths = torch.from_numpy(scheme.encode(gold, words, 6)), torch.from_numpy(words)
    states = torch.from_numpy(generator.normal(size=(3, 6, 32))).float()
    crf, head = Crf(scheme), torch.nn.Linear(32, scheme.tags)
    optimizer = torch.optim.Adam([*crf.parameters(), *head.parameters()], lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        loss = crf.loss(head(states), tags, lengths).sum()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
