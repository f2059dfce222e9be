"""The regression behind types by example: against plain gradient descent, and against fits without a document."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onoma.systems.binder.regression import PENALTIES, Rows, fit, fit_penalty, left_out_logits, newton


def make_rows(seed: int, count: int, features: int, documents: int = 5) -> Rows:
    """Rows whose label depends on the first feature, of which the prior knows nothing."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(count, features)).astype(np.float32)
    y = (x[:, 0] + 0.5 * random.normal(size=count) > 1).astype(np.float32)
    y[0] = 1
    prior = random.normal(-2, 0.5, count).astype(np.float32)
    weight = random.choice([1.0, 2.0], count).astype(np.float32)
    return Rows(x, y, prior, weight, np.sort(random.integers(0, documents, count)))


def loss(rows: Rows, u: np.ndarray, penalty: float) -> float:
    """The formula of the module, row by row."""
    total = penalty / 2 * sum(float(one) ** 2 for one in u)
    for x, y, prior, weight in zip(rows.x, rows.y, rows.prior, rows.weight, strict=True):
        z = float(prior) + float(x @ u)
        total += float(weight) * (np.log1p(np.exp(z)) - float(y) * z)
    return total


def gradient(rows: Rows, u: np.ndarray, penalty: float) -> np.ndarray:
    z = rows.prior + rows.x.astype(float) @ u
    return rows.x.T.astype(float) @ (rows.weight * (1 / (1 + np.exp(-z)) - rows.y)) + penalty * u


@given(seed=st.integers(0, 1000), count=st.integers(2, 60), features=st.integers(1, 30), penalty=st.floats(0.03, 10))
def test_newton_finds_the_minimum(seed: int, count: int, features: int, penalty: float) -> None:
    rows = make_rows(seed, count, features)
    u = newton(rows, penalty, np.zeros(features, np.float32))
    at_zero = np.abs(gradient(rows, np.zeros(features), penalty)).max()
    assert np.abs(gradient(rows, u.astype(float), penalty)).max() <= 0.02 * at_zero + 1e-2
    assert loss(rows, u, penalty) <= loss(rows, np.zeros(features), penalty)


@pytest.mark.parametrize("features", [4, 80])
def test_left_out_logits_are_those_of_a_fit_without_the_document(features: int) -> None:
    rows = make_rows(3, 60, features, documents=12)
    u = newton(rows, 1.0, np.zeros(features, np.float32))
    found = left_out_logits(rows, u, 1.0)
    refitted, fitted = np.zeros(60), rows.logits(u)
    for document in np.unique(rows.document):
        own = rows.document == document
        others = newton(rows.take(np.flatnonzero(~own)), 1.0, u)
        refitted[own] = rows.logits(others)[own]
    assert np.abs(found - refitted).mean() < 0.3 * np.abs(fitted - refitted).mean()
    assert np.corrcoef(found, refitted)[0, 1] > 0.97


def test_rows_with_low_logits_can_be_left_out() -> None:
    rows = make_rows(1, 4000, 6)
    u, used = fit_penalty(rows, 0.3)
    assert len(used) < 4000
    assert set(np.flatnonzero(rows.y)) <= set(used.tolist())
    np.testing.assert_allclose(u, newton(rows, 0.3, np.zeros(6, np.float32)), atol=0.3)


def test_examples_that_tell_something_are_followed_and_others_are_not() -> None:
    rows = make_rows(0, 400, 10, documents=20)
    rows.x[:, -1] = 1  # a constant feature
    telling = rows._replace(y=(rows.x[:, 0] > 1).astype(np.float32))
    strong = np.linalg.norm(fit_penalty(telling, PENALTIES[0])[0])
    chosen = fit(telling)
    assert np.argmax(np.abs(chosen[:-1])) == 0
    assert np.linalg.norm(chosen) > 1.5 * strong
    random = rows._replace(y=np.random.default_rng(5).permutation(rows.y))
    np.testing.assert_allclose(fit(random), fit_penalty(random, PENALTIES[0])[0], atol=1e-5)


def test_one_document_cannot_be_left_out() -> None:
    rows = make_rows(2, 50, 5)._replace(document=np.zeros(50, np.int64))
    np.testing.assert_array_equal(fit(rows), fit_penalty(rows, 0.3)[0])
