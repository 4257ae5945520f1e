"""Figures of retrieval and of calibrated choices, with bootstrap intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uform_torch.metrics import Interval, bootstrap

Floats = NDArray[np.floating]
CUTOFF = 10


def ranks(scores: Floats, relevant: NDArray[np.integer]) -> NDArray[np.integer]:
    """Rank, from 1, of the one relevant document of each query in `scores` `[queries, documents]`.

    Documents that tie with it count as half before it, so that a constant score gains nothing.
    """
    own = np.take_along_axis(scores, relevant[:, None], axis=1)
    before, tied = (scores > own).sum(1), (scores == own).sum(1) - 1
    return 1 + before + (tied + 1) // 2


def retrieval(found: NDArray[np.integer]) -> dict[str, Interval]:
    """NDCG@10, mean reciprocal rank and recall@1 from the ranks of one relevant document a query."""
    gains = np.where(found <= CUTOFF, 1 / np.log2(1 + found), 0.0)
    return {"ndcg@10": bootstrap(gains), "mrr": bootstrap(1 / found), "recall@1": bootstrap((found == 1).astype(float))}


def chance(documents: int) -> dict[str, Interval]:
    """The expectation of the same figures when every order of the documents is as likely."""
    places = np.arange(1, documents + 1)
    ndcg = float((1 / np.log2(1 + places[:CUTOFF])).sum() / documents)
    mrr, recall = float((1 / places).sum() / documents), 1 / documents
    return {
        name: Interval(value, value, value) for name, value in (("ndcg@10", ndcg), ("mrr", mrr), ("recall@1", recall))
    }


def calibration_error(confidences: Floats, correct: Floats, bins: int = 10) -> float:
    """Expected calibration error (Naeini et al., 2015): |accuracy - confidence| over bins of equal width."""
    places = np.minimum((confidences * bins).astype(int), bins - 1)
    error = 0.0
    for place in range(bins):
        inside = places == place
        if inside.any():
            error += inside.mean() * abs(correct[inside].mean() - confidences[inside].mean())
    return float(error)
