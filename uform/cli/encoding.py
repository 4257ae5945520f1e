"""Streams of items through the model: one batch is computed while the next one is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import uform
from uform import Modality
from uform.cli.console import Failure, note, plural
from uform.cli.corpus import Item
from uform.cli.settings import Settings
from uform.cli.sniff import NOUNS

TOKENS_PER_THREAD = 1 << 13
MOST_TOKENS = 1 << 17
"""Of a batch: enough to keep every thread at work, few enough for a state of each to fit in memory."""
MEDIA_TOKENS = {Modality.IMAGE: 1 << 8, Modality.VIDEO: 1 << 10, Modality.AUDIO: 1 << 10}
"""What a batch counts a file as, before it is decoded."""
MOST_BYTES = 1 << 26
"""Of the files of a batch; a larger one is a batch of its own."""

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


Stats = uform.TextEncodeStats | uform.ImageEncodeStats | uform.VideoEncodeStats | uform.AudioEncodeStats


@dataclass
class Totals:
    """What calls did, added up."""

    tokens: int = 0
    counts: Counter[Modality] = field(default_factory=Counter)
    """Items of each kind."""
    truncated: Counter[Modality] = field(default_factory=Counter)
    skipped: int = 0

    @property
    def items(self) -> int:
        return sum(self.counts.values())

    def add(self, kind: Modality, items: int, stats: Stats) -> None:
        self.counts[kind] += items
        self.truncated[kind] += stats.truncated_items
        self.tokens += stats.encoded_tokens

    def report(self, context: int, trained: Modality) -> None:
        """Says on stderr what was truncated and skipped, and which results mean nothing."""
        for kind, truncated in self.truncated.items():
            where = f"at {context:,} bytes, all that" if kind == Modality.TEXT else "where"
            if truncated:
                stop = "the model reads" if kind == Modality.TEXT else "the model stops reading"
                note(f"{truncated:,} of {plural(self.counts[kind], NOUNS[kind])} cut {where} {stop}")
        if self.skipped:
            note(f"{plural(self.skipped, 'file')} skipped, for they cannot be decoded")
        if untrained := [f"{NOUNS[kind]}s" for kind in Modality if self.counts[kind] and kind not in trained]:
            names = " and ".join(filter(None, (", ".join(untrained[:-1]), untrained[-1])))
            note(f"results for {names} mean nothing yet: the model was not trained on them (see --only)")


class _Batch:
    """Items of any kinds, and what their calls put out so far. Each part is the places of the items of a kind."""

    def __init__(self, items: list[Item]) -> None:
        self.items = items
        self.parts: dict[Modality, list[int]] = {}
        for index, item in enumerate(items):
            self.parts.setdefault(item.kind, []).append(index)
        self._surfaces: dict[Modality, Surface] = {}

    def put(self, kind: Modality, surface: Surface) -> bool:
        """Whether it was the last part that was missing."""
        self._surfaces[kind] = surface
        return len(self._surfaces) == len(self.parts)

    def surface(self) -> Surface:
        """Of all items, in their order."""
        if len(self.parts) == 1:
            return next(iter(self._surfaces.values()))
        places = ((kind, place) for kind, part in self.parts.items() for place in enumerate(part))
        ordered = sorted((index, kind, place) for kind, (place, index) in places)
        rows = [np.atleast_2d(self._surfaces[kind].of(place)) for _, kind, place in ordered]
        joined = np.concatenate(rows)
        if all(surface.offsets is None for surface in self._surfaces.values()):
            return Surface(joined, None)
        return Surface(joined, np.cumsum([0, *map(len, rows)], dtype=np.uint64))


class _Call(NamedTuple):
    """A part of a batch that is computed."""

    batch: _Batch
    kind: Modality
    stats: Stats
    deferred: uform.Deferred[uform.EncodedBatch]


class Encoder:
    """A model on an executor. The constructor loads it."""

    def __init__(self, settings: Settings, skip_malformed: bool = False) -> None:
        self._model, self._executor = settings.load()
        self._arena = uform.Arena(self._executor)
        self._items = settings.batch
        self._skip_malformed = skip_malformed
        self._tokens = min(self._executor.threads * TOKENS_PER_THREAD, MOST_TOKENS)
        self.description = self._model.describe()
        self.context = self.description.context
        self.media = self.description.modalities & ~Modality.TEXT
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
        running: _Call | None = None
        for items_of_batch in self._batches(items):
            batch = _Batch(items_of_batch)
            for kind in batch.parts:
                finished = self._finished(running, surface, totals) if running else None
                running = self._submitted(batch, kind, surface, scalar)
                if finished:
                    yield finished
        if running and (finished := self._finished(running, surface, totals)):
            yield finished

    def _submitted(self, batch: _Batch, kind: Modality, surface: str, scalar: uform.Scalar) -> _Call:
        receiver = self._model.deferred(self._executor)
        outputs = SURFACES[surface]
        data = [batch.items[index].data for index in batch.parts[kind]]
        if kind == Modality.TEXT:
            text_stats = uform.TextEncodeStats()
            call = receiver.text_encode(data, self._arena, outputs=outputs, outputs_scalar=scalar, stats=text_stats)
            return _Call(batch, kind, text_stats, call)
        # A single file, which may be large, is lent without a copy.
        files: Any = data if len(data) > 1 else (data[0], np.array([0, len(data[0])], np.uint64))
        stats: Any
        encode: Any
        if kind == Modality.IMAGE:
            stats, encode = uform.ImageEncodeStats(), receiver.image_encode
        elif kind == Modality.VIDEO:
            stats, encode = uform.VideoEncodeStats(), receiver.video_encode
        else:
            stats, encode = uform.AudioEncodeStats(), receiver.audio_encode
        # Skipped in any case: the reason then comes apart from the item's number in the call, which users do not know.
        call = encode(files, self._arena, outputs=outputs, outputs_scalar=scalar, skip_malformed=True, stats=stats)
        return _Call(batch, kind, stats, call)

    def _finished(self, call: _Call, surface: str, totals: Totals) -> tuple[list[Item], Surface] | None:
        """The batch, where the call was its last one."""
        batch, kind, stats, deferred = call
        copied = _copied(deferred.wait(), surface)
        part = batch.parts[kind]
        totals.add(kind, len(part), stats)
        if not isinstance(stats, uform.TextEncodeStats):
            for malformed in stats.malformed:
                index = part[malformed.item]
                self._refuse(batch.items[index], malformed.message)
                batch.items[index] = replace(batch.items[index], fault=malformed.message)
                totals.skipped += 1
        return (batch.items, batch.surface()) if batch.put(kind, copied) else None

    def _refuse(self, item: Item, reason: str) -> None:
        """Ends the command, or says that the item is skipped."""
        if not self._skip_malformed:
            raise Failure(f"{item.place}: {reason}")
        note(f"skipped {item.place}: {reason}")

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
            totals.add(Modality.TEXT, len(batch), stats)
            yield batch, np.array(probabilities).reshape(len(batch), len(choices))

    def _batches(self, items: Iterable[Item]) -> Iterator[list[Item]]:
        batch: list[Item] = []
        tokens = size = 0
        for item in items:
            if size and item.kind != Modality.TEXT and size + len(item.data) > MOST_BYTES:
                yield batch
                batch, tokens, size = [], 0, 0
            batch.append(item)
            tokens += min(MEDIA_TOKENS.get(item.kind, len(item.data)), self.context)
            size += len(item.data) if item.kind != Modality.TEXT else 0
            if len(batch) >= self._items or tokens >= self._tokens or size >= MOST_BYTES:
                yield batch
                batch, tokens, size = [], 0, 0
        if batch:
            yield batch


def _copied(encoded: uform.EncodedBatch, surface: str) -> Surface:
    output = getattr(encoded, surface)
    return Surface(np.array(output), None if surface == "embeddings" else np.array(output.offsets))
