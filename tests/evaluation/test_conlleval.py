from __future__ import annotations

import warnings

import pytest
from evaluation_strategies import entities, quick, scored
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities, precision_recall_fscore_support

from onoma import Corpus, Document, Entity, EntityType, OnomaError
from onoma.evaluation import Comparison, Scores, conlleval, score_tags
from onoma.evaluation.conlleval import chunks
from onoma.evaluation.strict import strict

TAGS = ("O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("PER", "LOC", "per-son")))
SENTENCE = st.lists(st.sampled_from(TAGS), max_size=12)
PAIRS = st.lists(
    st.integers(1, 12).flatmap(
        lambda size: st.tuples(*[st.lists(st.sampled_from(TAGS), min_size=size, max_size=size)] * 2)
    ),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-X I-X O B-X", [(0, 1, "X"), (3, 3, "X")]),  # IOB2
        ("I-X I-X B-X O", [(0, 1, "X"), (2, 2, "X")]),  # IOB1: B only between two neighbours
        ("I-X I-Y", [(0, 0, "X"), (1, 1, "Y")]),  # another type begins another chunk
        ("B-X I-Y I-X", [(0, 0, "X"), (1, 1, "Y"), (2, 2, "X")]),
        ("B-X I-X E-X S-Y", [(0, 2, "X"), (3, 3, "Y")]),  # BIOES
        ("O E-X I-X E-X", [(1, 1, "X"), (2, 3, "X")]),  # E ends a chunk even without a beginning
        ("S-X I-X", [(0, 0, "X"), (1, 1, "X")]),
        ("B-X M-X E-X B-X M-X", [(0, 2, "X"), (3, 4, "X")]),  # BMES, broken off
        ("B-X I-X L-X U-X", [(0, 2, "X"), (3, 3, "X")]),  # BILOU
        ("", []),
        ("O O", []),
    ],
)
def test_chunks(tags: str, expected: list[tuple[int, int, str]]) -> None:
    assert chunks(tags.split()) == expected


@given(SENTENCE)
def test_chunks_as_in_seqeval(tags: list[str]) -> None:
    assert chunks(tags) == [(first, last, kind) for kind, first, last in get_entities(tags)]


@given(PAIRS)
def test_scores_as_in_seqeval(pairs: list[tuple[list[str], list[str]]]) -> None:
    gold, predicted = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    result = score_tags(gold, predicted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seqeval warns where a score is 0 / 0
        assert result.overall.precision == pytest.approx(precision_score(gold, predicted))
        assert result.overall.recall == pytest.approx(recall_score(gold, predicted))
        assert result.overall.f1 == pytest.approx(f1_score(gold, predicted))
        assert result.accuracy == pytest.approx(accuracy_score(gold, predicted))
        if result.types:  # seqeval lists the types by name, as we do
            precision, recall, f1, support = precision_recall_fscore_support(gold, predicted, average=None)
            scores = list(result.types.values())
            assert [score.precision for score in scores] == pytest.approx(list(precision))
            assert [score.recall for score in scores] == pytest.approx(list(recall))
            assert [score.f1 for score in scores] == pytest.approx(list(f1))
            assert [score.gold for score in scores] == list(support)


def test_the_printed_report_by_hand() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"]]
    predicted = [["B-PER", "I-PER", "O", "O"], ["B-PER", "B-LOC"]]
    # gold: PER, LOC, LOC; predicted: PER, PER, LOC; only the first PER is right; 3 of 6 tokens are
    # PER: P = 1/2, R = 1, F1 = 2/3; LOC: 0 of 1 and of 2; all: P = R = F1 = 1/3
    assert str(score_tags(gold, predicted)).splitlines() == [
        "processed 6 tokens with 3 phrases; found: 3 phrases; correct: 1.",
        "accuracy:  50.00%; precision:  33.33%; recall:  33.33%; FB1:  33.33",
        "              LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  1",
        "              PER: precision:  50.00%; recall: 100.00%; FB1:  66.67  2",
    ]


@quick
@given(scored(flat=True))
def test_flat_documents_score_as_strictly(case: tuple[Corpus, list[list[Entity]]]) -> None:
    result, expected = conlleval(*case), strict(Comparison.between(*case))
    assert result.overall == expected.micro
    assert result.types == expected.types


def test_documents_by_hand() -> None:
    text = "Tom Bo saw Paris-based Ann."
    #       0123456789012345678901234567
    corpus = Corpus("hand", [Document.from_spans(text, [(0, 6, "person"), (11, 16, "city")])])
    result = conlleval(corpus, [entities(text, [(0, 3, "person"), (11, 16, "city")])])
    # words: Tom Bo saw Paris - based Ann . = 8, of which only "Bo" has the wrong tag
    assert (result.tokens, result.correct_tokens) == (8, 7)
    assert result.overall == Scores(2, 2, 1, 1)


def test_the_words_of_the_source_are_the_tokens() -> None:
    document = Document.from_spans("New York City", [(0, 8, "city")], words=[(0, 8), (9, 13)])
    assert conlleval(Corpus("tokens", [document]), [[]]).tokens == 2


def test_a_prediction_inside_of_a_word_splits_it() -> None:
    document = Document.from_spans("Parisian", [(0, 8, "city")], words=[(0, 8)])
    result = conlleval(Corpus("split", [document]), [[Entity(0, 5, "Paris", "city")]])
    assert (result.tokens, result.correct_tokens) == (2, 1)  # B I against B O
    assert result.overall == Scores(1, 1, 0, 0)


@pytest.mark.parametrize("side", ["gold", "predicted"])
def test_nested_mentions_are_an_error(side: str) -> None:
    nested, flat = [(0, 13, "org"), (5, 13, "city")], [(0, 13, "org")]
    text = "Bank New York"
    gold, predicted = (nested, flat) if side == "gold" else (flat, nested)
    types = (EntityType("org"), EntityType("city"))
    with pytest.raises(OnomaError, match=f"the {side} mention .* of document 0 overlaps another"):
        conlleval(Corpus("nested", [Document.from_spans(text, gold)], types), [entities(text, predicted)])


def test_bad_tags_are_an_error() -> None:
    with pytest.raises(OnomaError, match="'X-PER'"):
        score_tags([["X-PER"]], [["O"]])
    with pytest.raises(OnomaError, match="sentence 0 has 1 gold tags, but 2"):
        score_tags([["O"]], [["O", "O"]])
    with pytest.raises(OnomaError, match="1 gold tag sequences, but 0"):
        score_tags([["O"]], [])
