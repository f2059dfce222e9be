"""The Extractor: texts and labels in, entities with exact offsets out."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, tee
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from onoma.candidates import TextCandidates, find_candidates
from onoma.decoding.decode import best_labels, decode
from onoma.decoding.overlap import Overlap, check_overlap
from onoma.decoding.proposals import Proposals
from onoma.entities import Document, Entity, EntityType
from onoma.errors import DataError, OnomaError
from onoma.files import atomic_folder
from onoma.inputs.blocks import Block, PackedBlocks, block_end
from onoma.inputs.packing import PackedTexts, WindowedTexts, chunk_texts
from onoma.labels.coverage import LANGUAGE_SCRIPTS, Coverage
from onoma.labels.examples import Examples, ExampleSet, MarkedText
from onoma.labels.parsing import LOWEST_THRESHOLD, Labels, Threshold, Thresholds, parse_labels, resolve_thresholds
from onoma.labels.routing import ScriptRouter
from onoma.labels.translation import LabelTranslator
from onoma.labels.type_cache import Latest, TypeCache
from onoma.locks import ForkSafeLock
from onoma.models.card import write_hub_card
from onoma.models.config import CONFIG_FILE, ModelConfig
from onoma.models.folder import ONNX_FILE, ModelFolder, RoutedFolder, open_folder, open_single
from onoma.models.hub import EMBEDDED, upload
from onoma.systems.base import Backend, Query, Runtime, RuntimeSettings, label_penalties, propose
from onoma.systems.registry import get_system

SECTION_TOKENS = 16_384
"""Tokens of a long text after which its entities so far are reported."""

_BATCHES_PER_CHUNK = 16  # batches whose texts are sorted by length together


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
        name_or_folder: None for the embedded model.
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


@dataclass(slots=True)
class ReadingTimes:
    """Seconds spent on texts, added up while they are read."""

    tokenizing: float = 0.0
    inference: float = 0.0


class ReadOptions(NamedTuple):
    """How texts are read, whatever the model."""

    overlap: Overlap
    several_labels: bool
    batch_size: int
    section_tokens: int
    parallel: bool = True  # whether the batches of one call may run side by side


class Question(NamedTuple):
    """The types that are asked for, as one model needs them."""

    labels: Sequence[str]  # as the user wrote them
    query: Query
    thresholds: Thresholds
    penalties: NDArray[np.float32] | None  # of the labels, for the choice between those of one span

    def lowered(self, floor: float) -> Question:
        """The same question with thresholds of at most `floor`."""
        lowest = np.float32(max(floor, LOWEST_THRESHOLD))
        return self._replace(thresholds=np.minimum(self.thresholds, lowest))


class BlockProposals(NamedTuple):
    """What several models propose for blocks of texts."""

    proposals: Proposals  # in characters
    labels: Sequence[str]  # those of each model
    penalties: NDArray[np.float32] | None
    catch_all: Collection[str]
    thresholds: Thresholds
    tokens: NDArray[np.int64]  # of each block


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory, and the labels in its language."""

    folder: ModelFolder
    runtime: Runtime
    translator: LabelTranslator
    latest: Latest[Question] = field(default_factory=Latest, init=False, compare=False)

    def ask(
        self,
        types: Sequence[EntityType],
        threshold: Threshold | None,
        examples: Sequence[Sequence[MarkedText]] = (),
    ) -> Question:
        """Prepare a question, once for any number of texts; `examples` are those of each type."""
        given = dict(threshold) if isinstance(threshold, Mapping) else threshold
        key = tuple(types), given, examples, self.runtime.config
        return self.latest.get(key, lambda: self._prepare(types, threshold, examples))

    def _prepare(
        self, types: Sequence[EntityType], threshold: Threshold | None, examples: Sequence[Sequence[MarkedText]]
    ) -> Question:
        config, translated = self.runtime.config, self.translator.translate(types)
        tuned = dict(config.thresholds)  # by names in the language of the model or in that of the user
        for asked, own in zip(types, translated, strict=True):
            if own.name in tuned:
                tuned.setdefault(asked.name, tuned[own.name])
        thresholds = resolve_thresholds(types, threshold, config.threshold, tuned, config.presets)
        query = self.runtime.ask(translated, examples)
        penalties = label_penalties(self.runtime.breadths(query), config.breadth_weight)
        return Question([one.name for one in types], query, thresholds, penalties)

    def read(
        self, texts: Sequence[str], question: Question, options: ReadOptions, times: ReadingTimes
    ) -> Iterator[tuple[WindowedTexts, Proposals, int]]:
        """The decoded proposals of texts, section by section, with the number of words up to which they are complete.

        A section ends where no proposal crosses its end, so that sections are decoded independently.
        """
        config, labels = self.runtime.config, question.labels
        sections = self.propose(texts, question, options, times, options.section_tokens if len(texts) == 1 else None)
        waiting: list[Proposals] = []
        for windowed, proposals, end in sections:
            if waiting:
                proposals = Proposals.concatenate([*waiting, proposals])
            if end < len(windowed.packed.words):
                end = _last_uncrossed(proposals, end)
                done = proposals.last < end
                proposals, waiting = proposals.take(done), [proposals.take(~done)]
            decoded = decode(
                proposals,
                labels,
                overlap=options.overlap,
                several_labels=options.several_labels,
                catch_all=config.catch_all,
                penalties=question.penalties,
            )
            yield windowed, decoded, end

    def propose(
        self,
        texts: Sequence[str],
        question: Question,
        options: ReadOptions,
        times: ReadingTimes,
        section: int | None = None,
        reduce: Callable[[Proposals], Proposals] | None = None,
    ) -> Iterator[tuple[WindowedTexts, Proposals, int]]:
        """The proposals of texts before decoding, in sections of about so many tokens, each with the word behind it.

        `reduce` leaves out proposals that are not needed, if there are very many; by default all but the best labels.
        """
        config, (labels, query, thresholds, penalties) = self.runtime.config, question
        start = perf_counter()
        windowed = WindowedTexts.cut(PackedTexts.pack(texts), self.runtime.tokenizer, config.max_tokens, config.overlap)
        times.tokenizing += perf_counter() - start
        if reduce is None and not options.several_labels:
            reduce = partial(best_labels, labels=labels, catch_all=config.catch_all, penalties=penalties)
        for windows, end in windowed.sections(section):
            start = perf_counter()
            found = propose(
                windowed,
                self.runtime,
                query,
                thresholds,
                options.batch_size,
                windows,
                reduce,
                parallel=options.parallel,
            )
            times.inference += perf_counter() - start
            yield windowed, found, end


def _last_uncrossed(proposals: Proposals, limit: int) -> int:
    """The last word boundary, at most `limit`, that no proposal crosses."""
    order = np.argsort(-proposals.last, kind="stable")
    for first, last in zip(proposals.first[order].tolist(), proposals.last[order].tolist(), strict=True):
        if last < limit:
            break
        limit = min(limit, first)
    return limit


class LazyModel:
    """A model that is loaded when it is first needed. Threads may share it."""

    def __init__(self, folder: ModelFolder, load: Callable[[], LoadedModel]) -> None:
        self.folder, self._load, self._lock = folder, load, ForkSafeLock()
        self._loaded: LoadedModel | None = None

    def get(self) -> LoadedModel:
        """The model."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def counts(self) -> dict[str, int]:
        """What the model counted; nothing if it is not loaded yet."""
        with self._lock:
            return {} if self._loaded is None else self._loaded.runtime.counts()

    def type_cache(self) -> TypeCache | None:
        """The cache of encoded types; None if the model has none, or is not loaded yet."""
        with self._lock:
            cache = None if self._loaded is None else getattr(self._loaded.runtime, "types", None)
            return cache if isinstance(cache, TypeCache) else None

    @property
    def config(self) -> ModelConfig:
        """The configuration, for which the model is not loaded."""
        return self.folder.config

    def with_style(self, corpus: str) -> LazyModel:
        """The same model with the annotation style of a corpus, if it knows that one."""
        return LazyModel(self.folder, lambda: replace(self.get(), runtime=self.get().runtime.with_style(corpus)))


class Options(TypedDict, total=False):
    """Options of `Extractor.extract` and `stream`."""

    threshold: Threshold | None
    overlap: Overlap
    several_labels: bool
    batch_size: int


class Section(NamedTuple):
    """A part of a text, in the order of the text."""

    text: int  # number of the text
    entities: list[Entity]
    end: int  # characters of the text that have been read
    is_last: bool  # of this text
    tokens: int = 0  # of the text, counted when all of it has been read


@dataclass(frozen=True, slots=True)
class Reader:
    """Models with the types that they are asked for, to be put to any number of texts. Threads may share it.

    Each question is prepared when a model first needs it.
    """

    models: Sequence[LazyModel]
    router: ScriptRouter | None
    examples_of: Callable[[Sequence[EntityType], int], list[Sequence[MarkedText]]]
    types: Sequence[EntityType]
    threshold: Threshold | None
    options: ReadOptions
    questions: dict[int, Question] = field(default_factory=dict)

    def with_options(self, *, parallel: bool) -> Reader:
        """The same reader with other options; they share their questions."""
        return replace(self, options=self.options._replace(parallel=parallel))

    def question(self, number: int) -> Question:
        """The question for a model."""
        if number not in self.questions:
            model = self.models[number].get()
            self.questions[number] = model.ask(self.types, self.threshold, self.examples_of(self.types, number))
        return self.questions[number]

    def sections(self, texts: Iterable[str], times: ReadingTimes | None = None) -> Iterator[Section]:
        """The entities of texts, in parts, as `Extractor.stream_sections` reports them."""
        times, passed = times or ReadingTimes(), 0
        for chunk in chunk_texts(texts, self.options.batch_size * _BATCHES_PER_CHUNK):
            entities: list[list[Entity]] = [[] for _ in chunk]
            tokens = np.zeros(len(chunk), np.int64)
            whole, mixed = self.routes(chunk)
            for number, places in whole.items():
                for windowed, found, end in self._read(number, [chunk[place] for place in places], times):
                    tokens[places] = windowed.text_tokens()
                    for place, own in zip(places, found, strict=True):
                        entities[place] += own
                    if len(chunk) == 1 and end < len(windowed.packed.words):  # a section of a long text
                        yield Section(passed, entities[0], int(windowed.packed.words[end, 0]), False)
                        entities = [[]]
            for blocks in [[one] for one in mixed] if len(chunk) == 1 else [mixed] * bool(mixed):
                # a long text is reported block by block
                read, counts = self._read_blocks([(chunk[place], block) for place, block in blocks], times)
                for (place, block), own, count in zip(blocks, read, counts, strict=True):
                    entities[place] += own
                    tokens[place] += count
                    if len(chunk) == 1 and block_end(block) < len(chunk[place]):
                        yield Section(passed, entities[place], block_end(block), False)
                        entities = [[]]
            for place, text in enumerate(chunk):
                yield Section(passed + place, entities[place], len(text), True, int(tokens[place]))
            passed += len(chunk)

    def routes(self, texts: Sequence[str]) -> tuple[dict[int, Sequence[int]], list[tuple[int, Block]]]:
        """The texts that each model reads as a whole, and the blocks of those that several models read."""
        if self.router is None:
            return {0: range(len(texts))}, []
        whole: dict[int, list[int]] = {}
        mixed: list[tuple[int, Block]] = []
        for place, text in enumerate(texts):
            blocks = self.router.split(text)
            if len(blocks) == len(blocks[0]) == 1:
                whole.setdefault(blocks[0][0].route, []).append(place)
            else:
                mixed += ((place, block) for block in blocks)
        return dict(whole), mixed

    def _read(
        self, number: int, texts: Sequence[str], times: ReadingTimes
    ) -> Iterator[tuple[WindowedTexts, list[list[Entity]], int]]:
        """The entities of texts that one model reads, in sections as in `LoadedModel.read`."""
        model, question = self.models[number].get(), self.question(number)
        for windowed, decoded, end in model.read(texts, question, self.options, times):
            yield windowed, windowed.packed.entities(decoded, question.labels), end

    def _read_blocks(
        self, blocks: Sequence[tuple[str, Block]], times: ReadingTimes
    ) -> tuple[list[list[Entity]], list[int]]:
        """The entities of blocks of texts that several models read, and the tokens of the blocks."""
        packed = PackedBlocks(blocks)
        found = self.propose_blocks(packed, times)
        decoded = decode(
            found.proposals,
            found.labels,
            overlap=self.options.overlap,
            several_labels=self.options.several_labels,
            catch_all=found.catch_all,
            penalties=found.penalties,
        )
        return packed.entities(decoded, found.labels), found.tokens.tolist()

    def propose_blocks(
        self,
        blocks: PackedBlocks,
        times: ReadingTimes,
        floor: float = 1.0,
        reduce: Callable[[LoadedModel, Question], Callable[[Proposals], Proposals]] | None = None,
    ) -> BlockProposals:
        """The proposals of several models for blocks of texts, which are decoded together.

        They have types of their own for each model, because the penalties of labels may differ. Proposals between
        `floor` and their thresholds are reported as well.
        """
        found, labels, penalties, thresholds = [], list[str](), [], []
        catch_all: set[str] = set()
        tokens = np.zeros(len(blocks.texts), np.int64)
        for number in blocks.routes:
            model, question = self.models[number].get(), self.question(number)
            catch_all.update(model.folder.config.catch_all)
            parts = blocks.read_by(number)
            needed = None if reduce is None else reduce(model, question)
            sections = model.propose(parts, question.lowered(floor), self.options, times, None, needed)
            for windowed, proposals, _ in sections:
                placed = blocks.place(number, windowed.packed, proposals)
                found.append(placed._replace(type=placed.type + len(labels)))
                np.add.at(tokens, blocks.blocks_of(number), windowed.text_tokens())
            labels.extend(question.labels)
            thresholds.append(question.thresholds)
            none = np.zeros(len(question.labels), np.float32)
            penalties.append(none if question.penalties is None else question.penalties)
        return BlockProposals(
            Proposals.concatenate(found),
            labels,
            None if not np.any(penalties) else np.concatenate(penalties),
            catch_all,
            np.concatenate([np.zeros(0, np.float32), *thresholds]),
            tokens,
        )


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
        """The labels that can be asked for; None: any."""
        known = [model.get().runtime.labels for model in self._models]
        return frozenset().union(*(own for own in known if own is not None)) if None not in known else None

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
