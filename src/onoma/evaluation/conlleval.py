"""The scores of conlleval, from tag sequences or from documents.

Tags are read by `onoma.text.tags.decode_tags`. For IOB1 and IOB2 its rules are those of conlleval; for BIOES, BMES and
BILOU, which conlleval does not support, they are those of seqeval. Bracket tags are not supported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from onoma.data.overlaps import first_overlap
from onoma.entities import Corpus, Document, Entity
from onoma.errors import OnomaError
from onoma.evaluation.comparison import known_predictions
from onoma.evaluation.scores import Scores, ratio
from onoma.text.alignment import align
from onoma.text.tags import PREFIXES, Span, decode_tags, encode_bio, is_tag


@dataclass(frozen=True, slots=True)
class ConllScores:
    """Scores of chunks over all types and per type, and the number of tokens with the correct tag.

    `str` gives the report in the layout of conlleval.
    """

    tokens: int
    correct_tokens: int
    overall: Scores
    types: Mapping[str, Scores]

    @property
    def accuracy(self) -> float:
        return ratio(self.correct_tokens, self.tokens)

    def __str__(self) -> str:
        overall = self.overall
        lines = [
            f"processed {self.tokens} tokens with {overall.gold} phrases; "
            f"found: {overall.predicted} phrases; correct: {overall.correct}.",
            f"accuracy: {100 * self.accuracy:6.2f}%; {_percentages(overall)}",
        ]
        lines += [f"{name:>17}: {_percentages(scores)}  {scores.predicted}" for name, scores in self.types.items()]
        return "\n".join(lines)


def _percentages(scores: Scores) -> str:
    return (
        f"precision: {100 * scores.precision:6.2f}%; recall: {100 * scores.recall:6.2f}%; FB1: {100 * scores.f1:6.2f}"
    )


def _chunks(tags: Sequence[str]) -> set[Span]:
    """The chunks of one sentence."""
    for tag in tags:
        if not is_tag(tag):
            prefixes = ", ".join(PREFIXES)
            raise OnomaError(f"{tag!r} is not a tag. Fix: write O, or one of {prefixes}, followed by '-' and a label.")
    return set(decode_tags(tags))


def score_tags(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> ConllScores:
    """Score the tags of each sentence; types are listed in alphabetical order.

    >>> score_tags([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]]).accuracy
    0.6666666666666666
    """
    if len(gold) != len(predicted):
        raise OnomaError(
            f"there are {len(gold)} gold tag sequences, but {len(predicted)} predicted ones. "
            "Fix: give both for the same sentences."
        )
    types: dict[str, Scores] = {}
    tokens = correct_tokens = 0
    for number, (gold_tags, predicted_tags) in enumerate(zip(gold, predicted, strict=True)):
        if len(gold_tags) != len(predicted_tags):
            raise OnomaError(
                f"sentence {number} has {len(gold_tags)} gold tags, but {len(predicted_tags)} predicted ones. "
                "Fix: give one tag per token in both."
            )
        tokens += len(gold_tags)
        correct_tokens += sum(a == b for a, b in zip(gold_tags, predicted_tags, strict=True))
        gold_chunks, predicted_chunks = _chunks(gold_tags), _chunks(predicted_tags)
        _count(types, gold_chunks - predicted_chunks, Scores(1, 0, 0, 0))
        _count(types, predicted_chunks - gold_chunks, Scores(0, 1, 0, 0))
        _count(types, gold_chunks & predicted_chunks, Scores(1, 1, 1, 1))
    return ConllScores(tokens, correct_tokens, Scores.total(types.values()), dict(sorted(types.items())))


def _count(types: dict[str, Scores], chunks: Iterable[Span], one: Scores) -> None:
    for _, _, label in chunks:
        types[label] = types[label] + one if label in types else one


def conlleval(corpus: Corpus, predicted: Sequence[Sequence[Entity]]) -> ConllScores:
    """Write gold and predicted mentions as IOB2 tags and score the tags. Mentions must not overlap.

    Tokens are the words of the source if it gives them, else those of `onoma.text.segment`. A word in which a gold or
    predicted mention starts or ends is split there, so that tags can represent every mention; the scores of chunks then
    equal the strict scores.
    """
    known = known_predictions(corpus, predicted)
    pairs = [_tags(number, *pair) for number, pair in enumerate(zip(corpus, known, strict=True))]
    return score_tags([gold for gold, _ in pairs], [tags for _, tags in pairs])


def _tags(number: int, document: Document, predicted: Sequence[Entity]) -> tuple[list[str], list[str]]:
    distinct = {entity.key: entity for entity in (*document.entities, *predicted)}
    both = replace(document, entities=tuple(distinct.values()), annotated=None)
    alignment = align(both, exact=True)
    places = {entity.key: mention for entity, mention in zip(both.entities, alignment.mentions.tolist(), strict=True)}
    sides = []
    for side, entities in (("gold", document.entities), ("predicted", predicted)):
        unique = {entity.key: entity for entity in entities}
        overlap = first_overlap(unique.values())
        if overlap:
            first, second = (f"{entity.text!r} ({entity.label})" for entity in overlap)
            raise OnomaError(
                f"the {side} mentions {first} and {second} of document {number} overlap, which tags cannot represent. "
                "Fix: use the strict scores, or flat mentions."
            )
        spans = ((places[key][0], places[key][1] + 1, key[2]) for key in unique)
        sides.append(encode_bio(spans, len(alignment.words)))
    return sides[0], sides[1]
