"""Scored proposals of a corpus, compared with `evaluate` on the decoded entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onoma
from evaluation.strategies import LABELS, quick, spans
from onoma import Corpus, Document, Entity, EntityType, Extractor
from onoma.decoding import Overlap, Proposals, decode
from onoma.evaluation import Scores, evaluate
from onoma.evaluation.candidates import (
    BREADTH_WEIGHTS,
    Candidates,
    EvaluationSet,
    best_breadth_weight,
    best_presets,
    best_threshold,
    mean_scores,
    usual_overlap,
)
from onoma.inputs.batches import Batch
from onoma.inputs.packing import PackedTexts
from onoma.inputs.tokenizer import WordTokenizer
from onoma.models.config import ModelConfig
from onoma.text import segment
from tiny import TYPES, corpus, documents, train_tokenizer

TOKENIZER = WordTokenizer(train_tokenizer(["aa bb cc dd"]))
SCORES = (0.1, 0.3, 0.3, 0.5, 0.7, 0.9)  # few values, so that there are ties
GRID = [0.05, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0]

Proposal = tuple[int, int, int, float]  # first and last word, type, score
Predicted = Mapping[str, Sequence[Proposal]]  # by text


@dataclass
class FixedRuntime:
    """A runtime whose proposals are given for each text. Texts fit into one window."""

    proposals: Predicted
    config: ModelConfig
    tokenizer: WordTokenizer = TOKENIZER
    backend: str = "fixed"
    workers: int = 1
    call_tokens: int | None = None
    labels: None = None
    given_breadths: tuple[float, ...] | None = None

    def ask(self, types: Sequence[EntityType]) -> Sequence[EntityType]:
        return types

    def breadths(self, query: Any) -> np.ndarray | None:
        return None if self.given_breadths is None else np.array(self.given_breadths, np.float32)

    def max_batch_tokens(self, query: Any) -> int:
        return 64

    def propose(self, batch: Batch, query: Any, floor: float) -> Proposals:
        rows = [
            (window, *proposal)
            for window, text in enumerate(batch.texts)
            for proposal in self.proposals[text]
            if proposal[-1] >= floor
        ]
        window, first, last, kind, score = zip(*rows, strict=True) if rows else ((),) * 5
        integers = (np.array(column, np.int64) for column in (window, first, last, kind))
        return Proposals(*integers, np.array(score, np.float32))

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterable[Any]:
        return map(function, items)

    def with_style(self, name: str | None) -> FixedRuntime:
        return self


@dataclass
class Case:
    """A corpus and the proposals of a model for it."""

    corpus: Corpus
    proposals: Predicted
    overlap: Overlap
    catch_all: tuple[str, ...] = ()
    breadths: tuple[float, ...] | None = None
    breadth_weight: float = 0.5

    def candidates(self, floor: float = 0.0) -> Candidates:
        config = ModelConfig("fixed", catch_all=self.catch_all, breadth_weight=self.breadth_weight)
        runtime = FixedRuntime(self.proposals, config, given_breadths=self.breadths)
        prepared = EvaluationSet(self.corpus, runtime, overlap=self.overlap, batch_size=2)
        return prepared.candidates(runtime, floor)

    def predicted(self, thresholds: float | Sequence[float]) -> list[list[Entity]]:
        """The entities that extraction would report, decoded document by document."""
        found = []
        for document in self.corpus:
            rows = np.array(self.proposals[document.text], float).reshape(-1, 4)
            first, last, kind = rows[:, :3].T.astype(np.int64)
            proposals = Proposals(np.zeros_like(first), first, last, kind, rows[:, 3].astype(np.float32))
            decoded = decode(
                proposals,
                LABELS,
                thresholds=thresholds,
                overlap=self.overlap,
                catch_all=self.catch_all,
                penalties=None if self.breadths is None else self.breadth_weight * np.array(self.breadths),
            )
            packed = PackedTexts.pack([document.text], [segment(document.text)])
            found.append(packed.entities(decoded, LABELS)[0])
        return found


@st.composite
def word_spans(draw: st.DrawFn, words: int) -> list[tuple[int, int]]:
    """First and last words of some spans of up to three words."""
    firsts = draw(st.lists(st.integers(0, words - 1), max_size=6)) if words else []
    return [(first, draw(st.integers(first, min(first + 2, words - 1)))) for first in firsts]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Gold mentions at word boundaries and elsewhere; proposals that match some of them, overlap, and have ties."""
    gold_documents, proposals = [], {}
    for _ in range(draw(st.integers(1, 4))):
        text = " ".join(draw(st.lists(st.sampled_from(["aa", "bb", "cc"]), max_size=5)))
        words = segment(text).tolist()
        annotated = draw(st.none() | st.sets(st.sampled_from(LABELS), min_size=1))
        known = tuple(sorted(annotated or LABELS))
        gold = draw(spans(len(text), known, False)) if draw(st.booleans()) else []
        gold += [
            (words[first][0], words[last][1], draw(st.sampled_from(known)))
            for first, last in draw(word_spans(len(words)))
        ]
        gold_documents.append(Document.from_spans(text, gold, annotated=annotated))
        kinds = st.integers(0, len(LABELS) - 1)
        scored = {(*span, draw(kinds)): draw(st.sampled_from(SCORES)) for span in draw(word_spans(len(words)))}
        proposals[text] = [(*key, score) for key, score in scored.items()]
    return Case(
        Corpus("random", gold_documents, tuple(map(EntityType, LABELS))),
        proposals,
        draw(st.sampled_from(["flat", "nested", "any"])),
        draw(st.sampled_from([(), ("b",)])),
        draw(st.none() | st.tuples(*[st.sampled_from([-2.0, 0.0, 2.0])] * len(LABELS))),
    )


thresholds = st.sampled_from([0.0, *GRID]) | st.lists(st.sampled_from(GRID), min_size=3, max_size=3)


@settings(max_examples=200)
@given(cases(), thresholds)
def test_scores_equal_those_of_the_decoded_entities(case: Case, threshold: float | list[float]) -> None:
    candidates, expected = case.candidates(), evaluate(case.corpus, case.predicted(threshold)).strict
    assert candidates.scores(threshold) == expected.micro
    nothing = Scores(0, 0, 0, 0)
    assert candidates.labels == LABELS
    assert candidates.type_scores(threshold) == tuple(expected.types.get(label, nothing) for label in LABELS)


@quick
@given(cases(), st.sampled_from(GRID))
def test_a_floor_changes_nothing_at_thresholds_above_it(case: Case, floor: float) -> None:
    whole, part = case.candidates(), case.candidates(floor)
    assert len(part.proposals.score) <= len(whole.proposals.score)
    for threshold in (value for value in GRID if value >= floor):
        assert part.type_scores(threshold) == whole.type_scores(threshold)


@quick
@given(st.lists(cases(), min_size=1, max_size=3), st.sampled_from([GRID, GRID[:2], [0.3, 0.31, 0.32]]))
def test_the_best_threshold_equals_that_of_a_loop_over_the_grid(several: list[Case], grid: list[float]) -> None:
    means = []
    for value in grid:
        scores = [evaluate(case.corpus, case.predicted(value)).strict.micro.f1 for case in several]
        means.append(float(np.mean(scores)))
    best = [value for value, mean in zip(grid, means, strict=True) if mean == max(means)]
    found = best_threshold([case.candidates() for case in several], grid)
    assert found == best[len(best) // 2]


@settings(max_examples=25)
@given(st.lists(cases(), min_size=1, max_size=2))
def test_the_best_weight_of_breadths_equals_that_of_loops(several: list[Case]) -> None:
    def means(weight: float, grid: list[float]) -> dict[float, float]:
        weighted = [replace(case, breadth_weight=weight) for case in several]
        scores = {
            value: [evaluate(case.corpus, case.predicted(value)).strict.micro.f1 for case in weighted] for value in grid
        }
        return {value: float(np.mean(own)) for value, own in scores.items()}

    coarse = {weight: max(means(weight, list(GRID[::4])).values()) for weight in BREADTH_WEIGHTS}
    best = next(weight for weight in BREADTH_WEIGHTS if coarse[weight] == max(coarse.values()))
    fine = means(best, list(GRID))
    thresholds = [value for value, mean in fine.items() if mean == max(fine.values())]
    found = best_breadth_weight([case.candidates() for case in several], GRID)
    assert found == (thresholds[len(thresholds) // 2], best)


@quick
@given(st.lists(cases(), min_size=1, max_size=3), st.sampled_from([*GRID, 0.01]))
def test_presets_equal_those_of_a_loop_over_the_grid(several: list[Case], balanced: float) -> None:
    found = best_presets([case.candidates() for case in several], GRID, balanced)
    for name, beta, grid in (
        ("precise", 0.5, [value for value in GRID if value >= balanced]),
        ("complete", 2.0, [value for value in GRID if value <= balanced] or [balanced]),
    ):
        means = {}
        for value in grid:
            scores = [evaluate(case.corpus, case.predicted(value)).strict.micro for case in several]
            means[value] = np.mean([_f_beta(one.precision, one.recall, beta) for one in scores])
        best = [value for value, mean in means.items() if mean == pytest.approx(max(means.values()))]
        assert found[name] in best


def _f_beta(precision: float, recall: float, beta: float) -> float:
    """The weighted harmonic mean, as van Rijsbergen defines it."""
    if not precision or not recall:
        return 0.0
    return (1 + beta**2) / (1 / precision + beta**2 / recall)


@quick
@given(cases(), st.sampled_from(GRID), st.data())
def test_counts_of_some_documents_and_of_the_others_add_up(case: Case, threshold: float, data: st.DataObject) -> None:
    candidates = case.candidates()
    chosen = data.draw(st.sets(st.integers(0, len(case.corpus) - 1)))
    rows = np.isin(candidates.document, list(chosen))
    parts = candidates.of_documents(rows), candidates.of_documents(~rows)
    for whole, one, other in zip(*(each.counts(threshold)[1:] for each in (candidates, *parts)), strict=True):
        assert whole.tolist() == (one + other).tolist()
    assert all(part.gold.tolist() == candidates.gold.tolist() for part in parts)


@quick
@given(cases())
def test_other_scores_give_other_thresholds(case: Case) -> None:
    candidates = replace(case, breadths=None).candidates()  # logits are not halved
    halved = candidates.rescored(candidates.proposals.score / 2)
    for threshold in GRID:
        assert halved.type_scores(threshold / 2) == candidates.type_scores(threshold)


def two_words(annotated: set[str] | None, *gold: tuple[int, int, str]) -> Document:
    return Document.from_spans("aa bb", gold, annotated=annotated)


def test_labels_that_are_not_annotated_compete_but_do_not_count() -> None:
    proposals = {"aa bb": [(0, 0, 0, 0.5), (0, 1, 1, 0.9)]}  # "aa" is A; "aa bb" is B, with a higher score
    types = tuple(map(EntityType, LABELS))
    known = Case(Corpus("known", [two_words(None, (0, 2, "A"))], types), proposals, "flat")
    assert known.candidates().scores(0.4) == Scores(gold=1, predicted=1, found=0, correct=0)
    unknown = Case(Corpus("unknown", [two_words({"A"}, (0, 2, "A"))], types), proposals, "flat")
    # B wins over A, as in extraction, but is neither correct nor wrong
    assert unknown.candidates().scores(0.4) == Scores(gold=1, predicted=0, found=0, correct=0)
    assert unknown.candidates().scores([0.4, 1.0, 0.4]) == Scores(1, 1, 1, 1)
    assert unknown.candidates().reported(0.4).tolist() == []
    nested = Case(unknown.corpus, proposals, "nested")
    assert nested.candidates().scores(0.4) == Scores(1, 1, 1, 1)


def test_a_repeated_gold_mention_counts_once() -> None:
    repeated = Corpus("twice", [two_words(None, (0, 2, "A"), (0, 2, "A"))], tuple(map(EntityType, LABELS)))
    assert Case(repeated, {"aa bb": [(0, 0, 0, 0.5)]}, "flat").candidates().scores(0.4) == Scores(1, 1, 1, 1)


def test_the_overlap_mode_fits_the_corpus() -> None:
    flat = [one for one in documents() if "Players" not in one.text]
    assert usual_overlap(Corpus("flat", flat)) == "flat"
    assert usual_overlap(corpus()) == "nested"
    same_span = Document.from_spans("Paris", [(0, 5, "city"), (0, 5, "capital")])
    assert usual_overlap(Corpus("same span", [same_span])) == "flat"
    crossing = Document.from_spans("New York City", [(0, 8, "state"), (4, 13, "city")])
    assert usual_overlap(Corpus("crossing", [crossing])) == "nested"


@pytest.mark.parametrize("overlap", ["flat", "nested"])
def test_a_model_is_scored_as_by_onoma_evaluate(ner: Extractor, overlap: Overlap) -> None:
    prepared = EvaluationSet(corpus(), ner.runtime, overlap=overlap)
    for threshold in (0.02, 0.5, 0.9):
        candidates = prepared.candidates(ner.runtime, 0.02)
        strict = onoma.evaluate(ner, corpus(), threshold=threshold, overlap=overlap).strict
        assert candidates.scores(threshold) == strict.micro
        assert candidates.type_scores(threshold) == tuple(strict.types.values())
    percent = {
        name: 100 * getattr(onoma.evaluate(ner, corpus(), overlap=overlap).strict.micro, name) for name in SHARES
    }
    assert prepared.evaluate(ner.runtime) == pytest.approx(percent)


SHARES = ("precision", "recall", "f1")


def test_progress_counts_documents(ner: Extractor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onoma.evaluation.candidates.SECTION_TOKENS", 100)
    progress: list[int] = []
    EvaluationSet(corpus(), ner.runtime).candidates(ner.runtime, 0.5, progress.append)
    assert len(progress) > 5
    assert progress == sorted(progress)
    assert progress[-1] == len(corpus())


def test_the_model_can_be_asked_for_other_types_than_those_of_the_corpus(ner: Extractor) -> None:
    names = {"band": "x", "city": "y", "person": "z"}
    renamed = Corpus(
        "renamed",
        [Document.from_spans(one.text, [(*e.key[:2], names[e.label]) for e in one.entities]) for one in documents()],
    )
    prepared = EvaluationSet(renamed, ner.runtime, types=TYPES)
    assert prepared.labels == ("x", "y", "z")
    assert prepared.candidates(ner.runtime, 0.5).scores(0.5).f1 == 1.0


def test_means_are_taken_over_all_sets_even_if_corpora_have_the_same_name(ner: Extractor) -> None:
    perfect, hopeless = documents()[:3], [Document.from_spans("We eat soup .", [(7, 11, "city")])]
    sets = [EvaluationSet(Corpus("same", chosen, TYPES), ner.runtime) for chosen in (perfect, hopeless)]
    assert mean_scores(sets[:1], ner.runtime) == pytest.approx({"precision": 100.0, "recall": 100.0, "f1": 100.0})
    assert mean_scores(sets, ner.runtime)["f1"] == pytest.approx(50.0)
    other = EvaluationSet(Corpus("other", hopeless, TYPES), ner.runtime)
    assert mean_scores([sets[0], other], ner.runtime) == pytest.approx(
        {"precision": 50.0, "recall": 50.0, "f1": 50.0, "same_f1": 100.0, "other_f1": 0.0}
    )
