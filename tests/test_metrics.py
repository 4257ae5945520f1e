"""Metrics of rankings against numbers worked out by hand, and against scikit-learn's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import ndcg_score

from uform_torch import metrics

FOUND = torch.tensor([[3, 1, 2], [0, 5, 4], [7, 8, -1]])
RELEVANT = [[1, 9], [0], [1]]


def test_recall() -> None:
    assert metrics.recall(FOUND, RELEVANT, 1).tolist() == [0, 1, 0]
    assert metrics.recall(FOUND, RELEVANT, 2).tolist() == [0.5, 1, 0]
    assert metrics.recall(FOUND.numpy(), [{1: 2.0, 9: 1.0, 3: 0.0}, [0], [1]], 3).tolist() == [0.5, 1, 0]


def test_reciprocal_rank() -> None:
    assert metrics.reciprocal_rank(FOUND, RELEVANT).tolist() == [0.5, 1, 0]
    assert metrics.reciprocal_rank(FOUND, RELEVANT, 1).tolist() == [0, 1, 0]


def test_ndcg() -> None:
    values = metrics.ndcg(FOUND, RELEVANT).tolist()
    assert values == pytest.approx([1 / math.log2(3) / (1 + 1 / math.log2(3)), 1, 0])
    # What is found twice counts once.
    assert metrics.ndcg(torch.tensor([[1, 1]]), [[1]]).tolist() == [1]


def test_ndcg_is_that_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    gains = generator.integers(0, 4, (20, 30)).astype(float)
    scores = generator.normal(size=(20, 30))
    order = np.argsort(-scores, axis=1)
    found = metrics.ndcg(order, [dict(enumerate(row)) for row in gains], 10)
    assert found.mean().item() == pytest.approx(ndcg_score(gains, scores, k=10))


def test_a_query_that_nothing_is_relevant_for() -> None:
    assert torch.isnan(metrics.ndcg(FOUND, [[], [0], [1]])).tolist() == [True, False, False]


def test_bootstrap() -> None:
    values = np.random.default_rng(0).normal(1, 2, 4000)
    interval = metrics.bootstrap(values)
    assert interval.mean == pytest.approx(values.mean())
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * values.std() / 4000**0.5, rel=0.1)
    assert metrics.bootstrap([2.0]) == (2, 2, 2)
    assert str(metrics.bootstrap([2.0])) == "2.000 [2.000, 2.000]"
    with pytest.raises(ValueError, match="values"):
        metrics.bootstrap([])


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"found: \(2, n\)"):
        metrics.recall(FOUND, [[1], [2]], 1)
