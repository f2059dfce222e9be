"""SCL-RAI run by onnxruntime and numpy, without PyTorch."""

from __future__ import annotations

import numpy as np

from onoma.decoding.proposals import Proposals
from onoma.inputs.batches import Batch
from onoma.models.folder import ONNX_FILE, ModelFolder
from onoma.onnx.runtime import Floats, OnnxRuntime
from onoma.onnx.session import OnnxSession
from onoma.systems.base import RuntimeSettings, margin_of, scores_of
from onoma.systems.blocks.closed_types import ClosedTypes
from onoma.systems.options import parse_options
from onoma.systems.scl_rai.options import SclRaiOptions
from onoma.systems.scl_rai.retrieval import DataStore, margins


class OnnxSclRai(ClosedTypes, OnnxRuntime):
    """A trained SCL-RAI, as `onoma export` writes it."""

    def __init__(self, folder: ModelFolder, settings: RuntimeSettings) -> None:
        super().__init__(folder, settings)
        self.options = parse_options(SclRaiOptions, self.config.options)
        self.model = OnnxSession(folder.path / ONNX_FILE)
        self.store = DataStore.load(folder)
        shape = (len(self.config.types) + 1, self.options.vector_size)
        self.centres = np.zeros(shape, np.float32) if self.store is None else self.store.centres
        self.labels = frozenset(self.config.types)

    def propose(self, batch: Batch, query: Floats, floor: float) -> Proposals:
        """The spans whose score for a type reaches `floor`."""
        exists = np.arange(batch.first.shape[1]) < batch.words[:, None]
        window, place = np.nonzero(exists)  # of each word
        room = batch.words[window] - place  # words from here to the end of the window
        word, extent = np.nonzero(np.arange(min(self.options.max_width, batch.first.shape[1])) < room[:, None])
        if not len(word):
            return Proposals.concatenate([])
        inputs = {
            "ids": batch.ids,
            "mask": batch.mask,
            "first": np.stack([window, batch.first[exists]], axis=1),
            "last": np.stack([window, batch.last[exists]], axis=1),
            "start": word,
            "end": word + extent,
            "centres": self.centres,
        }
        logits, similarity = self.model.run(["logits", "similarity"], **inputs)
        margin = margins(logits, similarity, self.store, self.options)[:, query[:, 0].astype(np.int64)]
        row, kind = np.nonzero(margin >= margin_of(floor, self.config))
        span = word[row]
        score = scores_of(margin[row, kind], self.config)
        return Proposals(window[span], place[span], place[span] + extent[row], kind, score)
