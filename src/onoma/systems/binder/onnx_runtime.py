"""BINDER run by onnxruntime and numpy, without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals
from onoma.entities import EntityType
from onoma.errors import OnomaError
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
SPANS, STARTS, ENDS = "types", "types_start", "types_end"  # inputs: columns of e, e^B and e^Q


def type_inputs(options: BinderOptions) -> tuple[str, ...]:
    """The inputs of model.onnx that are columns of types."""
    return (SPANS, STARTS, ENDS) if options.inference == "joint" else (SPANS,)


class _Columns(NamedTuple):
    """The vectors of a query as the graph reads them."""

    query: Floats
    inputs: dict[str, Floats]  # (d, types)


class _Similarities(NamedTuple):
    """What the graph computes for a batch."""

    parts: Parts
    anchor: Floats  # of [CLS] (windows, types)
    places: list[tuple[Floats, Floats]]  # with joint inference: of starts and of ends (words, types), and their [CLS]
    window: Integers  # of each word


class OnnxBinder(OnnxRuntime):
    """A trained BINDER, as `onoma export` writes it."""

    def __init__(self, folder: ModelFolder, settings: RuntimeSettings) -> None:
        super().__init__(folder, settings)
        self.text = OnnxSession(folder.path / ONNX_FILE)
        self.type_encoder = OnnxSession(folder.path / TYPES_FILE) if folder.has(TYPES_FILE) else self.text
        if "products" not in self.text.outputs:
            raise OnomaError(
                f"{self.text.path} was exported by Onoma 0.1.0, whose graphs this version does not run. "
                "Fix: export the folder with model.safetensors again, with `onoma export`"
            )
        self.options = parse_options(BinderOptions, self.config.options, RENAMED)
        self.type_numbers = {name: number for number, name in enumerate(self.config.types)}
        self.thresholds = self._constant("thresholds") if self.options.thresholds == "global" else None  # (3, types)
        self.atoms = self._constant("encoded") if self.options.types == "atomic" else None
        if self.thresholds is not None or self.atoms is not None:
            self.labels = frozenset(self.config.types)
        self._places = ("start_products", "end_products") if self.options.inference == "joint" else ()
        self._columns: _Columns | None = None

    def _constant(self, name: str) -> Floats:
        token = np.ones((1, 1), np.int64)
        return self._run_without_words(self.text, name, token, token)

    def _run_without_words(self, session: OnnxSession, output: str, ids: Integers, mask: Integers) -> Floats:
        inputs: dict[str, NDArray[Any]] = {"ids": ids, "mask": mask}
        if session is self.text:
            none = np.zeros((0, 2), np.int64)
            types = np.zeros((self.options.vector_size, 0), np.float32)
            inputs |= {"first": none, "last": none, **dict.fromkeys(type_inputs(self.options), types)}
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
        unit = np.eye(self.options.vector_size, dtype=np.float32)
        parts, anchor, *_ = self._similarities(batch, dict.fromkeys(type_inputs(self.options), unit))
        anchor = anchor if self.options.thresholds == "dynamic" else np.zeros_like(anchor)
        return SpanParts(parts.left, parts.right, parts.widths, anchor)

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
        parts, anchor, places, window = self._similarities(batch, self._type_columns(query))
        for place, (similarity, own) in enumerate(places):
            products = (parts.left_types, parts.right_types)[place]
            products[: len(window)][similarity < self._threshold(place, own, query)[window]] = IMPOSSIBLE
        threshold = self._threshold(2, anchor, query) - query[:, 3 * self.options.vector_size]
        found = match(parts, batch.words, threshold, margin_of(floor, self.config))
        return found._replace(score=scores_of(found.score, self.config))

    def _similarities(self, batch: Batch, columns: dict[str, Floats]) -> _Similarities:
        """Run the graph."""
        exists = np.arange(batch.first.shape[1]) < batch.words[:, None]
        window = np.nonzero(exists)[0]
        inputs: dict[str, NDArray[Any]] = {
            "ids": batch.ids,
            "mask": batch.mask,
            "first": np.stack([window, batch.first[exists]], axis=1),
            "last": np.stack([window, batch.last[exists]], axis=1),
            **columns,
        }
        names = ("left", "right", "left_widths", "right_widths", "widths", "products", *self._places)
        left, right, left_widths, right_widths, widths, products, *places = self.text.run(names, **inputs)
        words, edges = len(window), np.cumsum([len(left), len(left) + len(widths) - 1, len(widths)])
        left_types, right_types, widths_types, anchor = np.split(products, edges)
        types_widths = np.ascontiguousarray(widths_types.T)
        parts = Parts(left, right, left_types, right_types, left_widths, right_widths, types_widths, widths)
        return _Similarities(parts, anchor, [(one[:words], one[words:]) for one in places], window)

    def _type_columns(self, query: Floats) -> dict[str, Floats]:
        """The vectors of a query, transposed once for all batches."""
        columns = self._columns
        if columns is None or columns.query is not query:
            size = self.options.vector_size
            places = {STARTS: 0, ENDS: size, SPANS: 2 * size}
            names = type_inputs(self.options)
            inputs = {name: np.ascontiguousarray(query[:, places[name] : places[name] + size].T) for name in names}
            columns = self._columns = _Columns(query, inputs)
        return columns.inputs

    def _threshold(self, position: int, anchor: Floats, query: Floats) -> Floats:
        """The threshold of starts (0), ends (1) or spans (2); `anchor` is the similarity of [CLS]."""
        if self.options.thresholds == "global":
            return np.broadcast_to(query[:, position - 3], anchor.shape)  # the last columns
        return np.zeros_like(anchor) if self.options.thresholds == "tuned" else anchor
