"""What systems share that are run by PyTorch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.examples import MarkedText
from onoma.labels.parsing import check_known
from onoma.labels.type_cache import TypeCache
from onoma.locks import ForkSafeLock
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.models.weights import load_model
from onoma.systems.base import RuntimeSettings, refuse_examples
from onoma.systems.blocks.encoders import max_positions
from onoma.systems.blocks.inference import inference_dtype
from onoma.systems.blocks.inference_graphs import Function, InferenceGraphs, Outputs, Shape, unpack
from onoma.systems.options import reads_word_shapes

T = TypeVar("T")
R = TypeVar("R")

MAX_BATCH_TOKENS = 16_384
"""Tokens of a batch, padding included."""


class LoadedTorchModel:
    """A trained model run by PyTorch, in bfloat16 on GPUs."""

    backend = "torch"
    workers = 1
    call_tokens: int | None = None  # a GPU is faster with full batches
    labels: frozenset[str] | None = None

    def __init__(self, model: Any, config: ModelConfig, tokenizer: WordTokenizer) -> None:
        self.model, self.config, self.tokenizer = model, config, tokenizer
        self.launching = ForkSafeLock()
        """Held while the work of a batch is passed to the GPU: else the work of two threads would be mixed, both would
        wait for all of it, and the GPU would wait for both."""
        self.graphs = InferenceGraphs(torch.device("cpu"))
        """Off until the weights are prepared."""

    @classmethod
    def load(cls, folder: ModelFolder, settings: RuntimeSettings) -> Self:
        """Load a model folder."""
        model = load_model(folder, settings.device)
        tokenizer = WordTokenizer.load(folder.path, reads_word_shapes(folder.config.options))
        runtime = cls(model, folder.config, tokenizer)
        runtime.prepare()
        return runtime

    def prepare(self) -> None:
        """Prepare weights that will not change any more; on GPUs, encoders then run without autocast."""
        self.graphs = InferenceGraphs(self.device)
        if self.device.type == "cuda":
            for function in self.model.graphed_functions:
                function.prepare(inference_dtype(self.device))

    def check(self) -> None:
        """Check that the encoder can read every token of the tokenizer, and windows of full length."""
        encoder, tokens = self.model.text_encoder, self.tokenizer.tokenizer.get_vocab_size()
        known, positions = encoder.get_input_embeddings().num_embeddings, max_positions(encoder)
        if tokens > known:
            raise OnomaError(f"the tokenizer has {tokens} tokens, but the encoder knows {known}")
        if positions is not None and self.config.max_tokens > positions:
            raise OnomaError(f"'max_tokens' is {self.config.max_tokens}, but the encoder reads {positions} at most")

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        device: torch.device = next(self.model.parameters()).device
        return device

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterable[R]:
        """Apply a function to items one by one."""
        return map(function, items)

    def breadths(self, query: Any) -> NDArray[np.float32] | None:
        """All labels count alike."""
        return None

    def max_batch_tokens(self, query: Any) -> int:
        """How many tokens a batch should have at most."""
        return MAX_BATCH_TOKENS

    def counts(self) -> dict[str, int]:
        """Nothing is counted."""
        return {}

    def artifacts(self) -> dict[str, bytes]:
        """Files of the model folder beyond the usual ones."""
        return {}

    def autocast(self) -> torch.autocast:
        """bfloat16 on GPUs, float32 elsewhere."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    def eval(self) -> None:
        """Turn dropout off; the check comes first, because `eval` visits all modules."""
        if self.model.training:
            self.model.eval()

    def copy(self, arrays: Sequence[NDArray[np.int64]]) -> list[Tensor]:
        """Arrays on the device, by a single copy, because each copy has a fixed cost. Nothing waits for it."""
        shapes = [array.shape for array in arrays]
        return unpack(self._pack(arrays, shapes).to(self.device, non_blocking=True), shapes)

    def _pack(self, arrays: Sequence[NDArray[np.int64]], shapes: Sequence[Shape]) -> Tensor:
        """Arrays in a buffer that the GPU can read, each with zeros behind its rows and columns up to a shape."""
        sizes = [math.prod(shape) for shape in shapes]
        buffer = torch.empty(sum(sizes), dtype=torch.int64, pin_memory=self.device.type == "cuda")
        values, end = buffer.numpy(), 0
        for array, shape, size in zip(arrays, shapes, sizes, strict=True):
            start, end = end, end + size
            padded = values[start:end].reshape(shape)
            if array.shape != shape:
                padded[...] = 0
            padded[tuple(slice(length) for length in array.shape)] = array
        return buffer

    def captured(
        self,
        name: str,
        function: Function,
        arrays: Sequence[NDArray[np.int64]],
        shapes: Sequence[Shape],
        tensors: Sequence[Tensor] = (),
        variant: Hashable = None,
    ) -> Callable[[], Outputs | None]:
        """A function of arrays, padded to shapes, and tensors as a CUDA graph; see `InferenceGraphs`.

        The result launches it, and returns None if there is no graph, because there are none on this device or too few
        batches had these shapes. It must be called, and what reads its outputs must be launched, while `launching` is
        held.
        """
        key = name, *shapes, *(one.shape for one in tensors)
        if not self.graphs.wants(key):
            return lambda: None
        packed = self._pack(arrays, shapes)
        return lambda: self.graphs.run(key, variant, function, packed, shapes, tensors)

    def run_captured(self, *arguments: Any, **named: Any) -> Callable[[], list[NDArray[Any]]] | None:
        """Launch what `captured` returns for these arguments; the result waits for the outputs."""
        launch = self.captured(*arguments, **named)
        with self.launching:
            outputs = launch()
            return None if outputs is None else self.fetch(*outputs)

    def fetch(self, *tensors: Tensor) -> Callable[[], list[NDArray[Any]]]:
        """Start to copy tensors from the device; the result waits for them, not for what is passed to the GPU later."""
        if self.device.type != "cuda":
            return lambda: [one.numpy() for one in tensors]
        copies = [torch.empty(one.shape, dtype=one.dtype, pin_memory=True) for one in tensors]
        for copy, one in zip(copies, tensors, strict=True):
            copy.copy_(one, non_blocking=True)
        done: Any = torch.cuda.current_stream(self.device).record_event()

        def wait() -> list[NDArray[Any]]:
            done.synchronize()
            return [one.numpy() for one in copies]

        return wait


class TorchRuntime(LoadedTorchModel, ABC):
    """A trained model that compares texts with encoded types.

    Without a `cache`, types are encoded every time they are asked for: in training, weights change.
    """

    def __init__(
        self, model: Any, config: ModelConfig, tokenizer: WordTokenizer, cache: TypeCache | None = None
    ) -> None:
        super().__init__(model, config, tokenizer)
        self.cache = cache

    @classmethod
    def load(cls, folder: ModelFolder, settings: RuntimeSettings) -> Self:
        """Load a model folder."""
        runtime = super().load(folder, settings)
        path = None if settings.cache_dir is None else Path(settings.cache_dir) / folder.digest(cls.backend)
        runtime.cache = TypeCache(path)
        return runtime

    def ask(self, types: Sequence[EntityType], examples: Sequence[Sequence[MarkedText]] = ()) -> Any:
        """One row per type, from the cache or encoded."""
        refuse_examples(examples, self.config)
        return self.type_rows(types)

    def type_rows(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """One row per type, from the cache or encoded."""
        check_known(types, self.labels)
        if self.cache is None:
            return self.encode_types(types)
        keys = [self.type_text(one) for one in types]
        return self.cache.rows(keys, lambda missing: self.encode_types([types[place] for place in missing]))

    @abstractmethod
    def type_text(self, entity_type: EntityType) -> str:
        """The text that the type encoder reads."""

    @abstractmethod
    def encode_types(self, types: Sequence[EntityType]) -> NDArray[np.float32]:
        """One row per type."""
