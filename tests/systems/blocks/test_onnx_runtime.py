"""Parts of a batch, for threads side by side."""

from __future__ import annotations

from typing import cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onoma.config import ModelConfig
from onoma.subwords import Subwords
from onoma.systems.blocks.onnx_runtime import LEAST_TOKENS, OnnxRuntime


@given(st.lists(st.integers(2, 200), min_size=1, max_size=90), st.integers(1, 5), st.sampled_from([40, 256]))
def test_every_text_is_in_one_part_and_the_last_are_small(lengths: list[int], threads: int, most: int) -> None:
    runtime = OnnxRuntime(ModelConfig("binder"), cast(Subwords, None), threads)
    tokens = np.array(lengths, np.int64)
    parts = runtime.parts(tokens, most)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(lengths)))
    sizes = [int(tokens[part].max()) * len(part) for part in parts]
    assert all(size <= most or len(part) == 1 for size, part in zip(sizes, parts, strict=True))
    assert len(parts) >= min(threads, len(lengths))
    left = np.cumsum(sizes[::-1])[::-1]  # tokens of a part and all behind it, with padding
    for part, size, rest in zip(parts, sizes, left, strict=True):
        assert len(part) == 1 or size <= max(LEAST_TOKENS, rest / (2 * threads))


def test_texts_of_one_length_go_in_equal_parts_until_the_end() -> None:
    runtime = OnnxRuntime(ModelConfig("binder"), cast(Subwords, None), 2)
    sizes = [len(part) for part in runtime.parts(np.full(40, 32, np.int64), 256)]
    assert sizes[0] == 8
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] <= 2
