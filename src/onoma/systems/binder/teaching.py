"""Types by example: spans that are marked in texts correct the vector of a type, without training.

The margin of a span is linear in the vector e of a type: it is x·e, with x the span's unit vector minus that of [CLS]
(equation 8). Marked examples say which of their spans are mentions, so a logistic regression on x, with the margin by
name and description as prior, gives a correction δ of the vector and an offset o:

    margin = x·(e + δ) + o.

Extraction costs the same with the corrected vector. x is whitened, because the directions in which spans differ most
are not those that tell types apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from onoma.errors import OnomaError
from onoma.inputs.batches import Batch, bucket_by_length
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.examples import MarkedText
from onoma.labels.type_cache import TypeCache
from onoma.models.config import ModelConfig
from onoma.systems.base import logits_of
from onoma.systems.binder.options import BinderOptions
from onoma.systems.binder.regression import Rows, fit

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
T = TypeVar("T")
R = TypeVar("R")

MAX_SPANS = 1 << 15
"""Spans of the examples that are used, about; of more, the mentions and a part of the others."""

_SMALLEST_VARIANCE = 0.1  # of whitened directions, as part of the mean
_CONSTANT = 0.3  # the feature whose coefficient becomes the offset: the smaller, the less offsets change
_BATCH_WINDOWS, _BATCH_TOKENS = 64, 512


class SpanParts(NamedTuple):
    """What the vectors of spans are made of: l and r of the words of all windows, d, and what x is relative to."""

    left: Floats  # l (words, d)
    right: Floats  # r (words, d)
    widths: Floats  # d (widths, d)
    anchor: Floats  # unit vectors of [CLS] (windows, d); zeros if thresholds do not depend on the text


def unit_vectors(parts: SpanParts, words: Integers, window: Integers, first: Integers, last: Integers) -> Floats:
    """The unit vectors of spans, given by their windows and words there; `words` are the words of each window.

    Spans that are longer than the model considers have the width vector of the longest ones.
    """
    offset = (np.cumsum(words) - words)[window]
    width = np.minimum(last - first, len(parts.widths) - 1)
    vectors = parts.left[offset + first] + parts.right[offset + last] + parts.widths[width]
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), np.float32)


class SpanRuntime(Protocol):
    """What teaching needs of a runtime."""

    config: ModelConfig
    tokenizer: WordTokenizer

    @property
    def options(self) -> BinderOptions:
        """The options of the model."""

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterable[R]:
        """Apply a function to items; results in order."""

    def span_parts(self, batch: Batch) -> SpanParts:
        """The parts of the spans of a batch."""

    def global_thresholds(self, rows: Floats) -> Floats:
        """The thresholds of spans that do not depend on the text; 0 for types without (types,)."""


class TypeVector(NamedTuple):
    """The vector of a type, and what is added to its margins."""

    span: Floats  # e (d,)
    offset: float


def teach(
    runtime: SpanRuntime, vectors: Sequence[TypeVector], examples: Sequence[Sequence[MarkedText]]
) -> list[TypeVector]:
    """The vectors of types, each corrected by its own examples. The result for a type does not depend on the others."""
    taught = list(vectors)
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, own in enumerate(examples):
        groups.setdefault(tuple(one.text for one in own), []).append(place)
    for texts, places in groups.items():  # types that share their texts, as those of a corpus do
        source = _Source.read(runtime, texts)
        mentions = [source.numbers([one.mentions for one in examples[place]]) for place in places]
        spans = source.encode(runtime, np.unique(np.concatenate(mentions)))
        for place, numbers in zip(places, mentions, strict=True):
            taught[place] = spans.correct(vectors[place], numbers, runtime.config)
    return taught


def teach_rows(
    runtime: SpanRuntime,
    rows: Floats,
    texts: Sequence[str],
    examples: Sequence[Sequence[MarkedText]],
    cache: TypeCache | None,
) -> Floats:
    """The rows of a query (`e^B`, `e^Q`, e, offset, ...), corrected for the types that have examples.

    `texts` are the types as the model reads them.
    """
    places = [place for place, own in enumerate(examples) if own]
    if runtime.options.inference == "joint":
        raise OnomaError(
            "a model with `inference: joint` takes no marked examples, because these are about spans, not about starts "
            "and ends. Fix: use a model with `inference: span`, or describe the type in words"
        )

    def encode(missing: list[int]) -> Floats:
        chosen = [places[number] for number in missing]
        return _corrected(runtime, rows[chosen], [examples[place] for place in chosen])

    taught = rows.copy()
    keys = [examples_key(texts[place], examples[place]) for place in places]
    taught[places] = encode(list(range(len(places)))) if cache is None else cache.rows(keys, encode)
    return taught


def _corrected(runtime: SpanRuntime, rows: Floats, examples: Sequence[Sequence[MarkedText]]) -> Floats:
    size, corrected = runtime.options.vector_size, rows.copy()
    span, offset = slice(2 * size, 3 * size), 3 * size
    thresholds = runtime.global_thresholds(rows)
    vectors = [TypeVector(row[span], float(-own)) for row, own in zip(rows, thresholds, strict=True)]
    for row, own, taught in zip(corrected, thresholds, teach(runtime, vectors, examples), strict=True):
        row[span], row[offset] = taught.span, taught.offset + own
    return corrected


def examples_key(text: str, examples: Sequence[MarkedText]) -> str:
    """What the corrected vector of a type depends on, for caches; `text` is the type as the model reads it."""
    digest = hashlib.sha256(repr([tuple(one) for one in examples]).encode("utf-8", "surrogatepass"))
    return f"{text}\0{digest.hexdigest()}"


@dataclass(frozen=True, slots=True)
class _Source:
    """Texts as windows. The number of a span is its first word, counted over all texts, times max_width + width - 1."""

    windowed: WindowedTexts
    max_width: int

    @classmethod
    def read(cls, runtime: SpanRuntime, texts: Sequence[str]) -> _Source:
        config, packed = runtime.config, PackedTexts.pack(texts)
        windowed = WindowedTexts.cut(packed, runtime.tokenizer, config.max_tokens, config.overlap)
        return cls(windowed, runtime.options.max_width)

    def numbers(self, mentions: Sequence[Sequence[tuple[int, int]]]) -> Integers:
        """The spans that are mentions; one that does not start and end with a word, or is too long, is left out."""
        packed, found = self.windowed.packed, [np.zeros(0, np.int64)]
        for text, own in enumerate(mentions):
            words, (start, end) = packed.words_of(text), np.array(own, np.int64).reshape(-1, 2).T
            first, last = np.searchsorted(words[:, 0], start), np.searchsorted(words[:, 1], end)
            fits = (np.append(words[:, 0], -1)[first] == start) & (np.append(words[:, 1], -1)[last] == end)
            fits &= last - first < self.max_width
            found.append(((packed.edges[text] + first) * self.max_width + last - first)[fits])
        return np.unique(np.concatenate(found))

    def encode(self, runtime: SpanRuntime, mentions: Integers) -> _Spans:
        """The spans of the texts, or these mentions and a part of the other ones if there are too many."""
        windowed, share = self.windowed, 1 + len(self.windowed.packed.words) * self.max_width // MAX_SPANS

        def encode(rows: Integers) -> tuple[Floats, Integers]:
            batch = windowed.batch(rows, runtime.tokenizer)
            parts = runtime.span_parts(batch)
            window = np.repeat(np.arange(len(rows)), batch.words)
            room = np.cumsum(batch.words)[window] - np.arange(len(window))  # words from here to the end of the window
            word, width = np.nonzero(np.arange(len(parts.widths)) < room[:, None])
            begin = windowed.windows.start[rows] - (np.cumsum(batch.words) - batch.words)
            first = word + begin[window[word]]
            number = first * self.max_width + width
            kept = windowed.windows.owns(rows[window[word]], first, first + width)
            kept &= _is_sampled(number, share) | np.isin(number, mentions)
            word, width = word[kept], width[kept]
            vector = parts.left[word] + parts.right[word + width] + parts.widths[width]
            vector /= np.maximum(np.linalg.norm(vector, axis=1, keepdims=True), 1e-6)
            return vector - parts.anchor[window[word]], number[kept]

        batches = bucket_by_length(windowed.lengths(), _BATCH_WINDOWS, _BATCH_TOKENS)
        vectors, numbers = zip(*runtime.map(encode, batches), strict=True)
        number = np.concatenate(numbers)
        order = np.argsort(number)
        x, number = np.concatenate(vectors)[order], number[order]
        document = windowed.packed.text_of(number // self.max_width)
        return _Spans.whiten(x, number, document, share)


def _is_sampled(number: Integers, share: int) -> NDArray[np.bool_]:
    """One of `share` spans, at random but always the same."""
    return np.asarray((number * 2654435761 >> 16) % share == 0)


class _Spans(NamedTuple):
    """Spans of the examples, in the order of their numbers."""

    x: Floats  # (spans, d)
    number: Integers
    document: Integers
    share: int  # one of so many spans that are not mentions is here
    mean: Floats  # of x (d,)
    whitening: Floats  # (d, d)
    features: Floats  # whitened x, and a constant (spans, d + 1)

    @classmethod
    def whiten(cls, x: Floats, number: Integers, document: Integers, share: int) -> _Spans:
        sample = x[_is_sampled(number, share)]
        mean = sample.mean(axis=0) if len(sample) else np.zeros(x.shape[1], np.float32)
        variance, axes = np.linalg.eigh((sample - mean).T @ (sample - mean) / max(1, len(sample)))
        usual = max(float(variance.mean()), 1e-12)
        scaled = (1 - _SMALLEST_VARIANCE) * np.maximum(variance, 0) + _SMALLEST_VARIANCE * usual
        whitening = np.asarray((axes / np.sqrt(scaled * len(axes))) @ axes.T, np.float32)
        features = np.concatenate([(x - mean) @ whitening, np.full((len(x), 1), _CONSTANT, np.float32)], axis=1)
        return cls(x, number, document, share, mean, whitening, features)

    def correct(self, vector: TypeVector, mentions: Integers, config: ModelConfig) -> TypeVector:
        """The vector of a type, corrected by its mentions and by the spans that are none."""
        is_mention = np.isin(self.number, mentions)
        if not is_mention.any():
            return vector
        rows = np.flatnonzero(is_mention | _is_sampled(self.number, self.share))
        prior = logits_of(self.x[rows] @ vector.span + np.float32(vector.offset), config)
        y = is_mention[rows].astype(np.float32)
        weight = np.where(y > 0, 1, self.share).astype(np.float32)
        u = fit(Rows(self.features[rows], y, prior, weight, self.document[rows])) / np.float32(config.scale)
        correction = self.whitening @ u[:-1]
        return TypeVector(vector.span + correction, vector.offset + float(_CONSTANT * u[-1] - self.mean @ correction))
