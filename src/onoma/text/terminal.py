"""Text for terminals."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    r"""The text with control characters replaced, except line breaks: a terminal would obey them.

    >>> printable("a\x1b[31mb")
    'a\N{REPLACEMENT CHARACTER}[31mb'
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
