"""Pairs of gold mentions and predictions: kinds of errors and confused types."""

from __future__ import annotations

from collections import Counter

from hypothesis import given

from evaluation.strategies import Key, entities, quick, scored, sets
from onoma import Corpus, Document, Entity, EntityType
from onoma.evaluation import Comparison
from onoma.evaluation.pairs import ERROR_KINDS, ConfusedTypes, confusion, error_kinds, pair_mentions

Case = tuple[Corpus, list[list[Entity]]]
#       0         1         2         3         4
#       0123456789012345678901234567890123456789012345
TEXT = "Tom Bo saw Ann in New York on Mon with X in Rio"


def compare(gold: list[Key], predicted: list[Key]) -> Comparison:
    corpus = Corpus("hand", [Document.from_spans(TEXT, gold)])
    types = {one.name for one in corpus.types} | {label for *_, label in predicted}
    corpus = Corpus("hand", corpus.documents, tuple(map(EntityType, sorted(types))))
    return Comparison.between(corpus, [entities(TEXT, predicted)])


def test_each_kind_of_error_is_counted_once() -> None:
    gold = [
        (0, 6, "person"),
        (11, 14, "person"),
        (18, 26, "city"),
        (30, 33, "day"),
        (44, 47, "city"),
    ]
    predicted = [
        (0, 3, "person"),  # wrong end
        (11, 14, "city"),  # wrong type
        (22, 26, "city"),  # wrong start
        (27, 33, "person"),  # wrong type and boundaries
        (39, 40, "person"),  # invented
    ]  # and "Rio" is missed
    found = error_kinds(pair_mentions(compare(gold, predicted)))
    assert found.kinds == {
        **dict.fromkeys(ERROR_KINDS, 1),
        "both": 0,
    }
    assert (found.correct, found.errors) == (0, 6)
    assert found.types["city"] == {**dict.fromkeys(ERROR_KINDS, 0), "start": 1, "missed": 1}
    assert (found.too_long, found.too_short) == (0, 2)


def test_a_prediction_that_is_too_long_at_both_ends() -> None:
    found = error_kinds(pair_mentions(compare([(18, 26, "city")], [(15, 29, "city")])))
    assert found.kinds["both"] == found.too_long == 1
    assert found.too_short == 0


def test_equal_spans_are_paired_before_overlapping_ones_of_the_right_type() -> None:
    gold, predicted = [(18, 26, "city")], [(18, 26, "day"), (18, 21, "city")]
    found = error_kinds(pair_mentions(compare(gold, predicted)))
    assert (found.kinds["type"], found.kinds["invented"]) == (1, 1)


def test_a_correct_prediction_is_never_paired_with_another_mention() -> None:
    gold, predicted = [(18, 26, "city"), (22, 26, "city")], [(22, 26, "city")]
    found = error_kinds(pair_mentions(compare(gold, predicted)))
    assert (found.correct, found.kinds["missed"], found.errors) == (1, 1, 1)


def test_confused_types_and_nothing() -> None:
    gold = [(0, 3, "person"), (11, 14, "person"), (18, 26, "city")]
    predicted = [(0, 6, "person"), (11, 14, "city"), (30, 33, "day")]
    found = confusion(pair_mentions(compare(gold, predicted)))
    assert set(found.cells) == {
        ConfusedTypes("person", "person", 1),  # with wrong boundaries
        ConfusedTypes("person", "city", 1),
        ConfusedTypes("city", None, 1),
        ConfusedTypes(None, "day", 1),
    }
    assert found.confused == (ConfusedTypes("person", "city", 1),)
    assert found.table(["person", "city"]).tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]


def slow_pairs(gold: set[Key], predicted: set[Key]) -> list[tuple[Key | None, Key | None]]:
    """All overlapping pairs by falling similarity; each mention is used once."""
    pairs = [(one, other) for one in gold for other in predicted if one[0] < other[1] and other[0] < one[1]]

    def order(pair: tuple[Key, Key]) -> tuple[object, ...]:
        one, other = pair
        distance = abs(one[0] - other[0]) + abs(one[1] - other[1])
        return (one != other, distance > 0, one[2] != other[2], distance, one, other)

    found: list[tuple[Key | None, Key | None]] = []
    for one, other in sorted(pairs, key=order):
        if one in gold and other in predicted:
            gold, predicted = gold - {one}, predicted - {other}
            found.append((one, other))
    return found + [(one, None) for one in gold] + [(None, one) for one in predicted]


def slow_kind(gold: Key | None, predicted: Key | None) -> str | None:
    if gold is None or predicted is None:
        return "missed" if predicted is None else "invented"
    if gold[2] != predicted[2]:
        return "type" if gold[:2] == predicted[:2] else "type_and_span"
    wrong = (gold[0] != predicted[0], gold[1] != predicted[1])
    return {(False, False): None, (True, False): "start", (False, True): "end", (True, True): "both"}[wrong]


@quick
@given(scored())
def test_pairs_equal_those_of_a_slow_search(case: Case) -> None:
    pairs = pair_mentions(Comparison.between(*case))
    slow = [pair for gold, predicted in sets(*case) for pair in slow_pairs(gold, predicted)]
    kinds = Counter(slow_kind(*pair) for pair in slow)
    found = error_kinds(pairs)
    assert found.correct == kinds.pop(None, 0)
    assert {kind: count for kind, count in found.kinds.items() if count} == kinds
    cells = Counter((gold and gold[2], predicted and predicted[2]) for gold, predicted in slow)
    assert {(one.gold, one.predicted): one.count for one in confusion(pairs).cells} == cells
