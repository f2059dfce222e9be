"""Losses that several systems use."""

from __future__ import annotations

import torch
from torch import Tensor


def contrastive_loss(
    sim: Tensor,
    anchor: Tensor | None,
    gold: Tensor,
    candidate: Tensor,
    known: Tensor,
    *,
    present_only: bool = False,
) -> tuple[Tensor, Tensor]:
    """InfoNCE with a learned threshold: the two terms of BINDER's equations 5 and 9 (or 6, 7 and 8 for positions).

    For each gold place p of a type k, against all candidates that are not gold for k and the threshold:

        entity    = -log( exp(sim_p) / (exp(sim_p) + Σ_negatives exp(sim) + exp(anchor)) )

    and for each pair of a window and a type that is annotated there, with or without mentions:

        threshold = -log( exp(anchor) / (exp(anchor) + Σ_negatives exp(sim)) )

    Args:
        sim: similarities (windows, types, places).
        anchor: similarity of the threshold (windows, types), or None to learn no threshold.
        gold: places that are mentions of the type (windows, types, places).
        candidate: places that are mentions or negatives (windows, 1, places) or (windows, types, places).
        known: types that are annotated in the window (windows, types).
        present_only: the threshold term is only that of types with a mention in the window.

    Returns:
        The mean entity term over gold places and the mean threshold term over pairs (0 without an anchor).
    """
    negatives = sim.masked_fill(gold | ~candidate, -torch.inf)
    if anchor is not None:
        negatives = torch.cat([negatives, anchor.unsqueeze(-1)], dim=-1)
    against = torch.logsumexp(negatives, dim=-1)  # (windows, types)
    positives = gold & candidate & known.unsqueeze(-1)
    term = torch.logaddexp(sim, against.unsqueeze(-1)) - sim
    entity = _masked_mean(term, positives)
    if anchor is None:
        return entity, sim.new_zeros(())
    return entity, _masked_mean(against - anchor, known & gold.any(-1) if present_only else known)


def focal_loss(margin: Tensor, gold: Tensor, counted: Tensor, gamma: float) -> Tensor:
    """Binary cross-entropy over all places and types, with less weight on easy ones (Lin et al., 2017):

        loss = ( Σ_gold -(1 - p)^γ log p  +  Σ_others -p^γ log(1 - p) ) / number of gold places

    over the places that are counted, where p = sigmoid(margin) and `margin` is the similarity above its threshold.
    """
    signed = torch.where(gold, margin, -margin)
    error = torch.sigmoid(-signed.detach())
    loss = error**gamma * torch.nn.functional.softplus(-signed)
    return loss.masked_fill(~counted, 0.0).sum() / (gold & counted).sum().clamp(min=1)


def distillation_loss(margin: Tensor, teacher: Tensor, counted: Tensor, gamma: float) -> Tensor:
    """Cross-entropy with the probabilities t of a teacher, with less weight where both agree (Li et al., 2020):

        loss = Σ |t - p|^γ (-t log p - (1 - t) log(1 - p)) / Σ t

    over the places that are counted, where p = sigmoid(margin) and t = sigmoid(teacher). With t of 0 or 1, it is
    `focal_loss`.
    """
    target = torch.sigmoid(teacher)
    error = (target - torch.sigmoid(margin.detach())).abs()
    loss = error**gamma * (torch.nn.functional.softplus(margin) - target * margin)
    hidden = ~counted
    return loss.masked_fill(hidden, 0.0).sum() / target.masked_fill(hidden, 0.0).sum().clamp(min=1)


def narrow_type_loss(narrow: Tensor, broad: Tensor) -> Tensor:
    """A mention of a narrow and a broad type should fit the narrow one better, by at least 1:

        loss = mean over pairs of log(1 + exp(1 + broad - narrow))

    Without it a writer fits "person", which has many more mentions, better than "writer", so that only persons are
    found when both are asked for. The arguments are the margins of both types, one per pair. The broad margin has no
    gradient: if it were pushed down, the broad type would be missed when it is asked for alone.
    """
    return torch.nn.functional.softplus(1 + broad.detach() - narrow).sum() / max(len(narrow), 1)


def breadth_loss(breadths: Tensor, pairs: Tensor) -> Tensor:
    """Of two types that share mentions, the broader one should have the larger breadth b:

        loss = mean over pairs of log(1 + exp(b_narrow - b_broad))

    Args:
        breadths: b of each type (types,).
        pairs: rows (narrow type, broad type).
    """
    narrow, broad = breadths[pairs.T]
    return torch.nn.functional.softplus(narrow - broad).sum() / max(len(pairs), 1)


def supervised_contrastive_loss(
    vectors: Tensor,
    labels: Tensor,
    temperature: float,
    *,
    anchors: Tensor | None = None,
    positive_in_denominator: bool = True,
    by_class: bool = False,
) -> Tensor:
    """Instances of one label attract each other and repel others (Khosla et al., 2020; SCL-RAI, equations 8 and 9):

        loss = mean over anchors i of  1 / (N_i - 1) Σ_(j ≠ i, same label) -log( exp(s_ij) / Σ_n exp(s_in) )

    with cosine similarities s divided by the temperature. n runs over the instances of other labels and, with
    `positive_in_denominator`, over j. Instances without another one of their label are no anchors. With `by_class`, the
    loss is the mean over the anchors of each label, summed over labels (NerCo, equation 1).

    Args:
        vectors: (instances, size).
        labels: (instances,).
        anchors: which instances are anchors (instances,); None: all.
    """
    unit = torch.nn.functional.normalize(vectors, dim=-1)
    sim = unit @ unit.T / temperature
    same = labels[:, None] == labels
    positives = same & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    against = torch.logsumexp(sim.masked_fill(same, -torch.inf), dim=1, keepdim=True)
    against = against.clamp(min=-1e4)  # finite if all instances have one label
    log_ratio = (torch.logaddexp(sim, against) if positive_in_denominator else against) - sim
    counts = positives.sum(1)
    per_anchor = log_ratio.masked_fill(~positives, 0.0).sum(1) / counts.clamp(min=1)
    chosen = (counts > 0) & (same.sum(1) < len(labels))
    chosen = chosen if anchors is None else chosen & anchors
    if not by_class:
        return _masked_mean(per_anchor, chosen)
    of_class = (same & chosen).sum(1).clamp(min=1)  # anchors of the own label
    return (per_anchor / of_class).masked_fill(~chosen, 0.0).sum()


def _masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    return values.masked_fill(~mask, 0.0).sum() / mask.sum().clamp(min=1)
