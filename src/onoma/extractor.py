"""The Extractor: texts and labels in, entities with exact offsets out."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, tee
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict, Unpack, overload

from onoma.candidates import TextCandidates, find_candidates
from onoma.decoding.overlap import Overlap, check_overlap
from onoma.entities import Document, Entity, EntityType
from onoma.errors import DataError, OnomaError
from onoma.files import atomic_folder
from onoma.labels.coverage import LANGUAGE_SCRIPTS, Coverage
from onoma.labels.examples import Examples, ExampleSet, MarkedText
from onoma.labels.parsing import Labels, Threshold, parse_labels, resolve_thresholds
from onoma.labels.routing import ScriptRouter
from onoma.labels.translation import LabelTranslator
from onoma.models.card import write_hub_card
from onoma.models.config import CONFIG_FILE, ModelConfig
from onoma.models.folder import ONNX_FILE, ModelFolder, RoutedFolder, open_folder, open_single
from onoma.models.hub import EMBEDDED, upload
from onoma.reading import SECTION_TOKENS, LazyModel, LoadedModel, Reader, ReadingTimes, ReadOptions, Section
from onoma.systems.base import Backend, Runtime, RuntimeSettings
from onoma.systems.registry import get_system


def load(
    name_or_folder: str | os.PathLike[str] | None = None,
    backend: Backend = "auto",
    device: str | None = None,
    threads: int | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    style: str | None = None,
) -> Extractor:
    """Load a model: the embedded one, one in a folder, or one from the hub (`owner/name` or `owner/name@revision`).

    Args:
        name_or_folder: None or "embedded" for the embedded model; "embedded/en" for one of its models.
        backend: "onnx" (without PyTorch), "torch", or "auto": onnx if the model has it.
        device: for torch, such as "cpu" or "cuda"; None for a GPU if there is one.
        threads: for onnx; None for one per physical core, within the CPU quota of a container.
        cache_dir: a folder for encoded types, so that other processes need not encode them again.
        style: the name of a corpus whose annotation to follow, for models that were trained with such names.

    >>> onoma.load().extract("Tom flew to Paris.", ["person", "city"])  # doctest: +SKIP
    """
    folder = open_folder(name_or_folder)
    settings = _LoadSettings(backend, device, threads, None if cache_dir is None else Path(cache_dir))
    if isinstance(folder, RoutedFolder):
        routes, folders = [route.scripts for route in folder.config.routes], folder.models()
        router = ScriptRouter(routes, folder.config.share, _coverage(routes, [one.config for one in folders]))
        models = [LazyModel(one, partial(_load_model, one, settings)) for one in folders]
        extractor = Extractor(folder.path, models, router, ExampleSet.read(folder.path))
    else:
        model = LazyModel(folder, partial(_load_model, folder, settings))
        extractor = Extractor(folder.path, [model], examples=ExampleSet.read(folder.path))
        extractor.single("use")  # a single model is loaded at once
    return extractor if style is None else extractor.with_style(style)


def _coverage(routes: Sequence[Sequence[str]], configs: Sequence[ModelConfig]) -> Coverage | None:
    """The scripts of routes and of the languages of models; None if the last model may know any language."""
    if configs[-1].language is None or configs[-1].types:  # types: it was trained on somebody's own data
        return None
    languages = {LANGUAGE_SCRIPTS[one.language] for one in configs if one.language}
    return Coverage({*languages, *chain.from_iterable(routes)}, english=configs[-1].language == "en")


@dataclass(frozen=True, slots=True)
class _LoadSettings:
    backend: Backend
    device: str | None
    threads: int | None
    cache_dir: Path | None


def _load_model(folder: ModelFolder, settings: _LoadSettings) -> LoadedModel:
    backend = settings.backend
    if backend == "auto":
        backend = "onnx" if folder.has(ONNX_FILE) else "torch"
    if backend not in ("onnx", "torch"):
        raise OnomaError(f"there is no backend {backend!r}; the backends are auto, onnx and torch")
    system = get_system(folder.config.system)
    with _loading_errors(folder, backend):
        runtime = system.runtime(
            folder, RuntimeSettings(backend, settings.device, settings.threads, settings.cache_dir)
        )
        _check(runtime, folder)
    translator = LabelTranslator(folder.path, folder.config.language, known=folder.config.types)
    return LoadedModel(folder, runtime, translator)


def _check(runtime: Runtime, folder: ModelFolder) -> None:
    try:
        runtime.check()
    except DataError:
        raise
    except OnomaError as error:
        raise DataError(str(error), path=folder.path, fix="save or download the model again") from None


@contextmanager
def _loading_errors(folder: ModelFolder, backend: str) -> Iterator[None]:
    """Raise one OnomaError that names the model for whatever goes wrong when it is loaded."""
    try:
        get_system(folder.config.system).parse_options(folder.config.options)
    except OnomaError as error:
        raise DataError(str(error), path=folder.path / CONFIG_FILE, fix="save or download the model again") from None
    try:
        yield
    except OnomaError:
        raise
    except ModuleNotFoundError as error:
        fix = 'pip install "onoma[train]", or export the model to onnx'
        raise OnomaError(f"the {backend} backend needs {error.name}. Fix: {fix}") from error
    except Exception as error:  # files that do not fit together make libraries raise almost anything
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        fix = "check the device if you named one, or save or download the model again"
        message = f"the model cannot be loaded by the {backend} backend ({reason:.300})"
        raise DataError(message, path=folder.path, fix=fix) from error


class Options(TypedDict, total=False):
    """Options of `Extractor.extract` and `stream`."""

    threshold: Threshold | None
    overlap: Overlap
    several_labels: bool
    batch_size: int


class Extractor:
    """A model, or several models for texts in different scripts. Threads may share it."""

    def __init__(
        self,
        folder: Path,
        models: Sequence[LazyModel],
        router: ScriptRouter | None = None,
        examples: ExampleSet | None = None,
    ) -> None:
        """With several models, `router` chooses the one that reads a text; `examples` show what types are."""
        self.folder, self._models, self._router = folder, models, router
        self.examples = ExampleSet() if examples is None else examples

    def __repr__(self) -> str:
        name = "embedded model" if self.folder == EMBEDDED else str(self.folder)
        models = (f"{one.config.system} on {one.config.encoder or 'an unknown encoder'}" for one in self._models)
        return f"<Extractor: {name}, {', '.join(models)}>"

    @property
    def config(self) -> ModelConfig:
        """The configuration of the model; of several, that of the last one, which reads texts in any other script."""
        return self._models[-1].config

    @property
    def runtime(self) -> Runtime:
        """What runs the model; of several, the last one."""
        return self._models[-1].get().runtime

    def counts(self) -> dict[str, int]:
        """What the models counted since they were loaded, such as damaged answers of a generator; usually nothing."""
        total: Counter[str] = Counter()
        for model in self._models:
            total.update(model.counts())
        return dict(total)

    def type_cache_counts(self) -> tuple[int, int]:
        """How many types were found in the caches of the loaded models, and how many were not."""
        caches = [cache for model in self._models if (cache := model.type_cache()) is not None]
        return sum(cache.hits for cache in caches), sum(cache.misses for cache in caches)

    def load_all(self) -> None:
        """Load all models now instead of when they are first needed."""
        for model in self._models:
            model.get()

    @property
    def labels(self) -> frozenset[str] | None:
        """The labels that can be asked for, or None for any."""
        known = [model.get().runtime.labels for model in self._models]
        return frozenset().union(*(own for own in known if own is not None)) if None not in known else None

    def unknown_types(self, labels: Labels) -> list[str]:
        """The names of labels that the model cannot be asked for; of several models, those that any of them cannot."""
        types = parse_labels(labels)
        return sorted({name for model in self._models for name in model.get().unknown_types(types)})

    def single(self, action: str) -> LoadedModel:
        """The model, for actions that take one model at a time."""
        if len(self._models) > 1:
            open_single(self.folder, action)  # raises an error that names the models
        return self._models[0].get()

    def model_for(self, text: str) -> LoadedModel:
        """The model that reads a text, as a whole or most of it."""
        return self._models[0 if self._router is None else self._router.route(text)].get()

    @property
    def styles(self) -> tuple[str, ...]:
        """The corpora whose annotation style the model can follow; most models have none."""
        return tuple(dict.fromkeys(name for model in self._models for name in model.config.datasets))

    def with_style(self, corpus: str) -> Extractor:
        """The same model, which annotates as in one of the corpora that it was trained on."""
        if corpus not in self.styles:
            known = f"it knows: {', '.join(self.styles)}" if self.styles else "it was trained without corpus names"
            raise OnomaError(f"this model has no style {corpus!r}; {known}")
        return Extractor(self.folder, [one.with_style(corpus) for one in self._models], self._router, self.examples)

    def teach(self, examples: Examples) -> Extractor:
        """The same model, which knows marked examples of types as well. It is not trained: this takes seconds.

        Args:
            examples: a corpus, documents, or texts with marks by type. All mentions of a type must be marked in its
                examples: what is not marked there is not of this type. They count more, the more there are.

        >>> taught = load().teach({"dose": ["take [[40 mg]] daily", "[[two tablets]] at night"]})
        >>> [one.text for one in taught.extract("She was given 300 mg of aspirin.", ["dose"])]
        ['300 mg']
        """
        return Extractor(self.folder, self._models, self._router, self.examples + ExampleSet.parse(examples))

    def _examples_of(self, types: Sequence[EntityType], model: int) -> list[Sequence[MarkedText]]:
        """The examples of each type that a model can read; empty if there are none at all."""
        if not self.examples.documents and not any(one.examples for one in types):
            return []
        found = [self.examples.of(one) for one in types]
        if self._router is None:
            return list(found)
        own = [[one for one in each if self._router.route(one.text) == model] for each in found]
        return [each if any(one.mentions for one in each) else () for each in own]

    @overload  # a string is also an iterable of strings, but it is one text
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
        """Find the mentions of types: a list of entities for a string, a list of lists for several strings.

        Args:
            texts: a string of any length, or strings.
            labels: names, `EntityType`s, or name → description. Their order has no influence.
            threshold: the score that an entity must reach: a number, "precise", "balanced" or "complete", or one of
                these per label; by default the type's own or the model's.
            overlap: "flat" (no two mentions share a word), "nested" (mentions may contain each other) or "any".
            several_labels: report all labels of a span that reach their thresholds, not only the best one.
            batch_size: windows that the model reads at once.

        >>> ner = load()
        >>> [(one.start, one.end, one.text, one.label) for one in ner.extract("Tom flew to Paris.", ["person", "city"])]
        [(0, 3, 'Tom', 'person'), (12, 17, 'Paris', 'city')]
        """
        single = isinstance(texts, str)
        found = self.stream(
            [texts] if isinstance(texts, str) else texts,
            labels,
            threshold=threshold,
            overlap=overlap,
            several_labels=several_labels,
            batch_size=batch_size,
        )
        return next(found) if single else list(found)

    def stream(self, texts: Iterable[str], labels: Labels, **options: Unpack[Options]) -> Iterator[list[Entity]]:
        """The same for an iterable of any length, with constant memory: one list per text, in order.

        Some batches of texts are read ahead, so that texts of similar length can share a batch.

        >>> for entities in ner.stream(open("news.txt"), ["person"]): ...  # doctest: +SKIP
        """
        sections = self.stream_sections(texts, labels, **options)
        return self._joined(sections)

    @staticmethod
    def _joined(sections: Iterator[Section]) -> Iterator[list[Entity]]:
        entities: list[Entity] = []
        for section in sections:
            entities += section.entities
            if section.is_last:
                yield entities
                entities = []

    def stream_sections(self, texts: Iterable[str], labels: Labels, **options: Unpack[Options]) -> Iterator[Section]:
        """The same in parts: a long text comes in several sections, so that results and progress can be shown early."""
        if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
            raise OnomaError(f"texts must be an iterable of strings, got {type(texts).__name__}")
        return self.prepare(labels, **options).sections(texts)

    def prepare(
        self,
        labels: Labels,
        *,
        threshold: Threshold | None = None,
        overlap: Overlap = "flat",
        several_labels: bool = False,
        batch_size: int = 64,
        section_tokens: int | None = None,
        parallel: bool = True,
    ) -> Reader:
        """The model with the types that it is asked for: types are parsed and encoded once for any number of calls.

        `section_tokens` are the tokens of a long text after which its entities so far are reported; by default
        `SECTION_TOKENS`. Callers that read several texts in threads of their own set `parallel` to False.
        """
        if not isinstance(batch_size, int) or batch_size < 1:
            raise OnomaError(f"batch_size must be an integer of at least 1, got {batch_size!r}")
        check_overlap(overlap)
        types = parse_labels(labels)
        resolve_thresholds(types, threshold, 0.5, {})  # raises errors at once, also if no model is loaded yet
        options = ReadOptions(overlap, several_labels, batch_size, section_tokens or SECTION_TOKENS, parallel)
        return Reader(self._models, self._router, self._examples_of, types, threshold, options)

    def candidates(
        self, texts: Iterable[str], labels: Labels, *, floor: float = 0.05, **options: Unpack[Options]
    ) -> list[TextCandidates]:
        """The entities of texts with all proposals that they were chosen from, to show or change the choice.

        `floor` is the lowest score of a proposal. At most the best `MAX_CANDIDATES` of each text are returned.

        >>> found = load().candidates(["Tom flew to Paris."], ["person", "city", "place"])[0]
        >>> [(one.start, one.label) for one in found.candidates if one.start == 12][:2]
        [(12, 'city'), (12, 'place')]
        """
        return find_candidates(self.prepare(labels, **options), list(texts), floor, ReadingTimes())

    def annotate(self, documents: Iterable[Document], labels: Labels, **options: Unpack[Options]) -> Iterator[Document]:
        """Documents with the entities that are found in place of their own, with constant memory.

        >>> onoma.data.write(ner.annotate(onoma.data.read("news.jsonl"), ["person"]), "people.conll")  # doctest: +SKIP
        """
        types = parse_labels(labels)
        names = frozenset(one.name for one in types)
        documents, again = tee(documents)
        found = self.stream((document.text for document in again), types, **options)
        return (
            replace(document, entities=tuple(entities), annotated=names)
            for document, entities in zip(documents, found, strict=True)
        )

    @classmethod
    def from_pretrained(cls, name_or_folder: str | os.PathLike[str]) -> Extractor:
        """Load a model from a folder or the hub, as `load` does."""
        return load(name_or_folder)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write the model into a new folder, with the examples that it was taught."""
        with atomic_folder(folder) as temporary:
            shutil.copytree(self.folder, temporary, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
            if self.examples.documents:
                self.examples.write(temporary)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool = False,
        revision: str | None = None,
        commit_message: str | None = None,
        token: str | None = None,
        card: Mapping[str, Any] | None = None,
    ) -> str:
        """Upload the model to the hub, with its card and the examples that it was taught, and return its address there.

        Args:
            repo_id: owner/name; it is created if it does not exist.
            private: whether a new repository is private.
            revision: a branch, which is created if it does not exist; None for the main one.
            commit_message: what the history of the repository says.
            token: by default the one of `hf auth login` or HF_TOKEN.
            card: fields of the card, such as {"license": "mit", "language": ["en"]}.
        """
        with TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            self.save_pretrained(folder)
            write_hub_card(folder, repo_id, card)
            return upload(
                folder, repo_id, private=private, revision=revision, commit_message=commit_message, token=token
            )
