"""Tag sequences such as BIO, BIOES, BMES and BILOU, and the spans that they encode."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Span = tuple[int, int, str]  # first token, end (exclusive), label

PREFIXES = "BIEMSLU"
"""B starts a span, I and M continue it, E and L end it, S and U are a span of one token."""

_TAG = re.compile(rf"O|[{PREFIXES}]-.+", re.DOTALL)


def is_tag(text: str) -> bool:
    """Whether a string is "O", or a prefix, "-" and a label.

    >>> is_tag("B-person"), is_tag("person")
    (True, False)
    """
    return _TAG.fullmatch(text) is not None


def decode_tags(tags: Sequence[str]) -> list[Span]:
    """The spans that tags of any of these schemes encode.

    A prefix has the same meaning in all schemes, so one set of rules reads all of them. I, M, E and L start a new span
    if no span of their label is open, as in IOB1 and in conlleval.

    >>> decode_tags(["B-person", "I-person", "O", "S-city", "I-city"])
    [(0, 2, 'person'), (3, 4, 'city'), (4, 5, 'city')]
    """
    spans: list[Span] = []
    open_label: str | None = None
    for position, tag in enumerate(tags):
        prefix, label = tag[0], tag[2:]
        if prefix == "O":
            open_label = None
            continue
        if prefix not in "BSU" and label == open_label:
            spans[-1] = (spans[-1][0], position + 1, label)
        else:
            spans.append((position, position + 1, label))
        open_label = None if prefix in "ESLU" else label
    return spans


def encode_bio(spans: Iterable[Span], length: int) -> list[str]:
    """The BIO tags of spans that do not overlap.

    >>> encode_bio([(0, 2, "person")], 3)
    ['B-person', 'I-person', 'O']
    """
    tags = ["O"] * length
    for first, end, label in spans:
        tags[first:end] = [f"B-{label}"] + [f"I-{label}"] * (end - first - 1)
    return tags
