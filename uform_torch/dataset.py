"""A dataset in two files that are mapped, not read: the bytes of all items, and where each starts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from uform import InvalidArgumentError, MalformedError, Modality
from uform_torch.batch import TapeBatch
from uform_torch.blocks import tape_block
from uform_torch.collate import AudioFile, ImageFile, VideoFile, collate

__all__ = ["TapeDataset", "write_tape"]

_Path: TypeAlias = "str | os.PathLike[str]"
_Item: TypeAlias = "bytes | ImageFile | VideoFile | AudioFile"
_CLASSES: dict[Modality, Callable[[bytes], _Item]] = {
    Modality.TEXT: bytes, Modality.IMAGE: ImageFile, Modality.VIDEO: VideoFile, Modality.AUDIO: AudioFile,
}  # fmt: skip
_WRITTEN_AT_ONCE = 1024
"""Items."""


def write_tape(items: Iterable[Any], data: _Path, offsets: _Path) -> int:
    """Writes texts or files, of one modality, as the two files that `TapeDataset` maps, and answers how many.

    items: what `collate` takes for texts and files; read once, and never all held.
    data: gets the bytes of all items, one after another.
    offsets: gets `count + 1` int64 in NumPy's format (.npy). It is written last, once all data is there.
    """
    sizes: list[NDArray[np.int64]] = []
    pending: list[Any] = []
    modality: Modality | None = None
    with open(data, "wb") as file:

        def flush() -> None:
            nonlocal modality
            batch = collate(pending)
            if not isinstance(batch, TapeBatch) or batch.verb in ("image_encode_pixels", "audio_encode_samples"):
                raise InvalidArgumentError("items: a tape on disk holds texts or files")
            if modality not in (None, batch.modality):
                raise InvalidArgumentError(f"items: {batch.modality.name} among {modality.name}")
            modality = batch.modality
            batch.data.numpy().tofile(file)
            sizes.append(np.diff(batch.offsets.numpy()))
            pending.clear()

        for item in items:
            pending.append(item)
            if len(pending) == _WRITTEN_AT_ONCE:
                flush()
        if pending:
            flush()
    bounds = np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]), dtype=np.int64)
    with open(offsets, "wb") as file:
        np.save(file, bounds)
    return len(bounds) - 1


class TapeDataset(Dataset[_Item]):
    """The items of a tape on disk, map-style, for texts or files of one modality.

    data: path of the bytes of all items, one after another.
    offsets: path of `count + 1` int64 or uint64 in NumPy's format (.npy), in bytes from the start of `data`.
    modality: what the items are.

    Both files are mapped: workers made by fork share their pages, since no Python object an item exists whose count of
    references would have them copied, and workers made by spawn or forkserver map the files again.

    - `dataset[i]` is an item: its bytes, in `ImageFile`, `VideoFile` or `AudioFile` for files.
    - `dataset[a:b]`, `dataset[indices]` and `dataset.shuffled(seed)` are datasets of some items in some order, over the
      same files; nothing is read.
    - `dataset.batch()` is a `TapeBatch` of all of its items, without a copy where they lie next to each other.
    - A DataLoader takes whole batches, by `__getitems__`, with `collate_fn=uform_torch.collate`.

    The files are not to change while they are mapped.
    Raises OSError, and MalformedError for files that are no tape; for an item between bad offsets, once it is read.
    """

    def __init__(self, data: _Path, offsets: _Path, modality: Modality = Modality.TEXT) -> None:
        if modality not in _CLASSES:
            raise InvalidArgumentError(f"modality: one is needed, not {modality!r}")
        self._paths = (Path(data).absolute(), Path(offsets).absolute())
        self._modality = modality
        self._indices: NDArray[np.int64] | range
        self._map()
        self._indices = range(len(self._offsets) - 1)

    @property
    def modality(self) -> Modality:
        """What its items are."""
        return self._modality

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: Any) -> Any:
        """An item, or for a slice, a sequence or an array of indices, a dataset of those items."""
        if isinstance(index, slice):
            return self._view(self._indices[index])
        if isinstance(index, (int, np.integer)):
            start, stop = self._bounds(int(self._indices[_in_range(int(index), len(self))]))
            return _CLASSES[self._modality](self._data[start:stop].tobytes())
        return self._view(self._chosen(index))

    def __getitems__(self, indices: Sequence[int]) -> TapeBatch:
        """What DataLoader asks for: a batch, without an object an item."""
        return self._view(self._chosen(indices)).batch()

    def __iter__(self) -> Iterator[_Item]:
        return (self[index] for index in range(len(self)))

    def shuffled(self, seed: int | np.random.Generator) -> TapeDataset:
        """The same items in random order. The order takes 8 bytes an item; the files stay as they are."""
        return self._view(np.random.default_rng(seed).permutation(np.asarray(self._indices, np.int64)))

    def batch(self) -> TapeBatch:
        """All items, as a batch: over the mapped file where they lie there in this order, and copied otherwise.

        To write to such a batch is safe: it changes the process's own copy of a page, never the file.
        """
        indices = self._indices
        if isinstance(indices, range) and (indices.step == 1 or len(indices) < 2):
            return self._lent(indices.start, indices.start + len(indices))
        numbers = np.asarray(indices, np.int64)
        if len(numbers) and (np.diff(numbers) == 1).all():
            return self._lent(int(numbers[0]), int(numbers[-1]) + 1)
        return self._gathered(numbers)

    def __getstate__(self) -> dict[str, Any]:
        return {"paths": self._paths, "modality": self._modality, "indices": self._indices, "count": len(self._offsets)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._paths, self._modality, self._indices = state["paths"], state["modality"], state["indices"]
        self._map()
        if len(self._offsets) != state["count"]:
            raise MalformedError(f"offsets: {self._paths[1]} changed since the dataset was made")

    def __repr__(self) -> str:
        return f"<uform_torch.TapeDataset of {len(self)} items, {self._modality.name}, in {self._paths[0]}>"

    def _map(self) -> None:
        path, offsets_path = self._paths
        try:
            # Copy-on-write maps are writable, as tensors want it, and never reach the file.
            offsets = np.load(offsets_path, mmap_mode="c", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise MalformedError(f"offsets: {offsets_path} is no array in NumPy's format: {error}") from error
        if offsets.ndim != 1 or offsets.dtype not in (np.int64, np.uint64) or len(offsets) == 0:
            raise MalformedError(
                f"offsets: {offsets_path} has {offsets.dtype} of {offsets.shape}, not `count + 1` int64 or uint64"
            )
        size = path.stat().st_size
        # The base class: a memmap's own methods make another memmap of each slice, in Python.
        self._data = np.memmap(path, np.uint8, "c").view(np.ndarray) if size else np.empty(0, np.uint8)
        self._offsets = offsets.view(np.ndarray).view(np.int64)
        if self._offsets[0] != 0 or self._offsets[-1] > size:
            raise MalformedError(
                f"offsets: {offsets_path} goes from {self._offsets[0]} to {self._offsets[-1]}, "
                f"but {path} has {size} bytes"
            )

    def _bounds(self, item: int) -> tuple[int, int]:
        start, stop = int(self._offsets[item]), int(self._offsets[item + 1])
        if not 0 <= start <= stop <= len(self._data):
            raise MalformedError(f"offsets: item {item} goes from {start} to {stop}", item=item)
        return start, stop

    def _chosen(self, indices: Any) -> NDArray[np.int64]:
        numbers = np.asarray(indices)
        if numbers.size == 0:
            return np.empty(0, np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise TypeError(
                f"indices: an integer, a slice or a vector of integers is needed, not {type(indices).__name__}"
            )
        chosen: NDArray[np.int64] = numbers.astype(np.int64)
        chosen[chosen < 0] += len(self)
        if chosen.min() < 0 or chosen.max() >= len(self):
            raise IndexError(f"the dataset has {len(self)} items")
        if isinstance(self._indices, range):
            chosen *= self._indices.step
            chosen += self._indices.start
            return chosen
        return self._indices[chosen]

    def _view(self, indices: NDArray[np.int64] | range) -> TapeDataset:
        view = object.__new__(TapeDataset)
        view.__dict__.update(self.__dict__)
        view._indices = indices
        return view

    def _lent(self, start: int, stop: int) -> TapeBatch:
        bounds = self._offsets[start : stop + 1]
        if start < stop:
            for item in (start, start + int(np.argmin(np.diff(bounds))), stop - 1):
                self._bounds(item)
        first, last = int(bounds[0]), int(bounds[-1])
        return TapeBatch(torch.from_numpy(self._data[first:last]), torch.from_numpy(bounds - first), self._modality)

    def _gathered(self, numbers: NDArray[np.int64]) -> TapeBatch:
        starts, stops = self._offsets[numbers], self._offsets[numbers + 1]
        bad = (starts < 0) | (stops < starts) | (stops > len(self._data))
        if bad.any():
            self._bounds(int(numbers[np.argmax(bad)]))
        block = tape_block(stops - starts)
        target, source, place = block.data.numpy(), self._data, 0
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            target[place : place + stop - start] = source[start:stop]
            place += stop - start
        return TapeBatch(block.data, block.offsets, self._modality)


def _in_range(index: int, count: int) -> int:
    if not -count <= index < count:
        raise IndexError(f"the dataset has {count} items")
    return index % count
