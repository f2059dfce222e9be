"""BINDER run by PyTorch."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
from onoma.labels.type_cache import TypeCache
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.base import RuntimeSettings, margin_of
from onoma.systems.binder.model import Binder, SpanKeys, TypeVectors, span_margins
from onoma.systems.binder.options import PROTOTYPES_FILE
from onoma.systems.binder.prototypes import Instance
from onoma.systems.blocks.torch_runtime import TorchRuntime

_TYPES_AT_ONCE = 256


class _DeviceQuery(NamedTuple):
    """The types of a query on the device."""

    rows: NDArray[np.float32]  # as `encode_types` returned them
    vectors: TypeVectors
    keys: SpanKeys
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
        """e^B, e^Q and e of each type in one row, followed by its number if the model knows types by number."""
        self.eval()
        if self.model.options.types == "prototype":
            return self._encode_prototypes(types)
        rows = []
        for start in range(0, len(types), _TYPES_AT_ONCE):
            ids, mask = self._type_inputs(types[start : start + _TYPES_AT_ONCE])
            with self.autocast():
                vectors = self.model.encode_types(ids, mask)
            rows.append(torch.cat(vectors, dim=-1).float().cpu().numpy())
        numbers = np.array([[self.type_numbers.get(one.name, -1)] for one in types], np.float32)
        return np.concatenate([np.concatenate(rows), numbers], axis=1)

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
            vectors = self.model.encode_types(*(torch.as_tensor(x, device=self.device) for x in (ids, mask, places)))
        means = [part.view(len(types), -1, part.shape[-1]).mean(1) for part in vectors]
        scaled = [F.normalize(mean, dim=-1) * part[0].norm() for mean, part in zip(means, vectors, strict=True)]
        rows = torch.cat(scaled, dim=-1).float().cpu().numpy()
        return np.concatenate([rows, np.array(numbers, np.float32)[:, None]], axis=1)

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
        model, types = self.model, self._to_device(query)
        windows, length = batch.first.shape
        places = np.zeros((2, windows, 1 + length), np.int64)  # [CLS], then the words
        places[:, :, 1:] = batch.first, batch.last
        ids, mask, words, first, last = self.copy((batch.ids, batch.mask, batch.words, *places))
        with self.autocast():
            states = model.states(ids, mask, first, last)
        if model.options.inference == "joint":
            text = model.text_vectors(*states)
            return model.margins(model.similarities(text, types.vectors, model.options.max_width, types.numbers), words)
        left, right = model.span_vectors(*states)
        keys = types.keys.narrow(min(model.options.max_width, length))
        span, anchor = model.span_similarities(left, right, keys, types.numbers)
        return span_margins(span, anchor, words)

    def _to_device(self, query: NDArray[np.float32]) -> _DeviceQuery:
        """The types as the model needs them; those of the previous batch are kept."""
        types = self._last_query
        if types is None or types.rows is not query:
            vectors = TypeVectors(*torch.as_tensor(query[:, :-1], device=self.device).chunk(3, dim=-1))
            numbers = torch.as_tensor(query[:, -1].astype(np.int64), device=self.device)
            keys = self.model.span_keys(vectors.span, self.model.options.max_width)
            types = self._last_query = _DeviceQuery(query, vectors, keys, numbers)
        return types
