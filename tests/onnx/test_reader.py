"""Encoders read back from ONNX graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from test_encoder import IDS, MASK, distilbert, run

from onoma import OnomaError
from onoma.onnx.encoder import TOKENS, encoder_states
from onoma.onnx.reader import GraphReader, read_encoder
from onoma.onnx.writer import GraphWriter, quantise_columns
from onoma.systems.blocks.encoders import encoder_function
from tiny_encoders import PADS, tiny_encoder


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("family", list(PADS))
def test_an_encoder_that_is_read_back_gives_the_states_of_its_graph(family: str, int8: bool, tmp_path: Path) -> None:
    encoder, graph, path = tiny_encoder(family), GraphWriter(int8=int8), tmp_path / "encoder.onnx"
    written = run(graph, encoder_states(graph, encoder), path)
    restored = read_encoder(GraphReader(path)).eval()
    ids, mask = torch.tensor(IDS), torch.tensor(MASK)
    with torch.inference_mode():
        found, expected = (encoder_function(one)(ids, mask).numpy()[MASK > 0] for one in (restored, encoder))
    np.testing.assert_allclose(found, expected, atol=0.08 if int8 else 1e-5)
    if int8:  # weights are those of the graph, only activations are not rounded
        assert np.abs(found - written[MASK > 0]).mean() < np.abs(expected - written[MASK > 0]).mean() * 1.5


@pytest.mark.parametrize("changed", [{}, {"factors": np.array([0.5, 2.0, 4.0], np.float32)}, {"lowest": -0.17}])
def test_factors_and_shifts_are_taken_out_of_integer_weights(changed: dict[str, object], tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    weight, bias = generator.normal(size=(3, 4)).astype(np.float32), generator.normal(size=4).astype(np.float32)
    graph = GraphWriter(int8=True)
    x = graph.node("Cast", "ids", to=1)
    graph.save(tmp_path / "linear.onnx", TOKENS, {"y": graph.linear(x, weight, bias, **changed)})  # type: ignore[arg-type]
    (layer,) = GraphReader(tmp_path / "linear.onnx").linear_layers
    factors = np.asarray(changed.get("factors", np.ones(3)))[:, None]
    integers, scales = quantise_columns((weight * factors).astype(np.float32))
    np.testing.assert_allclose(layer.weight, integers * scales / factors, rtol=1e-5)
    assert layer.bias is not None
    np.testing.assert_allclose(layer.bias, bias, atol=1e-5)


def test_traced_encoders_cannot_be_read_back(tmp_path: Path) -> None:
    graph = GraphWriter()
    run(graph, encoder_states(graph, distilbert()), tmp_path / "encoder.onnx")
    with pytest.raises(OnomaError, match=r"cannot be read back\. Fix: give the folder with model\.safetensors"):
        read_encoder(GraphReader(tmp_path / "encoder.onnx"))


def test_a_damaged_graph_is_an_error_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\x08\x07rubbish")
    with pytest.raises(OnomaError, match="Fix: get the model again"):
        GraphReader(tmp_path / "model.onnx")
