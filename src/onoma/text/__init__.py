"""Words, sentences and windows of texts, with exact character offsets."""

from onoma.text.alignment import Alignment, align
from onoma.text.sentences import sentence_starts
from onoma.text.windows import Windows, cut_windows
from onoma.text.words import Spans, join, segment, split_at

__all__ = [
    "Alignment",
    "Spans",
    "Windows",
    "align",
    "cut_windows",
    "join",
    "segment",
    "sentence_starts",
    "split_at",
]
