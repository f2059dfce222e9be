"""Logistic regression that starts from what a model knows: how marked examples correct the vector of a type.

The logit of row n, a span, is

    z_n = prior_n + x_n · u,

with the model's own logit as prior. The coefficients u minimise

    Σ_n c_n (log(1 + exp z_n) - y_n z_n) + λ/2 |u|²,

so without examples u is 0, and the more examples there are, the more they count. λ is chosen by leaving out one
document at a time: the logits of its rows without it follow from the solution with it, to second order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

PENALTIES = (3.0, 1.0, 0.3, 0.1, 0.03)
"""Values of λ that are tried, the strongest first."""
USUAL_PENALTY = 0.3
"""λ if there are too few documents to leave one out."""

_NEGATIVES = 1500  # rows with the highest logits that are added to a fit at a time
_ROUNDS = 3
_LOWEST_LOGIT = -7.0  # negatives below it have no influence
_LEAST_CURVATURE = 1e-4  # of a row, for the Hessian
_STEPS = 15
_PRECISION = 1e-4
_LARGEST_LOGIT = 15.0  # of a left-out row: beyond it, its loss would outweigh all others


class Rows(NamedTuple):
    """Spans, and whether they are mentions of a type."""

    x: Floats  # (rows, features)
    y: Floats  # 1 for mentions, else 0
    prior: Floats  # logit of the model
    weight: Floats  # c
    document: Integers

    def take(self, rows: Integers) -> Rows:
        """Some of the rows."""
        return Rows(self.x[rows], self.y[rows], self.prior[rows], self.weight[rows], self.document[rows])

    def logits(self, u: Floats) -> Floats:
        """z."""
        return self.prior + self.x @ u


def fit(rows: Rows) -> Floats:
    """The coefficients u with the strongest penalty that is about as good for left-out documents as the best one.

    "About" means within half a standard error of the difference between the two.
    """
    if len(np.unique(rows.document[rows.y > 0])) < 2:
        return fit_penalty(rows, USUAL_PENALTY)[0]
    solutions, losses = [], []
    u = None
    for penalty in PENALTIES:
        u, used = fit_penalty(rows, penalty, u)
        solutions.append(u)
        losses.append(_loss_by_document(rows.take(used), u, penalty, int(rows.document.max()) + 1))
    loss = np.stack(losses)  # (penalties, documents)
    excess = loss - loss[loss.sum(axis=1).argmin()]
    is_close = excess.sum(axis=1) <= 0.5 * np.sqrt(loss.shape[1]) * excess.std(axis=1) + 1e-6
    return solutions[int(is_close.argmax())]


def fit_penalty(rows: Rows, penalty: float, start: Floats | None = None) -> tuple[Floats, Integers]:
    """The coefficients for one λ, and the rows that they were fitted on: those that have an influence."""
    u = np.zeros(rows.x.shape[1], np.float32) if start is None else start
    used = np.flatnonzero(rows.y)
    for turn in range(_ROUNDS):
        added = np.setdiff1d(_highest_negatives(rows, u), used, assume_unique=True)
        if turn and len(added) < 0.02 * len(used):
            break
        used = np.sort(np.concatenate([used, added]))
        u = newton(rows.take(used), penalty, u)
    return u, used


def _highest_negatives(rows: Rows, u: Floats) -> Integers:
    logit = np.where(rows.y > 0, -np.inf, rows.logits(u))
    highest = np.argpartition(-logit, _NEGATIVES)[:_NEGATIVES] if len(logit) > _NEGATIVES else np.arange(len(logit))
    return np.asarray(highest[logit[highest] > _LOWEST_LOGIT])


def newton(rows: Rows, penalty: float, u: Floats) -> Floats:
    """Newton's method with halved steps, from u to the minimum."""
    z = rows.logits(u)
    loss = _loss(rows, z, u, penalty)
    for _ in range(_STEPS):
        gradient = rows.x.T @ _residuals(rows, z) + penalty * u
        step = -_Inverse(rows, z, penalty).apply(gradient)
        change, size = rows.x @ step, 1.0
        while True:
            next_u, next_z = u + np.float32(size) * step, z + np.float32(size) * change
            next_loss = _loss(rows, next_z, next_u, penalty)
            if next_loss <= loss or size < 1e-3:
                break
            size /= 2
        if not next_loss < loss:
            break
        gain, u, z, loss = loss - next_loss, next_u, next_z, next_loss
        if gain < _PRECISION * loss:
            break
    return u


def left_out_logits(rows: Rows, u: Floats, penalty: float) -> Floats:
    """The logits of the rows of each document, had the document not been among the examples.

    With V = x H⁻¹ xᵀ over the rows of a document, D their curvatures and g their residuals, one Newton step without
    the document leads to z + V (I - D V)⁻¹ g.
    """
    z = rows.logits(u)
    spread, curvature, residual = _Inverse(rows, z, penalty).apply(rows.x.T), _curvatures(rows, z), _residuals(rows, z)
    left_out = z.copy()
    order = np.argsort(rows.document, kind="stable")
    edges = np.flatnonzero(np.diff(rows.document[order])) + 1
    for own in np.split(order, edges):
        v = rows.x[own] @ spread[:, own]
        left_out[own] += v @ np.linalg.solve(np.eye(len(own), dtype=v.dtype) - curvature[own, None] * v, residual[own])
    return left_out


def _loss_by_document(rows: Rows, u: Floats, penalty: float, documents: int) -> NDArray[np.float64]:
    z = np.clip(left_out_logits(rows, u, penalty), -_LARGEST_LOGIT, _LARGEST_LOGIT)
    loss = np.bincount(rows.document, rows.weight * _losses(z, rows.y), minlength=documents)
    return np.asarray(loss, np.float64)


def _losses(z: Floats, y: Floats) -> Floats:
    return np.asarray(np.logaddexp(0, z) - y * z, np.float32)


def _loss(rows: Rows, z: Floats, u: Floats, penalty: float) -> float:
    return float(rows.weight @ _losses(z, rows.y) + penalty / 2 * (u @ u))


def _probabilities(z: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(z, -30, 30))), np.float32)


def _residuals(rows: Rows, z: Floats) -> Floats:
    return rows.weight * (_probabilities(z) - rows.y)


def _curvatures(rows: Rows, z: Floats) -> Floats:
    p = _probabilities(z)
    return rows.weight * p * (1 - p)


class _Inverse:
    """The inverse of the Hessian H = xᵀ D x + λ I. If there are fewer rows than features, of a smaller matrix."""

    def __init__(self, rows: Rows, z: Floats, penalty: float) -> None:
        curvature = _curvatures(rows, z)
        curved = curvature > _LEAST_CURVATURE
        self.a = rows.x[curved] * np.sqrt(curvature[curved, None])  # H = aᵀa + λ I
        self.penalty, self.is_small = np.float32(penalty), len(self.a) < rows.x.shape[1]
        self.matrix = self.a @ self.a.T if self.is_small else self.a.T @ self.a
        self.matrix[np.diag_indices_from(self.matrix)] += self.penalty

    def apply(self, to: Floats) -> Floats:
        """H⁻¹ times a vector, or times the columns of a matrix."""
        if not self.is_small:
            return np.asarray(np.linalg.solve(self.matrix, to), np.float32)
        inner = self.a.T @ np.linalg.solve(self.matrix, self.a @ to)  # Woodbury
        return np.asarray((to - inner) / self.penalty, np.float32)
