"""CUDA graphs for inference: what is captured, what is dropped, and what happens if capturing fails."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onoma.systems.blocks.inference_graphs import CAPTURE_AFTER, MAX_GRAPHS, InferenceGraphs, round_up, unpack
from simulated_graphs import SimulatedGraphs

torch.set_num_threads(1)


def run(graphs: InferenceGraphs, length: int, variant: int = 0, device: str = "cpu") -> list[int] | None:
    """3 · x + variant of a few numbers, if there is a graph for so many."""
    shapes = [(1, length), (length,)]
    if not graphs.wants(length):
        return None
    packed = torch.arange(2 * length)
    if device == "cuda":
        packed = packed.pin_memory()
    two = torch.tensor([2], device=device)

    def function(x: Tensor, y: Tensor, factor: Tensor) -> tuple[Tensor]:
        return (x[0] * factor + y + variant,)

    found = graphs.run(length, variant, function, packed, shapes, [two])
    return None if found is None else found[0].tolist()


def expected(length: int, variant: int = 0) -> list[int]:
    return [3 * x + length + variant for x in range(length)]


@given(st.integers(0, 5000), st.sampled_from([8, 16, 32]))
def test_lengths_are_rounded_up(length: int, step: int) -> None:
    rounded = round_up(length, step)
    assert length <= rounded <= length + max(step, length // 8)
    assert rounded % step == 0
    assert round_up(rounded, step) == rounded
    assert round_up(length + 1, step) >= rounded


def test_tensors_are_unpacked_in_their_order() -> None:
    parts = unpack(torch.arange(9), [(2, 3), (1,), (2,)])
    assert [one.tolist() for one in parts] == [[[0, 1, 2], [3, 4, 5]], [6], [7, 8]]


def test_frequent_work_is_captured_once() -> None:
    graphs = SimulatedGraphs()
    found = [run(graphs, 3) for _ in range(6)]
    assert found == [None] * (CAPTURE_AFTER - 1) + [expected(3)] * (7 - CAPTURE_AFTER)
    assert (graphs.captured, graphs.replayed) == (1, 7 - CAPTURE_AFTER)
    assert run(graphs, 4) is None


def test_another_variant_replaces_a_graph() -> None:
    graphs = SimulatedGraphs()
    for _ in range(CAPTURE_AFTER):
        run(graphs, 3)
    assert run(graphs, 3, 7) == expected(3, 7)
    assert run(graphs, 3, 7) == expected(3, 7)
    assert (graphs.captured, len(graphs.graphs)) == (2, 1)


def test_a_graph_is_only_replaced_by_work_that_is_far_more_frequent() -> None:
    graphs = SimulatedGraphs()
    for _ in range(5):
        for length in range(1, MAX_GRAPHS + 20):
            run(graphs, length)
    assert set(graphs.graphs) == set(range(1, MAX_GRAPHS + 1))
    assert graphs.captured == MAX_GRAPHS
    run(graphs, 1)  # so that 2 is the least recently used one
    for _ in range(6):
        run(graphs, 100)
    assert run(graphs, 100) is None
    for _ in range(3):
        found = run(graphs, 100)
    assert found == expected(100)
    assert set(graphs.graphs) == {1, 100, *range(3, MAX_GRAPHS + 1)}


def test_work_of_long_ago_loses_its_place() -> None:
    graphs = SimulatedGraphs()
    for length in range(1, MAX_GRAPHS + 1):
        for _ in range(40):
            run(graphs, length)
    for _ in range(800):
        run(graphs, 200)
    assert 200 in graphs.graphs
    assert len(graphs.graphs) == MAX_GRAPHS


def test_if_capturing_fails_there_are_no_graphs_and_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(SimulatedGraphs):
        def _capture(self, *_: Any) -> Any:
            raise RuntimeError("operation not permitted when stream is capturing")

    graphs = Failing()
    with caplog.at_level(logging.WARNING):
        assert [run(graphs, length) for _ in range(5) for length in (3, 4)] == [None] * 10
    assert [one.levelname for one in caplog.records] == ["WARNING"]
    assert "not permitted when stream is capturing" in caplog.text


def test_without_a_gpu_there_are_no_graphs() -> None:
    graphs = InferenceGraphs(torch.device("cpu"))
    assert [run(graphs, 3) for _ in range(5)] == [None] * 5
    assert not graphs.seen


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@torch.inference_mode()
def test_graphs_on_a_gpu_have_the_results_of_the_function() -> None:
    graphs = InferenceGraphs(torch.device("cuda"))
    found: Sequence[Any] = [(length, run(graphs, length, device="cuda")) for _ in range(6) for length in (3, 8, 1)]
    assert all(result in (None, expected(length)) for length, result in found)
    assert len(graphs.graphs) == 3
    assert run(graphs, 3, 7, device="cuda") == expected(3, 7)
