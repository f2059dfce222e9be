"""Functions as CUDA graphs: when shapes are captured, how many there are, and that results do not change."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from onoma.systems.blocks.cuda_graphs import CAPTURE_AFTER, MAX_GRAPHS, MAX_TOKENS, GraphedFunction, _round_up
from onoma.systems.blocks.encoders import encoder_function
from tiny_encoders import PADS, VOCABULARY, tiny_encoder

torch.set_num_threads(1)


class OnGpu(Tensor):
    """A tensor that claims to be on a GPU, for tests on machines without one."""

    is_cuda = True


class Watched(GraphedFunction):
    """Keeps the shapes that are called and captured; capturing is only simulated."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__(module, self.run)
        self.called: list[tuple[int, ...]] = []
        self.captured: list[tuple[int, ...]] = []
        self.replayed = 0
        self.enabled = True

    def run(self, x: Tensor, y: Tensor) -> Tensor:
        self.called.append(tuple(x.shape))
        return torch.stack([x + y, x - y], dim=-1)

    def _capture(self, sample: Any) -> Any:
        self.captured.append(tuple(sample.tensors[0].shape))

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
def test_lengths_are_rounded_up(length: int) -> None:
    rounded = _round_up(length)
    assert length <= rounded < length + 128
    assert _round_up(rounded) == rounded
    assert _round_up(length + 1) >= rounded


def test_there_are_few_rounded_lengths() -> None:
    assert len({_round_up(length) for length in range(1, 513)}) < 20


def test_a_shape_is_captured_when_it_has_occurred_often() -> None:
    run = Watched(nn.Linear(1, 1))
    for _ in range(CAPTURE_AFTER):
        assert run(*inputs(3, 5)).tolist() == expected(*inputs(3, 5))
    assert (run.captured, run.called) == ([], [(8, 8)] * CAPTURE_AFTER)
    run.capture()  # between two steps
    for rows, columns in ((3, 5), (8, 8), (1, 7)):  # all are rounded to the same
        assert run(*inputs(rows, columns)).tolist() == expected(*inputs(rows, columns))
    assert run.captured == [(8, 8)]
    assert run.replayed == 3


def test_the_number_of_captured_shapes_is_limited() -> None:
    run = Watched(nn.Linear(1, 1))
    shapes = [(rows, columns) for rows in (8, 16, 24, 32) for columns in (8, 16, 24, 32, 48, 64, 80, 96)]
    for shape in shapes * (CAPTURE_AFTER + 2):
        assert tuple(run(*inputs(*shape)).shape) == (*shape, 2)
        run.capture()
    assert len(run.captured) == MAX_GRAPHS < len(shapes)


def test_large_batches_are_not_captured() -> None:
    run = Watched(nn.Linear(1, 1))
    for _ in range(CAPTURE_AFTER + 2):
        assert tuple(run(*inputs(MAX_TOKENS // 512 + 1, 512)).shape) == (MAX_TOKENS // 512 + 1, 512, 2)
        run.capture()
    assert not run.captured


@pytest.mark.parametrize("case", ["evaluation mode", "without gradients", "not enabled", "no gpu"])
def test_without_training_on_a_gpu_the_function_is_called_directly(case: str) -> None:
    module = nn.Linear(1, 1)
    run = Watched(module)
    given = inputs(3, 5)
    if case == "evaluation mode":
        module.eval()
    if case == "not enabled":
        run.enabled = False
    if case == "no gpu":
        given = tuple(one.as_subclass(Tensor) for one in given)  # type: ignore[assignment]
    with torch.set_grad_enabled(case != "without gradients"):
        for _ in range(CAPTURE_AFTER + 2):
            assert run(*given).tolist() == expected(*inputs(3, 5))
            run.capture()
    assert set(run.called) == {(3, 5)}  # without padding
    assert not run.captured


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("family", sorted(PADS))
def test_captured_functions_have_the_same_states_and_gradients(family: str) -> None:
    settings = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    encoder = tiny_encoder(family, **settings).cuda().train()
    run = encoder_function(encoder)
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
            run.capture()
            found.append(
                (states.detach().clone(), [w.grad.clone() for w in encoder.parameters() if w.grad is not None])
            )
        (states, gradients), (plain, true) = found
        torch.testing.assert_close(states[mask > 0], plain[mask > 0], atol=1e-4, rtol=1e-3)
        assert len(gradients) == len(true)
        for one, other in zip(gradients, true, strict=True):
            torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)
    assert run.graphs
