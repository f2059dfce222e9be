"""A linear-chain CRF the slow way: every tag sequence of a short text, one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.systems.blocks.tagging import TagScheme
from onoma.systems.blocks.viterbi import TransitionScores
from onoma.text.tags import Span, decode_tags


class Path(NamedTuple):
    """A tag sequence that a scheme allows, and its score."""

    tags: tuple[int, ...]
    score: float


def tag_names(scheme: TagScheme) -> list[str]:
    """The tags as strings, with the numbers of types as labels."""
    return ["O", *(f"{prefix}-{kind}" for kind in range(scheme.types) for prefix in scheme.prefixes)]


def mentions(scheme: TagScheme, tags: tuple[int, ...]) -> list[Span]:
    """The mentions of a tag sequence: first word, end (exclusive), number of the type as a string."""
    names = tag_names(scheme)
    return decode_tags([names[tag] for tag in tags])


@cache
def valid_paths(scheme: TagScheme, words: int) -> list[tuple[int, ...]]:
    """All tag sequences that say the same as their mentions."""
    return [tags for tags in product(range(scheme.tags), repeat=words) if is_valid(scheme, tags)]


def is_valid(scheme: TagScheme, tags: tuple[int, ...]) -> bool:
    """Whether tags are what the scheme's rules make of the mentions that they encode."""
    names, right = tag_names(scheme), ["O"] * len(tags)
    for first, end, label in mentions(scheme, tags):
        if scheme.scheme == "bio":
            prefixes = "B" + "I" * (end - first - 1)
        else:
            prefixes = "S" if end == first + 1 else "B" + "M" * (end - first - 2) + "E"
        right[first:end] = [f"{prefix}-{label}" for prefix in prefixes]
    return right == [names[tag] for tag in tags]


def scored_paths(scheme: TagScheme, emissions: NDArray[np.floating], scores: TransitionScores) -> Iterator[Path]:
    """All valid paths of one text with emissions (words, tags)."""
    transitions, start, end = (one.astype(np.float64) for one in scores)
    for tags in valid_paths(scheme, len(emissions)):
        score = start[tags[0]] + end[tags[-1]] + sum(float(emissions[place, tag]) for place, tag in enumerate(tags))
        yield Path(tags, score + sum(transitions[pair] for pair in pairwise(tags)))


def log_sum(values: list[float]) -> float:
    """log Σ exp; -inf for nothing."""
    if not values:
        return -math.inf
    top = max(values)
    return top + math.log(math.fsum(math.exp(value - top) for value in values))


def random_scores(scheme: TagScheme, generator: np.random.Generator, scale: float = 1.0) -> TransitionScores:
    """Random transitions of which those that the scheme forbids are -inf."""
    allowed = (scheme.allowed, scheme.may_start, scheme.may_end)
    return TransitionScores(
        *(np.where(one, generator.normal(size=one.shape) * scale, -np.inf).astype(np.float32) for one in allowed)
    )
