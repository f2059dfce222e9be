"""UIE (universal information extraction, as published with PaddleNLP) as an ONNX graph, a peer of Onoma for Chinese.

    UIE("FOLDER/uie-nano-zh").extract(["苹果公司在柏林开设了办事处。"], ["公司", "城市"])

The model reads each text once per label, `[CLS] label [SEP] text [SEP]`, and gives every token two probabilities: that
a mention starts there and that one ends there. Its mentions are decoded as in PaddleNLP: a label is asked for without
regard to the others, so mentions of several labels may overlap.

Needs numpy, onnxruntime and tokenizers only, because `peer_worker.py` uses it in an environment without Onoma.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FILES = ("model.onnx", "vocab.txt")
MAX_TOKENS = 512
THRESHOLD = 0.5  # PaddleNLP's


class Span(NamedTuple):
    """A mention by offsets in characters; the score is the product of both probabilities."""

    start: int
    end: int
    label: str
    score: float


class UIE:
    """A model in a folder with model.onnx and vocab.txt; by default, it runs on all cores."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        import onnxruntime
        from tokenizers import BertWordPieceTokenizer

        graph, vocabulary = (str(folder / name) for name in FILES)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(graph, settings, providers=["CPUExecutionProvider"])
        self._tokenizer = BertWordPieceTokenizer(vocabulary, lowercase=True)
        self._tokenizer.enable_truncation(MAX_TOKENS, strategy="only_second")
        self._tokenizer.enable_padding()

    def extract(
        self, texts: Sequence[str], labels: Sequence[str], batch_size: int = 16, threshold: float = THRESHOLD
    ) -> list[list[Span]]:
        """The mentions of each text. What does not fit after a label is read in a window of its own."""
        pairs = [(place, label) for place in range(len(texts)) for label in labels]
        pairs.sort(key=lambda pair: len(texts[pair[0]]))  # texts of equal lengths into one batch
        found: list[list[Span]] = [[] for _ in texts]
        for first in range(0, len(pairs), batch_size):
            batch = pairs[first : first + batch_size]
            # labels in half-width forms, as PaddleNLP writes them
            read = [(unicodedata.normalize("NFKC", label), texts[place]) for place, label in batch]
            windows = [
                (pair, window)
                for pair, encoding in zip(batch, self._tokenizer.encode_batch(read), strict=True)
                for window in (encoding, *encoding.overflowing)
            ]
            starts, ends = self._probabilities([window for _, window in windows])
            for ((place, label), window), start, end in zip(windows, starts, ends, strict=True):
                for one, last in join(start, end, threshold):
                    offsets = window.offsets[one][0], window.offsets[last][1]
                    found[place].append(Span(*offsets, label, float(start[one] * end[last])))
        return [sorted(spans) for spans in found]

    def _probabilities(self, windows: Sequence[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Whether a mention starts and ends at each token: (windows, tokens); 0 at those that are not of the text."""
        ids, types, mask = (
            np.array([getattr(window, name) for window in windows], np.int64)
            for name in ("ids", "type_ids", "attention_mask")
        )
        positions = np.arange(ids.shape[1]) * mask
        inputs = {"input_ids": ids, "token_type_ids": types, "att_mask": mask, "pos_ids": positions}
        starts, ends = self._session.run(None, inputs)
        of_text = np.array([window.sequence_ids for window in windows]) == 1
        return starts * of_text, ends * of_text


def join(starts: NDArray[np.float32], ends: NDArray[np.float32], threshold: float) -> list[tuple[int, int]]:
    """First and last tokens: each first one with the nearest last one; of several with the same last one, the nearest.

    >>> join(np.array([0.9, 0.9, 0.0, 0.9]), np.array([0.0, 0.0, 0.9, 0.0]), 0.5)
    [(1, 2)]
    """
    first, last = np.flatnonzero(starts > threshold), np.flatnonzero(ends > threshold)
    place = np.searchsorted(last, first)
    first, place = first[place < len(last)], place[place < len(last)]
    nearest = np.diff(place, append=-1) != 0
    return list(zip(first[nearest].tolist(), last[place[nearest]].tolist(), strict=True))
