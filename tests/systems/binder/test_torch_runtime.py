"""BINDER run by PyTorch: proposals against scores of single spans, and closed sets of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from onoma.inputs.batches import Batch
from onoma.models.config import ModelConfig
from onoma.systems.binder.model import Binder, TypeVectors
from onoma.systems.binder.options import BinderOptions
from onoma.systems.binder.torch_runtime import TorchBinder
from simulated_graphs import SimulatedGraphs
from tiny_batches import batch_of, random_tokens

TYPES = 3
WORDS = (9, 1, 6)


@pytest.fixture(scope="module")
def batch() -> Batch:
    return batch_of(random_tokens([[2] * words for words in WORDS], 3, 40))


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    vectors, offsets = np.random.default_rng(1).normal(size=(TYPES, 24)), [[0.0], [0.3], [-0.2]]
    return np.concatenate([vectors, offsets, np.arange(TYPES)[:, None]], axis=1).astype(np.float32)


def make_runtime(**options: Any) -> TorchBinder:
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    encoder = BertModel(BertConfig(vocab_size=40, max_position_embeddings=32, **size), add_pooling_layer=False)
    chosen = BinderOptions(vector_size=8, width_size=6, max_width=4, shared_encoder=True, **options)
    model = Binder(encoder, None, chosen, 32, TYPES)
    if chosen.thresholds == "global":
        torch.nn.init.normal_(model.global_thresholds)
    return TorchBinder(model.eval(), ModelConfig("binder", scale=2.0, bias=-0.5), None)  # type: ignore[arg-type]


@torch.no_grad()
def slow_proposals(runtime: TorchBinder, batch: Batch, rows: np.ndarray, floor: float) -> dict[Any, float]:
    """The scores of all spans of the batch, with loops over windows, types, first words and widths."""
    model = runtime.model
    ids, mask, first, last, words = (
        torch.from_numpy(x) for x in (batch.ids, batch.mask, batch.first, batch.last, batch.words)
    )
    vectors = TypeVectors(*torch.from_numpy(rows[:, :24]).chunk(3, dim=-1))
    offsets = torch.from_numpy(rows[:, 24])[:, None, None]
    numbers = torch.arange(len(rows))
    sims = model.similarities(model.encode_text(ids, mask, first, last), vectors, 4, numbers)
    scores = torch.sigmoid(runtime.config.scale * (model.margins(sims, words) + offsets) + runtime.config.bias)
    return {
        (window, start, start + width, kind): float(scores[window, kind, start, width])
        for window, n in enumerate(WORDS)
        for kind in range(len(rows))
        for start in range(n)
        for width in range(min(4, n - start))
        if scores[window, kind, start, width] >= floor
    }


def proposed(runtime: TorchBinder, batch: Batch, rows: np.ndarray, floor: float) -> dict[Any, float]:
    found = runtime.propose(batch, rows, floor)
    return dict(zip(zip(*(column.tolist() for column in found[:4]), strict=True), found.score.tolist(), strict=True))


@pytest.mark.parametrize(
    "options", [{}, {"inference": "joint"}, {"thresholds": "global"}, {"thresholds": "tuned"}], ids=str
)
def test_proposals_are_the_spans_that_reach_the_floor(options: dict[str, Any], batch: Batch, rows: np.ndarray) -> None:
    runtime = make_runtime(**options)
    expected = slow_proposals(runtime, batch, rows, 0.4)
    assert 0 < len(expected) < sum(min(4, n - start) for n in WORDS for start in range(n)) * TYPES
    assert proposed(runtime, batch, rows, 0.4) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("inference", ["span", "joint"])
def test_proposals_of_graphs_are_the_same(inference: str, batch: Batch, rows: np.ndarray) -> None:
    runtime = make_runtime(inference=inference)
    graphs = runtime.graphs = SimulatedGraphs()
    parts = batch, batch.take(np.array([1])), batch.take(np.array([2, 0]))
    expected = [proposed(runtime, one, rows, 0.4) for one in parts]
    runtime.model.encode.prepare(torch.float32)
    for _ in range(4):
        for one, own in zip(parts, expected, strict=True):
            assert proposed(runtime, one, rows, 0.4) == pytest.approx(own, abs=1e-5)
    assert graphs.replayed > 4


def test_without_a_floor_every_span_is_proposed(batch: Batch, rows: np.ndarray) -> None:
    found = make_runtime().propose(batch, rows, 0.0)
    assert len(found.first) == sum(min(4, n - start) for n in WORDS for start in range(n)) * TYPES
    assert bool((found.last < batch.words[found.window]).all())


def test_every_call_uses_its_own_types(batch: Batch, rows: np.ndarray) -> None:
    runtime = make_runtime()
    for query in (rows, rows[::-1].copy(), rows[:1].copy(), rows):
        assert proposed(runtime, batch, query, 0.4) == pytest.approx(
            slow_proposals(runtime, batch, query, 0.4), abs=1e-5
        )


def test_a_model_in_training_proposes_without_dropout(batch: Batch, rows: np.ndarray) -> None:
    runtime = make_runtime()
    expected = proposed(runtime, batch, rows, 0.4)
    runtime.model.train()
    assert proposed(runtime, batch, rows, 0.4) == pytest.approx(expected, abs=1e-6)
