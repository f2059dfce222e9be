"""Scores on parts of the data."""

from __future__ import annotations

from hypothesis import given

from evaluation.strategies import entities, quick, scored, sets
from onoma import Corpus, Document, Entity
from onoma.evaluation import Comparison, Recall, Scores
from onoma.evaluation.slices import (
    by_frequency,
    by_mention_length,
    by_nesting,
    by_seen,
    by_sentence_length,
    by_type_frequency,
    slices,
)
from onoma.evaluation.units import Units
from onoma.text.words import segment

Case = tuple[Corpus, list[list[Entity]]]
NOTHING = Scores(0, 0, 0, 0)


def by_words(text: str, gold: list[tuple[int, int]], predicted: list[tuple[int, int]]) -> dict[str, Scores]:
    corpus = Corpus("words", [Document.from_spans(text, [(*span, "x") for span in gold])])
    comparison = Comparison.between(corpus, [entities(text, [(*span, "x") for span in predicted])])
    return by_mention_length(comparison, Units.of(comparison))


def test_scores_by_mention_length_computed_by_hand() -> None:
    #       0         1         2         3
    #       012345678901234567890123456789012
    text = "aa bb cc dd ee ff gg hh ii jj kk"
    result = by_words(text, [(0, 2), (3, 8), (9, 20), (0, 32)], [(0, 2), (3, 5), (9, 20), (12, 32)])
    assert result == {
        "1": Scores(gold=1, predicted=2, found=1, correct=1),  # "aa" found; "bb" is wrong
        "2": Scores(1, 0, 0, 0),  # "bb cc" missed
        "3": NOTHING,
        "4": Scores(1, 1, 1, 1),  # "dd ee ff gg"
        "5-6": NOTHING,
        "7+": Scores(1, 1, 0, 0),  # all eleven words missed; "ee ... kk" (7) wrong
    }


def test_characters_of_unspaced_scripts_and_parts_of_words_count_as_words() -> None:
    result = by_words("北京大学 Paris", [(0, 4), (5, 7)], [])
    assert (result["4"].gold, result["1"].gold) == (1, 1)  # four characters; a part of a word counts as one


def test_the_words_of_the_source_are_used_if_it_gives_them() -> None:
    document = Document.from_spans("New York", [(0, 8, "x")], words=[(0, 8)])
    comparison = Comparison.between(Corpus("source", [document]), [[]])
    assert by_mention_length(comparison, Units.of(comparison))["1"].gold == 1


def test_scores_by_sentence_length_computed_by_hand() -> None:
    texts = ["aa " * 10, "aa " * 11, "aa " * 101]
    corpus = Corpus("lengths", [Document.from_spans(text, [(0, 2, "x")]) for text in texts])
    comparison = Comparison.between(corpus, [[], [Entity(0, 2, "aa", "x")], [Entity(3, 5, "aa", "x")]])
    result = by_sentence_length(comparison, Units.of(comparison))
    assert {name: scores for name, scores in result.items() if scores != NOTHING} == {
        "1-10": Scores(1, 0, 0, 0),
        "11-20": Scores(1, 1, 1, 1),
        "101+": Scores(1, 1, 0, 0),
    }
    assert list(result) == ["1-10", "11-20", "21-40", "41-60", "61-80", "81-100", "101+"]


def test_a_mention_belongs_to_the_sentence_in_which_it_starts() -> None:
    text = "Tom came. " + "Then Ann left " * 5 + "alone. Who?"
    documents = [
        Document(" "),
        Document.from_spans(text, [(0, 3, "x"), (15, 18, "x"), (len(text) - 4, len(text), "x")]),
    ]
    comparison = Comparison.between(Corpus("sentences", documents), [[], []])
    result = by_sentence_length(comparison, Units.of(comparison))
    # "Tom came ." and "Who ?" are short; the sentence of "Ann" has 5 * 3 words, "alone" and a full stop
    assert {name: scores.gold for name, scores in result.items() if scores.gold} == {"1-10": 2, "11-20": 1}


def test_recall_by_nesting_computed_by_hand() -> None:
    text = "Bank of New York City and Tom Bo Li"
    gold = [
        (0, 21, "org"),  # contains
        (8, 21, "city"),  # contains and inside
        (8, 16, "city"),  # inside
        (26, 32, "person"),  # crosses the next: flat
        (30, 35, "person"),
        (30, 35, "place"),  # the same span twice: flat
    ]
    corpus = Corpus("nested", [Document.from_spans(text, gold)])
    comparison = Comparison.between(corpus, [entities(text, [gold[1], gold[3]])])
    assert by_nesting(comparison) == {"flat": Recall(3, 1), "contains": Recall(2, 1), "inside": Recall(2, 1)}


@quick
@given(scored())
def test_slices_equal_slow_counts(case: Case) -> None:
    corpus, _ = case
    result = slices(Comparison.between(*case), training=corpus)
    nesting = {"flat": [0, 0], "contains": [0, 0], "inside": [0, 0]}
    lengths: dict[str, list[int]] = {name: [0, 0, 0] for name in result.mention_length}
    for document, (gold, predicted) in zip(corpus, sets(*case), strict=True):
        words = segment(document.text).tolist()
        for side, keys in enumerate((gold, predicted, gold & predicted)):
            for start, end, _ in keys:
                count = sum(start < word_end and word_start < end for word_start, word_end in words)
                name = str(max(count, 1)) if count <= 4 else "5-6" if count <= 6 else "7+"
                lengths[name][side] += 1
        for key in gold:
            others = {other[:2] for other in gold} - {key[:2]}
            contains = any(key[0] <= a and b <= key[1] for a, b in others)
            inside = any(a <= key[0] and key[1] <= b for a, b in others)
            for name, holds in (("flat", not contains and not inside), ("contains", contains), ("inside", inside)):
                nesting[name][0] += holds
                nesting[name][1] += holds and key in predicted
    assert result.nesting == {name: Recall(*counts) for name, counts in nesting.items()}
    assert result.mention_length == {name: Scores(a, b, c, c) for name, (a, b, c) in lengths.items()}


@quick
@given(scored())
def test_slices_with_precision_add_up_to_all_mentions(case: Case) -> None:
    comparison = Comparison.between(*case)
    result = slices(comparison, training=Corpus("other", []))
    right = int(comparison.found.sum())
    whole = Scores(len(comparison.gold), len(comparison.predicted), right, right)
    for parts in (result.mention_length, result.sentence_length, result.type_frequency, result.seen, result.frequency):
        assert parts is not None
        assert sum(parts.values(), NOTHING) == whole


def test_seen_mentions_occur_in_training_with_the_same_label_in_any_case() -> None:
    training = Corpus("train", [Document.from_spans("PARIS Tom", [(0, 5, "city"), (6, 9, "person")])])
    text = "Paris and Tom and Rome"
    corpus = Corpus("test", [Document.from_spans(text, [(0, 5, "city"), (10, 13, "city"), (18, 22, "city")])])
    comparison = Comparison.between(corpus, [entities(text, [(0, 5, "city"), (18, 22, "city"), (6, 9, "city")])])
    assert by_seen(comparison, training) == {
        "seen": Scores(gold=1, predicted=1, found=1, correct=1),  # "Paris" as a city
        "unseen": Scores(gold=2, predicted=2, found=1, correct=1),  # "Tom" is not a city in training; "and" is wrong
    }


def test_scores_by_the_number_of_occurrences_in_training() -> None:
    training = Corpus(
        "train", [Document.from_spans("Rome ROME Paris", [(0, 4, "city"), (5, 9, "city"), (10, 15, "city")])]
    )
    text = "Rome Paris Oslo"
    corpus = Corpus("test", [Document.from_spans(text, [(0, 4, "city"), (5, 10, "city"), (11, 15, "city")])])
    found = by_frequency(Comparison.between(corpus, [entities(text, [(0, 4, "city")])]), training)
    assert {name: (one.gold, one.correct) for name, one in found.items() if one.gold} == {
        "0": (1, 0),
        "1": (1, 0),
        "2-4": (1, 1),
    }


def test_scores_by_the_gold_mentions_of_the_type() -> None:
    text = "a " * 12
    gold = [(2 * place, 2 * place + 1, "often") for place in range(11)] + [(22, 23, "rare")]
    corpus = Corpus("test", [Document.from_spans(text, gold)])
    found = by_type_frequency(Comparison.between(corpus, [entities(text, [(0, 1, "often"), (22, 23, "often")])]))
    assert found["0-10"] == Scores(gold=1, predicted=0, found=0, correct=0)
    assert found["11-30"] == Scores(gold=11, predicted=2, found=1, correct=1)


def test_without_a_training_corpus_there_is_no_seen_slice() -> None:
    found = slices(Comparison.between(Corpus("c", [Document("Tom")]), [[]]))
    assert (found.seen, found.frequency) == (None, None)
