"""Pretrained encoders as ONNX graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, DistilBertConfig, DistilBertModel

from onoma import OnomaError
from onoma.onnx.encoder import TOKENS, cached_encoder, encoder_states
from onoma.onnx.session import OnnxSession
from onoma.onnx.writer import GraphWriter

IDS = np.random.default_rng(0).integers(5, 60, (3, 11))
MASK = (np.arange(11) < np.array([[11], [7], [4]])).astype(np.int64)


def distilbert() -> DistilBertModel:
    torch.manual_seed(0)
    config = DistilBertConfig(vocab_size=60, dim=24, n_layers=2, n_heads=3, hidden_dim=40, max_position_embeddings=32)
    return DistilBertModel(config).eval()


def run(graph: GraphWriter, states: str, path: Path) -> np.ndarray:
    graph.save(path, TOKENS, {"states": states})
    return OnnxSession(path).run(["states"], ids=IDS, mask=MASK)[0]


@pytest.mark.parametrize("int8", [False, True])
def test_unknown_families_are_traced_in_float32(tmp_path: Path, int8: bool) -> None:
    encoder = distilbert()
    graph = GraphWriter(int8=int8)
    found = run(graph, encoder_states(graph, encoder), tmp_path / "encoder.onnx")
    with torch.inference_mode():
        expected = encoder(torch.tensor(IDS), torch.tensor(MASK)).last_hidden_state.numpy()
    np.testing.assert_allclose(found[MASK > 0], expected[MASK > 0], atol=1e-5)


def test_unknown_families_have_no_key_value_cache() -> None:
    with pytest.raises(OnomaError, match=r"distilbert.*Fix: use one of bert"):
        cached_encoder(GraphWriter(), distilbert(), np.zeros((2, 24), np.float32))


def test_an_unusual_activation_is_traced(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=60,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=40,
        max_position_embeddings=32,
        hidden_act="relu",
    )
    encoder = BertModel(config, add_pooling_layer=False).eval()
    graph = GraphWriter()
    found = run(graph, encoder_states(graph, encoder), tmp_path / "encoder.onnx")
    with torch.inference_mode():
        expected = encoder(torch.tensor(IDS), torch.tensor(MASK)).last_hidden_state.numpy()
    np.testing.assert_allclose(found[MASK > 0], expected[MASK > 0], atol=1e-5)
