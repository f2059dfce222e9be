"""Vectors of gold mentions in two dimensions (figure 4 of SCL-RAI, figure 4 of NerCo), by principal components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onoma.entities import Corpus, Document
from onoma.extractor import Extractor
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.reading import LoadedModel
from onoma.systems.base import SpanVectors

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

MOST_MENTIONS = 1000
"""Mentions in a picture."""
_WINDOWS_AT_ONCE = 16


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Places of gold mentions in the plane of the two main directions of their vectors, and their labels.

    `explained` is the share of the variance that each of the two directions has.
    """

    places: Floats  # (mentions, 2)
    labels: tuple[str, ...]
    explained: tuple[float, float]


def project_mentions(
    model: Extractor, corpus: Corpus, *, most: int = MOST_MENTIONS, seed: int = 0
) -> Projection | None:
    """Vectors of at most `most` gold mentions, chosen by document at random.

    None if the system has no vectors of spans, or if there are fewer than three mentions. If several models read the
    corpus, only the mentions that the most frequent one reads are shown, because vectors of different models cannot be
    compared.
    """
    loaded, documents = _most_frequent_model(model, _choose_documents(corpus, most, seed))
    if loaded is None or not isinstance(loaded.runtime, SpanVectors):
        return None
    vectors, labels = mention_vectors(loaded.runtime, documents)
    return project(vectors[:most], labels[:most]) if len(vectors) > 2 else None


def project(vectors: Floats, labels: Sequence[str]) -> Projection:
    """The two main directions of vectors (principal components)."""
    centred = vectors.astype(np.float64) - vectors.mean(0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    directions *= np.where(directions[:, :1] < 0, -1, 1)  # the sign is arbitrary
    places = np.zeros((len(vectors), 2))
    places[:, : min(2, len(directions))] = centred @ directions[:2].T
    variance = np.append(sizes**2, [0.0, 0.0])
    share = variance[:2] / max(variance.sum(), 1e-12)
    return Projection(places.astype(np.float32), tuple(labels), (float(share[0]), float(share[1])))


def _choose_documents(corpus: Corpus, most: int, seed: int) -> list[Document]:
    """Documents at random with about so many mentions in all."""
    chosen, count = [], 0
    for place in np.random.default_rng(seed).permutation(len(corpus)).tolist():
        document = corpus.documents[place]
        if document.entities and count < most:
            chosen.append(document)
            count += len(document.entities)
    return chosen


def _most_frequent_model(
    model: Extractor, documents: Sequence[Document]
) -> tuple[LoadedModel | None, Sequence[Document]]:
    """The model that reads most of the documents, and these documents."""
    groups: dict[int, tuple[LoadedModel, list[Document]]] = {}
    for document in documents:
        loaded = model.model_for(document.text)
        groups.setdefault(id(loaded), (loaded, []))[1].append(document)
    return max(groups.values(), key=lambda one: len(one[1])) if groups else (None, ())


def mention_vectors(runtime: SpanVectors, documents: Sequence[Document]) -> tuple[Floats, list[str]]:
    """The vectors of mentions that start and end with words and are inside of a window, and their labels."""
    config, tokenizer = runtime.config, runtime.tokenizer
    packed = PackedTexts.pack([one.text for one in documents])
    texts = WindowedTexts.cut(packed, tokenizer, config.max_tokens, config.overlap)
    spans, labels = _word_spans(packed, documents)
    window = np.searchsorted(texts.windows.start, spans[:, 0], side="right") - 1
    inside = spans[:, 1] < texts.windows.end[window]
    spans, window = spans[inside] - texts.windows.start[window[inside], None], window[inside]
    vectors = []
    for start in range(0, len(texts.windows), _WINDOWS_AT_ONCE):
        rows = np.arange(start, min(start + _WINDOWS_AT_ONCE, len(texts.windows)))
        own = (window >= start) & (window < start + _WINDOWS_AT_ONCE)  # mentions are in the order of windows
        if own.any():
            batch = texts.batch(rows, tokenizer)
            vectors.append(runtime.span_vectors(batch, window[own] - start, spans[own, 0], spans[own, 1]))
    found = np.concatenate(vectors) if vectors else np.zeros((0, 1), np.float32)
    return found, [label for label, is_inside in zip(labels, inside.tolist(), strict=True) if is_inside]


def _word_spans(packed: PackedTexts, documents: Sequence[Document]) -> tuple[Integers, list[str]]:
    """The first and last word of mentions that start and end with words, counted in packed texts, and their labels."""
    spans, labels = [], []
    for number, document in enumerate(documents):
        words, offset = packed.words_of(number), int(packed.edges[number])
        starts, ends = ({edge: place for place, edge in enumerate(words[:, side].tolist())} for side in (0, 1))
        for one in document.entities:
            if one.start in starts and one.end in ends:
                spans.append((offset + starts[one.start], offset + ends[one.end]))
                labels.append(one.label)
    return np.array(spans, np.int64).reshape(-1, 2), labels
