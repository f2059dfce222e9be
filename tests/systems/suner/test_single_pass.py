"""The fused form with a budget of candidates: the same proposals as without, and as choosing candidates one by one."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from onoma.decoding import Proposals
from onoma.inputs.batches import Batch
from onoma.models.config import ModelConfig
from onoma.systems.blocks.inference_graphs import CAPTURE_AFTER
from onoma.systems.suner.candidates import choose_candidates
from onoma.systems.suner.inference import SunerInference
from onoma.systems.suner.marking import Candidates
from onoma.systems.suner.single_pass import MAX_SPANS, Budget, SinglePass
from onoma.systems.suner.torch_runtime import TorchSuner
from simulated_graphs import SimulatedGraphs
from tiny_suner import random_batch, tiny_suner

torch.set_num_threads(1)
COUNTS = ([1, 2, 1, 3, 1, 1], [2], [], [1, 1, 1, 2], [1] * 7, [1, 1, 2])  # tokens of the words of six windows
MODEL = SunerInference(tiny_suner(form="fused"), torch.float32)


def make_runtime(family: str = "bert", device: str = "cpu", **options: Any) -> TorchSuner:
    """A runtime that is prepared, with graphs that are simulated if there is no GPU."""
    model = tiny_suner(family, **({"form": "fused"} | options)).to(device)
    config = ModelConfig("suner", max_tokens=30, scale=0.5, bias=-0.3, options=asdict(model.options))
    tokenizer: Any = None
    runtime = TorchSuner(model, config, tokenizer)
    runtime.prepare()
    if device == "cpu":
        runtime.graphs = SimulatedGraphs()
    return runtime


def type_rows(number: int = 3) -> np.ndarray:
    rows = np.random.default_rng(1).normal(size=(number, 8))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def proposed(found: Proposals) -> dict[Any, float]:
    return dict(zip(zip(*(column.tolist() for column in found[:4]), strict=True), found.score.tolist(), strict=True))


def without_graphs(runtime: TorchSuner, batch: Batch, rows: np.ndarray, floor: float = 0.0) -> dict[Any, float]:
    graphs, runtime.graphs = runtime.graphs, SimulatedGraphs()
    runtime.graphs.enabled = False
    found = proposed(runtime.propose(batch, rows, floor))
    runtime.graphs = graphs
    return found


def replays(runtime: TorchSuner) -> int:
    assert isinstance(runtime.graphs, SimulatedGraphs)
    return runtime.graphs.replayed


VARIANTS: list[dict[str, Any]] = [
    {},
    {"candidates": "any", "detection_threshold": 0.3},
    {"candidates": "flat", "spans": "markers", "detection_weight": 0.7},
    {"max_candidates": 3, "candidates": "any"},
    {"max_candidates": 2, "marker_identity": "numbered"},
    {"marker_identity": "numbered", "spans": "markers"},
    {"marker_identity": "paired", "spans": "markers"},
    {"rejection": "cosine", "match_threshold": 0.1},
    {"form": "two-stage"},
    {"form": "two-stage", "markers": False},
    {"form": "two-stage", "tied_positions": False, "marker_identity": "numbered"},
]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_proposals_are_those_without_graphs(options: dict[str, Any]) -> None:
    runtime, batch, rows = make_runtime(**options), random_batch(COUNTS), type_rows()
    expected = without_graphs(runtime, batch, rows)
    assert len(expected) > 10
    for _ in range(4):
        assert proposed(runtime.propose(batch, rows, 0.0)) == pytest.approx(expected, abs=1e-5)
    assert replays(runtime) > 0
    high = without_graphs(runtime, batch, rows, 0.5)
    assert proposed(runtime.propose(batch, rows, 0.5)) == pytest.approx(high, abs=1e-5)


@pytest.mark.parametrize("family", ["roberta", "mpnet"])
@pytest.mark.parametrize("form", ["fused", "two-stage"])
def test_batches_of_the_same_rounded_shape_share_a_graph(family: str, form: str) -> None:
    runtime, rows = make_runtime(family, form=form), type_rows()
    batches = [random_batch(counts, family) for counts in (COUNTS, COUNTS[3:], COUNTS[:2], COUNTS[::-1], [[], []])]
    for batch in batches * 4:
        assert proposed(runtime.propose(batch, rows, 0.0)) == pytest.approx(
            without_graphs(runtime, batch, rows), abs=1e-5
        )
    assert isinstance(runtime.graphs, SimulatedGraphs)
    assert runtime.graphs.captured < 8 < replays(runtime)


def test_windows_and_types_are_sorted_out() -> None:
    runtime, batch = make_runtime(), random_batch(COUNTS)
    for rows in [type_rows(), type_rows(8), type_rows(1), type_rows(9)] * 4:
        assert proposed(runtime.propose(batch, rows, 0.0)) == pytest.approx(
            without_graphs(runtime, batch, rows), abs=1e-5
        )
    assert len(runtime.graphs.graphs) == 2  # for up to 8 and up to 16 types


@pytest.mark.parametrize("budget", [Budget(1, 1000), Budget(MAX_SPANS, 1), Budget(1, 1)])
@pytest.mark.parametrize("identity", ["shared", "numbered", "paired"])
def test_a_batch_with_more_candidates_than_its_budget_is_read_again(
    budget: Budget, identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, batch, rows = make_runtime(marker_identity=identity), random_batch(COUNTS), type_rows()
    expected = without_graphs(runtime, batch, rows)
    ((shapes, noted),) = runtime.budgets.items()
    monkeypatch.setattr(Budget, "with_room", lambda self: self)
    for _ in range(CAPTURE_AFTER - 1):
        runtime.propose(batch, rows, 0.0)
    runtime.budgets[shapes] = budget
    for _ in range(3):
        assert proposed(runtime.propose(batch, rows, 0.0)) == pytest.approx(expected, abs=1e-5)
    assert runtime.budgets[shapes] == noted.union(budget)
    assert isinstance(runtime.graphs, SimulatedGraphs)
    assert (runtime.graphs.captured, runtime.graphs.replayed) == (2, 3)  # the first one was not enough


@pytest.mark.parametrize("identity", ["shared", "numbered", "paired"])
@pytest.mark.parametrize(("more", "most"), [(0, 64), (50, 64), (1, 2), (50, 2)])
def test_markers_that_are_not_used_change_nothing(
    more: int, most: int, identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, rows = (
        make_runtime(marker_identity=identity, candidates="any", max_candidates=most, detection_threshold=0.3),
        type_rows(),
    )
    monkeypatch.setattr(Budget, "with_room", lambda self: Budget(self.spans, self.candidates + more))
    for length in (6, 12, 14):  # words of the window with the most candidates, the last one of a graph
        batch = random_batch([[1, 2]] * 7 + [[1] * length])
        runtime.budgets.clear()
        expected = without_graphs(runtime, batch, rows)
        for _ in range(CAPTURE_AFTER):
            assert proposed(runtime.propose(batch, rows, 0.0)) == pytest.approx(expected, abs=1e-5)
    assert replays(runtime) > 3


def test_a_batch_whose_overlaps_are_not_resolved_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, batch, rows = make_runtime(candidates="flat"), random_batch(COUNTS), type_rows()
    expected = without_graphs(runtime, batch, rows)
    monkeypatch.setattr("onoma.systems.suner.single_pass._ROUNDS", 1)
    for _ in range(5):
        assert proposed(runtime.propose(batch, rows, 0.0)) == pytest.approx(expected, abs=1e-5)
    assert replays(runtime) > 0


@pytest.mark.parametrize("form", ["fused", "two-stage"])
def test_if_capturing_fails_batches_are_read_without_graphs(form: str, caplog: pytest.LogCaptureFixture) -> None:
    class Failing(SimulatedGraphs):
        def _capture(self, *_: Any) -> Any:
            raise RuntimeError("out of memory")

    runtime, batch, rows = make_runtime(form=form), random_batch(COUNTS), type_rows()
    runtime.graphs = Failing()
    expected = without_graphs(runtime, batch, rows)
    for _ in range(6):
        assert proposed(runtime.propose(batch, rows, 0.0)) == pytest.approx(expected, abs=1e-5)
    assert [one.levelname for one in caplog.records] == ["WARNING"]


def test_windows_with_very_many_likely_spans_are_not_compared_on_the_device() -> None:
    runtime, rows = make_runtime(detection_threshold=0.0, candidates="nested"), type_rows()
    batch = random_batch([[1] * 20])  # 90 spans
    for _ in range(5):
        assert len(proposed(runtime.propose(batch, rows, 0.0))) > 20
    assert replays(runtime) == 0


def test_options_that_change_are_respected() -> None:
    runtime, batch, rows = make_runtime(), random_batch(COUNTS), type_rows()
    for threshold in (0.5, 0.2, 0.7):
        runtime.model.options = replace(runtime.model.options, detection_threshold=threshold)
        expected = without_graphs(runtime, batch, rows)
        for _ in range(4):
            assert proposed(runtime.propose(batch, rows, 0.0)) == pytest.approx(expected, abs=1e-5)
    assert replays(runtime) > 0


def test_a_budget_has_some_room_and_changes_rarely() -> None:
    budgets = [Budget(spans, 40 * spans).with_room() for spans in range(60)]
    assert all(spans <= one.spans <= spans + spans // 8 + 8 for spans, one in enumerate(budgets))
    assert all(40 * n <= one.candidates <= 1.15 * 40 * n + 32 for n, one in enumerate(budgets))
    assert len({Budget(0, number).with_room() for number in range(1000, 2000)}) < 20
    assert min(min(one) for one in budgets) > 0


# --- candidates


def choose(logits: np.ndarray, options: dict[str, Any], budget: Budget) -> tuple[dict[Any, float], list[int]]:
    """The chosen candidates of logits (windows, words, words), and the header."""
    run = SinglePass(MODEL, budget)
    run.options = replace(run.options, **options)
    chosen = run.choose(torch.from_numpy(logits).flatten(1), logits.shape[1])
    number = int(chosen.counts.sum())
    columns = (chosen.window, chosen.first, chosen.last, chosen.number)
    keys = zip(*(column[:number].tolist() for column in columns), strict=True)
    return dict(zip(keys, chosen.logit.tolist(), strict=False)), chosen.header.tolist()


def choose_slowly(logits: np.ndarray, options: dict[str, Any]) -> dict[Any, float]:
    found = np.nonzero(logits >= 0)
    spans, logit = choose_candidates(Candidates(*found), logits[found], replace(MODEL.model.options, **options))
    return dict(zip(zip(*map(np.ndarray.tolist, (*spans, spans.slot)), strict=True), logit.tolist(), strict=True))


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    overlap=st.sampled_from(["flat", "nested", "any"]),
    most=st.sampled_from([2, 64]),
    rate=st.sampled_from([0.1, 0.4, 0.9]),
)
def test_candidates_are_chosen_as_one_by_one(seed: int, overlap: str, most: int, rate: float) -> None:
    generator = np.random.default_rng(seed)
    windows, words = int(generator.integers(1, 5)), int(generator.integers(1, 7))
    logits = generator.integers(0, 6, (windows, words, words)).astype(np.float32)  # many are equal
    logits[generator.random(logits.shape) > rate] = -1
    logits[:, np.tril(np.ones((words, words), bool), -1)] = -1e4
    options = {"candidates": overlap, "max_candidates": most}
    found, (spans, number, settled, _) = choose(logits, options, Budget(24, 80))
    assert spans == (logits >= 0).sum((1, 2)).max()
    if settled:
        expected = choose_slowly(logits, options)
        assert found == expected
        assert number == len(expected)
    else:
        assert overlap != "any"


def chain(length: int) -> np.ndarray:
    """Spans of two words, each of which overlaps the next one and is better than it."""
    logits = np.full((1, length + 1, length + 1), -1e4, np.float32)
    logits[0, np.arange(length), np.arange(1, length + 1)] = np.arange(length, 0, -1)
    return logits


def test_whether_overlaps_are_resolved_is_known() -> None:
    options = {"candidates": "nested"}
    found, (*_, settled, _) = choose(chain(4), options, Budget(24, 80))
    assert settled
    assert list(found) == [(0, 0, 1, 0), (0, 2, 3, 1)]
    assert choose(chain(20), options, Budget(24, 80))[1][2] == 0


# --- on a GPU


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_graphs_on_a_gpu_have_the_same_proposals(options: dict[str, Any]) -> None:
    runtime, rows = make_runtime(device="cuda", **options), type_rows()
    for batch in [random_batch(COUNTS), random_batch(COUNTS[:3])] * 5:
        enabled, runtime.graphs.enabled = runtime.graphs.enabled, False
        expected = proposed(runtime.propose(batch, rows, 0.0))
        runtime.graphs.enabled = enabled
        found = proposed(runtime.propose(batch, rows, 0.0))
        both = found.keys() & expected.keys()
        assert len(both) >= 0.9 * max(len(found), len(expected))  # bfloat16: few are near the threshold
        assert [found[key] for key in both] == pytest.approx([expected[key] for key in both], abs=0.05)
    assert runtime.graphs.graphs
