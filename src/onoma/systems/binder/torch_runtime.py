"""BINDER run by PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from onoma.decoding.proposals import Proposals
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.inputs.batches import Batch, pad_rows
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.examples import MarkedText
from onoma.labels.type_cache import TypeCache
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.base import RuntimeSettings, margin_of
from onoma.systems.binder.model import Binder, SpanKeys, TypeVectors, span_margins
from onoma.systems.binder.options import PROTOTYPES_FILE, BinderOptions
from onoma.systems.binder.prototypes import Instance
from onoma.systems.binder.rows import breadth_column, with_offset
from onoma.systems.binder.teaching import SpanParts, teach_rows, unit_vectors
from onoma.systems.blocks.inference_graphs import Outputs, round_up
from onoma.systems.blocks.torch_runtime import TorchRuntime

_TYPES_AT_ONCE = 256


class _DeviceQuery(NamedTuple):
    """The types of a query on the device."""

    rows: NDArray[np.float32]  # as `encode_types` returned them
    vectors: TypeVectors
    keys: SpanKeys
    offset: Tensor  # added to margins
    numbers: Tensor


class TorchBinder(TorchRuntime):
    """A trained BINDER on a device."""

    model: Binder

    def __init__(
        self,
        model: Binder,
        config: ModelConfig,
        tokenizer: WordTokenizer,
        cache: TypeCache | None = None,
        prototypes: Sequence[Sequence[Instance]] = (),
    ) -> None:
        """`prototypes` are instances of each type, for models whose types are prototypical instances."""
        super().__init__(model, config, tokenizer, cache)
        self.prototypes = prototypes
        self.type_numbers = {name: number for number, name in enumerate(config.types)}
        if model.options.types in ("atomic", "prototype") or model.options.thresholds == "global":
            self.labels = frozenset(config.types)
        self._last_query: _DeviceQuery | None = None

    @classmethod
    def load(cls, folder: ModelFolder, settings: RuntimeSettings) -> Self:
        """Load a model folder."""
        runtime = super().load(folder, settings)
        if runtime.model.options.types == "prototype":
            if not folder.has(PROTOTYPES_FILE):
                raise OnomaError(f"{folder.path} has no {PROTOTYPES_FILE}. Fix: get the model again")
            runtime.prototypes = json.loads((folder.path / PROTOTYPES_FILE).read_text("utf-8"))
        return runtime

    def artifacts(self) -> dict[str, bytes]:
        """The prototypical instances of types, if there are any."""
        return {PROTOTYPES_FILE: json.dumps(self.prototypes).encode()} if self.prototypes else {}

    def with_style(self, corpus: str | None) -> Self:
        """BINDER has no styles: the same model."""
        return self

    def type_text(self, entity_type: EntityType) -> str:
        """The text that the type encoder reads."""
        return entity_type.as_text() if self.model.options.types == "description" else entity_type.name

    @torch.inference_mode()
    def encode_types(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """e^B, e^Q, e, offset (0), b and number of each type in one row; -1 if the model does not know it by number.

        b is there if the model has a breadth head.
        """
        self.eval()
        if self.model.options.types == "prototype":
            return self._encode_prototypes(types)
        rows = []
        for start in range(0, len(types), _TYPES_AT_ONCE):
            ids, mask = self._type_inputs(types[start : start + _TYPES_AT_ONCE])
            with self.autocast():
                encoded = self.model.type_rows(self.model.pool_types(ids, mask))
            rows.append(encoded.float().cpu().numpy())
        numbers = [self.type_numbers.get(one.name, -1) for one in types]
        return self._with_numbers(np.concatenate(rows), numbers)

    def ask(self, types: Sequence[EntityType], examples: Sequence[Sequence[MarkedText]] = ()) -> NDArray[np.float32]:
        """One row per type, corrected by its examples if there are some."""
        rows = self.type_rows(types)
        if not any(examples):
            return rows
        return teach_rows(self, rows, [self.type_text(one) for one in types], examples, self.cache)

    @property
    def options(self) -> BinderOptions:
        """The options of the model."""
        return self.model.options

    @torch.inference_mode()
    def span_parts(self, batch: Batch) -> SpanParts:
        """The parts of the spans of a batch."""
        self.eval()
        states, words = self._states(batch)
        left, right = self.model.span_vectors(*states)
        widths = self.model.width_vectors(self.options.max_width)
        anchor = F.normalize(left[:, 0] + right[:, 0] + widths[0], dim=-1) * (self.options.thresholds == "dynamic")
        exists = torch.arange(left.shape[1] - 1, device=self.device) < words[:, None]
        parts = (left[:, 1:][exists], right[:, 1:][exists], widths, anchor)
        return SpanParts(*(part.float().cpu().numpy() for part in parts))

    def span_vectors(
        self, batch: Batch, window: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """The unit vectors of spans of a batch."""
        return unit_vectors(self.span_parts(batch), batch.words, window, first, last)

    def global_thresholds(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """The thresholds of spans that do not depend on the text."""
        if self.options.thresholds != "global":
            return np.zeros(len(rows), np.float32)
        known = self.model.global_thresholds[2].detach().cpu().numpy()
        return np.asarray(known[rows[:, -1].astype(np.int64)], np.float32)

    def _type_inputs(self, types: Sequence[EntityType]) -> tuple[Tensor, Tensor]:
        """Token ids and mask for the type encoder; for atomic types, their numbers."""
        if self.model.options.types == "atomic":
            ids = np.array([[self.type_numbers[one.name]] for one in types])
            return torch.as_tensor(ids, device=self.device), torch.ones(ids.shape, device=self.device)
        tokens = self.tokenizer.encode([self.type_text(one) for one in types])
        ids, mask = pad_rows(tokens, self.tokenizer.pad)
        return torch.as_tensor(ids, device=self.device), torch.as_tensor(mask, device=self.device)

    def _encode_prototypes(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """The mean over the instances of each type, scaled to length 1/τ again."""
        numbers = [self.type_numbers[one.name] for one in types]
        instances = [instance for number in numbers for instance in self.prototypes[number]]
        ids, mask = pad_rows([tokens for tokens, _ in instances], self.tokenizer.pad)
        places = np.array([place for _, place in instances])
        with self.autocast():
            pooled = self.model.pool_types(*(torch.as_tensor(x, device=self.device) for x in (ids, mask, places)))
            encoded = self.model.type_rows(pooled)
        means = encoded.view(len(types), -1, encoded.shape[-1]).mean(1)
        vectors = means[:, : 3 * self.options.vector_size].chunk(3, dim=-1)
        lengths = self.model.similarity_scales()
        scaled = [F.normalize(mean, dim=-1) * length for mean, length in zip(vectors, lengths, strict=True)]
        rows = torch.cat([*scaled, means[:, 3 * self.options.vector_size :]], dim=-1).float().cpu().numpy()
        return self._with_numbers(rows, numbers)

    def _with_numbers(self, rows: NDArray[np.float32], numbers: Sequence[int]) -> NDArray[np.float32]:
        """Rows of types with two more columns: an offset of 0 behind the vectors, and the numbers at the end."""
        return np.concatenate([with_offset(rows, self.options), np.array(numbers, np.float32)[:, None]], axis=1)

    def breadths(self, query: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """b of each type, if the model has a breadth head."""
        return breadth_column(query, self.options)

    @torch.inference_mode()
    def propose(self, batch: Batch, query: NDArray[np.float32], floor: float) -> Proposals:
        """The spans whose score reaches `floor`. Only what is found is copied from the device."""
        self.eval()
        margin = self._margins(batch, query)  # (windows, types, words, widths)
        lowest = max(margin_of(floor, self.config), torch.finfo(margin.dtype).min)  # -inf marks impossible spans
        flat = margin.flatten()
        places = torch.nonzero(flat >= lowest).squeeze(1)
        values = flat[places].cpu()
        window, kind, first, width = np.unravel_index(places.cpu().numpy(), margin.shape)
        score = torch.sigmoid(self.config.scale * values + self.config.bias)
        return Proposals(window, first, first + width, kind, score.numpy())

    def _margins(self, batch: Batch, query: NDArray[np.float32]) -> Tensor:
        captured = self._captured_states(batch)
        with self.launching:
            states, words = self._states(batch, captured())
            return self._match(batch, states, words, query)

    def _match(self, batch: Batch, states: list[Tensor], words: Tensor, query: NDArray[np.float32]) -> Tensor:
        model, types = self.model, self._to_device(query)
        if model.options.inference == "joint":
            text = model.text_vectors(*states)
            sims = model.similarities(text, types.vectors, model.options.max_width, types.numbers)
            return model.margins(sims._replace(span_anchor=sims.span_anchor - types.offset), words)
        left, right = model.span_vectors(*states)
        keys = types.keys.narrow(min(model.options.max_width, batch.first.shape[1]))
        span, anchor = model.span_similarities(left, right, keys, types.numbers)
        return span_margins(span, anchor - types.offset, words)

    def _states(self, batch: Batch, captured: Outputs | None = None) -> tuple[list[Tensor], Tensor]:
        """The states at the starts and ends of [CLS] and the words, and the number of words of each window.

        With `captured` outputs of `_captured_states`, the encoder is not run.
        """
        windows, length = batch.first.shape
        if captured is not None:
            (words,) = self.copy((batch.words,))
            return [states[:windows, : 1 + length] for states in captured], words
        ids, mask, first, last, words = self.copy((*_arrays(batch), batch.words))
        with self.autocast():
            return self.model.states(ids, mask, first, last), words

    def _captured_states(self, batch: Batch) -> Callable[[], Outputs | None]:
        """The same states, of padded windows, by a CUDA graph; see `captured`."""
        encoder = self.model.encode.prepared
        if encoder is None:  # an encoder of another family, which may wait for the GPU
            return lambda: None
        rows, words = round_up(len(batch.ids)), round_up(1 + batch.first.shape[1])
        tokens = min(round_up(batch.ids.shape[1]), len(encoder.places))
        shapes = (rows, tokens), (rows, tokens), (rows, words), (rows, words)
        return self.captured("states", lambda *inputs: tuple(self.model.states(*inputs)), _arrays(batch), shapes)

    def _to_device(self, query: NDArray[np.float32]) -> _DeviceQuery:
        """The types as the model needs them; those of the previous batch are kept."""
        types = self._last_query
        if types is None or types.rows is not query:
            rows, size = torch.as_tensor(query, device=self.device), 3 * self.options.vector_size
            vectors, offset = TypeVectors(*rows[:, :size].chunk(3, dim=-1)), rows[:, size]
            numbers = torch.as_tensor(query[:, -1].astype(np.int64), device=self.device)
            keys = self.model.span_keys(vectors.span, self.model.options.max_width)
            types = self._last_query = _DeviceQuery(query, vectors, keys, offset, numbers)
        return types


def _arrays(batch: Batch) -> tuple[NDArray[np.int64], ...]:
    """Token ids, mask, and the first and last tokens of [CLS] and the words."""
    places = np.zeros((2, len(batch.first), 1 + batch.first.shape[1]), np.int64)  # [CLS] is token 0
    places[:, :, 1:] = batch.first, batch.last
    return batch.ids, batch.mask, *places
