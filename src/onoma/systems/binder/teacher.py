"""A trained BINDER whose scores another one learns from: also for types that are not annotated in a text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.folder import open_single
from onoma.systems.base import RuntimeSettings
from onoma.systems.binder.torch_runtime import TorchBinder


class Teacher:
    """It reads types with their descriptions, whatever the learning model is shown; their vectors are fixed."""

    def __init__(self, folder: str, types: Sequence[EntityType]) -> None:
        opened = open_single(folder, "learn from")
        if opened.config.system != "binder":
            raise OnomaError(f"{folder} is a model of {opened.config.system}. Fix: give a teacher of the system binder")
        self.runtime = TorchBinder.load(opened, RuntimeSettings("torch"))
        options = self.runtime.options
        decides = options.objective == "sigmoid" and options.inference == "span"
        if not decides or options.types not in ("description", "name"):
            raise OnomaError(
                f"{folder} does not decide for each span and type on its own. Fix: give a teacher that was trained "
                "with 'objective: sigmoid'"
            )
        self.runtime.eval()
        size = options.vector_size
        rows = self.runtime.type_rows(types)[:, 2 * size : 3 * size]  # e
        self.types = torch.as_tensor(rows, device=self.runtime.device)

    @property
    def tokenizer(self) -> WordTokenizer:
        """Its tokenizer."""
        return self.runtime.tokenizer

    @torch.no_grad()
    def margins(self, ids: Tensor, mask: Tensor, first: Tensor, last: Tensor, numbers: Tensor, widths: int) -> Tensor:
        """How far the spans of up to `widths` words are above the thresholds: (windows, types, words, widths)."""
        model = self.runtime.model
        with self.runtime.autocast():
            left, right = model.span_vectors(*model.states(ids, mask, F.pad(first, (1, 0)), F.pad(last, (1, 0))))
        span, anchor = model.span_similarities(left, right, model.span_keys(self.types[numbers], widths))
        return span - anchor[..., None, None]
