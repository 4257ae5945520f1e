"""The best of a stream of scored items, and late interaction over them."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uform import Modality, rank
from uform.cli.corpus import Item


class Match(NamedTuple):
    """Matches compare by score; of equal ones, the item that came first is the better."""

    score: float
    age: int
    """Minus the number of items that came before it."""
    item: Item
    similarity: float
    """Cosine of the pooled embeddings."""
    contents: bytes = b""
    """What equal items have in common: the text, or a digest of the file."""


class Best:
    """Keeps the `count` best matches of a stream of any length. `distinct` keeps only the first of equal items."""

    def __init__(self, count: int, distinct: bool = False) -> None:
        self._count = count
        self._distinct = distinct
        self._contents: set[bytes] = set()
        self._heap: list[Match] = []
        self._seen = 0

    def add(self, items: Sequence[Item], scores: NDArray[np.float64]) -> None:
        """Takes a batch and the score of each of its items."""
        least = self._heap[0].score if len(self._heap) == self._count else -np.inf
        for index in map(int, np.flatnonzero(scores > least)):
            score, item = float(scores[index]), items[index]
            contents = _contents(item) if self._distinct else b""
            if self._distinct:
                # Equal items have equal scores, so that one which was dropped is not good enough when it comes again.
                if contents in self._contents:
                    continue
                self._contents.add(contents)
            match = Match(score, -(self._seen + index), item.light(), score, contents)
            if len(self._heap) < self._count:
                heapq.heappush(self._heap, match)
            else:
                self._contents.discard(heapq.heappushpop(self._heap, match).contents)
        self._seen += len(items)

    def ranked(self) -> list[Match]:
        return sorted(self._heap, reverse=True)


def _contents(item: Item) -> bytes:
    return item.data if item.kind == Modality.TEXT else hashlib.sha256(item.data).digest()


def dot_products(rows: NDArray[Any], query: NDArray[Any]) -> NDArray[np.float64]:
    """Of each row with the query, in float64. Unlike a matrix product's, a row's bits do not depend on other rows."""
    sums: NDArray[np.float64] = (rows.astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    return sums


def late_interaction(query: NDArray[Any], text: NDArray[Any]) -> float:
    """MaxSim: every token vector of the query finds the most similar one of the text; the mean of their cosines.

    Both are `(tokens, width)`, of unit rows. -1 for a text without tokens.
    """
    if not len(text):
        return -1.0
    offsets = [np.array([0, len(rows)]) for rows in (query, text)]
    return float(rank.maxsim(query, offsets[0], text, offsets[1])[0, 0]) / len(query)
