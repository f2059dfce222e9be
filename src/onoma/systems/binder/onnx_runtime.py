"""BINDER run by onnxruntime and numpy, without PyTorch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from onoma.backends.base import lowest_margin, scores
from onoma.backends.onnx import OnnxGraph
from onoma.batches import Batch, bucket
from onoma.config import ModelConfig
from onoma.decoding import Proposals
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.subwords import Subwords, pad_rows
from onoma.systems.binder.matching import Flags, Floats, Integers, Words, match
from onoma.systems.binder.options import BinderOptions
from onoma.systems.binder.type_texts import type_text

TEXT_FILE, TYPES_FILE = "model.onnx", "types.onnx"

_TYPES_TOGETHER = 64  # texts of types that are encoded in one batch


class _Asked(NamedTuple):
    """The rows of the asked types in their parts."""

    start: Floats  # e^B (types, d)
    end: Floats  # e^Q (types, d)
    span: Floats  # e (types, d)
    thresholds: Floats  # of starts, ends and spans (types, 3); where thresholds are not global, there are none


class OnnxBinder:
    """A trained BINDER, as `onoma.export` writes it."""

    name = "onnx"

    def __init__(self, text: OnnxGraph, types: OnnxGraph, config: ModelConfig, subwords: Subwords) -> None:
        """`types` is the graph that encodes types: one of its own, or the same."""
        self.text, self.types, self.config, self.subwords = text, types, config, subwords
        self.options = BinderOptions.of(config.options)
        self.type_numbers = {name: number for number, name in enumerate(config.types)}
        self.widths = self._constant("widths")  # d (widths, d)
        self.thresholds = self._constant("thresholds") if self.options.thresholds == "global" else None  # (3, types)
        self.atoms = self._constant("types") if self.options.types == "atomic" else None

    @classmethod
    def load(cls, folder: str | os.PathLike[str], threads: int | None = None) -> OnnxBinder:
        """Load a model folder."""
        folder = Path(folder)
        config = ModelConfig.load(folder)
        if config.system != "binder":
            raise OnomaError(f"this version of Onoma has no system {config.system!r}; it has: binder")
        if not (folder / TEXT_FILE).is_file():
            raise OnomaError(f"{folder} has no {TEXT_FILE}, which the onnx backend needs: make it with `onoma export`")
        text, own = OnnxGraph(folder / TEXT_FILE, threads), folder / TYPES_FILE
        return cls(text, OnnxGraph(own, threads) if own.is_file() else text, config, Subwords.load(folder))

    def _constant(self, name: str) -> Floats:
        token = np.ones((1, 1), np.int64)
        return self.text.run([name], ids=token, mask=token)[0]

    def type_key(self, entity_type: EntityType) -> str:
        """The text that the type encoder reads."""
        return type_text(entity_type, self.options)

    def encode_types(self, types: Sequence[EntityType]) -> Floats:
        """e^B, e^Q and e of each type in one row and, where they are global, its thresholds."""
        numbers = [self.type_numbers.get(one.name, -1) for one in types]
        if (self.atoms is not None or self.thresholds is not None) and -1 in numbers:
            unknown = ", ".join(one.name for one in types if one.name not in self.type_numbers)
            raise OnomaError(f"this model knows only the types {', '.join(self.type_numbers)}; asked: {unknown}")
        rows = self._encode([self.type_key(one) for one in types]) if self.atoms is None else self.atoms[numbers]
        return rows if self.thresholds is None else np.concatenate([rows, self.thresholds.T[numbers]], axis=1)

    def _encode(self, texts: Sequence[str]) -> Floats:
        tokens = self.subwords.encode_rows(texts)
        rows = np.zeros((len(tokens), 3 * self.options.size), np.float32)
        for batch in bucket([len(one) for one in tokens], _TYPES_TOGETHER):
            ids, mask = pad_rows([tokens[index] for index in batch], self.subwords.pad)
            (rows[batch],) = self.types.run(["types"], ids=ids, mask=mask)
        return rows

    def propose(self, batch: Batch, types: Floats, floor: float) -> Proposals:
        """Spans whose score reaches `floor`."""
        size = self.options.size
        asked = _Asked(*np.split(types, [size, 2 * size, 3 * size], axis=1))
        joint = self.options.inference == "joint"
        outputs = ["left", "right", *(["start", "end"] if joint else [])]
        left, right, *positions = self.text.run(outputs, ids=batch.ids, mask=batch.mask)  # each (windows, tokens, d)

        exists = np.arange(batch.first.shape[1]) < batch.words[:, None]
        window = np.nonzero(exists)[0]
        first, last = batch.first[exists], batch.last[exists]
        words = Words(left[window, first], right[window, last], batch.words)
        whole = left[:, 0] + right[:, 0] + self.widths[0]  # [CLS] as a span
        anchor = whole @ asked.span.T / np.maximum(np.linalg.norm(whole, axis=-1, keepdims=True), 1e-3)
        passing = None
        if joint:
            starts, ends = positions
            passing = (
                self._passing(0, starts, asked.start, asked, window, first),
                self._passing(1, ends, asked.end, asked, window, last),
            )
        lowest = lowest_margin(floor, self.config)
        found = match(words, self.widths, asked.span, self._threshold(2, anchor, asked), lowest, passing)
        return Proposals(found.window, found.first, found.last, found.type, scores(found.margin, self.config))

    def _passing(
        self, position: int, vectors: Floats, types: Floats, asked: _Asked, window: Integers, token: Integers
    ) -> Flags:
        """Where spans of each type may begin (position 0) or end (1): (words, types)."""
        threshold = self._threshold(position, vectors[:, 0] @ types.T, asked)
        return np.asarray(vectors[window, token] @ types.T >= threshold[window])

    def _threshold(self, position: int, anchor: Floats, asked: _Asked) -> Floats:
        """The threshold of starts (0), ends (1) or spans (2), where `anchor` is the similarity of [CLS]."""
        if self.options.thresholds == "global":
            return np.broadcast_to(asked.thresholds[:, position], anchor.shape)
        return np.zeros_like(anchor) if self.options.thresholds == "tuned" else anchor
