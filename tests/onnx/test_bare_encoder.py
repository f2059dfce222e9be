"""The encoder alone out of exported graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onoma import OnomaError
from onoma.models.export import export
from onoma.models.folder import ONNX_FILE, open_single
from onoma.models.weights import load_model
from onoma.onnx.bare_encoder import write_bare_encoder
from onoma.onnx.runtime import STATES
from onoma.onnx.session import OnnxSession
from onoma.onnx.writer import GraphInput, GraphWriter


@pytest.mark.parametrize("int8", [False, True])
def test_its_states_are_those_of_the_encoder(tiny_model: Path, tmp_path: Path, int8: bool) -> None:
    import torch

    folder = export(tiny_model, tmp_path / "model", int8=int8)
    write_bare_encoder(folder / ONNX_FILE, tmp_path / "bare.onnx")
    session = OnnxSession(tmp_path / "bare.onnx")
    assert {one.name for one in session.session.get_inputs()} == {"ids", "mask"}
    ids, mask = np.array([[2, 7, 8, 3], [2, 9, 3, 0]]), np.array([[1, 1, 1, 1], [1, 1, 1, 0]])
    (states,) = session.run([STATES], ids=ids, mask=mask)
    encoder = load_model(open_single(tiny_model, "read"), "cpu").text_encoder
    with torch.inference_mode():
        expected = encoder(torch.tensor(ids), attention_mask=torch.tensor(mask)).last_hidden_state.numpy()
    np.testing.assert_allclose(states[mask == 1], expected[mask == 1], atol=0.1 if int8 else 1e-4)
    whole, bare = (len(onnx.load(path).graph.node) for path in (folder / ONNX_FILE, tmp_path / "bare.onnx"))
    assert bare < whole  # without heads


def test_a_graph_without_an_encoder(tmp_path: Path) -> None:
    graph = GraphWriter()
    rows = graph.embedding(np.ones((4, 2), np.float32), "ids")
    graph.save(tmp_path / "a.onnx", {"ids": GraphInput(("texts", "tokens"))}, {"rows": rows})
    with pytest.raises(OnomaError, match=r"no encoder was found.*Fix"):
        write_bare_encoder(tmp_path / "a.onnx", tmp_path / "b.onnx")
    (tmp_path / "damaged.onnx").write_bytes(b"not a graph")
    with pytest.raises(OnomaError, match="cannot be read"):
        write_bare_encoder(tmp_path / "damaged.onnx", tmp_path / "b.onnx")
