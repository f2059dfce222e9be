"""The measures of SemEval 2013, compared with nervaluate."""

from __future__ import annotations

from hypothesis import given
from nervaluate.evaluator import Evaluator

from evaluation.strategies import LABELS, Key, entities, quick, scored, sets
from onoma import Corpus, Document, Entity
from onoma.evaluation import Comparison
from onoma.evaluation.semeval import SemEvalScores, semeval

MEASURES = ("strict", "exact", "partial", "type")
Case = tuple[Corpus, list[list[Entity]]]


def test_counts_computed_by_hand() -> None:
    #       0         1         2         3
    #       0123456789012345678901234567890123456789
    text = "Tom Bo saw Ann in New York on Mon with X"
    gold = [(0, 6, "person"), (11, 14, "person"), (18, 26, "city"), (30, 33, "day")]
    predicted = [
        (0, 3, "person"),  # right label, too short
        (11, 14, "city"),  # right span, wrong label
        (18, 26, "city"),  # right
        (39, 40, "person"),  # spurious
    ]
    corpus = Corpus("hand", [Document.from_spans(text, gold)])
    result = semeval(Comparison.between(corpus, [entities(text, predicted)]))
    assert result.strict == SemEvalScores(correct=1, incorrect=2, partial=0, missed=1, spurious=1)
    assert result.exact == SemEvalScores(correct=2, incorrect=1, partial=0, missed=1, spurious=1)
    assert result.partial == SemEvalScores(correct=2, incorrect=0, partial=1, missed=1, spurious=1)
    assert result.type == SemEvalScores(correct=2, incorrect=1, partial=0, missed=1, spurious=1)
    # partial: (2 + 1/2) / 4 on both sides
    assert (result.partial.possible, result.partial.actual) == (4, 4)
    assert (result.partial.precision, result.partial.recall, result.partial.f1) == (0.625, 0.625, 0.625)
    assert result.strict.f1 == 0.25


def nervaluate(pairs: list[tuple[set[Key], set[Key]]]) -> dict[str, SemEvalScores]:
    """The counts of the package nervaluate, in which ends are inclusive."""

    def dictionaries(keys: set[Key]) -> list[dict[str, object]]:
        return [{"label": label, "start": start, "end": end - 1} for start, end, label in sorted(keys)]

    gold, predicted = ([dictionaries(pair[side]) for pair in pairs] for side in (0, 1))
    overall = Evaluator(gold, predicted, tags=list(LABELS), loader="dict").evaluate()["overall"]
    names = {"strict": "strict", "exact": "exact", "partial": "partial", "ent_type": "type"}
    return {
        name: SemEvalScores(each.correct, each.incorrect, each.partial, each.missed, each.spurious)
        for key, name in names.items()
        for each in [overall[key]]
    }


@quick
@given(scored(flat=True))
def test_counts_equal_those_of_nervaluate_for_flat_mentions(case: Case) -> None:
    pairs = sets(*case)
    result = semeval(Comparison.between(*case))
    if pairs:
        for name, expected in nervaluate(pairs).items():
            assert getattr(result, name) == expected, name


@quick
@given(scored(flat=True))
def test_precision_and_recall_give_half_credit_for_partial_matches(case: Case) -> None:
    result = semeval(Comparison.between(*case)).partial
    credit = result.correct + 0.5 * result.partial
    assert result.precision == (credit / result.actual if result.actual else 0)
    assert result.recall == (credit / result.possible if result.possible else 0)


def slow(gold: set[Key], predicted: set[Key], measure: str) -> tuple[int, int]:
    """The numbers of predictions of one document that are correct, and that are paired but not correct."""
    free, left = sorted(gold), []
    right = wrong = 0
    for guess in sorted(predicted):
        if guess in free:
            free.remove(guess)
            right += 1
        else:
            left.append(guess)
    if measure in ("exact", "partial"):
        for guess in list(left):
            same = [key for key in free if key[:2] == guess[:2]]
            if same:
                free.remove(same[0])
                left.remove(guess)
                right += 1
    for guess in left:
        near = [key for key in free if key[0] < guess[1] and guess[0] < key[1]]
        own = [key for key in near if key[2] == guess[2] and measure == "type"]
        if own:
            free.remove(min(own, key=lambda key: (abs(key[0] - guess[0]) + abs(key[1] - guess[1]), key)))
            right += 1
        elif near:
            free.remove(near[0])
            wrong += 1
    return right, wrong


@quick
@given(scored())
def test_counts_equal_those_of_a_slow_pairing_for_any_mentions(case: Case) -> None:
    result = semeval(Comparison.between(*case))
    pairs = sets(*case)
    gold, predicted = sum(len(a) for a, _ in pairs), sum(len(b) for _, b in pairs)
    for measure in MEASURES:
        counts = [slow(*pair, measure) for pair in pairs]
        right, wrong = sum(a for a, _ in counts), sum(b for _, b in counts)
        incorrect, partial = (0, wrong) if measure == "partial" else (wrong, 0)
        rest = right + wrong
        expected = SemEvalScores(right, incorrect, partial, gold - rest, predicted - rest)
        assert getattr(result, measure) == expected, measure


def test_a_wrong_nested_prediction_is_not_paired_with_the_gold_mention_of_a_correct_one() -> None:
    # nervaluate pairs in the given order: the inner prediction is paired first, and the correct one becomes spurious
    gold, predicted = {(0, 8, "A")}, {(0, 3, "A"), (0, 8, "A")}
    assert nervaluate([(gold, predicted)])["strict"] == SemEvalScores(0, 1, 0, 0, 1)
    text = "New York"
    corpus = Corpus("nested", [Document.from_spans(text, gold)])
    for order in (sorted(predicted), sorted(predicted, reverse=True)):
        result = semeval(Comparison.between(corpus, [entities(text, order)]))
        assert result.strict == SemEvalScores(correct=1, incorrect=0, partial=0, missed=0, spurious=1)


def test_one_character_of_a_very_long_mention_is_an_overlap() -> None:
    # nervaluate needs at least one hundredth of the gold mention, and counts this as missed and spurious
    gold, predicted = (0, 300, "A"), (299, 301, "A")
    assert nervaluate([({gold}, {predicted})])["partial"] == SemEvalScores(0, 0, 0, 1, 1)
    text = "a" * 301
    corpus = Corpus("long", [Document.from_spans(text, [gold])])
    result = semeval(Comparison.between(corpus, [entities(text, [predicted])]))
    assert result.partial == SemEvalScores(correct=0, incorrect=0, partial=1, missed=0, spurious=0)


def test_of_gold_mentions_with_other_labels_the_first_is_paired_and_not_the_nearest() -> None:
    gold, predicted = {(0, 5, "B"), (6, 22, "B")}, {(4, 20, "A"), (21, 23, "B")}
    # A is paired with 0-5, although 6-22 is nearer, so that B can be paired with 6-22
    expected = SemEvalScores(correct=1, incorrect=1, partial=0, missed=0, spurious=0)
    assert nervaluate([(gold, predicted)])["type"] == expected
    text = "a" * 23
    corpus = Corpus("first", [Document.from_spans(text, gold, annotated=LABELS)])
    assert semeval(Comparison.between(corpus, [entities(text, sorted(predicted))])).type == expected
