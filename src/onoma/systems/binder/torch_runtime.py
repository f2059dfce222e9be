"""BINDER run by PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from onoma.backends.base import lowest_margin
from onoma.batches import Batch
from onoma.config import ModelConfig
from onoma.decoding import Proposals
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.subwords import Subwords, pad_rows
from onoma.systems.binder.model import Binder, SpanKeys, TypeVectors, span_margins
from onoma.systems.blocks.torch_runtime import TorchRuntime


class _Asked(NamedTuple):
    """Types on the device."""

    rows: NDArray[np.float32]  # as `encode_types` gave them
    vectors: TypeVectors
    keys: SpanKeys
    numbers: Tensor


class TorchBinder(TorchRuntime):
    """A trained BINDER on a device."""

    model: Binder

    def __init__(self, model: Binder, config: ModelConfig, subwords: Subwords) -> None:
        super().__init__(model, config, subwords)
        self.type_numbers = {name: number for number, name in enumerate(config.types)}
        self._last_asked: _Asked | None = None

    def style(self, corpus: str | None) -> TorchBinder:
        """BINDER knows nothing of the corpora that it was trained on: the same model."""
        return self

    @torch.inference_mode()
    def encode_types(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """e^B, e^Q and e of each type in one row, and the number of the type where the model knows types by number."""
        self.ready()
        if self.model.options.types == "prototype":
            return self._encode_prototypes(types)
        rows = []
        for start in range(0, len(types), 256):
            part = types[start : start + 256]
            ids, mask = self.type_inputs(part)
            with self.precision():
                vectors = self.model.encode_types(ids, mask)
            rows.append(torch.cat(vectors, dim=-1).float().cpu().numpy())
        numbers = np.array([[self.type_numbers.get(one.name, -1)] for one in types], np.float32)
        return np.concatenate([np.concatenate(rows), numbers], axis=1)

    def _encode_prototypes(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """The mean over the instances that the model keeps of each type, brought back to length 1/τ."""
        self._require_known(types)
        numbers = [self.type_numbers[one.name] for one in types]
        instances = [instance for number in numbers for instance in self.config.options["prototypes"][number]]
        ids, mask = pad_rows([tokens for tokens, _ in instances], self.subwords.pad)
        places = np.array([place for _, place in instances])
        with self.precision():
            vectors = self.model.encode_types(*(torch.as_tensor(x, device=self.device) for x in (ids, mask, places)))
        means = [part.view(len(types), -1, part.shape[-1]).mean(1) for part in vectors]
        scaled = [F.normalize(mean, dim=-1) * part[0].norm() for mean, part in zip(means, vectors, strict=True)]
        rows = torch.cat(scaled, dim=-1).float().cpu().numpy()
        return np.concatenate([rows, np.array(numbers, np.float32)[:, None]], axis=1)

    def _require_known(self, types: Sequence[EntityType]) -> None:
        unknown = [one.name for one in types if one.name not in self.type_numbers]
        if unknown:
            known = ", ".join(self.type_numbers)
            raise OnomaError(f"this model knows only the types {known}; it does not know {', '.join(unknown)}")

    def type_inputs(self, types: Sequence[EntityType]) -> tuple[Tensor, Tensor]:
        """What the type encoder reads, as tensors."""
        options = self.model.options
        if options.types == "atomic" or options.thresholds == "global":
            self._require_known(types)
        if options.types == "atomic":
            ids = np.array([[self.type_numbers[one.name]] for one in types])
            return torch.as_tensor(ids, device=self.device), torch.ones(ids.shape, device=self.device)
        ids, mask = self.subwords.encode([self.type_key(one) for one in types])
        return torch.as_tensor(ids, device=self.device), torch.as_tensor(mask, device=self.device)

    @torch.inference_mode()
    def propose(self, batch: Batch, types: NDArray[np.float32], floor: float) -> Proposals:
        """Spans whose score reaches `floor`. Only what is found leaves the device."""
        self.ready()
        margin = self._margins(batch, types)  # (windows, types, words, widths)
        lowest = max(lowest_margin(floor, self.config), torch.finfo(margin.dtype).min)  # -inf: no span there
        flat = margin.flatten()
        places = torch.nonzero(flat >= lowest).squeeze(1)
        values = flat[places].cpu()
        window, kind, first, width = np.unravel_index(places.cpu().numpy(), margin.shape)
        score = torch.sigmoid(self.config.scale * values + self.config.bias)
        return Proposals(window, first, first + width, kind, score.numpy())

    def _margins(self, batch: Batch, types: NDArray[np.float32]) -> Tensor:
        model, asked = self.model, self._asked(types)
        windows, length = batch.first.shape
        places = np.zeros((2, windows, 1 + length), np.int64)  # [CLS], then the words
        places[:, :, 1:] = batch.first, batch.last
        ids, mask, words, first, last = self.copy((batch.ids, batch.mask, batch.words, *places))
        with self.precision():
            states = model.states(ids, mask, first, last)
        if model.options.inference == "joint":
            text = model.text_vectors(*states)
            return model.margins(model.similarities(text, asked.vectors, model.options.max_width, asked.numbers), words)
        left, right = model.span_vectors(*states)
        keys = asked.keys.narrow(min(model.options.max_width, length))
        span, anchor = model.span_similarities(left, right, keys, asked.numbers)
        return span_margins(span, anchor, words)

    def _asked(self, types: NDArray[np.float32]) -> _Asked:
        """The types as the model needs them on the device; those of the last batch are still at hand."""
        asked = self._last_asked
        if asked is None or asked.rows is not types:
            vectors = TypeVectors(*torch.as_tensor(types[:, :-1], device=self.device).chunk(3, dim=-1))
            numbers = torch.as_tensor(types[:, -1].astype(np.int64), device=self.device)
            keys = self.model.span_keys(vectors.span, self.model.options.max_width)
            asked = self._last_asked = _Asked(types, vectors, keys, numbers)
        return asked
