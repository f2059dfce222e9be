"""Reading: from texts and a prepared question to entities, by one model or by several, in sections of long texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.decode import best_labels, decode
from onoma.decoding.overlap import Overlap
from onoma.decoding.proposals import Proposals
from onoma.entities import Entity, EntityType
from onoma.inputs.blocks import Block, PackedBlocks, block_end
from onoma.inputs.packing import PackedTexts, WindowedTexts, chunk_texts
from onoma.labels.examples import MarkedText
from onoma.labels.parsing import LOWEST_THRESHOLD, Threshold, Thresholds, resolve_thresholds
from onoma.labels.routing import ScriptRouter
from onoma.labels.translation import LabelTranslator
from onoma.labels.type_cache import Latest, TypeCache
from onoma.locks import ForkSafeLock
from onoma.models.config import ModelConfig
from onoma.models.folder import ModelFolder
from onoma.systems.base import Query, Runtime, label_penalties, propose

SECTION_TOKENS = 16_384
"""Tokens of a long text after which its entities so far are reported."""

_BATCHES_PER_CHUNK = 16  # batches whose texts are sorted by length together


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

    def unknown_types(self, types: Sequence[EntityType]) -> list[str]:
        """The names of types that the model cannot be asked for, because it knows a closed set of labels."""
        known = self.runtime.labels
        if known is None:
            return []
        translated = zip(types, self.translator.translate(types), strict=True)
        return [asked.name for asked, own in translated if own.name not in known]

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
