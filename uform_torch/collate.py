"""From items to batches: `DataLoader(..., collate_fn=uform_torch.collate)`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import default_collate

from uform import ArgumentTypeError, MalformedError, Modality, ShapeMismatchError
from uform.cli.sniff import sniff, sniff_tracks
from uform_torch.batch import TapeBatch
from uform_torch.blocks import tape_block

__all__ = ["AudioFile", "ImageFile", "Samples", "Text", "VideoFile", "collate"]

_File: TypeAlias = "bytes | bytearray | memoryview | str | os.PathLike[str]"
_JOINED_AT_MOST = 1 << 16
"""Bytes of an item on average, from which on joining them first costs more than copying them one by one."""


class Text(NamedTuple):
    """A text, told apart where it is given as an array of bytes."""

    data: str | bytes | bytearray | memoryview


class ImageFile(NamedTuple):
    """A picture's file: its bytes, or its path."""

    file: _File


class VideoFile(NamedTuple):
    """A video's file: its bytes, or its path."""

    file: _File


class AudioFile(NamedTuple):
    """A recording's file: its bytes, or its path."""

    file: _File


class Samples(NamedTuple):
    """Mono sound: float32 in [-1, 1], one axis; and how many samples a second has."""

    samples: NDArray[np.float32] | torch.Tensor
    sample_rate: int


class _Kind(NamedTuple):
    """What has to be the same for all items of a batch."""

    modality: Modality
    form: str
    sample_rate: int | None = None

    def __str__(self) -> str:
        rate = "" if self.sample_rate is None else f" at {self.sample_rate} Hz"
        return f"{self.form}{rate}"


_TEXT = _Kind(Modality.TEXT, "a text")
_PIXELS = _Kind(Modality.IMAGE, "pixels")
_FILES = {
    Modality.IMAGE: _Kind(Modality.IMAGE, "a picture's file"),
    Modality.VIDEO: _Kind(Modality.VIDEO, "a video's file"),
    Modality.AUDIO: _Kind(Modality.AUDIO, "a recording's file"),
}
_FILE_CLASSES: dict[type, Modality] = {
    ImageFile: Modality.IMAGE, VideoFile: Modality.VIDEO, AudioFile: Modality.AUDIO,
}  # fmt: skip


def collate(items: Sequence[Any] | TapeBatch) -> Any:
    """A batch of items, for `collate_fn`: a `TapeBatch`, or fields of them.

    What an item is is told by its type:
    - str, bytes and bytes-like objects, `Text`: texts.
    - paths (os.PathLike): files, read here, that is in the worker; their modality is told by their first bytes.
    - `ImageFile`, `VideoFile`, `AudioFile`: files whose modality is known, as bytes or paths.
    - arrays and tensors of [height, width, 3] uint8, and what NumPy sees as such, as pictures of Pillow: pixels.
    - `Samples`: sound, all items at one rate.
    - dictionaries, tuples, named tuples and lists: fields, each collated by itself; they keep their class.
    - all else: torch's default_collate, as for labels.
    A batch that a dataset made already, as `TapeDataset` does, is handed on.

    In a DataLoader's worker, bytes go straight into memory that processes share: no second copy is made of them.

    Raises ArgumentTypeError (items of different kinds), MalformedError (a str without UTF-8), ShapeMismatchError
    (pixels of another layout), each with the index as `item`, and OSError for a path that cannot be read.
    """
    if isinstance(items, TapeBatch):
        return items
    if len(items) == 0:
        raise ArgumentTypeError("items: none are there, so their modality is unknown")
    first = items[0]
    if _is_fields(first):
        return _collate_fields(items, first)
    if type(first) is str and set(map(type, items)) == {str}:
        return _gathered(_utf8_of(items), _TEXT)
    read, kind = [], None
    for index, item in enumerate(items):
        taken = _taken(item, index)
        if taken is None:
            if kind is None and not isinstance(item, os.PathLike):
                return default_collate(list(items))
            raise ArgumentTypeError(f"items: item {index} is {type(item).__name__}, but item 0 is {kind}", item=index)
        if kind is None:
            kind = taken[1]
        elif taken[1] != kind:
            raise ArgumentTypeError(f"items: item {index} is {taken[1]}, but item 0 is {kind}", item=index)
        read.append(taken[0])
    assert kind is not None
    return _gathered(read, kind)


def _is_fields(item: object) -> bool:
    if type(item) in _FILE_CLASSES or isinstance(item, (Text, Samples)):
        return False
    return isinstance(item, (Mapping, tuple, list))


def _collate_fields(items: Sequence[Any], first: Any) -> Any:
    """Field by field, in the first item's class."""
    if isinstance(first, Mapping):
        columns = {name: collate([item[name] for item in items]) for name in first}
        try:
            return type(first)(columns)  # type: ignore[call-arg]
        except TypeError:  # A mapping that is not made from one.
            return columns
    for index, item in enumerate(items):
        if len(item) != len(first):
            raise ShapeMismatchError(
                f"items: item {index} has {len(item)} fields, but item 0 has {len(first)}", item=index
            )
    fields = [collate(column) for column in zip(*items, strict=True)]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*fields)
    return type(first)(fields)


def _taken(item: Any, index: int) -> tuple[Any, _Kind] | None:
    """An item's bytes or array, and its kind; None for what is of no modality."""
    if isinstance(item, Text):
        item = item.data
    if isinstance(item, str):
        return _utf8(item, index), _TEXT
    if isinstance(item, memoryview) and not item.c_contiguous:
        item = item.tobytes()
    if isinstance(item, (bytes, bytearray, memoryview)):
        return item, _TEXT
    if type(item) in _FILE_CLASSES:
        file = item.file
        data = Path(file).read_bytes() if isinstance(file, (str, os.PathLike)) else file
        return data, _FILES[_FILE_CLASSES[type(item)]]
    if isinstance(item, os.PathLike):
        return _file(Path(item), index)
    if isinstance(item, Samples):
        return _samples(item, index), _Kind(Modality.AUDIO, "samples", int(item.sample_rate))
    return _pixels(item, index)


def _utf8_of(texts: Sequence[str]) -> list[bytes]:
    """Most batches are such, and a loop in C does them."""
    try:
        return list(map(str.encode, texts))
    except UnicodeEncodeError:
        return [_utf8(text, index) for index, text in enumerate(texts)]


def _utf8(text: str, index: int) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise MalformedError(
            f"items: item {index} has a lone surrogate, U+{ord(text[error.start]):04X} at index {error.start}, "
            "and so no UTF-8",
            item=index,
        ) from error


def _file(path: Path, index: int) -> tuple[bytes, _Kind]:
    data = path.read_bytes()
    modality = sniff_tracks(sniff(data[:4096]), data)
    if modality is Modality.TEXT:
        raise MalformedError(
            f"items: item {index}, {path}, is no picture, video or recording that is known: wrap it in a class, "
            "as ImageFile, or read it for a text",
            item=index,
        )
    return data, _FILES[modality]


def _samples(item: Samples, index: int) -> NDArray[np.float32]:
    samples = _array(item.samples, index)
    if samples.dtype != np.float32:
        raise ArgumentTypeError(f"items: item {index} has samples of {samples.dtype}, not of float32", item=index)
    if samples.ndim != 1:
        raise ShapeMismatchError(
            f"items: item {index} has samples of {samples.shape}, but mono ones have one axis", item=index
        )
    return samples


def _pixels(item: Any, index: int) -> tuple[NDArray[np.uint8], _Kind] | None:
    if not isinstance(item, (np.ndarray, torch.Tensor)) and not hasattr(item, "__array_interface__"):
        return None
    pixels = _array(item, index)
    if pixels.ndim != 3 or pixels.dtype != np.uint8:
        if isinstance(item, (np.ndarray, torch.Tensor)):
            return None
        raise ShapeMismatchError(
            f"items: item {index} is {type(item).__name__} of {pixels.shape}, {pixels.dtype}, but pixels are "
            "[height, width, 3] of uint8: for a picture of Pillow, `convert('RGB')`",
            item=index,
        )
    if pixels.shape[2] != 3:
        hint = ": channels come last" if pixels.shape[0] == 3 else ""
        raise ShapeMismatchError(
            f"items: item {index} has pixels of {pixels.shape}, not [height, width, 3]{hint}", item=index
        )
    return pixels, _PIXELS


def _array(item: Any, index: int) -> NDArray[Any]:
    if isinstance(item, torch.Tensor):
        if item.requires_grad:
            raise ArgumentTypeError(f"items: item {index} requires a gradient, which no encoder computes", item=index)
        return item.numpy()
    return np.asarray(item)


def _gathered(items: list[Any], kind: _Kind) -> TapeBatch:
    """One block for all tensors, filled by one copy."""
    are_arrays = isinstance(items[0], np.ndarray)
    sizes = np.fromiter((item.nbytes for item in items) if are_arrays else map(_size, items), np.int64, len(items))
    block = tape_block(sizes, with_shapes=kind is _PIXELS)
    _fill(block.data.numpy(), items, block.offsets.numpy(), are_arrays)
    shapes = None
    if kind is _PIXELS:
        shapes = block.shapes
        shapes.numpy()[:] = [item.shape[:2] for item in items]
    return TapeBatch(block.data, block.offsets, kind.modality, shapes=shapes, sample_rate=kind.sample_rate)


def _size(item: bytes | bytearray | memoryview) -> int:
    return item.nbytes if isinstance(item, memoryview) else len(item)


def _fill(target: NDArray[np.uint8], items: list[Any], bounds: NDArray[np.int64], are_arrays: bool) -> None:
    if not are_arrays and target.size <= _JOINED_AT_MOST * len(items):
        # A loop of small copies in Python would cost more than a second copy in C.
        target[:] = np.frombuffer(b"".join(items), np.uint8)
        return
    convert: Callable[[Any], NDArray[Any]] = np.asarray if are_arrays else _bytes_of
    for item, start, stop in zip(items, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        array = convert(item)
        target[start:stop].view(array.dtype).reshape(array.shape)[...] = array


def _bytes_of(item: Any) -> NDArray[np.uint8]:
    return np.frombuffer(item, np.uint8)
