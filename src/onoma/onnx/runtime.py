"""What systems share that are run by onnxruntime."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals
from onoma.entities import EntityType
from onoma.inputs.batches import Batch, bucket_by_length, collate, pad_rows
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.examples import MarkedText
from onoma.labels.parsing import check_known
from onoma.labels.type_cache import TypeCache
from onoma.models.folder import ModelFolder
from onoma.onnx.session import OnnxSession, WorkerThreads
from onoma.systems.base import RuntimeSettings, refuse_examples
from onoma.systems.options import reads_word_shapes

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

PAST = "past_"
"""Prefix of the inputs that take keys and values of an earlier pass."""
STATES = "states"
"""The output of a graph that is an encoder alone."""
MAX_BATCH_TOKENS = 256
"""Tokens of a batch, padding included: the activations of a layer then stay in a core's cache."""
CALL_TOKENS = 6
"""What a run of a graph costs besides its tokens, in tokens: measured on small encoders with one thread."""

USUAL_POSITIONS = 512
"""Tokens that almost all encoders can read at once; longer windows are tried out when a model is loaded."""

_MAX_TRIED_TOKENS = 1024
_NO_OFFSETS = np.zeros((0, 2), np.int32)
_ELEMENT_TYPES = {"tensor(int64)": np.int64, "tensor(float)": np.float32}


class OnnxRuntime(ABC):
    """A trained model run by onnxruntime; small batches run side by side in threads."""

    backend = "onnx"
    call_tokens: int | None = CALL_TOKENS
    labels: frozenset[str] | None = None

    def __init__(self, folder: ModelFolder, settings: RuntimeSettings) -> None:
        self.config = folder.config
        self.tokenizer = WordTokenizer.load(folder.path, reads_word_shapes(folder.config.options))
        threads = WorkerThreads(settings.threads)
        self.workers, self.map = threads.threads, threads.map
        cache = settings.cache_dir
        self.types = TypeCache(None if cache is None else Path(cache) / folder.digest(self.backend))

    def check(self) -> None:
        """Run the graphs once, with the tokens that are most likely to fail: the last ones of the tokenizer."""
        last = self.tokenizer.tokenizer.get_vocab_size() - 1
        length = 1 if self.config.max_tokens <= USUAL_POSITIONS else min(self.config.max_tokens, _MAX_TRIED_TOKENS) - 2
        asked = EntityType(min(self.labels) if self.labels else "person")
        one, end = np.zeros(1, np.int64), np.array([length])
        batch = collate(
            np.full(length, last, np.int32), np.arange(length + 1), one, end, self.tokenizer, [""], [_NO_OFFSETS]
        )
        query = self.encode_types([asked])
        self.breadths(query)
        self.propose(batch, query, 1.0)

    def breadths(self, query: Any) -> Floats | None:
        """All labels count alike."""
        return None

    def max_batch_tokens(self, query: Any) -> int:
        """How many tokens a batch should have at most."""
        return MAX_BATCH_TOKENS

    def counts(self) -> dict[str, int]:
        """Nothing is counted."""
        return {}

    @abstractmethod
    def propose(self, batch: Batch, query: Any, floor: float) -> Proposals:
        """The spans whose score reaches `floor`."""

    def ask(self, types: Sequence[EntityType], examples: Sequence[Sequence[MarkedText]] = ()) -> Floats:
        """One row per type, from the cache or encoded."""
        refuse_examples(examples, self.config)
        return self.type_rows(types)

    def type_rows(self, types: Sequence[EntityType]) -> Floats:
        """One row per type, from the cache or encoded."""
        check_known(types, self.labels)
        keys = [self.type_text(one) for one in types]
        return self.types.rows(keys, lambda missing: self.encode_types([types[place] for place in missing]))

    @abstractmethod
    def type_text(self, entity_type: EntityType) -> str:
        """The text that the type encoder reads."""

    @abstractmethod
    def encode_types(self, types: Sequence[EntityType]) -> Floats:
        """One row per type."""

    def encode_texts(self, texts: Sequence[str], encode: Callable[[Integers, Integers], Floats]) -> Floats:
        """One row per text, in their order, by a function of token ids and mask."""
        tokens = self.tokenizer.encode(texts)
        lengths = [len(one) for one in tokens]
        batches = bucket_by_length(lengths, len(lengths), MAX_BATCH_TOKENS, workers=self.workers)
        padded = [pad_rows([tokens[place] for place in batch], self.tokenizer.pad) for batch in batches]
        rows = np.concatenate(list(self.map(lambda inputs: encode(*inputs), padded)))
        return rows[np.argsort(np.concatenate(batches))]


class CachedSession:
    """A graph whose tokens also attend to those of an earlier pass, written by `onoma.onnx.encoder.cached_encoder`."""

    def __init__(self, session: OnnxSession) -> None:
        self.session = session
        inputs = session.session.get_inputs()
        self._inputs = {one.name: (one.shape, _ELEMENT_TYPES[one.type]) for one in inputs}
        self.cache = [name.removeprefix(PAST) for name in self._inputs if name.startswith(PAST)]

    def run(self, outputs: Sequence[str], past: Sequence[Floats] = (), **inputs: NDArray[Any]) -> list[Floats]:
        """Some outputs; `past` are the outputs named `cache` of an earlier pass, if there was one.

        Inputs that are not given become zeros of the smallest size, because some operators do not accept empty inputs.
        """
        inputs |= {PAST + name: value for name, value in zip(self.cache, past, strict=False)}
        sizes = {"texts": len(inputs["ids"]), "cached": 0}
        for name in self._inputs.keys() - inputs.keys():
            shape, kind = self._inputs[name]
            inputs[name] = np.zeros([one if isinstance(one, int) else sizes.get(one, 1) for one in shape], kind)
        return self.session.run(outputs, **inputs)
