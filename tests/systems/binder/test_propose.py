"""What TorchBinder proposes: exactly the spans whose margin, taken from the whole model, is high enough."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from onoma.batches import Batch, collate
from onoma.config import ModelConfig
from onoma.subwords import Pieces
from onoma.systems.binder.model import Binder, TypeVectors
from onoma.systems.binder.options import BinderOptions
from onoma.systems.binder.torch_runtime import TorchBinder

TYPES = 3
WORDS = (9, 1, 6)


@pytest.fixture(scope="module")
def batch() -> Batch:
    generator = np.random.default_rng(0)
    pieces = [Pieces(generator.integers(3, 40, 2 * n).astype(np.int32), np.full(n, 2, np.int32)) for n in WORDS]
    return collate(pieces, SimpleNamespace(pad=0, first=1, last=2))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    vectors = np.random.default_rng(1).normal(size=(TYPES, 24))
    return np.concatenate([vectors, np.arange(TYPES)[:, None]], axis=1).astype(np.float32)


def make_backend(**options: Any) -> TorchBinder:
    torch.manual_seed(0)
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    encoder = BertModel(BertConfig(vocab_size=40, max_position_embeddings=32, **size), add_pooling_layer=False)
    chosen = BinderOptions(size=8, width_size=6, max_width=4, shared_encoder=True, **options)
    model = Binder(encoder, None, chosen, 32, TYPES)
    if chosen.thresholds == "global":
        torch.nn.init.normal_(model.global_thresholds)
    return TorchBinder(model.eval(), ModelConfig("binder", scale=2.0, bias=-0.5), None)  # type: ignore[arg-type]


@torch.no_grad()
def slow_proposals(backend: TorchBinder, batch: Batch, rows: np.ndarray, floor: float) -> dict[Any, float]:
    """Scores of all spans of the batch one by one; place, width and window are checked by hand."""
    model = backend.model
    ids, mask, first, last, words = (
        torch.from_numpy(x) for x in (batch.ids, batch.mask, batch.first, batch.last, batch.words)
    )
    vectors = TypeVectors(*torch.from_numpy(rows[:, :-1]).chunk(3, dim=-1))
    numbers = torch.arange(len(rows))
    sims = model.similarities(model.encode_text(ids, mask, first, last), vectors, 4, numbers)
    scores = torch.sigmoid(backend.config.scale * model.margins(sims, words) + backend.config.bias)
    return {
        (window, start, start + width, kind): float(scores[window, kind, start, width])
        for window, n in enumerate(WORDS)
        for kind in range(len(rows))
        for start in range(n)
        for width in range(min(4, n - start))
        if scores[window, kind, start, width] >= floor
    }


def proposed(backend: TorchBinder, batch: Batch, rows: np.ndarray, floor: float) -> dict[Any, float]:
    found = backend.propose(batch, rows, floor)
    return dict(zip(zip(*(column.tolist() for column in found[:4]), strict=True), found.score.tolist(), strict=True))


@pytest.mark.parametrize(
    "options", [{}, {"inference": "joint"}, {"thresholds": "global"}, {"thresholds": "tuned"}], ids=str
)
def test_proposals_are_the_spans_with_a_high_score(options: dict[str, Any], batch: Batch, rows: np.ndarray) -> None:
    backend = make_backend(**options)
    expected = slow_proposals(backend, batch, rows, 0.4)
    assert 0 < len(expected) < sum(min(4, n - start) for n in WORDS for start in range(n)) * TYPES
    assert proposed(backend, batch, rows, 0.4) == pytest.approx(expected, abs=1e-5)


def test_without_a_floor_every_span_is_proposed_and_nothing_else(batch: Batch, rows: np.ndarray) -> None:
    found = make_backend().propose(batch, rows, 0.0)
    assert len(found.first) == sum(min(4, n - start) for n in WORDS for start in range(n)) * TYPES
    assert bool((found.last < batch.words[found.window]).all())


def test_every_call_is_answered_for_its_own_types(batch: Batch, rows: np.ndarray) -> None:
    backend = make_backend()
    for asked in (rows, rows[::-1].copy(), rows[:1].copy(), rows):
        assert proposed(backend, batch, asked, 0.4) == pytest.approx(
            slow_proposals(backend, batch, asked, 0.4), abs=1e-5
        )


def test_a_model_in_training_proposes_without_dropout(batch: Batch, rows: np.ndarray) -> None:
    backend = make_backend()
    expected = proposed(backend, batch, rows, 0.4)
    backend.model.train()
    assert proposed(backend, batch, rows, 0.4) == pytest.approx(expected, abs=1e-6)
