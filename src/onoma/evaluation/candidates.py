"""Scored proposals for a corpus: the model runs once, then thresholds can be compared in milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onoma.data.overlaps import count_overlaps
from onoma.decoding.decode import decode_rows
from onoma.decoding.overlap import Overlap
from onoma.decoding.proposals import Proposals
from onoma.entities import Corpus, EntityType, Preset
from onoma.evaluation.columns import Booleans, Integers, distinct, encode
from onoma.evaluation.scores import Scores
from onoma.inputs.packing import PackedTexts, WindowedTexts
from onoma.labels.parsing import parse_labels
from onoma.labels.presets import BETAS
from onoma.models.config import ModelConfig
from onoma.systems.base import Runtime, label_penalties, propose

SECTION_TOKENS = 65_536
"""Tokens between two reports of progress."""
BREADTH_WEIGHTS = (0.0, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.12, 0.2, 0.5)
"""Weights of breadths to choose from, for models that have them."""
_COARSE_STEP = 4  # of thresholds by which weights of breadths are compared


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The proposals of a model for a corpus, and whether each of them is a gold mention.

    Words are counted across all documents. Proposals whose label is not annotated in their document take part in the
    resolution of overlaps, as in extraction, but count neither as correct nor as wrong.
    """

    labels: tuple[str, ...]
    proposals: Proposals
    document: Integers
    correct: Booleans
    known: Booleans  # whether the label is annotated in the document
    gold: Integers  # number of gold mentions of each label
    overlap: Overlap
    catch_all: Collection[str] = ()
    breadths: NDArray[np.float32] | None = None  # of the types, if the model has them
    breadth_weight: float = 0.0

    def reported(self, thresholds: ArrayLike) -> Integers:
        """The rows that are reported at thresholds (one number, or one per label) and whose label is annotated."""
        rows = decode_rows(
            self.proposals,
            self.labels,
            thresholds=thresholds,
            overlap=self.overlap,
            catch_all=self.catch_all,
            penalties=label_penalties(self.breadths, self.breadth_weight),
        )
        return rows[self.known[rows]]

    def counts(self, thresholds: ArrayLike) -> tuple[Integers, Integers, Integers]:
        """The numbers of gold, predicted and correct mentions of each label."""
        rows = self.reported(thresholds)
        kinds, size = self.proposals.type[rows], len(self.labels)
        return self.gold, np.bincount(kinds, minlength=size), np.bincount(kinds[self.correct[rows]], minlength=size)

    def type_scores(self, thresholds: ArrayLike) -> tuple[Scores, ...]:
        """The strict scores of each label."""
        columns = zip(*(column.tolist() for column in self.counts(thresholds)), strict=True)
        return tuple(Scores.one_to_one(*counts) for counts in columns)

    def scores(self, thresholds: ArrayLike) -> Scores:
        """The strict scores over all labels (micro)."""
        return Scores.one_to_one(*(int(column.sum()) for column in self.counts(thresholds)))

    def of_documents(self, rows: Booleans) -> Candidates:
        """Some of the rows, which must be all rows of some documents; `gold` still counts the whole corpus."""
        return self._take(rows)

    def above(self, threshold: float) -> Candidates:
        """The rows that reach a threshold: the same scores at this threshold and at higher ones, in less time."""
        return self._take(self.proposals.reaches(threshold))

    def _take(self, rows: Booleans) -> Candidates:
        return replace(
            self,
            proposals=self.proposals.take(rows),
            document=self.document[rows],
            correct=self.correct[rows],
            known=self.known[rows],
        )

    def rescored(self, score: NDArray[np.float32]) -> Candidates:
        """The same candidates with other scores."""
        return replace(self, proposals=self.proposals._replace(score=score))


class EvaluationSet:
    """A corpus with its tokens and windows, to evaluate a model several times with different weights or options."""

    def __init__(
        self,
        corpus: Corpus,
        runtime: Runtime,
        *,
        overlap: Overlap | None = None,
        batch_size: int = 64,
        types: Sequence[EntityType] | None = None,
    ) -> None:
        """Tokenise a corpus.

        Args:
            overlap: by default "nested" if the mentions of the corpus are, else "flat".
            types: the types to ask the model for instead of those of the corpus (translated ones, for instance), in the
                order of the corpus's types sorted by name.
        """
        self.corpus, self.batch_size = corpus, batch_size
        self.overlap = overlap or usual_overlap(corpus)
        own = parse_labels(corpus.types)
        self.labels = tuple(one.name for one in own)
        self.types = own if types is None else tuple(types)
        config = runtime.config
        packed = PackedTexts.pack([one.text for one in corpus])
        self.texts = WindowedTexts.cut(packed, runtime.tokenizer, config.max_tokens, config.overlap)
        places = {label: place for place, label in enumerate(self.labels)}
        self._gold = _gold_columns(corpus, places)
        self._annotated = _annotated_table(corpus, places)

    def candidates(
        self, runtime: Runtime, floor: float, on_progress: Callable[[int], None] = lambda documents: None
    ) -> Candidates:
        """All proposals with a score of at least `floor`; `on_progress` gets the number of documents read so far."""
        runtime = runtime.with_style(self.corpus.name)
        query, thresholds = runtime.ask(self.types), np.full(len(self.types), floor, np.float32)
        parts = []
        for windows, next_word in self.texts.sections(SECTION_TOKENS):
            parts.append(propose(self.texts, runtime, query, thresholds, self.batch_size, windows))
            on_progress(int(np.searchsorted(self.texts.packed.edges[1:], next_word, side="right")))
        return self._candidates(Proposals.concatenate(parts), runtime.config, runtime.breadths(query))

    def _candidates(
        self, proposals: Proposals, config: ModelConfig, breadths: NDArray[np.float32] | None
    ) -> Candidates:
        packed = self.texts.packed
        document = packed.text_of(proposals.first)
        start, end = packed.words[proposals.first, 0], packed.words[proposals.last, 1]
        gold_codes, codes = encode(self._gold, (document, start, end, proposals.type))
        _, rows = distinct(gold_codes)  # a repeated mention counts once
        return Candidates(
            self.labels,
            proposals,
            document,
            np.isin(codes, gold_codes),
            self._annotated[document, proposals.type],
            np.bincount(self._gold[3][rows], minlength=len(self.labels)),
            self.overlap,
            config.catch_all,
            breadths,
            config.breadth_weight,
        )

    def evaluate(self, runtime: Runtime) -> dict[str, float]:
        """Strict precision, recall and F1 of a model at its own threshold, in percent."""
        threshold = runtime.config.threshold
        return as_percent(self.candidates(runtime, threshold).scores(threshold))


def as_percent(scores: Scores) -> dict[str, float]:
    """Precision, recall and F1 in percent."""
    return {"precision": 100 * scores.precision, "recall": 100 * scores.recall, "f1": 100 * scores.f1}


def mean_scores(sets: Sequence[EvaluationSet], runtime: Runtime) -> dict[str, float]:
    """The mean scores of a model at its own threshold over all sets, and the F1 of each set if there are several."""
    threshold = runtime.config.threshold
    return mean_of_candidates(sets, [one.candidates(runtime, threshold) for one in sets], threshold)


def mean_of_candidates(
    sets: Sequence[EvaluationSet], candidates: Sequence[Candidates], threshold: float
) -> dict[str, float]:
    """The same for the candidates of each set."""
    each = [as_percent(one.scores(threshold)) for one in candidates]
    mean = {name: float(np.mean([scores[name] for scores in each])) for name in ("precision", "recall", "f1")}
    if len(sets) == 1:
        return mean
    return mean | {f"{one.corpus.name}_f1": scores["f1"] for one, scores in zip(sets, each, strict=True)}


def best_threshold(candidates: Sequence[Candidates], grid: Sequence[float], beta: float = 1.0) -> float:
    """The threshold of a grid with the best mean F_β over corpora; of equally good ones, the one in the middle."""
    return _best_threshold(candidates, grid, beta)[0]


def best_breadth_weight(candidates: Sequence[Candidates], grid: Sequence[float]) -> tuple[float, float]:
    """The threshold of a grid and the weight of breadths with the best mean F1 over corpora.

    Weights are compared at every fourth threshold, which saves minutes on large suites; of equally good ones, it is the
    smallest one. The threshold is then chosen for this weight.
    """
    candidates = [one.above(min(grid)) for one in candidates]

    def best_of(weight: float, thresholds: Sequence[float]) -> tuple[float, float]:
        return _best_threshold([replace(one, breadth_weight=weight) for one in candidates], thresholds)

    coarse = grid[::_COARSE_STEP]
    best = max(BREADTH_WEIGHTS, key=lambda weight: best_of(weight, coarse)[1])
    return best_of(best, grid)[0], best


def _best_threshold(candidates: Sequence[Candidates], grid: Sequence[float], beta: float = 1.0) -> tuple[float, float]:
    """A threshold and its mean F_β."""
    means = [float(np.mean([one.scores(value).f_beta(beta) for one in candidates])) for value in grid]
    return middle_of_best(grid, means), max(means)


def middle_of_best(grid: Sequence[float], scores: Sequence[float]) -> float:
    """The threshold of a grid with the best score; of equally good ones, the one in the middle."""
    best = [value for value, score in zip(grid, scores, strict=True) if score == max(scores)]
    return float(best[len(best) // 2])


def best_presets(candidates: Sequence[Candidates], grid: Sequence[float], balanced: float) -> dict[str, float]:
    """The thresholds for "precise", at least the balanced one, and "complete", at most that, by their own F scores."""
    higher, lower = ([value for value in grid if low <= value <= high] for low, high in ((balanced, 1), (0, balanced)))
    grids: dict[Preset, list[float]] = {"precise": higher, "complete": lower}
    return {name: best_threshold(candidates, own or [balanced], BETAS[name]) for name, own in grids.items()}


def usual_overlap(corpus: Corpus) -> Overlap:
    """The overlap mode that fits the mentions of a corpus: "nested" if any of them overlap, else "flat"."""
    overlaps = (count_overlaps(document.entities) for document in corpus)
    return "nested" if any(one.nested or one.crossing for one in overlaps) else "flat"


def _gold_columns(corpus: Corpus, places: Mapping[str, int]) -> tuple[Integers, ...]:
    """The gold mentions as columns: document, start, end, type."""
    rows = [
        (number, one.start, one.end, places[one.label])
        for number, document in enumerate(corpus)
        for one in document.entities
    ]
    return tuple(np.array(rows, np.int64).reshape(-1, 4).T)


def _annotated_table(corpus: Corpus, places: Mapping[str, int]) -> Booleans:
    """Whether each label is annotated in each document: (documents, labels)."""
    table = np.ones((len(corpus), len(places)), np.bool_)
    for number, document in enumerate(corpus):
        if document.annotated is not None:
            table[number] = False
            table[number, [places[name] for name in document.annotated if name in places]] = True
    return table
