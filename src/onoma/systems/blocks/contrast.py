"""InfoNCE over places of a text, with a learned threshold among them."""

from __future__ import annotations

import torch
from torch import Tensor


def contrast(
    sim: Tensor, anchor: Tensor | None, gold: Tensor, candidate: Tensor, known: Tensor
) -> tuple[Tensor, Tensor]:
    """The two terms of BINDER's augmented loss, equations 5 and 9 (or 6, 7 and 8 for positions).

    For every gold place p of a type k, against all candidates that are not gold for k and the threshold:

        entity    = -log( exp(sim_p) / (exp(sim_p) + Σ_negatives exp(sim) + exp(anchor)) )

    and for every pair of a window and a type that is annotated there, present or absent:

        threshold = -log( exp(anchor) / (exp(anchor) + Σ_negatives exp(sim)) )

    Args:
        sim: similarities (windows, types, places).
        anchor: similarity of the threshold (windows, types), or None to learn no threshold.
        gold: places that are mentions of the type (windows, types, places).
        candidate: places that exist (windows, 1, places).
        known: types that are annotated in the window (windows, types).

    Returns:
        The mean entity term over gold places and the mean threshold term over pairs (0 without an anchor).
    """
    negatives = sim.masked_fill(gold | ~candidate, -torch.inf)
    if anchor is not None:
        negatives = torch.cat([negatives, anchor.unsqueeze(-1)], dim=-1)
    against = torch.logsumexp(negatives, dim=-1)  # (windows, types)
    positives = gold & candidate & known.unsqueeze(-1)
    term = torch.logaddexp(sim, against.unsqueeze(-1)) - sim
    entity = _mean(term, positives)
    if anchor is None:
        return entity, sim.new_zeros(())
    return entity, _mean(against - anchor, known)


def yes_or_no(margin: Tensor, gold: Tensor, candidate: Tensor, known: Tensor, focus: float) -> Tensor:
    """Binary cross-entropy of every place and type, with less weight on what is already clear (focal loss):

        loss = ( Σ_gold -(1 - p)^focus log p  +  Σ_others -p^focus log(1 - p) ) / number of gold places

    where p = sigmoid(margin). Arguments are those of `contrast`, except that `margin` is over the threshold.
    """
    chosen = candidate & known.unsqueeze(-1)
    signed = torch.where(gold, margin, -margin)
    wrong = torch.sigmoid(-signed.detach())  # how far from clear
    loss = wrong**focus * torch.nn.functional.softplus(-signed)
    return loss.masked_fill(~chosen, 0.0).sum() / (gold & chosen).sum().clamp(min=1)


def narrower_first(narrow: Tensor, broad: Tensor) -> Tensor:
    """A mention of both a narrow and a broad type should fit the narrow one better, by 1 at least:

        loss = mean over pairs of log(1 + exp(1 + broad - narrow))

    Without it a writer fits "person", of which there are many more mentions, better than "writer"; and who asks for
    both gets persons only. Arguments are the margins of both types, one for each such pair. The broad margin has no
    gradient: were it pushed down, the broad type would be missed where it alone is asked for.
    """
    return torch.nn.functional.softplus(1 + broad.detach() - narrow).sum() / max(len(narrow), 1)


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    return values.masked_fill(~chosen, 0.0).sum() / chosen.sum().clamp(min=1)
