"""Decoding of a linear-chain conditional random field with numpy: best tags, and probabilities of tags and mentions.

The model is that of `onoma.systems.blocks.crf`: emissions O of words, transition scores T of tags (NerCo, equation 3).
B are windows, T words and K tags in the shapes below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onoma.systems.blocks.tagging import TagScheme

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

RESCALE_EVERY = 4  # words
SMALLEST = 1e-60
"""Sums of messages, and of products of messages, below this may lack something: numbers under 1e-308 are lost."""
LOWEST_IN_SINGLE_PRECISION = -80.0  # exp of less is inexact or 0
TINY = 1e-300
IMPOSSIBLE = -1e30  # instead of -inf, whose differences are not defined
MAX_LOG_ODDS = 30.0


class TransitionScores(NamedTuple):
    """T and the scores of the first and last tag; -inf for what the scheme forbids."""

    transitions: Floats  # (K, K), indexed [from, to]
    start: Floats  # (K,)
    end: Floats  # (K,)


class Messages(NamedTuple):
    """What all beginnings and all ends of sequences contribute, by tag, up to a factor per word.

    Both include the word itself. Behind the end of a window they mean nothing.
    """

    alpha: Doubles  # (T, B, K)
    beta: Doubles  # (T, B, K)
    are_logs: bool

    def logs(self, messages: Doubles) -> Doubles:
        """The logarithms of some of the messages."""
        with np.errstate(divide="ignore"):
            return messages if self.are_logs else np.asarray(np.log(messages))


def viterbi(emissions: Floats, words: Integers, scores: TransitionScores) -> Integers:
    """The tags with the highest score: (B, T); 0 for padding.

    Args:
        emissions: O (B, T, K); anything finite may stand behind the last word of a window.
        words: number of words of each window (B,).
    """
    windows, length, tags = emissions.shape
    best = np.ascontiguousarray(_relative(emissions).transpose(1, 2, 0))  # (T, K, B)
    best[:1] += scores.start[:, None]
    transitions = scores.transitions[:, :, None]
    paths, top = np.empty((tags, tags, windows), np.float32), np.empty((tags, windows), np.float32)
    for place in range(1, length):
        np.add(best[place - 1][:, None], transitions, out=paths)  # (from, to, B)
        best[place] += np.maximum.reduce(paths, axis=0, out=top)

    best = np.ascontiguousarray(best.transpose(0, 2, 1))  # (T, B, K)
    before = np.concatenate([scores.transitions.T, scores.end[None]])  # (to, from); the end counts as tag K
    tag, chosen = np.full(windows, tags), np.empty((length, windows), np.int64)
    exists = np.arange(length)[:, None] < words
    for place in range(length - 1, -1, -1):
        tag = np.where(exists[place], (best[place] + before[tag]).argmax(1), tags)
        chosen[place] = tag
    return np.where(exists, chosen, 0).T


def marginals(emissions: Floats, words: Integers, scores: TransitionScores) -> Floats:
    """The probability of each tag of each word: (B, T, K); 0 for padding. The arguments are those of `viterbi`."""
    messages = _messages(emissions, words, scores)
    alpha, beta = (messages.logs(one).transpose(1, 0, 2) for one in (messages.alpha, messages.beta))
    logits = alpha + beta - emissions
    weights = np.exp(logits - logits.max(2, keepdims=True))
    exists = np.arange(emissions.shape[1]) < words[:, None]
    return np.where(exists[..., None], weights / weights.sum(2, keepdims=True), 0).astype(np.float32)


def span_log_odds(
    emissions: Floats,
    words: Integers,
    scores: TransitionScores,
    scheme: TagScheme,
    window: Integers,
    first: Integers,
    last: Integers,
    kind: Integers,
) -> Floats:
    """log p - log(1 - p), where p is the probability that a span is exactly one mention of a type: (spans,).

    Given all emissions, tags are a Markov chain. So p is the probability of the first tag, times that of each other
    tag given the one before, times that of a next tag that does not continue the mention. 1 - p is the sum over words
    of the probability that the tags are right before a word and wrong at it. All terms are positive, so both p and
    1 - p are exact even if they are tiny. The result is limited to ±MAX_LOG_ODDS.

    Args:
        emissions, words, scores: see `viterbi`.
        window, first, last, kind: spans, `last` inclusive, and types.
    """
    if not len(window):
        return np.zeros(0, np.float32)
    messages = _messages(emissions, words, scores)
    transitions = scores.transitions.astype(np.float64)
    mention, place, tag = scheme.words_of(first, last, kind)
    starts, ends = np.flatnonzero(place == first[mention]), np.flatnonzero(place == last[mention])
    before = transitions[np.roll(tag, 1)]  # (rows, K)
    before[starts] = messages.logs(messages.alpha[first, window]) - emissions[window, first]
    logits = before + messages.logs(messages.beta[place, window[mention]])
    right, wrong = _split(logits, np.arange(scheme.tags) == tag[:, None])  # (rows,)

    following = np.minimum(last + 1, emissions.shape[1] - 1)
    logits = transitions[tag[ends]] + messages.logs(messages.beta[following, window])
    stops, goes_on = _split(logits, ~(scheme.continues & (scheme.kinds == kind[:, None])))  # (spans,)
    at_end = last + 1 >= words[window]
    stops[at_end], goes_on[at_end] = 1.0, 0.0
    return _log_odds(right, wrong, stops, goes_on, mention, starts)


def _log_odds(
    right: Doubles, wrong: Doubles, stops: Doubles, goes_on: Doubles, mention: Integers, starts: NDArray[np.intp]
) -> Floats:
    """log p - log(1 - p) of spans.

    Args:
        right, wrong: the probabilities of the right tag and of any other one, given a right tag before (rows,).
        stops, goes_on: the probabilities that the mention ends or not, given the right last tag (spans,).
        mention: the span of each row.
        starts: the first row of each span.
    """
    log_right = np.log(np.maximum(right, TINY))
    before = np.cumsum(log_right) - log_right
    before -= before[starts][mention]  # all words of the mention before this one
    inside = np.add.reduceat(log_right, starts)  # (spans,)
    other = np.add.reduceat(np.exp(before) * wrong, starts) + np.exp(inside) * goes_on  # 1 - p
    log_odds = inside + np.log(np.maximum(stops, TINY)) - np.log(np.maximum(other, TINY))
    return np.asarray(np.clip(log_odds, -MAX_LOG_ODDS, MAX_LOG_ODDS), np.float32)


def _split(logits: Doubles, right: Flags) -> tuple[Doubles, Doubles]:
    """The probability of the tags that are right, and that of all others: (rows,) each, from logits (rows, K)."""
    logits = np.maximum(logits, IMPOSSIBLE)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    some, others = (np.einsum("rk,rk->r", weights, flags.astype(np.float64)) for flags in (right, ~right))
    return some / (some + others), others / (some + others)


def _relative(emissions: Floats) -> Floats:
    """Emissions relative to the highest of their word, so that their sums stay small."""
    return np.asarray(emissions - emissions.max(2, keepdims=True))


def _messages(emissions: Floats, words: Integers, scores: TransitionScores) -> Messages:
    """All messages. Where numbers would become too small, logarithms are used throughout.

    Both directions run at the same time: from the first word, and from the last word with transposed transitions.
    Behind its end, a window goes on with the last word it came to.
    """
    windows, length, tags = emissions.shape
    last, window, place = np.maximum(words - 1, 0), np.arange(windows), np.arange(length)[:, None]
    backwards = np.maximum(last - place, 0)  # (T, B)
    order = np.stack([np.minimum(place, last), backwards], axis=1) + window * length  # (T, 2, B)
    behind = (backwards * 2 + 1) * windows + window  # where the messages from the last word are (T, B)
    potentials = _potentials(emissions)
    messages = potentials.reshape(-1, tags).take(order, axis=0)  # (T, 2, B, K)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factors = _send(messages, scores)
        alpha, beta = messages[:, 0], messages.reshape(-1, tags).take(behind, axis=0)
        rest = np.divide(beta.transpose(1, 0, 2), potentials, out=potentials)  # without the word itself
        total = np.einsum("tbk,btk->tb", alpha, rest)  # Z, on another scale at each word
        rescaled = place[RESCALE_EVERY::RESCALE_EVERY, None]
        if np.all((total > SMALLEST) | (place > last)) and np.all((factors > SMALLEST) | (rescaled > last)):
            return Messages(alpha, beta, are_logs=False)
    logs = _relative(emissions).reshape(-1, tags).take(order, axis=0).astype(np.float64)
    _send_logs(logs, scores)
    return Messages(logs[:, 0], logs.reshape(-1, tags).take(behind, axis=0), are_logs=True)


def _potentials(emissions: Floats) -> Doubles:
    """exp O, relative to the highest of each word. Single precision is faster, but turns exp(-104) into 0."""
    relative = _relative(emissions)
    if relative.min(initial=0.0) < LOWEST_IN_SINGLE_PRECISION:
        return np.exp(relative, dtype=np.float64)
    return np.exp(relative, out=relative).astype(np.float64)


def _send(messages: Doubles, scores: TransitionScores) -> Doubles:
    """Turn potentials exp O (T, 2, B, K) into messages, in place:

        α_1 = exp(start + O_1),   α_j = (α_(j-1) · exp T) ⊙ exp O_j     from the first word
        β_n = exp(end + O_n),     β_j = (β_(j+1) · exp Tᵀ) ⊙ exp O_j    from the last word

    Now and then they are divided by their sum. Returns these sums: (T // RESCALE_EVERY, 2, B).
    """
    edges = np.stack([scores.start, scores.end])[:, None]  # (2, 1, K)
    step = np.exp(scores.transitions - scores.transitions.max(), dtype=np.float64)
    steps = np.stack([step, step.T])  # (2, K, K)
    messages[:1] *= np.exp(edges - edges.max(2, keepdims=True), dtype=np.float64)
    factors = np.ones((max(len(messages) - 1, 0) // RESCALE_EVERY, *messages.shape[1:3]))
    received = np.empty(messages.shape[1:])
    for place in range(1, len(messages)):
        message = messages[place]
        message *= np.matmul(messages[place - 1], steps, out=received)
        if place % RESCALE_EVERY == 0:
            factor = message.sum(2, out=factors[place // RESCALE_EVERY - 1])
            message /= factor[..., None]
    return factors


def _send_logs(logs: Doubles, scores: TransitionScores) -> None:
    """Turn O (T, 2, B, K) into logarithms of messages, in place."""
    transitions, start, end = (np.maximum(one, IMPOSSIBLE, dtype=np.float64) for one in scores)
    steps = np.stack([transitions, transitions.T])[:, None]  # (2, 1, K, K)
    logs[:1] += np.stack([start, end])[:, None]
    for place in range(1, len(logs)):
        paths = logs[place - 1][..., None] + steps  # (2, B, from, to)
        top = paths.max(2, keepdims=True)
        logs[place] += np.log(np.exp(paths - top).sum(2)) + top[:, :, 0]
