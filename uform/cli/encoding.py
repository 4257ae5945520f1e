"""Streams of texts through the model: one batch is computed while the next one is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import uform
from uform.cli.console import note, plural
from uform.cli.corpus import Item
from uform.cli.settings import Settings

TOKENS_PER_THREAD = 1 << 13
MOST_TOKENS = 1 << 17
"""Of a batch: enough to keep every thread at work, few enough for a state of each to fit in memory."""

SURFACES = {
    "embeddings": uform.Outputs.EMBEDDINGS,
    "states": uform.Outputs.STATES,
    "token_vectors": uform.Outputs.TOKEN_VECTORS,
}


class Surface(NamedTuple):
    """A copy of what a call put out: rows, and where each item's begin, or None for a row an item."""

    rows: NDArray[Any]
    offsets: NDArray[np.uint64] | None

    def of(self, index: int) -> NDArray[Any]:
        """An item's row, or rows."""
        span = index if self.offsets is None else slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        return np.asarray(self.rows[span])


@dataclass
class Totals:
    """What calls did, added up."""

    items: int = 0
    tokens: int = 0
    truncated: int = 0

    def report(self, context: int) -> None:
        """Says on stderr that texts were truncated, if any were."""
        if self.truncated:
            note(
                f"{self.truncated:,} of {plural(self.items, 'text')} cut at {context:,} bytes, all that the model reads"
            )

    def add(self, items: int, stats: uform.TextEncodeStats) -> None:
        self.items += items
        self.tokens += stats.encoded_tokens
        self.truncated += stats.truncated_items


class Encoder:
    """A model on an executor. The constructor loads it."""

    def __init__(self, settings: Settings) -> None:
        self._model, self._executor = settings.load()
        self._arena = uform.Arena(self._executor)
        self._items = settings.batch
        self._tokens = min(self._executor.threads * TOKENS_PER_THREAD, MOST_TOKENS)
        self.description = self._model.describe()
        self.context = self.description.context
        self.limit = max(self.context + 1, 1 << 16)
        """Bytes of a text that are worth keeping: more than `context`, so that truncation shows."""

    def shape(self, surface: str, scalar: uform.Scalar) -> tuple[int, np.dtype[Any]]:
        """Columns and type of a surface's rows. Raises what every call for that surface would raise."""
        receiver = self._model.on(self._executor)
        encoded = receiver.text_encode([], self._arena, outputs=SURFACES[surface], outputs_scalar=scalar)
        rows = _copied(encoded, surface).rows
        return rows.shape[1], rows.dtype

    def encode(
        self, items: Iterable[Item], surface: str, scalar: uform.Scalar, totals: Totals
    ) -> Iterator[tuple[list[Item], Surface]]:
        """Batches of items, each with its surface. While a batch is computed, the next one is read."""
        receiver = self._model.deferred(self._executor)
        running: tuple[list[Item], uform.TextEncodeStats, uform.Deferred[uform.EncodedBatch]] | None = None
        for batch in self._batches(items):
            finished = _finished(*running, surface, totals) if running else None
            stats = uform.TextEncodeStats()
            texts = [item.data for item in batch]
            outputs = SURFACES[surface]
            call = receiver.text_encode(texts, self._arena, outputs=outputs, outputs_scalar=scalar, stats=stats)
            running = batch, stats, call
            if finished:
                yield finished
        if running:
            yield _finished(*running, surface, totals)

    def choose(
        self, items: Iterable[Item], choices: bytes, group: int, totals: Totals
    ) -> Iterator[tuple[list[Item], NDArray[np.float32]]]:
        """Batches of items, each with its probabilities `(items, choices)`. Reads no further than it has answered."""
        receiver = self._model.on(self._executor)
        for batch in self._batches(items):
            stats = uform.TextEncodeStats()
            texts, groups = [item.data for item in batch], [group] * len(batch)
            legal = [choices] * len(batch)
            probabilities = receiver.text_choose(texts, legal, self._arena, temperature_groups=groups, stats=stats)
            totals.add(len(batch), stats)
            yield batch, np.array(probabilities).reshape(len(batch), len(choices))

    def _batches(self, items: Iterable[Item]) -> Iterator[list[Item]]:
        batch: list[Item] = []
        tokens = 0
        for item in items:
            batch.append(item)
            tokens += min(len(item.data), self.context)
            if len(batch) >= self._items or tokens >= self._tokens:
                yield batch
                batch, tokens = [], 0
        if batch:
            yield batch


def _finished(
    batch: list[Item],
    stats: uform.TextEncodeStats,
    call: uform.Deferred[uform.EncodedBatch],
    surface: str,
    totals: Totals,
) -> tuple[list[Item], Surface]:
    copied = _copied(call.wait(), surface)
    totals.add(len(batch), stats)
    return batch, copied


def _copied(encoded: uform.EncodedBatch, surface: str) -> Surface:
    output = getattr(encoded, surface)
    return Surface(np.array(output), None if surface == "embeddings" else np.array(output.offsets))
