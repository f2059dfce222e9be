"""The numbers of conlleval, from tag sequences or from documents.

A tag is "O" or a prefix and a type: B-person. A chunk begins at a tag that is not O and

- has the prefix B or S, or
- stands first in the sentence, behind an O, behind a prefix E or S, or behind another type;

it goes on until the next chunk begins or an O or the end of the sentence comes. So IOB1, IOB2 and BIOES (with M
for I as in BMES, L for E and U for S as in BILOU) are read alike, and a chunk that begins with I- is a chunk. For
IOB1 and IOB2 these are the rules of conlleval; for BIOES, which conlleval does not know, those of its usual successors.
Its bracket tags are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from onoma.entities import Corpus, Document, Entity
from onoma.errors import OnomaError
from onoma.evaluation.comparison import known_predictions
from onoma.evaluation.scores import Scores, ratio
from onoma.text.alignment import align

Chunk = tuple[int, int, str]  # first token, last token, type

_PREFIXES = {"B": "B", "I": "I", "E": "E", "S": "S", "M": "I", "L": "E", "U": "S"}


@dataclass(frozen=True, slots=True)
class ConllScores:
    """Chunks over all types and for each type, and how many tokens have exactly the right tag.

    Printed (`str`), it reads as the report of conlleval does.
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


def chunks(tags: Sequence[str]) -> list[Chunk]:
    """The chunks of one sentence.

    >>> chunks(["B-PER", "I-PER", "O", "I-LOC", "I-ORG"])
    [(0, 1, 'PER'), (3, 3, 'LOC'), (4, 4, 'ORG')]
    """
    found: list[Chunk] = []
    before_prefix, before_type = "O", ""
    for place, tag in enumerate(tags):
        prefix, kind = _split(tag)
        if prefix != "O":
            begins = prefix in "BS" or before_prefix in "OES" or kind != before_type
            first = place if begins else found.pop()[0]
            found.append((first, place, kind))
        before_prefix, before_type = prefix, kind
    return found


def _split(tag: str) -> tuple[str, str]:
    prefix, _, kind = tag.partition("-")
    if tag == "O":
        return "O", ""
    if prefix not in _PREFIXES:
        raise OnomaError(f"the tag {tag!r} is neither 'O' nor a prefix out of {', '.join(_PREFIXES)}, '-' and a type")
    return _PREFIXES[prefix], kind


def score_tags(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> ConllScores:
    """Score the tags of each sentence; types are listed in alphabetical order.

    >>> score_tags([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]]).accuracy
    0.6666666666666666
    """
    if len(gold) != len(predicted):
        raise OnomaError(f"there are {len(gold)} gold tag sequences, but {len(predicted)} predicted ones")
    types: dict[str, Scores] = {}
    tokens = correct_tokens = 0
    for number, (gold_tags, predicted_tags) in enumerate(zip(gold, predicted, strict=True)):
        if len(gold_tags) != len(predicted_tags):
            raise OnomaError(
                f"sentence {number} has {len(gold_tags)} gold tags, but {len(predicted_tags)} predicted ones"
            )
        tokens += len(gold_tags)
        correct_tokens += sum(a == b for a, b in zip(gold_tags, predicted_tags, strict=True))
        gold_chunks, predicted_chunks = set(chunks(gold_tags)), set(chunks(predicted_tags))
        _count(types, gold_chunks - predicted_chunks, Scores(1, 0, 0, 0))
        _count(types, predicted_chunks - gold_chunks, Scores(0, 1, 0, 0))
        _count(types, gold_chunks & predicted_chunks, Scores(1, 1, 1, 1))
    overall = sum(types.values(), Scores(0, 0, 0, 0))
    return ConllScores(tokens, correct_tokens, overall, dict(sorted(types.items())))


def _count(types: dict[str, Scores], found: Iterable[Chunk], one: Scores) -> None:
    for _, _, kind in found:
        types[kind] = types.get(kind, Scores(0, 0, 0, 0)) + one


def conlleval(corpus: Corpus, predicted: Sequence[Sequence[Entity]]) -> ConllScores:
    """Write gold and predictions as IOB2 tags and score these. Mentions must not overlap.

    Tokens are the document's own words, else Onoma's. A word in which a gold or predicted mention begins or ends is
    split there, so that every mention can be written in tags; the chunk scores then equal the strict ones.
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
        tags = ["O"] * len(alignment.words)
        for start, end, label in {entity.key for entity in entities}:
            first, last = places[start, end, label]
            if any(tag != "O" for tag in tags[first : last + 1]):
                raise OnomaError(
                    f"the {side} mention {document.text[start:end]!r} ({label}) of document {number} overlaps another, "
                    "which tags cannot express; use the strict scores, or flat mentions"
                )
            tags[first : last + 1] = [f"B-{label}", *[f"I-{label}"] * (last - first)]
        sides.append(tags)
    return sides[0], sides[1]
