"""What all systems need that are run by onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onoma.backends.onnx import OnnxGraph, Workers
from onoma.config import ModelConfig
from onoma.subwords import Subwords, pad_rows

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

MEMORY = "memory_"
"""What is remembered has this before the name under which it was given out."""

MOST_TOKENS = 256
"""Of a part of a batch, with padding: what a layer makes of them stays in a core's cache."""

LEAST_TOKENS = 64
"""Of the last parts; smaller ones would cost more than they save."""

_KINDS = {"tensor(int64)": np.int64, "tensor(float)": np.float32}


class OnnxRuntime:
    """A trained model, and threads that run it on small parts of a batch side by side."""

    name = "onnx"
    batches_together = 4  # they are cut into small parts: with more of these, threads wait less for each other

    def __init__(self, config: ModelConfig, subwords: Subwords, threads: int | None = None) -> None:
        self.config, self.subwords = config, subwords
        self.workers = Workers(threads)

    def parts(self, lengths: Integers, most_tokens: int = MOST_TOKENS) -> list[Integers]:
        """Texts of so many tokens in small batches of similar length, at least one for each thread if there are enough.

        The last ones are smaller, so that no thread waits long for another at the end.
        """
        threads = self.workers.threads
        order = np.argsort(-lengths, kind="stable")
        left = np.cumsum(lengths[order][::-1])[::-1]  # tokens of this text and all behind it
        parts, start = [], 0
        while start < len(order):
            longest = max(1, int(lengths[order[start]]))
            room = min(most_tokens, max(LEAST_TOKENS, int(left[start]) // (2 * threads)))
            size = max(1, min(-(-len(order) // threads), room // longest))
            parts.append(order[start : start + size])
            start += size
        return parts

    def encode_texts(self, texts: Sequence[str], encode: Callable[[tuple[Integers, Integers]], Floats]) -> Floats:
        """One row a text, in their order, by a function of token ids and mask."""
        tokens = self.subwords.encode_rows(texts)
        parts = self.parts(np.array([len(one) for one in tokens], np.int64))
        padded = [pad_rows([tokens[index] for index in part], self.subwords.pad) for part in parts]
        rows = np.concatenate(list(self.workers.map(encode, padded)))
        return rows[np.argsort(np.concatenate(parts))]


class RememberingGraph:
    """A graph whose tokens also see those of a pass before, as `onnx_encoder.remembering_encoder` writes it."""

    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        inputs = graph.session.get_inputs()
        self._inputs = {one.name: (one.shape, _KINDS[one.type]) for one in inputs}
        self.memory = [name.removeprefix(MEMORY) for name in self._inputs if name.startswith(MEMORY)]

    def run(self, outputs: Sequence[str], memory: Sequence[Floats] = (), **inputs: NDArray[Any]) -> list[Floats]:
        """The wanted outputs; `memory` are the outputs named `memory` of the pass before, if there was one.

        Inputs that are not given are zeros, of as few things as possible: not all operators work on none at all.
        """
        inputs |= {MEMORY + name: value for name, value in zip(self.memory, memory, strict=False)}
        sizes = {"texts": len(inputs["ids"]), "remembered": 0}
        for name in self._inputs.keys() - inputs.keys():
            shape, kind = self._inputs[name]
            inputs[name] = np.zeros([one if isinstance(one, int) else sizes.get(one, 1) for one in shape], kind)
        return self.graph.run(outputs, **inputs)
