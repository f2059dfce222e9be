"""Candidates: the proposals of texts before decoding, with the numbers by which the decoder chooses among them.

A program that has them can decode again without the model, at other thresholds or with corrections of a user: keep
those that reach their thresholds, visit them by falling `rank`, keep what does not conflict, and report of each span
the label with the highest `preference`. This gives what `onoma.decoding.decode` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.decoding.decode import decode, is_best_label, label_preferences, ranking_scores
from onoma.decoding.proposals import Proposals
from onoma.entities import Entity, check_threshold
from onoma.errors import OnomaError
from onoma.inputs.blocks import PackedBlocks

if TYPE_CHECKING:
    from onoma.inputs.packing import PackedTexts
    from onoma.reading import LoadedModel, Question, Reader, ReadingTimes

Integers = NDArray[np.int64]

MAX_CANDIDATES = 2_000
"""Candidates of a text; those with the best scores are kept."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span with one of its labels."""

    start: int
    end: int
    label: str
    score: float
    rank: float  # by which spans are ordered
    preference: float  # by which one of the labels of a span is chosen
    threshold: float  # that its score had to reach


@dataclass(slots=True)
class TextCandidates:
    """What was found in a text, and what it was chosen from."""

    entities: list[Entity] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)  # best scores first
    thresholds: dict[str, float] = field(default_factory=dict)  # of the model that reads most of the text
    tokens: int = 0


def find_candidates(reader: Reader, texts: Sequence[str], floor: float, times: ReadingTimes) -> list[TextCandidates]:
    """The candidates of texts; see `Extractor.candidates`."""
    check_threshold(floor, "the floor of candidates")
    if isinstance(floor, str):
        raise OnomaError(f"the floor of candidates must be a number between 0 and 1, got {floor!r}")
    finder = _Finder(reader, texts, floor, times)
    whole, mixed = reader.routes(texts)
    for number, places in whole.items():
        finder.read_whole(number, places)
    for place in dict.fromkeys(place for place, _ in mixed):
        finder.read_mixed(place, PackedBlocks([(texts[place], block) for other, block in mixed if other == place]))
    return finder.found


class _Finder:
    def __init__(self, reader: Reader, texts: Sequence[str], floor: float, times: ReadingTimes) -> None:
        self.reader, self.texts, self.floor, self.times = reader, texts, floor, times
        self.found = [TextCandidates() for _ in texts]

    def read_whole(self, number: int, places: Sequence[int]) -> None:
        """Texts that one model reads."""
        model, question = self.reader.models[number].get(), self.reader.question(number)
        texts = [self.texts[place] for place in places]
        sections = model.propose(
            texts, question.lowered(self.floor), self.reader.options, self.times, None, _reduction(model, question)
        )
        for windowed, proposals, _ in sections:
            choice = _Choice(
                question.labels, question.thresholds, model.runtime.config.catch_all, question.penalties, proposals
            )
            entities = windowed.packed.entities(self._decode(choice), question.labels)
            tokens = windowed.text_tokens().tolist()
            for place, own, count in zip(places, entities, tokens, strict=True):
                self.found[place].entities, self.found[place].tokens = own, count
                self.found[place].thresholds = _by_label(question)
            self._add(choice, windowed.packed, places)

    def read_mixed(self, place: int, blocks: PackedBlocks) -> None:
        """A text that several models read."""
        found = self.reader.propose_blocks(blocks, self.times, self.floor, _reduction)
        choice = _Choice(found.labels, found.thresholds, found.catch_all, found.penalties, found.proposals)
        entities = blocks.entities(self._decode(choice), found.labels)
        self.found[place] = TextCandidates(
            [one for own in entities for one in own],
            thresholds=_by_label(self.reader.question(blocks.main_route())),
            tokens=int(found.tokens.sum()),
        )
        self._add(choice, blocks, [place] * len(blocks.texts))

    def _decode(self, choice: _Choice) -> Proposals:
        options = self.reader.options
        return decode(
            choice.proposals,
            choice.labels,
            thresholds=choice.thresholds,
            overlap=options.overlap,
            several_labels=options.several_labels,
            catch_all=choice.catch_all,
            penalties=choice.penalties,
        )

    def _add(self, choice: _Choice, packed: PackedTexts | PackedBlocks, places: Sequence[int]) -> None:
        """Add the best candidates of each text."""
        choice = choice._replace(proposals=choice.proposals.above(self.floor))
        text = np.asarray(places, np.int64)[packed.offsets(choice.proposals)[0]]
        rows = _best_of_groups(text, choice.proposals.score, MAX_CANDIDATES)
        for place, candidate in zip(text[rows].tolist(), choice.candidates(packed, rows), strict=True):
            self.found[place].candidates.append(candidate)


class _Choice(NamedTuple):
    """Proposals and what decides between them."""

    labels: Sequence[str]
    thresholds: NDArray[np.float32]
    catch_all: Collection[str]
    penalties: NDArray[np.float32] | None
    proposals: Proposals

    def candidates(self, packed: PackedTexts | PackedBlocks, rows: Integers) -> list[Candidate]:
        """Some of the proposals as candidates."""
        rank = ranking_scores(self.proposals.score, self.proposals.type, self.labels, self.catch_all)
        preference = label_preferences(self.proposals, self.labels, self.catch_all, self.penalties)
        chosen = self.proposals.take(rows)
        _, start, end = packed.offsets(chosen)
        columns = (start, end, chosen.type, chosen.score, rank[rows], preference[rows], self.thresholds[chosen.type])
        values = zip(*(column.tolist() for column in columns), strict=True)
        return [Candidate(first, after, self.labels[kind], *numbers) for first, after, kind, *numbers in values]


def _reduction(model: LoadedModel, question: Question) -> Callable[[Proposals], Proposals]:
    """Leaves out proposals that are neither among the best of their window nor needed for decoding."""
    return partial(_reduce, question=question, is_best=partial(is_best_label, catch_all=model.runtime.config.catch_all))


def _reduce(proposals: Proposals, question: Question, is_best: Callable[..., NDArray[np.bool_]]) -> Proposals:
    kept = np.zeros(len(proposals.score), np.bool_)
    kept[_best_of_groups(proposals.window, proposals.score, MAX_CANDIDATES)] = True
    reached = np.flatnonzero(proposals.reaches(question.thresholds))
    kept[reached[is_best(proposals.take(reached), question.labels, penalties=question.penalties)]] = True
    return proposals.take(kept)


def _best_of_groups(group: Integers, score: NDArray[np.float32], count: int) -> Integers:
    """The rows with the best scores of each group, best first; ties in the order of the rows."""
    order = np.lexsort((np.arange(len(score)), -score, group))
    ordered = group[order]
    place = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return np.asarray(order[place < count], np.int64)


def _by_label(question: Question) -> dict[str, float]:
    return dict(zip(question.labels, question.thresholds.tolist(), strict=True))
