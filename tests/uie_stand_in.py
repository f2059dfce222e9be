"""A stand-in for UIE: a graph with its inputs and outputs, in which a mention begins and ends at given characters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INPUTS = ("input_ids", "token_type_ids", "att_mask", "pos_ids")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def save_uie(folder: Path, first: str, last: str, probability: float = 0.9) -> Path:
    """A mention may start at any of the characters `first`, and end at any of `last`."""
    words = [*SPECIAL, *dict.fromkeys(first + last)]
    shape = ("texts", "tokens")
    nodes, tables, outputs = [], [], []
    for name, characters in (("starts", first), ("ends", last)):
        table = np.array([probability * (word in characters) for word in words], np.float32)
        tables.append(numpy_helper.from_array(table, f"{name}_table"))
        nodes.append(helper.make_node("Gather", [f"{name}_table", "input_ids"], [name]))
        outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in INPUTS]
    graph = helper.make_graph(nodes, "uie", inputs, outputs, tables)
    folder.mkdir(parents=True)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx"
    )
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
    return folder
