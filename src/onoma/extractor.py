"""The Extractor: texts and the names of types in, entities with exact offsets out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import tee
from pathlib import Path
from typing import TypedDict, Unpack, get_args, overload

from onoma.asking import Labels, Threshold, asked_types, limits
from onoma.backends import Backend, BackendName, load_backend
from onoma.chunks import Proposed, chunks, prepare, propose
from onoma.config import ModelConfig
from onoma.data.files import atomic_folder
from onoma.decoding import Overlap
from onoma.entities import Document, Entity, EntityType
from onoma.errors import OnomaError
from onoma.hub import find_model, upload
from onoma.label_names import LabelNames, told_config
from onoma.type_cache import TypeCache, model_digest
from onoma.word_tokens import WordTokens

Ask = Callable[[Sequence[str]], Proposed]

ROUTED = "routed"
"""What folders with several models name as their system."""
_CHUNK = 16  # batches whose texts are sorted by length together


def load(
    name_or_folder: str | os.PathLike[str] | None = None,
    backend: BackendName = "auto",
    device: str | None = None,
    threads: int | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    style: str | None = None,
) -> Extractor:
    """Load a model: the embedded one, one in a folder, or one of the hub (`owner/name`).

    Args:
        name_or_folder: None takes the embedded model.
        backend: "onnx" (no PyTorch needed), "torch", or "auto": onnx where the model has it.
        device: for torch, such as "cpu" or "cuda"; None takes a GPU if there is one.
        threads: for onnx; None takes all physical cores.
        cache_dir: a folder in which encoded types are kept, so that other processes need not encode them again.
        style: the name of a corpus as which to annotate, for models that were trained with such names.

    >>> onoma.load().extract("Tom flew to Paris.", ["person", "city"])  # doctest: +SKIP
    """
    folder = find_model(name_or_folder)
    config = ModelConfig.load(folder)
    extractor: Extractor
    if config.system == ROUTED:
        from onoma.routing import RoutedExtractor  # single models do without it

        one = partial(load, backend=backend, device=device, threads=threads, cache_dir=cache_dir)
        extractor = RoutedExtractor(folder, config, one)
    else:
        extractor = Extractor(load_backend(folder, backend, device, threads), folder, cache_dir)
    return extractor if style is None else extractor.in_style(style)


class Options(TypedDict, total=False):
    """What may be said beyond texts and labels; see `Extractor.extract`."""

    threshold: Threshold | None
    overlap: Overlap
    several_labels: bool
    batch_size: int


class Extractor:
    """A loaded model. It may be used by several threads at once."""

    def __init__(
        self, backend: Backend, folder: str | os.PathLike[str], cache_dir: str | os.PathLike[str] | None = None
    ) -> None:
        self._backend, self.folder = backend, Path(folder)
        cache = None if cache_dir is None else Path(cache_dir) / model_digest(folder, backend.name)
        self._types, self._words = TypeCache(backend, cache), WordTokens(backend.subwords)
        self._names = LabelNames(folder, backend.config.options.get("language"))

    @property
    def backend(self) -> Backend:
        """What runs the model."""
        return self._backend

    @property
    def config(self) -> ModelConfig:
        """What the model says of itself."""
        return self.backend.config

    @property
    def styles(self) -> tuple[str, ...]:
        """The corpora as which the model can be told to annotate; most models have none."""
        return tuple(self.config.options.get("datasets", ()))

    def in_style(self, corpus: str) -> Extractor:
        """The same model, told to annotate as in one of the corpora that it was trained on."""
        if corpus not in self.styles:
            known = f"it knows: {', '.join(self.styles)}" if self.styles else "it was trained without names of corpora"
            raise OnomaError(f"this model has no style {corpus!r}; {known}")
        return self._styled(corpus)

    def _styled(self, corpus: str) -> Extractor:
        styled = copy(self)
        styled._backend = self._backend.style(corpus)
        return styled

    @overload  # a string is an iterable of strings, too, but one text
    def extract(self, texts: str, labels: Labels, **options: Unpack[Options]) -> list[Entity]: ...  # type: ignore[overload-overlap]

    @overload
    def extract(self, texts: Iterable[str], labels: Labels, **options: Unpack[Options]) -> list[list[Entity]]: ...

    def extract(
        self,
        texts: str | Iterable[str],
        labels: Labels,
        *,
        threshold: Threshold | None = None,
        overlap: Overlap = "flat",
        several_labels: bool = False,
        batch_size: int = 64,
    ) -> list[Entity] | list[list[Entity]]:
        """Find the mentions of the asked types: a list for a string, a list of lists for several strings.

        Args:
            texts: a string of any length, or strings.
            labels: names, `EntityType`s, or name → description. Their order has no influence.
            threshold: the score that an entity must reach: a number, or one a label; by default the type's or model's.
            overlap: "flat" (no two mentions share a word), "nested" (they may lie inside each other) or "any".
            several_labels: let a span keep all of its labels instead of the best one.
            batch_size: windows that the model reads at once.

        >>> ner.extract("Tom flew to Paris.", ["person", "city"])  # doctest: +SKIP
        [Entity(start=0, end=3, text='Tom', label='person', score=0.97), ...]
        """
        alone = isinstance(texts, str)
        found = self.stream(
            [texts] if isinstance(texts, str) else texts,
            labels,
            threshold=threshold,
            overlap=overlap,
            several_labels=several_labels,
            batch_size=batch_size,
        )
        return next(found) if alone else list(found)

    def stream(
        self,
        texts: Iterable[str],
        labels: Labels,
        *,
        threshold: Threshold | None = None,
        overlap: Overlap = "flat",
        several_labels: bool = False,
        batch_size: int = 64,
    ) -> Iterator[list[Entity]]:
        """The same for an iterable of any length, with constant memory: one list for each text, in order.

        Texts are read some batches ahead, so that those of similar length can share a batch.

        >>> for entities in ner.stream(open("news.txt"), ["person"]): ...  # doctest: +SKIP
        """
        if overlap not in get_args(Overlap):
            raise OnomaError(f"overlap must be one of {', '.join(get_args(Overlap))}, got {overlap!r}")
        types = asked_types(labels)
        names = [one.name for one in types]
        proposed = self.propose(texts, types, threshold=threshold, batch_size=batch_size)
        return (found for chunk in proposed for found in chunk.entities(names, overlap, several_labels))

    def annotate(self, documents: Iterable[Document], labels: Labels, **options: Unpack[Options]) -> Iterator[Document]:
        """Documents with what is found in them in place of their own entities, with constant memory.

        >>> onoma.data.write(ner.annotate(onoma.data.read("news.jsonl"), ["person"]), "people.conll")  # doctest: +SKIP
        """
        types = asked_types(labels)
        names = frozenset(one.name for one in types)
        documents, again = tee(documents)
        found = self.stream((document.text for document in again), types, **options)
        return (
            replace(document, entities=tuple(entities), annotated=names)
            for document, entities in zip(documents, found, strict=True)
        )

    def propose(
        self, texts: Iterable[str], labels: Labels, *, threshold: Threshold | None = None, batch_size: int = 64
    ) -> Iterator[Proposed]:
        """All spans that reach their thresholds, before any choice between overlapping ones, chunk by chunk.

        Their types count into the names of the asked types in the order of the alphabet.
        """
        if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
            raise OnomaError(f"texts must be an iterable of strings, got {type(texts).__name__}")
        if batch_size < 1:
            raise OnomaError(f"batch_size must be at least 1, got {batch_size}")
        ask = self._asking(asked_types(labels), threshold, batch_size)
        return (ask(chunk) for chunk in chunks(texts, batch_size * _CHUNK))

    def _asking(self, types: Sequence[EntityType], threshold: Threshold | None, batch_size: int) -> Ask:
        """What gives the proposals for a chunk of texts, with all that is the same for every chunk done."""
        told = self._names.told(types)
        lowest = limits(types, threshold, told_config(self.config, types, told))
        rows = self._types.rows(told)
        return lambda texts: propose(prepare(texts, self._words, self.config), self.backend, rows, lowest, batch_size)

    @classmethod
    def from_pretrained(cls, name_or_folder: str | os.PathLike[str]) -> Extractor:
        """Load a model from a folder or the hub, as `load` does."""
        return load(name_or_folder)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write the model into a new folder."""
        with atomic_folder(folder) as temporary:
            shutil.copytree(self.folder, temporary, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
            self._save_config(temporary)

    def _save_config(self, folder: Path) -> None:
        self.config.save(folder)

    def push_to_hub(self, repo_id: str, *, private: bool = False) -> str:
        """Put the model on the hub, and return its address there."""
        return upload(self.folder, repo_id, private=private)
