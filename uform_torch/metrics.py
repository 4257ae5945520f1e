"""How good a ranking is: recall, reciprocal rank and NDCG of each query, and the bounds of their means."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

__all__ = ["Interval", "bootstrap", "ndcg", "recall", "reciprocal_rank"]

Relevant = Sequence[Collection[int]] | Sequence[Mapping[int, float]]
"""Of each query, the ids of the documents that it should find, each with its gain where gains differ."""


class Interval(NamedTuple):
    """A mean and the bounds between which it falls in 95% of resamples."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def bootstrap(values: ArrayLike, resamples: int = 1000, seed: int = 0) -> Interval:
    """The percentile bootstrap (B. Efron, 1979) of the mean of `values`, at least one, in the order they are in."""
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1 or not len(numbers):
        raise ValueError(f"values: a vector with at least one number is needed, not the shape {numbers.shape}")
    generator = np.random.default_rng(seed)
    means = [numbers[generator.integers(0, len(numbers), len(numbers))].mean() for _ in range(resamples)]
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(numbers.mean()), float(low), float(high))


def recall(found: torch.Tensor | NDArray[np.integer], relevant: Relevant, k: int) -> torch.Tensor:
    """Share of each query's relevant documents that are among the first `k` found: (queries,) float64.

    found: (queries, n) ids, best first; negative ones are none. A query that nothing is relevant for has NaN.
    """
    return _each(found, relevant, lambda gains, ideal: float((gains[:k] > 0).sum() / len(ideal)))


def reciprocal_rank(
    found: torch.Tensor | NDArray[np.integer], relevant: Relevant, k: int | None = None
) -> torch.Tensor:
    """One over the rank of the first relevant document among the first `k` found, 0 without one; the mean is MRR."""

    def value(gains: NDArray[np.float64], ideal: NDArray[np.float64]) -> float:
        places = np.flatnonzero(gains[:k] > 0)
        return 1 / (1 + float(places[0])) if len(places) else 0.0

    return _each(found, relevant, value)


def ndcg(found: torch.Tensor | NDArray[np.integer], relevant: Relevant, k: int = 10) -> torch.Tensor:
    """Normalized discounted cumulative gain (K. Järvelin and J. Kekäläinen, 2002) of the first `k`, of linear gains.

    A gain counts `1 / log2(1 + rank)`; the sum is divided by that of the best order there is.
    """
    discounts = 1 / np.log2(2 + np.arange(k))

    def value(gains: NDArray[np.float64], ideal: NDArray[np.float64]) -> float:
        best = np.sort(ideal)[::-1][:k]
        return float((gains[:k] * discounts[: len(gains)]).sum() / (best * discounts[: len(best)]).sum())

    return _each(found, relevant, value)


def _each(found: torch.Tensor | NDArray[np.integer], relevant: Relevant, value: object) -> torch.Tensor:
    """`value(gains of what was found, gains of what is relevant)` of every query."""
    ids = np.asarray(found)
    if ids.ndim != 2 or len(ids) != len(relevant):
        raise ValueError(f"found: ({len(relevant)}, n) ids are needed, not the shape {ids.shape}")
    values = []
    for row, wanted in zip(ids.tolist(), relevant, strict=True):
        known = dict(wanted) if isinstance(wanted, Mapping) else dict.fromkeys(wanted, 1.0)
        known = {key: gain for key, gain in known.items() if gain > 0}
        if not known:
            values.append(float("nan"))
            continue
        gains, seen = np.zeros(len(row)), set()
        for place, key in enumerate(row):
            if key in known and key not in seen:  # Found twice, it counts once.
                seen.add(key)
                gains[place] = known[key]
        values.append(value(gains, np.array(list(known.values()))))  # type: ignore[operator]
    return torch.tensor(values, dtype=torch.float64)
