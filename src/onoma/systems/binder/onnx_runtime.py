"""BINDER run by onnxruntime and numpy, without PyTorch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from onoma.backends.base import lowest_margin, scores
from onoma.backends.onnx import OnnxGraph
from onoma.batches import Batch
from onoma.config import ModelConfig
from onoma.decoding import Proposals
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.subwords import Subwords
from onoma.systems.binder.matching import NEVER, Floats, Found, Integers, Parts, match
from onoma.systems.binder.options import BinderOptions
from onoma.systems.blocks.onnx_runtime import MOST_TOKENS, OnnxRuntime
from onoma.systems.blocks.type_texts import type_text

TEXT_FILE, TYPES_FILE = "model.onnx", "types.onnx"

_MOST_PRODUCTS = 1 << 22  # of tokens and types
_JOINT = ("start_types", "types_end", "start_anchor", "end_anchor")  # what only joint inference reads


class OnnxBinder(OnnxRuntime):
    """A trained BINDER, as `onoma.export` writes it."""

    def __init__(
        self, text: OnnxGraph, types: OnnxGraph, config: ModelConfig, subwords: Subwords, threads: int | None = None
    ) -> None:
        """`types` is the graph that encodes types: one of its own, or the same."""
        super().__init__(config, subwords, threads)
        self.text, self.types = text, types
        self.options = BinderOptions.of(config.options)
        self.type_numbers = {name: number for number, name in enumerate(config.types)}
        self.thresholds = self._constant("thresholds") if self.options.thresholds == "global" else None  # (3, types)
        self.atoms = self._constant("encoded") if self.options.types == "atomic" else None
        self._outputs = [*Parts._fields, "anchor", *(_JOINT if self.options.inference == "joint" else ())]

    @classmethod
    def load(cls, folder: str | os.PathLike[str], threads: int | None = None) -> OnnxBinder:
        """Load a model folder."""
        folder = Path(folder)
        config = ModelConfig.load(folder)
        if not (folder / TEXT_FILE).is_file():
            raise OnomaError(f"{folder} has no {TEXT_FILE}, which the onnx backend needs: make it with `onoma export`")
        text, own = OnnxGraph(folder / TEXT_FILE), folder / TYPES_FILE
        return cls(text, OnnxGraph(own) if own.is_file() else text, config, Subwords.load(folder), threads)

    def _constant(self, name: str) -> Floats:
        token = np.ones((1, 1), np.int64)
        return self._run_without_words(self.text, name, token, token)

    def _run_without_words(self, graph: OnnxGraph, output: str, ids: Integers, mask: Integers) -> Floats:
        inputs = {"ids": ids, "mask": mask}
        if graph is self.text:
            nothing = np.zeros((0, 2), np.int64)
            inputs |= {"first": nothing, "last": nothing, "types": np.zeros((0, 3 * self.options.size), np.float32)}
        return graph.run([output], **inputs)[0]

    def style(self, corpus: str | None) -> OnnxBinder:
        """BINDER knows nothing of the corpora that it was trained on: the same model."""
        return self

    def type_key(self, entity_type: EntityType) -> str:
        """The text that the type encoder reads."""
        return type_text(entity_type, self.options)

    def encode_types(self, types: Sequence[EntityType]) -> Floats:
        """e^B, e^Q and e of each type in one row and, where they are global, its thresholds."""
        numbers = [self.type_numbers.get(one.name, -1) for one in types]
        if (self.atoms is not None or self.thresholds is not None) and -1 in numbers:
            unknown = ", ".join(one.name for one in types if one.name not in self.type_numbers)
            raise OnomaError(f"this model knows only the types {', '.join(self.type_numbers)}; asked: {unknown}")
        rows = self.atoms[numbers] if self.atoms is not None else self._encode([self.type_key(one) for one in types])
        return rows if self.thresholds is None else np.concatenate([rows, self.thresholds.T[numbers]], axis=1)

    def _encode(self, texts: Sequence[str]) -> Floats:
        return self.encode_texts(texts, lambda inputs: self._run_without_words(self.types, "encoded", *inputs))

    def propose(self, batch: Batch, types: Floats, floor: float) -> Proposals:
        """Spans whose score reaches `floor`."""
        parts = self.parts(batch.mask.sum(1), min(MOST_TOKENS, _MOST_PRODUCTS // max(1, len(types))))
        search = partial(self._search, batch, types, lowest_margin(floor, self.config))
        found = Found.join(self.workers.map(search, parts))
        return Proposals(found.window, found.first, found.last, found.type, scores(found.margin, self.config))

    def _search(self, batch: Batch, types: Floats, lowest: float, windows: Integers) -> Found:
        """Spans with margin enough in some windows of a batch."""
        exists = np.arange(batch.first.shape[1]) < batch.words[windows, None]
        text = np.nonzero(exists)[0]  # of each word
        tokens = int(batch.mask[windows].sum(1).max())
        inputs = {
            "ids": batch.ids[windows, :tokens],
            "mask": batch.mask[windows, :tokens],
            "first": np.stack([text, batch.first[windows][exists]], axis=1),
            "last": np.stack([text, batch.last[windows][exists]], axis=1),
            "types": types[:, : 3 * self.options.size],
        }
        vectors = dict(zip(self._outputs, self.text.run(self._outputs, **inputs), strict=True))
        parts = Parts(*(vectors[name] for name in Parts._fields))
        if self.options.inference == "joint":
            starts, ends = (
                self._threshold(i, vectors[f"{name}_anchor"], types) for i, name in enumerate(("start", "end"))
            )
            parts.left_types[vectors["start_types"] < starts[text]] = NEVER
            parts.types_right[:, : len(text)][vectors["types_end"] < ends[text].T] = NEVER
        found = match(parts, batch.words[windows], self._threshold(2, vectors["anchor"], types), lowest)
        return found._replace(window=windows[found.window])

    def _threshold(self, position: int, anchor: Floats, types: Floats) -> Floats:
        """The threshold of starts (0), ends (1) or spans (2), where `anchor` is the similarity of [CLS]."""
        if self.options.thresholds == "global":
            return np.broadcast_to(types[:, position - 3], anchor.shape)  # the last columns
        return np.zeros_like(anchor) if self.options.thresholds == "tuned" else anchor
