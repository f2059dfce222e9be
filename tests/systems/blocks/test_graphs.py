"""Recorded passes: when they are recorded, that shapes are few, and that nothing comes out different."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from onoma.systems.blocks.encoders import encoding
from onoma.systems.blocks.graphs import MOST, MOST_TOKENS, SEEN_BEFORE, Recorded, _rounded
from tiny_encoders import PADS, VOCABULARY, tiny_encoder

torch.set_num_threads(1)


class OnGpu(Tensor):
    """A tensor that says it is on a GPU, for tests on machines without one."""

    is_cuda = True


class Watched(Recorded):
    """What is called and what is recorded, by shape; recording is only pretended."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__(module, self.run)
        self.called: list[tuple[int, ...]] = []
        self.recorded: list[tuple[int, ...]] = []
        self.replayed = 0
        self.enabled = True

    def run(self, x: Tensor, y: Tensor) -> Tensor:
        self.called.append(tuple(x.shape))
        return torch.stack([x + y, x - y], dim=-1)

    def _record(self, sample: Any) -> Any:
        self.recorded.append(tuple(sample.tensors[0].shape))

        def replay(x: Tensor, y: Tensor) -> Tensor:
            self.replayed += 1
            return torch.stack([x + y, x - y], dim=-1)

        return replay


def inputs(rows: int, columns: int) -> tuple[Tensor, Tensor]:
    x = torch.arange(1, rows * columns + 1).view(rows, columns)
    return x.as_subclass(OnGpu), (10 * x).as_subclass(OnGpu)


def expected(x: Tensor, y: Tensor) -> list[Any]:
    return torch.stack([x + y, x - y], dim=-1).tolist()


@given(st.integers(1, 3000))
def test_lengths_are_rounded_up_to_few(length: int) -> None:
    rounded = _rounded(length)
    assert length <= rounded < length + 128
    assert _rounded(rounded) == rounded
    assert _rounded(length + 1) >= rounded


def test_there_are_few_lengths() -> None:
    assert len({_rounded(length) for length in range(1, 513)}) < 20


def test_a_shape_is_recorded_when_it_comes_again() -> None:
    run = Watched(nn.Linear(1, 1))
    for _ in range(SEEN_BEFORE):
        assert run(*inputs(3, 5)).tolist() == expected(*inputs(3, 5))
    assert (run.recorded, run.called) == ([], [(8, 8)] * SEEN_BEFORE)
    run.record()  # between two steps
    for rows, columns in ((3, 5), (8, 8), (1, 7)):  # all are rounded to the same
        assert run(*inputs(rows, columns)).tolist() == expected(*inputs(rows, columns))
    assert run.recorded == [(8, 8)]
    assert run.replayed == 3


def test_only_so_many_shapes_are_recorded() -> None:
    run = Watched(nn.Linear(1, 1))
    shapes = [(rows, columns) for rows in (8, 16, 24, 32) for columns in (8, 16, 24, 32, 48, 64, 80, 96)]
    for shape in shapes * (SEEN_BEFORE + 2):
        assert tuple(run(*inputs(*shape)).shape) == (*shape, 2)
        run.record()
    assert len(run.recorded) == MOST < len(shapes)


def test_large_batches_are_not_recorded() -> None:
    run = Watched(nn.Linear(1, 1))
    for _ in range(SEEN_BEFORE + 2):
        assert tuple(run(*inputs(MOST_TOKENS // 512 + 1, 512)).shape) == (MOST_TOKENS // 512 + 1, 512, 2)
        run.record()
    assert not run.recorded


@pytest.mark.parametrize("case", ["in use", "without gradients", "not enabled", "no gpu"])
def test_other_than_in_training_on_a_gpu_the_function_is_simply_called(case: str) -> None:
    module = nn.Linear(1, 1)
    run = Watched(module)
    given = inputs(3, 5)
    if case == "in use":
        module.eval()
    if case == "not enabled":
        run.enabled = False
    if case == "no gpu":
        given = tuple(one.as_subclass(Tensor) for one in given)  # type: ignore[assignment]
    with torch.set_grad_enabled(case != "without gradients"):
        for _ in range(SEEN_BEFORE + 2):
            assert run(*given).tolist() == expected(*inputs(3, 5))
            run.record()
    assert set(run.called) == {(3, 5)}  # without padding
    assert not run.recorded


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("family", sorted(PADS))
def test_recorded_passes_have_the_same_states_and_gradients(family: str) -> None:
    settings = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = tiny_encoder(family, **settings).cuda().train()
    run = encoding(encoder)
    torch.manual_seed(1)
    for rows, columns in [(3, 5), (8, 8), (2, 7), (5, 20), (5, 24)] * 2:
        ids = torch.randint(5, VOCABULARY, (rows, columns), device="cuda")
        mask = torch.ones_like(ids)
        mask[0, columns // 2 :] = 0
        found = []
        for enabled in (True, False):
            run.enabled = enabled
            encoder.zero_grad()
            states = run(ids, mask)
            states[mask > 0].sin().sum().backward()  # type: ignore[no-untyped-call]
            run.record()
            found.append(
                (states.detach().clone(), [w.grad.clone() for w in encoder.parameters() if w.grad is not None])
            )
        (states, gradients), (plain, true) = found
        torch.testing.assert_close(states[mask > 0], plain[mask > 0], atol=1e-4, rtol=1e-3)
        assert len(gradients) == len(true)
        for one, other in zip(gradients, true, strict=True):
            torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)
    assert run.recordings
