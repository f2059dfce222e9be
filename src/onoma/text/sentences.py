"""Sentence boundaries: a cheap heuristic that lets windows be cut at good places."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from onoma.text.width import fold_width
from onoma.text.words import Spans

_ABBREVIATIONS = ("Mr", "Mrs", "Ms", "Dr", "Prof", "St", "vs", "Fig", "No", "al", "Sen", "Gen", "Rep", "Jr", "cf", "ca")
_END = re.compile(
    r"(?=[.!?])(?<![.!?])"  # checked first: the other look-behinds are rarely tried, and a run of dots is read once
    + r"(?:[.!?]{2,}+|"
    + r"(?<!\b\w)"  # an initial: J. Smith
    + "".join(rf"(?<!\b{abbreviation})" for abbreviation in _ABBREVIATIONS)
    + r"[.!?])[\"'”’)\]»]*+(?=\s)"
    + r"|(?:[。！？…｡]|(?<=[\u4e00-\u9fff”’」』）．])．)+[”’」』）]*"
    + r"|[।؟۔][\s]"
    + r"|\n\s*\n"
)


def sentence_ends(text: str) -> NDArray[np.int64]:
    """The character offsets at which sentences end; the end of the text is not among them unless it is marked.

    >>> sentence_ends("Dr. No came. He left.").tolist()
    [12]
    """
    return np.fromiter((match.end() for match in _END.finditer(fold_width(text))), np.int64)


def sentence_starts(text: str, words: Spans) -> NDArray[np.int64]:
    """The indices of the words that start a sentence; the first word is always among them.

    >>> from onoma.text.words import segment
    >>> sentence_starts("Dr. No came. He left.", segment("Dr. No came. He left.")).tolist()
    [0, 5]
    """
    if not len(words):
        return np.zeros(0, np.int64)
    starts = np.searchsorted(words[:, 0], sentence_ends(text), side="left")
    return np.unique(np.concatenate([[0], starts[starts < len(words)]])).astype(np.int64)
