"""The scores of conlleval, compared with seqeval."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import accuracy_score, f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support
from seqeval.scheme import BILOU, IOB2, IOBES

from evaluation.strategies import entities, quick, scored
from onoma import Corpus, Document, Entity, EntityType, OnomaError
from onoma.evaluation import Comparison, Scores, conlleval, score_tags
from onoma.evaluation.strict import strict
from onoma.text.tags import decode_tags

TAGS = ("O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("PER", "LOC", "per-son")))
PAIRS = st.lists(
    st.integers(1, 12).flatmap(
        lambda size: st.tuples(*[st.lists(st.sampled_from(TAGS), min_size=size, max_size=size)] * 2)
    ),
    min_size=1,
    max_size=5,
)


@given(PAIRS)
def test_scores_equal_those_of_the_default_mode_of_seqeval(pairs: list[tuple[list[str], list[str]]]) -> None:
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


SCHEMES = {IOB2: "BIIB", IOBES: "BIES", BILOU: "BILU"}  # prefixes: start, inside, end, single token


@st.composite
def valid_tags(draw: st.DrawFn, length: int, prefixes: str) -> list[str]:
    tags: list[str] = []
    while len(tags) < length:
        size, label = draw(st.integers(0, min(3, length - len(tags)))), draw(st.sampled_from(["PER", "LOC"]))
        letters = prefixes[3] if size == 1 else prefixes[0] + prefixes[1] * (size - 2) + prefixes[2]
        tags += [f"{letter}-{label}" for letter in letters] if size else ["O"]
    return tags


@given(st.data(), st.sampled_from(list(SCHEMES)))
def test_scores_equal_those_of_the_strict_mode_of_seqeval_for_valid_tags(data: st.DataObject, scheme: type) -> None:
    lengths = data.draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    gold, predicted = (
        [data.draw(valid_tags(length, SCHEMES[scheme])) for length in lengths] for _ in ("gold", "predicted")
    )
    result = score_tags(gold, predicted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"mode": "strict", "scheme": scheme}
        assert result.overall.precision == pytest.approx(precision_score(gold, predicted, **options))
        assert result.overall.recall == pytest.approx(recall_score(gold, predicted, **options))
        assert result.overall.f1 == pytest.approx(f1_score(gold, predicted, **options))


@given(PAIRS)
def test_chunks_are_the_spans_that_the_conll_reader_decodes(pairs: list[tuple[list[str], list[str]]]) -> None:
    gold = [{(number, *span) for span in decode_tags(tags)} for number, (tags, _) in enumerate(pairs)]
    predicted = [{(number, *span) for span in decode_tags(tags)} for number, (_, tags) in enumerate(pairs)]
    all_gold, all_predicted = set().union(*gold), set().union(*predicted)
    overall = score_tags([tags for tags, _ in pairs], [tags for _, tags in pairs]).overall
    assert overall == Scores.one_to_one(len(all_gold), len(all_predicted), len(all_gold & all_predicted))


def test_the_printed_report_has_the_layout_of_conlleval() -> None:
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
def test_scores_of_flat_documents_equal_the_strict_scores(case: tuple[Corpus, list[list[Entity]]]) -> None:
    result, expected = conlleval(*case), strict(Comparison.between(*case))
    assert result.overall == expected.micro
    assert result.types == expected.types


def test_scores_of_documents_computed_by_hand() -> None:
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


def test_a_prediction_inside_a_word_splits_the_word() -> None:
    document = Document.from_spans("Parisian", [(0, 8, "city")], words=[(0, 8)])
    result = conlleval(Corpus("split", [document]), [[Entity(0, 5, "Paris", "city")]])
    assert (result.tokens, result.correct_tokens) == (2, 1)  # B I against B O
    assert result.overall == Scores(1, 1, 0, 0)


@pytest.mark.parametrize("side", ["gold", "predicted"])
def test_overlapping_mentions_are_an_error(side: str) -> None:
    nested, flat = [(0, 13, "org"), (5, 13, "city")], [(0, 13, "org")]
    text = "Bank New York"
    gold, predicted = (nested, flat) if side == "gold" else (flat, nested)
    types = (EntityType("org"), EntityType("city"))
    with pytest.raises(
        OnomaError,
        match=rf"the {side} mentions 'Bank New York' \(org\) and 'New York' \(city\) of document 0 overlap",
    ):
        conlleval(Corpus("nested", [Document.from_spans(text, gold)], types), [entities(text, predicted)])


def test_a_repeated_mention_is_not_an_overlap() -> None:
    document = Document.from_spans("Tom", [(0, 3, "person"), (0, 3, "person")])
    assert conlleval(Corpus("twice", [document]), [[*document.entities]]).overall == Scores(1, 1, 1, 1)


def test_invalid_tags_are_an_error() -> None:
    with pytest.raises(OnomaError, match=r"'X-PER' is not a tag\. Fix: "):
        score_tags([["X-PER"]], [["O"]])
    with pytest.raises(OnomaError, match="sentence 0 has 1 gold tags, but 2"):
        score_tags([["O"]], [["O", "O"]])
    with pytest.raises(OnomaError, match="1 gold tag sequences, but 0"):
        score_tags([["O"]], [])
