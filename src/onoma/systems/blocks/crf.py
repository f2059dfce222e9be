"""A linear-chain conditional random field over tags, for training (NerCo, section 3.3; Lafferty et al., 2001).

With emission scores O of words and transition scores T of tags, the probability of the tags y of a sentence s is

    O = W_o H + b_o                                                                                   (equation 2)
    p(y | s) = exp(Σ_j (O[j, y_j] + T[y_(j-1), y_j])) / Σ_ỹ exp(Σ_j (O[j, ỹ_j] + T[ỹ_(j-1), ỹ_j]))    (equation 3)
    L = -Σ_i log p(y_i | s_i)                                                                         (equation 4)

where ỹ are all tag sequences that the scheme allows. T[y_0, ·] is the score of tags at the start, and a sentence has a
score of its last tag, too. Equation 2 is a linear layer of the model; everything below starts from O.

The sum over ỹ is computed by messages in both directions at once. A message is what all beginnings (or all ends) of a
sequence with tag y_j at word j contribute:

    α_1 = exp(start + O_1),   α_j = (α_(j-1) · exp T) ⊙ exp O_j     from the first word
    β_n = exp(end + O_n),     β_j = (β_(j+1) · exp Tᵀ) ⊙ exp O_j    from the last word

The gradient of log Z consists of the expected tags and pairs of tags, which the messages give directly, so automatic
differentiation through the steps is not needed. Messages are numbers of double precision that are rescaled now and
then. That is exact unless scores differ by hundreds within a few words; this is noticed, and then logarithms are used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from onoma.systems.blocks.tagging import TagScheme
from onoma.systems.blocks.viterbi import TransitionScores

RESCALE_EVERY = 8  # words
SMALLEST = 1e-100
"""Sums of messages, and of products of messages, below this may lack something: numbers under 1e-308 are lost."""
TINY = 1e-300
IMPOSSIBLE = -1e30  # instead of -inf, whose differences are not defined


class Expectations(NamedTuple):
    """What the sum over all tag sequences gives for each sentence."""

    log_partition: Tensor  # log Z (B,)
    tags: Tensor  # the probability of each tag of each word (B, T, K); 0 for padding
    pairs: Tensor  # how often a tag follows another one, on average (B, K, K)


class Crf(nn.Module):
    """Scores of transitions between tags; those that the scheme forbids have probability 0 and no gradient.

    B are sentences, T words and K tags in the shapes below. Computes in double precision whatever autocast says.
    """

    allowed: Tensor
    may_start: Tensor
    may_end: Tensor

    def __init__(self, scheme: TagScheme) -> None:
        super().__init__()
        self.scheme = scheme
        self.transitions = nn.Parameter(torch.zeros(scheme.tags, scheme.tags))  # T[from, to]
        self.start = nn.Parameter(torch.zeros(scheme.tags))
        self.end = nn.Parameter(torch.zeros(scheme.tags))
        for name in ("allowed", "may_start", "may_end"):
            self.register_buffer(name, torch.tensor(getattr(scheme, name)), persistent=False)

    def log_partition(self, emissions: Tensor, lengths: Tensor, possible: Tensor | None = None) -> Tensor:
        """log Z, the logarithm of the denominator of equation 3: (B,).

        Args:
            emissions: O (B, T, K); anything may stand behind the end of a sentence.
            lengths: words of each sentence, at least 1 (B,).
            possible: tags over which the sum runs (B, T, K); None: all. It must leave a sequence that is allowed.
        """
        emissions = _in_single_precision(emissions)
        if possible is not None:
            emissions = emissions.masked_fill(~possible, -torch.inf)
        return self._log_partition(emissions, lengths).to(emissions.dtype)

    def loss(self, emissions: Tensor, tags: Tensor | None, lengths: Tensor, possible: Tensor | None = None) -> Tensor:
        """-log p(y | s) of each sentence, the terms of equation 4: (B,).

        With `possible`, p is the probability of all tag sequences that an incomplete annotation allows, so that the
        loss is log Z - log Z_possible (a fuzzy CRF).

        Args:
            emissions, lengths: see `log_partition`.
            tags: gold tags, 0 for padding (B, T), or None if `possible` is given.
            possible: tags that may be right (B, T, K).
        """
        emissions = _in_single_precision(emissions)
        if possible is not None:
            both = torch.cat([emissions, emissions.masked_fill(~possible, -torch.inf)])  # (2B, T, K)
            everything, right = self._log_partition(both, lengths.repeat(2)).chunk(2)
        else:
            assert tags is not None
            everything, right = self._log_partition(emissions, lengths), self._score(emissions, tags, lengths)
        return (everything - right).to(emissions.dtype)

    def _log_partition(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        """log Z in double precision: (B,)."""
        log_partition: Any = _LogPartition.apply
        with torch.autocast(emissions.device.type, enabled=False):
            result: Tensor = log_partition(emissions, *self._scores(), lengths)
        return result

    def _score(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """The score of tags (B, T), the exponent in the numerator of equation 3, in double precision: (B,)."""
        transitions, start, end = (one.double() for one in self._scores())
        exists = torch.arange(tags.shape[1], device=tags.device) < lengths[:, None]  # (B, T)
        emitted = emissions.gather(2, tags.unsqueeze(-1)).squeeze(-1).double()
        passed = transitions.flatten()[tags[:, :-1] * self.scheme.tags + tags[:, 1:]]  # (B, T - 1)
        last = tags.gather(1, lengths[:, None] - 1).squeeze(1)
        inner = emitted.where(exists, 0.0).sum(1) + passed.where(exists[:, 1:], 0.0).sum(1)
        return inner + start[tags[:, 0]] + end[last]

    def transition_scores(self) -> TransitionScores:
        """The scores as arrays, for decoding without PyTorch; -inf if the scheme forbids it."""
        return TransitionScores(*(one.detach().float().cpu().numpy() for one in self._scores()))

    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Transitions, start and end, with -inf for what the scheme forbids."""
        return (
            self.transitions.masked_fill(~self.allowed, -torch.inf),
            self.start.masked_fill(~self.may_start, -torch.inf),
            self.end.masked_fill(~self.may_end, -torch.inf),
        )


class _LogPartition(torch.autograd.Function):
    """log Z in double precision, from emissions, transitions, start, end (with -inf) and lengths."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor
    ) -> Tensor:
        scores = transitions.double(), start.double(), end.double()
        expected, is_exact = scaled_expectations(emissions, *scores, lengths)
        if not bool(is_exact):
            expected = log_expectations(emissions, *scores, lengths)
        ctx.save_for_backward(expected.tags.to(emissions.dtype), expected.pairs.to(transitions.dtype), lengths)
        return expected.log_partition

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        tags, pairs, lengths = ctx.saved_tensors
        by_sentence, weight = grad.to(tags.dtype), grad.to(pairs.dtype)
        first, last = tags[:, 0], tags[torch.arange(len(tags), device=tags.device), lengths - 1]  # (B, K)
        return (
            tags * by_sentence[:, None, None],
            torch.tensordot(weight, pairs, 1),
            weight @ first.to(weight.dtype),
            weight @ last.to(weight.dtype),
            None,
        )


def scaled_expectations(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor
) -> tuple[Expectations, Tensor]:
    """Expectations by messages that are rescaled, and whether they are exact: one flag, on the device.

    All scores are relative to their maxima, so that messages do not overflow.
    """
    sentences, length, tags = emissions.shape
    sentence, word, last = torch.arange(sentences, device=lengths.device), _words(emissions), lengths - 1
    edges, highest = torch.stack([start, end]), transitions.amax()  # (2, K)
    step, edge = torch.exp(transitions - highest), torch.exp(edges - edges.amax(1, keepdim=True))
    messages, scale, is_exact = _send(emissions, step, edge, lengths)

    alpha = messages[:-1, 0].transpose(0, 1)  # (B, T, K)
    place = torch.where(word < last[:, None], last[:, None] - word - 1, length)  # where β of the next word is
    rows = (place * 2 + 1) * sentences + sentence[:, None]
    beta = messages.view(-1, tags).index_select(0, rows.flatten()).view_as(emissions)  # β_(j+1) (B, T, K)
    weight = beta @ step.T  # what the words behind j contribute (B, T, K); 0 for padding
    weight[sentence, last] = edge[1]
    weight.mul_(alpha)  # of all sequences that have a tag at j
    total = weight.sum(2).where(word < lengths[:, None], 1.0)  # Z, on another scale at each word (B, T)
    pairs = torch.bmm(alpha.transpose(1, 2), beta.div_(total.unsqueeze(2))) * step  # (B, K, K)

    scale = scale + last * highest + edges.amax(1).sum()
    log_partition = torch.log(total.gather(1, last[:, None]).squeeze(1)) + scale
    tag_probabilities = weight.div_(total.unsqueeze(2))
    return Expectations(log_partition, tag_probabilities, pairs), is_exact & (total > SMALLEST).all()


def _send(emissions: Tensor, step: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The messages α, and β in reversed order.

    Both directions run at the same time: the sentences from their first word, and the sentences from their last word
    with transposed transitions. Behind its end, a sentence goes on with the last word it came to.

    Args:
        emissions: O (B, T, K).
        step: exp T (K, K).
        edge: exp start and exp end (2, K).

    Returns:
        Messages (T + 1, 2, B, K), which end with zeros; the logarithm of what α_n was divided by (B,); and whether the
        messages are exact.
    """
    sentences, length, tags = emissions.shape
    place, last = _words(emissions)[:, None], lengths - 1
    exists = _words(emissions) < lengths[:, None]  # (B, T)
    potentials = emissions.to(torch.float64, copy=True)
    peak = potentials.amax(2)  # (B, T)
    potentials.sub_(peak.unsqueeze(2)).exp_()  # exp O (B, T, K)
    order = torch.stack([torch.minimum(place, last), (last - place).clamp(min=0)], 1)  # (T, 2, B)
    rows = (order + torch.arange(sentences, device=last.device) * length).flatten()
    messages = potentials.new_empty(length + 1, 2, sentences, tags)
    messages[-1].zero_()
    torch.index_select(potentials.flatten(0, 1), 0, rows, out=messages[:-1].view(-1, tags))

    steps = torch.stack([step, step.T])
    factors = peak.new_ones((length - 1) // RESCALE_EVERY, 2, sentences, 1)
    before, *others = messages[:-1].unbind()
    before.mul_(edge.unsqueeze(1))
    received = torch.empty_like(before)
    for number, message in enumerate(others, 1):
        message.mul_(torch.bmm(before, steps, out=received))
        if number % RESCALE_EVERY == 0:
            factor = factors[number // RESCALE_EVERY - 1]
            message.div_(torch.sum(message, 2, keepdim=True, out=factor).clamp_(min=TINY))
        before = message
    factors = factors.squeeze(3).where(place[RESCALE_EVERY::RESCALE_EVERY, None] <= last, 1.0)
    scale = peak.where(exists, 0.0).sum(1) + torch.log(factors[:, 0]).sum(0)
    return messages, scale, (factors > SMALLEST).all()


def log_expectations(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, lengths: Tensor
) -> Expectations:
    """Expectations by logarithms of messages: exact for all scores, and slower.

    Backwards, the probability of a tag is passed on to the tags before it, by their shares of its message.
    """
    scores = (emissions.double(), transitions, start, end)
    emissions, transitions, start, end = (one.clamp(min=IMPOSSIBLE) for one in scores)
    exists = (_words(emissions) < lengths[:, None]).unsqueeze(2).unbind(1)  # (B, 1) for each word
    alpha, shares = start + emissions[:, 0], []
    for place in range(1, len(exists)):
        paths = alpha.unsqueeze(2) + transitions  # (B, from, to)
        total = torch.logsumexp(paths, 1)
        shares.append(torch.exp(paths - total.unsqueeze(1)))
        alpha = torch.where(exists[place], total + emissions[:, place], alpha)
    log_partition = torch.logsumexp(alpha + end, 1)
    tags = [torch.exp(alpha + end - log_partition.unsqueeze(1))]  # of the last word
    pairs = torch.zeros_like(transitions).expand(len(emissions), -1, -1)
    for place in range(len(shares), 0, -1):
        here = shares[place - 1] * (tags[-1] * exists[place]).unsqueeze(1)  # (B, from, to)
        pairs = pairs + here
        tags.append(torch.where(exists[place], here.sum(2), tags[-1]))
    each = torch.stack(tags[::-1], 1) * torch.stack(exists, 1)
    return Expectations(log_partition, each, pairs)


def _in_single_precision(emissions: Tensor) -> Tensor:
    """Emissions in at least single precision: in less, p - 1 is 0 for tags that are almost certain."""
    return emissions.to(torch.promote_types(emissions.dtype, torch.float32))


def _words(emissions: Tensor) -> Tensor:
    return torch.arange(emissions.shape[1], device=emissions.device)
