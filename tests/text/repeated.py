"""Texts that repeat a short pattern many times, and a bound on the time that reading them may take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

_SECONDS, _SECONDS_PER_CHARACTER = 0.3, 2e-5  # ten times what is needed; quadratic time needs far more
_PIECES = [
    *(".", "!", "?", "...", ",", ":", "(", ")", "[", "]", "'", '"', "’s", "”", "-", "_", "@", "/", "\n", "\r", " "),
    *("://", "http://", "https://a", "www.", "file://x)", "a@b.c", "J.", "Dr.", "U.S.", "1,", "3.5", "5mg", "a", "ab"),
    *(
        "北",
        "。",
        "…",
        "。”",
        "ก",
        "؟",
        "e\u0301",
        "\u0301",
        "\u200d",
        "👨",
        "🇩",
        "\ufe0f",
        "0\ufe0f\u20e3",
        "\ud800",
        "\0",
    ),
]

REPEATED = st.builds(
    lambda before, unit, after, length: before + unit * (length // len(unit)) + after,
    st.sampled_from(["", "http://", "a@", "J", "\n", "("]),
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4).map("".join),
    st.sampled_from(["", " ", "x", ")", " and http://a.b"]),
    st.sampled_from([2_000, 12_000]),
)
"""A pattern, repeated until it has thousands of characters."""

WORST = [
    "." * 60_000,
    f"http://a.example/{'.' * 1_000}{']' * 1_000}",
    f"http://a.example/{'.)' * 1_000}",
    "://" * 67_000,
    f"{'a' * 63}!@" * 1_000,
    "\n \r" * 20_000,
]
"""Texts that would take minutes if anything were read again and again."""


def in_linear_time(function: Callable[[], T], length: int) -> T:
    """The result of a function, which must take time that grows linearly with the length of its input."""
    started = time.process_time()
    result = function()
    assert time.process_time() - started < _SECONDS + _SECONDS_PER_CHARACTER * length
    return result
