"""What systems share that are run by onnxruntime: batches for worker threads, encoded texts, and cached sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma import EntityType, OnomaError
from onoma.decoding.proposals import Proposals
from onoma.inputs.batches import Batch, bucket_by_length
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.onnx.runtime import MAX_BATCH_TOKENS, Floats, Integers, OnnxRuntime
from onoma.systems.base import RuntimeSettings
from tiny import TYPES

MIN_TOKENS = 64


@given(st.lists(st.integers(2, 200), min_size=1, max_size=90), st.integers(1, 5), st.sampled_from([40, 256]))
def test_batches_are_shared_among_threads_and_the_last_ones_are_small(
    lengths: list[int], threads: int, max_tokens: int
) -> None:
    tokens = np.array(lengths, np.int64)
    batches = bucket_by_length(tokens, len(lengths), max_tokens, workers=threads, min_tokens=MIN_TOKENS)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    sizes = [int(tokens[batch].max()) * len(batch) for batch in batches]
    assert all(size <= max_tokens or len(batch) == 1 for size, batch in zip(sizes, batches, strict=True))
    assert max(map(len, batches)) <= -(-len(lengths) // threads)
    if threads > 1:
        remaining = np.cumsum(sizes[::-1])[::-1]  # tokens of a batch and all behind it, with padding
        for batch, size, rest in zip(batches, sizes, remaining, strict=True):
            assert len(batch) == 1 or size <= max(MIN_TOKENS, rest / (2 * threads))


class CountingRuntime(OnnxRuntime):
    """A runtime whose rows are the number of tokens of a type and their sum."""

    def __init__(self, folder: ModelFolder, settings: RuntimeSettings) -> None:
        super().__init__(folder, settings)
        self.shapes: list[tuple[int, ...]] = []

    def type_text(self, entity_type: EntityType) -> str:
        return entity_type.as_text()

    def encode_types(self, types: Sequence[EntityType]) -> Floats:
        return self.encode_texts([self.type_text(one) for one in types], self._encode)

    def propose(self, batch: Batch, query: Floats, floor: float) -> Proposals:
        return Proposals.concatenate([])

    def _encode(self, ids: Integers, mask: Integers) -> Floats:
        self.shapes.append(ids.shape)
        return np.stack([mask.sum(1), (ids * mask).sum(1)], axis=1).astype(np.float32)


def runtime_of(folder: Path, **settings: int) -> CountingRuntime:
    return CountingRuntime(ModelFolder(folder, ModelConfig("binder")), RuntimeSettings("onnx", **settings))


@pytest.mark.parametrize("threads", [1, 3])
def test_texts_are_encoded_in_batches_and_returned_in_order(tiny_model: Path, threads: int) -> None:
    runtime = runtime_of(tiny_model, threads=threads)
    texts = ["a large town " * (1 + 7 * number % 13) for number in range(60)]
    rows = runtime.encode_texts(texts, runtime._encode)
    tokens = runtime.tokenizer.encode(texts)
    assert rows.tolist() == [[len(one), sum(one)] for one in tokens]
    assert len(runtime.shapes) > 3
    assert all(texts * length <= MAX_BATCH_TOKENS for texts, length in runtime.shapes)


def test_a_type_is_encoded_once(tiny_model: Path) -> None:
    runtime = runtime_of(tiny_model)
    first = runtime.ask(TYPES)
    number = len(runtime.shapes)
    assert runtime.ask([TYPES[2], TYPES[0]]).tolist() == first[[2, 0]].tolist()
    assert len(runtime.shapes) == number


def test_labels_outside_a_closed_set_are_refused(tiny_model: Path) -> None:
    runtime = runtime_of(tiny_model)
    runtime.labels = frozenset(one.name for one in TYPES)
    runtime.ask(TYPES)
    with pytest.raises(OnomaError, match=r"does not know the type river\..*band, city, person"):
        runtime.ask([*TYPES, EntityType("river")])
