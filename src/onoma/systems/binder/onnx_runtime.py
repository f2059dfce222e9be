"""BINDER run by onnxruntime and numpy, without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals
from onoma.entities import EntityType
from onoma.inputs.batches import Batch
from onoma.labels.examples import MarkedText
from onoma.models.folder import ONNX_FILE, ModelFolder
from onoma.onnx.runtime import MAX_BATCH_TOKENS, OnnxRuntime
from onoma.onnx.session import OnnxSession
from onoma.systems.base import RuntimeSettings, margin_of, scores_of
from onoma.systems.binder.matching import IMPOSSIBLE, Floats, Integers, Parts, match
from onoma.systems.binder.options import RENAMED, BinderOptions
from onoma.systems.binder.rows import breadth_column, with_offset
from onoma.systems.binder.teaching import SpanParts, teach_rows, unit_vectors
from onoma.systems.options import parse_options

TYPES_FILE = "types.onnx"

_MAX_PRODUCTS = 1 << 22  # of tokens and types in a batch
_JOINT = ("start_types", "types_end", "start_anchor", "end_anchor")  # outputs for joint inference


class OnnxBinder(OnnxRuntime):
    """A trained BINDER, as `onoma export` writes it."""

    def __init__(self, folder: ModelFolder, settings: RuntimeSettings) -> None:
        super().__init__(folder, settings)
        self.text = OnnxSession(folder.path / ONNX_FILE)
        self.type_encoder = OnnxSession(folder.path / TYPES_FILE) if folder.has(TYPES_FILE) else self.text
        self.options = parse_options(BinderOptions, self.config.options, RENAMED)
        self.type_numbers = {name: number for number, name in enumerate(self.config.types)}
        self.thresholds = self._constant("thresholds") if self.options.thresholds == "global" else None  # (3, types)
        self.atoms = self._constant("encoded") if self.options.types == "atomic" else None
        if self.thresholds is not None or self.atoms is not None:
            self.labels = frozenset(self.config.types)
        self._outputs = [*Parts._fields, "anchor", *(_JOINT if self.options.inference == "joint" else ())]

    def _constant(self, name: str) -> Floats:
        token = np.ones((1, 1), np.int64)
        return self._run_without_words(self.text, name, token, token)

    def _run_without_words(self, session: OnnxSession, output: str, ids: Integers, mask: Integers) -> Floats:
        inputs: dict[str, NDArray[Any]] = {"ids": ids, "mask": mask}
        if session is self.text:
            none = np.zeros((0, 2), np.int64)
            types = np.zeros((0, 3 * self.options.vector_size), np.float32)
            inputs |= {"first": none, "last": none, "types": types}
        return session.run([output], **inputs)[0]

    def with_style(self, corpus: str | None) -> OnnxBinder:
        """BINDER has no styles: the same model."""
        return self

    def type_text(self, entity_type: EntityType) -> str:
        """The text that the type encoder reads."""
        return entity_type.as_text() if self.options.types == "description" else entity_type.name

    def encode_types(self, types: Sequence[EntityType]) -> Floats:
        """e^B, e^Q, e and offset (0) of each type in one row.

        They are followed by b if the model has a breadth head, and by the thresholds of the type if these are global.
        """
        numbers = [self.type_numbers.get(one.name, -1) for one in types]
        if self.atoms is not None:
            rows = self.atoms[numbers]
        else:
            texts = [self.type_text(one) for one in types]
            rows = self.encode_texts(
                texts, lambda *tokens: self._run_without_words(self.type_encoder, "encoded", *tokens)
            )
        rows = with_offset(rows, self.options)
        return rows if self.thresholds is None else np.concatenate([rows, self.thresholds.T[numbers]], axis=1)

    def ask(self, types: Sequence[EntityType], examples: Sequence[Sequence[MarkedText]] = ()) -> Floats:
        """One row per type, corrected by its examples if there are some."""
        rows = self.type_rows(types)
        if not any(examples):
            return rows
        return teach_rows(self, rows, [self.type_text(one) for one in types], examples, self.types)

    def span_parts(self, batch: Batch) -> SpanParts:
        """The parts of the spans of a batch; the products of [CLS] with the unit vectors are its own vector."""
        size = self.options.vector_size
        inputs, _ = self._inputs(batch, np.eye(3 * size, dtype=np.float32)[2 * size :])
        parts = SpanParts(*self.text.run(SpanParts._fields, **inputs))
        return parts if self.options.thresholds == "dynamic" else parts._replace(anchor=np.zeros_like(parts.anchor))

    def span_vectors(self, batch: Batch, window: Integers, first: Integers, last: Integers) -> Floats:
        """The unit vectors of spans of a batch."""
        return unit_vectors(self.span_parts(batch), batch.words, window, first, last)

    def global_thresholds(self, rows: Floats) -> Floats:
        """The thresholds of spans that do not depend on the text."""
        return rows[:, -1] if self.options.thresholds == "global" else np.zeros(len(rows), np.float32)

    def breadths(self, query: Floats) -> Floats | None:
        """b of each type, if the model has a breadth head."""
        return breadth_column(query, self.options)

    def max_batch_tokens(self, query: Floats) -> int:
        """With many types batches are smaller, to bound the memory of their products."""
        return min(MAX_BATCH_TOKENS, _MAX_PRODUCTS // max(1, len(query)))

    def propose(self, batch: Batch, query: Floats, floor: float) -> Proposals:
        """The spans whose score reaches `floor`."""
        inputs, window = self._inputs(batch, query[:, : 3 * self.options.vector_size])
        vectors = dict(zip(self._outputs, self.text.run(self._outputs, **inputs), strict=True))
        parts = Parts(*(vectors[name] for name in Parts._fields))
        if self.options.inference == "joint":
            starts, ends = (
                self._threshold(i, vectors[f"{name}_anchor"], query) for i, name in enumerate(("start", "end"))
            )
            parts.left_types[vectors["start_types"] < starts[window]] = IMPOSSIBLE
            parts.types_right[:, : len(window)][vectors["types_end"] < ends[window].T] = IMPOSSIBLE
        threshold = self._threshold(2, vectors["anchor"], query) - query[:, 3 * self.options.vector_size]
        found = match(parts, batch.words, threshold, margin_of(floor, self.config))
        return found._replace(score=scores_of(found.score, self.config))

    def _inputs(self, batch: Batch, types: Floats) -> tuple[dict[str, NDArray[Any]], Integers]:
        """The inputs of the graph, and the window of each word."""
        exists = np.arange(batch.first.shape[1]) < batch.words[:, None]
        window = np.nonzero(exists)[0]
        inputs = {
            "ids": batch.ids,
            "mask": batch.mask,
            "first": np.stack([window, batch.first[exists]], axis=1),
            "last": np.stack([window, batch.last[exists]], axis=1),
            "types": types,
        }
        return inputs, window

    def _threshold(self, position: int, anchor: Floats, query: Floats) -> Floats:
        """The threshold of starts (0), ends (1) or spans (2); `anchor` is the similarity of [CLS]."""
        if self.options.thresholds == "global":
            return np.broadcast_to(query[:, position - 3], anchor.shape)  # the last columns
        return np.zeros_like(anchor) if self.options.thresholds == "tuned" else anchor
