"""Constrained generation: only answers in the form of equation 2, with types of the prompt and spans of the text.

The prefixes of all spans of a text form a trie. A node of it is the set of places of the text where the mention so far
can have ended, a row of a boolean matrix, so that one step for a whole batch is a comparison with the next token and a
shift. Types are treated in the same way: the set of types whose names begin with the tokens so far.

Types come in the order of the prompt, each with NULL or its mentions. The mentions of a type come in the order of
their places, the shorter of two with the same start first. So an answer contains no mention of a type twice at the
same place, and ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import LogitsProcessor

from onoma.inputs.batches import pad_rows
from onoma.systems.punifiedner.prompts import Ids, Source, Symbols

TYPE, MENTION, NULL, DONE = range(4)
"""What comes next: a token of a type or "):(", of a mention or what follows it, what follows NULL, or nothing."""
_NONE = -1


class State(NamedTuple):
    """Where each answer is: tensors with one row per answer."""

    phase: Tensor  # (rows,)
    types: Tensor  # (rows, types): which types the tokens so far can belong to
    kind: Tensor  # (rows,): the last type that was completed
    length: Tensor  # (rows,): tokens of the present type or mention so far
    places: Tensor  # (rows, tokens + 1): the tokens of the text that can come next
    start: Tensor  # (rows,): of the last mention of this type; before the first one 0
    size: Tensor  # (rows,): its tokens; before the first one 0

    def take(self, rows: Tensor) -> State:
        """The states of some answers."""
        return State(*(one[rows] for one in self))


class AnswerConstraint:
    """The answers that are allowed for windows, all with the same prompt."""

    def __init__(
        self,
        sources: Sequence[Source],
        types: Sequence[Ids],
        symbols: Symbols,
        end: int,
        vocabulary: int,
        device: torch.device,
        beams: int = 1,
    ) -> None:
        ids, _ = pad_rows([one.ids.tolist() for one in sources], _NONE)
        first, last = np.zeros((2, len(sources), ids.shape[1] + 1), np.bool_)
        for row, one in enumerate(sources):
            first[row, one.edges[:-1]], last[row, one.edges[1:]] = True, True
        names, _ = pad_rows([(*one, symbols.colon) for one in types], _NONE)
        tensors = [torch.as_tensor(one, device=device) for one in (ids, first, last, names)]
        self.ids, self.first, self.last = (one.repeat_interleave(beams, 0) for one in tensors[:3])
        self.names = tensors[3]  # (types, tokens), each with "):(" at its end
        self.tokens = self.last.long().mul(torch.arange(self.last.shape[1], device=device)).amax(1)  # of each text
        self.last_word = self.first.long().mul(torch.arange(self.last.shape[1], device=device)).amax(1)
        self.symbols, self.end, self.vocabulary, self.device = symbols, end, vocabulary, device

    def begin(self) -> State:
        """The states before the first token: the first type must come."""
        rows, types = len(self.ids), len(self.names)
        number = torch.zeros(rows, dtype=torch.long, device=self.device)
        known = torch.zeros((rows, types), dtype=torch.bool, device=self.device)
        known[:, 0] = True
        return State(number + TYPE, known, number - 1, number, torch.zeros_like(self.first), number, number)

    def advance(self, state: State, token: Tensor) -> State:
        """The states after one more token of each answer."""
        after_type = self._in_type(state, token)
        after_mention = self._in_mention(state, token)
        after_null = self._next_type(state, token, may_repeat=torch.zeros_like(token, dtype=torch.bool))
        results = (after_type, after_mention, after_null)
        phase = state.phase
        for number, after in enumerate(results):
            state = State(*(_where(phase == number, new, old) for new, old in zip(after, state, strict=True)))
        return state

    def _in_type(self, state: State, token: Tensor) -> State:
        types = state.types & (self._column(self.names, state.length) == token[:, None])
        done = token == self.symbols.colon
        kind = types.long().argmax(1)
        again = kind == state.kind
        start, size = state.start * again, state.size * again
        position = torch.arange(self.first.shape[1], device=self.device)
        places = self.first & (position >= start[:, None])
        longer = start + size < self.tokens  # a longer span with the same start exists
        places &= (position > start[:, None]) | longer[:, None]
        return State(
            torch.where(done, MENTION, TYPE),
            types,
            torch.where(done, kind, state.kind),
            torch.where(done, 0, state.length + 1),
            places & done[:, None],
            torch.where(done, start, state.start),
            torch.where(done, size, state.size),
        )

    def _in_mention(self, state: State, token: Tensor) -> State:
        ended = self._next_type(state, token, may_repeat=self._may_repeat(state))
        matching = state.places[:, :-1] & (self.ids == token[:, None])
        places = torch.nn.functional.pad(matching, (1, 0))
        is_null = token == self.symbols.null
        continued = state._replace(
            phase=torch.where(is_null, NULL, MENTION), length=state.length + 1, places=places & ~is_null[:, None]
        )
        closes = (token == self.symbols.comma) | (token == self.end)
        return State(*(_where(closes, new, old) for new, old in zip(ended, continued, strict=True)))

    def _next_type(self, state: State, token: Tensor, may_repeat: Tensor) -> State:
        """The state behind "),(": the next type must come, or the same one again if it had a mention."""
        number = torch.arange(len(self.names), device=self.device)
        types = number == state.kind[:, None] + 1
        types |= (number == state.kind[:, None]) & may_repeat[:, None]
        start = self._span_start(state)
        had_mention = state.phase == MENTION
        return State(
            torch.where(token == self.symbols.comma, TYPE, DONE),
            types,
            state.kind,
            torch.zeros_like(state.length),
            torch.zeros_like(state.places),
            torch.where(had_mention, start, 0),
            torch.where(had_mention, state.length, 0),
        )

    def _ends(self, state: State) -> Tensor:
        """Where the mention so far can end: (rows, tokens + 1)."""
        position = torch.arange(self.last.shape[1], device=self.device)
        start = position - state.length[:, None]
        is_new = (start > state.start[:, None]) | (state.length > state.size)[:, None]
        return state.places & self.last & is_new & (state.length > 0)[:, None]

    def _span_start(self, state: State) -> Tensor:
        """The first token of the first span that the mention so far can be."""
        return self._ends(state).long().argmax(1) - state.length

    def _may_repeat(self, state: State) -> Tensor:
        """Whether another mention of the same type can follow: there is a later start, or a longer span."""
        start = self._span_start(state)
        return (self.last_word > start) | (start + state.length < self.tokens)

    def allowed(self, state: State) -> Tensor:
        """Which tokens may come next: (rows, vocabulary)."""
        allowed = torch.zeros((len(state.phase), self.vocabulary + 1), dtype=torch.bool, device=self.device)
        none = self.vocabulary  # a column that is cut off in the end
        names = self._column(self.names, state.length).expand(len(state.phase), -1)
        in_type, in_mention = (state.phase == phase for phase in (TYPE, MENTION))
        allowed.scatter_(1, torch.where(state.types & (names >= 0) & in_type[:, None], names, none), True)
        is_next = state.places[:, :-1] & (self.ids >= 0) & in_mention[:, None]
        allowed.scatter_(1, torch.where(is_next, self.ids, none), True)
        can_end = in_mention & self._ends(state).any(1)
        can_close = can_end | (state.phase == NULL)
        is_last = state.kind == len(self.names) - 1
        first = in_mention & (state.length == 0) & (state.size == 0)
        allowed[:, self.symbols.null] = first
        allowed[:, self.symbols.comma] = can_close & (~is_last | (can_end & self._may_repeat(state)))
        allowed[:, self.end] = (can_close & is_last) | (state.phase == DONE)
        return allowed[:, :none]

    @staticmethod
    def _column(names: Tensor, length: Tensor) -> Tensor:
        """The token of each type at the place where each answer is: (rows, types)."""
        return names.T[length.clamp(max=names.shape[1] - 1)]


def _where(rows: Tensor, new: Tensor, old: Tensor) -> Tensor:
    return torch.where(rows if old.ndim == 1 else rows[:, None], new, old)


class ConstrainedLogits(LogitsProcessor):
    """Applies a constraint step by step, in greedy and in beam search.

    A beam search re-orders its rows without saying so; the state of a row is that of the row of the same window that
    had the same tokens before.
    """

    def __init__(self, constraint: AnswerConstraint, beams: int) -> None:
        self.constraint, self.beams = constraint, beams
        self.state = constraint.begin()
        self.before: Tensor | None = None

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        """Set the scores of tokens that are not allowed to minus infinity: (rows, tokens), (rows, vocabulary)."""
        if self.before is not None:
            if self.beams > 1:
                self.state = self.state.take(self._rows_before(ids[:, :-1]))
            self.state = self.constraint.advance(self.state, ids[:, -1])
        self.before = ids
        return scores.masked_fill(~self.constraint.allowed(self.state), -float("inf"))

    def _rows_before(self, ids: Tensor) -> Tensor:
        """The row of the step before that each row continues."""
        assert self.before is not None
        now, before = (one.view(-1, self.beams, ids.shape[1]) for one in (ids, self.before))
        same = (now[:, :, None] == before[:, None]).all(-1)  # (windows, beams, beams before)
        first = torch.arange(len(now), device=ids.device)[:, None] * self.beams
        return (same.long().argmax(-1) + first).flatten()
