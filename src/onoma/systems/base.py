"""What a system is: the protocols that `training`, `models` and `extractor` use, and the way from windows to proposals.

A system is a package under `onoma.systems`, one for each paper. `onoma.systems.registry` maps its name to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.proposals import Proposals, stitch
from onoma.entities import EntityType
from onoma.errors import OnomaError
from onoma.inputs.batches import Batch, bucket_by_length
from onoma.inputs.packing import WindowedTexts
from onoma.inputs.tokenizer import WordTokenizer
from onoma.labels.examples import MarkedText
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder

if TYPE_CHECKING:
    from torch import nn

    from onoma.training.stages import Training

T = TypeVar("T")
R = TypeVar("R")
Query = Any
"""What a runtime makes of the types that are asked for; only the runtime that made it can read it."""
Backend = Literal["auto", "onnx", "torch"]
NOT_RESTORED = (
    "{folder} is an exported model of {system}, whose weights cannot be read back. "
    "Fix: start from the folder with model.safetensors that it was exported from"
)
"""The error of systems that cannot restore exported models."""

MANY_PROPOSALS = 2_000
"""Proposals of a batch from which on those that are not needed are left out."""


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """How a model is to be run."""

    backend: Literal["onnx", "torch"]
    device: str | None = None  # for torch
    threads: int | None = None  # for onnx; None: one per usable core
    cache_dir: Path | None = None  # for encoded types


class Runtime(Protocol):
    """A trained model that is ready to run. Its methods may be called from several threads."""

    backend: str
    config: ModelConfig
    tokenizer: WordTokenizer
    workers: int  # calls of `propose` that run at the same time
    call_tokens: int | None  # what a call of `propose` costs besides its tokens, in tokens; None: it should be full

    @property
    def labels(self) -> frozenset[str] | None:
        """The labels that can be asked for, or None for any."""

    def check(self) -> None:
        """Raise an error if weights, tokenizer and configuration do not fit together; called when a model is loaded."""

    def ask(self, types: Sequence[EntityType], examples: Sequence[Sequence[MarkedText]] = ()) -> Query:
        """Prepare a question for some types, which may then be put to any number of batches.

        `examples` are texts with marked mentions of each type; an error if there are some and the system takes none.
        """

    def breadths(self, query: Query) -> NDArray[np.float32] | None:
        """How broad each type of a query is, to choose between labels of one span; None: all labels count alike."""

    def max_batch_tokens(self, query: Query) -> int:
        """How many tokens a batch should have at most, padding included."""

    def propose(self, batch: Batch, query: Query, floor: float) -> Proposals:
        """The spans of each window whose score for a type of the query is at least `floor`."""

    def map(self, function: Callable[[T], R], items: Sequence[T]) -> Iterable[R]:
        """Apply a function to items, in several threads if the runtime has them; results in order."""

    def counts(self) -> dict[str, int]:
        """What the model counted since it was loaded, such as damaged answers of a generator; most models: nothing."""

    def with_style(self, corpus: str | None) -> Self:
        """The same model with the annotation style of a corpus it was trained on, if it knows that corpus."""


@runtime_checkable
class SpanVectors(Protocol):
    """A runtime whose system compares vectors of spans, which pictures can show."""

    config: ModelConfig
    tokenizer: WordTokenizer

    def span_vectors(
        self, batch: Batch, window: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """One vector per span, given by its window and its first and last word there: (spans, size)."""


class System(Protocol):
    """A way from windows and types to proposals: options, model, training, runtimes and export."""

    name: str
    artifacts: tuple[str, ...]  # files of a model folder beyond the usual ones, which are copied with it
    optional_stages: tuple[str, ...]  # stages that options can leave out; a recipe may have settings for them anyway

    def parse_options(self, values: Mapping[str, Any]) -> Any:
        """The system's options, checked strictly."""

    def stage_names(self, options: Any) -> tuple[str, ...]:
        """The stages of training that these options lead to, in their order."""

    def build(self, config: ModelConfig, folder: Path) -> nn.Module:
        """An untrained PyTorch model of the shape that a configuration describes."""

    def restore(self, folder: ModelFolder) -> nn.Module:
        """A trained PyTorch model from exported ONNX graphs; raises OnomaError if that is not possible."""

    def training(self) -> Training:
        """How the system is trained."""

    def runtime(self, folder: ModelFolder, settings: RuntimeSettings) -> Runtime:
        """Load a trained model."""

    def export(self, model: nn.Module, folder: Path, *, int8: bool) -> None:
        """Write a trained model as ONNX graphs; raises OnomaError if the system or its options do not allow it."""


def propose(
    texts: WindowedTexts,
    runtime: Runtime,
    query: Query,
    thresholds: NDArray[np.float32],
    batch_size: int,
    windows: NDArray[np.int64] | None = None,
    reduce: Callable[[Proposals], Proposals] | None = None,
    *,
    parallel: bool = True,
) -> Proposals:
    """The proposals for texts (or some of their windows) that reach their thresholds, in words of the packed texts.

    Windows with the same words, such as repeated lines, are read once. `reduce` leaves out rows that are not needed. It
    is called for batches with so many proposals that those of all batches together might fill the memory. Batches run
    side by side if the runtime has threads and `parallel` is True.
    """
    floor = float(thresholds.min())
    rows = np.arange(len(texts.windows)) if windows is None else windows
    firsts, same = texts.distinct(rows)
    copies = np.split(rows[np.argsort(same, kind="stable")], np.cumsum(np.bincount(same))[:-1])

    def run(places: NDArray[np.int64]) -> Proposals:
        batch, own = texts.batch(rows[firsts[places]], runtime.tokenizer), [copies[place] for place in places]
        found = runtime.propose(batch, query, floor).above(thresholds)
        if reduce is not None and len(found.score) * max(map(len, own)) > MANY_PROPOSALS:
            found = _reduce_windows(found, batch, reduce)
        return stitch(found.in_windows(own), texts.windows)

    workers = runtime.workers if parallel else 1
    batches = bucket_by_length(
        texts.lengths()[rows[firsts]],
        batch_size,
        runtime.max_batch_tokens(query),
        workers=workers,
        call_tokens=runtime.call_tokens,
    )
    return Proposals.concatenate((runtime.map if parallel else map)(run, batches))


def _reduce_windows(found: Proposals, batch: Batch, reduce: Callable[[Proposals], Proposals]) -> Proposals:
    """Leave out rows of proposals that are still counted in words of their windows."""
    words = int(batch.words.max())
    found = found._replace(first=found.first + words * found.window, last=found.last + words * found.window)
    kept = reduce(found)  # spans of different windows are apart
    return kept._replace(first=kept.first - words * kept.window, last=kept.last - words * kept.window)


def label_penalties(breadths: NDArray[np.float32] | None, weight: float) -> NDArray[np.float32] | None:
    """What `decode` subtracts from the log scores of labels: weight · breadth; None if that has no effect."""
    return None if breadths is None or not weight else np.asarray(weight * breadths, np.float32)


def refuse_examples(examples: Sequence[Sequence[MarkedText]], config: ModelConfig) -> None:
    """Raise an error if there are marked examples, for systems that cannot use them."""
    if any(examples):
        raise OnomaError(
            f"this model ({config.system}) takes no marked examples. Fix: describe the type in words, use the embedded "
            "model or another BINDER model, or train on the examples"
        )


def scores_of(margin: NDArray[np.float32], config: ModelConfig) -> NDArray[np.float32]:
    """Calibrated scores of raw margins: sigmoid(scale · margin + bias)."""
    return np.asarray(1.0 / (1.0 + np.exp(-logits_of(margin, config))), np.float32)


def logits_of(margin: NDArray[np.float32], config: ModelConfig) -> NDArray[np.float32]:
    """The logits of these scores."""
    return np.asarray(config.scale * margin + config.bias, np.float32)


def margin_of(score: float, config: ModelConfig) -> float:
    """The margin that has a score; the inverse of `scores_of`."""
    if score <= 0.0:
        return -float("inf")
    return float((np.log(score) - np.log1p(-score) - config.bias) / config.scale) if score < 1.0 else float("inf")
