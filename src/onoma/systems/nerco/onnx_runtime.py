"""NerCo run by onnxruntime and numpy, without PyTorch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals
from onoma.inputs.batches import Batch
from onoma.models.folder import ONNX_FILE, ModelFolder
from onoma.onnx.runtime import Floats, OnnxRuntime
from onoma.onnx.session import OnnxSession
from onoma.systems.base import RuntimeSettings
from onoma.systems.blocks.closed_types import ClosedTypes
from onoma.systems.blocks.tagging import TagScheme
from onoma.systems.blocks.viterbi import TransitionScores
from onoma.systems.nerco.decoding import propose_tagged
from onoma.systems.nerco.inputs import LONGEST_NODE, LatticeInputs
from onoma.systems.nerco.options import NerCoOptions
from onoma.systems.options import parse_options

_HIDDEN = np.float32(-1e4)  # added to attention scores of padding


class OnnxNerCo(ClosedTypes, OnnxRuntime):
    """A trained NerCo, as `onoma export` writes it."""

    def __init__(self, folder: ModelFolder, settings: RuntimeSettings) -> None:
        super().__init__(folder, settings)
        self.labels = frozenset(self.config.types)
        options = parse_options(NerCoOptions, self.config.options)
        self.scheme = TagScheme(len(self.config.types), options.scheme)
        self.model = OnnxSession(folder.path / ONNX_FILE)
        self.inputs: LatticeInputs | None = None
        if options.lattice:
            self.inputs = LatticeInputs.load(folder, options.max_nodes, options.vector_rows)

    def propose(self, batch: Batch, query: Floats, floor: float) -> Proposals:
        """The mentions of the best tags whose score reaches `floor`."""
        if not batch.words.any():
            return Proposals.concatenate([])
        windows, width = batch.first.shape
        first = np.stack([np.repeat(np.arange(windows)[:, None], width, axis=1), batch.first], axis=-1)
        inputs = {"ids": batch.ids, "mask": batch.mask, "first": first}
        if self.inputs is not None:
            inputs |= lattice_arrays(self.inputs.arrays(batch), batch.words, width)
        emissions, *transitions = self.model.run(["emissions", *TransitionScores._fields], **inputs)
        return propose_tagged(
            emissions, batch.words, TransitionScores(*transitions), self.scheme, self.config, query, floor
        )


def lattice_arrays(
    nodes: dict[str, NDArray[np.int64]], words: NDArray[np.int64], width: int
) -> dict[str, NDArray[np.int64] | Floats]:
    """The inputs of the graph for a lattice.

    Args:
        nodes: see `LatticeInputs.arrays`.
        words: number of words of each window.
        width: words of the longest window.
    """
    place, count = np.arange(width), nodes["node_first"].shape[1]
    exists = np.concatenate([place < words[:, None], np.arange(count) < nodes["nodes"][:, None]], axis=1)
    extent = nodes["node_last"] - nodes["node_first"]
    distance = place[:, None] - nodes["node_first"][:, None, :]  # (windows, words, nodes)
    return {
        "hidden": np.where(exists, np.float32(0), _HIDDEN)[:, None, None, :],
        "node_rows": nodes["node_rows"],
        "node_distances": distance * LONGEST_NODE + extent[:, None, :],
        "word_distances": np.arange(1 - width, width),
        "word_pairs": place[:, None] * (2 * width - 1) + place[:, None] - place + width - 1,
    }
