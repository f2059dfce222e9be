"""BINDER run by PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

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
from onoma.systems.binder.model import Binder, TypeVectors
from onoma.systems.binder.type_texts import type_text


class TorchBinder:
    """A trained BINDER on a device; numbers that need it are computed in bfloat16 on GPUs."""

    name = "torch"

    def __init__(self, model: Binder, config: ModelConfig, subwords: Subwords) -> None:
        self.model, self.config, self.subwords = model, config, subwords
        self.type_numbers = {name: number for number, name in enumerate(config.types)}

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.log_scale.device

    def type_key(self, entity_type: EntityType) -> str:
        """The text that the type encoder reads."""
        return type_text(entity_type, self.model.options)

    @torch.inference_mode()
    def encode_types(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """e^B, e^Q and e of each type in one row, and the number of the type where the model knows types by number."""
        self.model.eval()
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
        inputs = (torch.as_tensor(x, device=self.device) for x in (ids, mask, np.array([place for _, place in instances])))
        with self.precision():
            vectors = self.model.encode_types(*inputs)
        means = [F.normalize(part.view(len(types), -1, part.shape[-1]).mean(1), dim=-1) * part[0].norm() for part in vectors]
        rows = torch.cat(means, dim=-1).float().cpu().numpy()
        return np.concatenate([rows, np.array(numbers, np.float32)[:, None]], axis=1)

    def _require_known(self, types: Sequence[EntityType]) -> None:
        unknown = [one.name for one in types if one.name not in self.type_numbers]
        if unknown:
            raise OnomaError(f"this model knows only the types {', '.join(self.type_numbers)}; asked: {', '.join(unknown)}")

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

    def precision(self) -> torch.autocast:
        """bfloat16 on GPUs, float32 elsewhere."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    @torch.inference_mode()
    def propose(self, batch: Batch, types: NDArray[np.float32], floor: float) -> Proposals:
        """Spans whose score reaches `floor`."""
        self.model.eval()
        margin = self._margins(batch, types)  # (windows, types, words, widths)
        window, kind, first, width = torch.nonzero(margin >= lowest_margin(floor, self.config), as_tuple=True)
        values = torch.sigmoid(self.config.scale * margin[window, kind, first, width] + self.config.bias)
        columns = torch.stack([window, first, first + width, kind]).cpu().numpy()
        return Proposals(*columns, values.float().cpu().numpy())

    def _margins(self, batch: Batch, types: NDArray[np.float32]) -> Tensor:
        size = self.model.options.size
        rows = torch.as_tensor(types[:, : 3 * size], device=self.device)
        vectors = TypeVectors(*rows.split(size, dim=-1))
        ids, mask, first, last, words = (
            torch.as_tensor(x, device=self.device) for x in (batch.ids, batch.mask, batch.first, batch.last, batch.words)
        )
        with self.precision():
            text = self.model.encode_text(ids, mask, first, last)
        numbers = torch.as_tensor(types[:, -1].astype(np.int64), device=self.device)
        sims = self.model.similarities(text, vectors, self.model.options.max_width, numbers)
        return self.model.margins(sims, words)
