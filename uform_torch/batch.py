"""Batches of any modality as two tensors, bytes and offsets: what workers make and encoders read without a copy."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils import _pytree as pytree

from uform import ArgumentTypeError, DeviceError, InvalidArgumentError, Modality, ShapeMismatchError

__all__ = ["TapeBatch"]


class TapeBatch:
    """Items of one modality: their bytes one after another, and where each starts.

    data: uint8, 1-D: texts in UTF-8 or any other bytes, files, pixels, or float32 samples.
    offsets: int64, (count + 1,), in bytes: item `i` is `data[offsets[i] : offsets[i + 1]]`; the first is 0.
    modality: of all items.
    shapes: of pixels alone, int64, (count, 2): the height and width of each picture; its 3 channels come last.
    sample_rate: of samples alone, in hertz.

    It is no sequence, tuple or mapping, so DataLoader hands it on as it is: `pin_memory=True` calls its `pin_memory`,
    and workers send its tensors through shared memory.

    Raises ArgumentTypeError, ShapeMismatchError and InvalidArgumentError for tensors and options that do not fit each
    other. What offsets say is checked by the call that reads them, not here: they may be on a device.
    """

    __slots__ = ("__weakref__", "data", "modality", "offsets", "sample_rate", "shapes")

    data: torch.Tensor
    offsets: torch.Tensor
    modality: Modality
    shapes: torch.Tensor | None
    sample_rate: int | None

    def __init__(
        self,
        data: torch.Tensor,
        offsets: torch.Tensor,
        modality: Modality = Modality.TEXT,
        *,
        shapes: torch.Tensor | None = None,
        sample_rate: int | None = None,
    ) -> None:
        if data.dtype is not torch.uint8 or data.dim() != 1:
            raise ArgumentTypeError(f"data: a vector of uint8 is needed, not {_form(data)}")
        if offsets.dtype is not torch.int64 or offsets.dim() != 1:
            raise ArgumentTypeError(f"offsets: a vector of int64 is needed, not {_form(offsets)}")
        if offsets.shape[0] == 0:
            raise InvalidArgumentError("offsets: there are none, but `count + 1` are needed")
        if modality not in _VERBS:
            raise InvalidArgumentError(f"modality: one is needed, not {modality!r}")
        if shapes is not None:
            if modality is not Modality.IMAGE:
                raise InvalidArgumentError(f"shapes: only pixels have them, and this is {modality.name}")
            if shapes.dtype is not torch.int64 or tuple(shapes.shape) != (offsets.shape[0] - 1, 2):
                raise ShapeMismatchError(
                    f"shapes: int64 of ({offsets.shape[0] - 1}, 2) are needed, a height and a width an item, "
                    f"not {_form(shapes)}"
                )
        if sample_rate is not None:
            if modality is not Modality.AUDIO:
                raise InvalidArgumentError(f"sample_rate: only samples have one, and this is {modality.name}")
            if sample_rate <= 0:
                raise InvalidArgumentError(f"sample_rate: it has to be positive, not {sample_rate}")
        self.data = data
        self.offsets = offsets
        self.modality = modality
        self.shapes = shapes
        self.sample_rate = sample_rate

    @property
    def verb(self) -> str:
        """The verb of `uform.Model` that encodes it: "text_encode", "image_encode_pixels", ..."""
        if self.shapes is not None:
            return "image_encode_pixels"
        return "audio_encode_samples" if self.sample_rate is not None else _VERBS[self.modality]

    @property
    def device(self) -> torch.device:
        """Where its data is."""
        return self.data.device

    @property
    def nbytes(self) -> int:
        """Bytes of all its tensors."""
        return sum(tensor.nbytes for tensor in self._tensors())

    def __len__(self) -> int:
        """Items, not bytes."""
        return int(self.offsets.shape[0]) - 1

    def __getitem__(self, index: int | slice) -> torch.Tensor | TapeBatch:
        """The bytes of an item, or some items as a batch; neither copies the bytes, unless a slice has a step."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return self._gathered(range(start, stop, step))
            stop = max(start, stop)
            bounds = self.offsets[start : stop + 1]
            data = self.data[int(bounds[0]) : int(bounds[-1])]
            return self._with(data, bounds - bounds[0], None if self.shapes is None else self.shapes[start:stop])
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"the batch has {len(self)} items")
        return self.data[int(self.offsets[index]) : int(self.offsets[index + 1])]

    def __iter__(self) -> Iterator[torch.Tensor]:
        bounds = self.offsets.tolist()
        for start, stop in itertools.pairwise(bounds):
            yield self.data[start:stop]

    def tape(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """`(data, offsets)` as NumPy sees them, for the verbs of `uform` that take a tape. Nothing is copied.

        Raises DeviceError for a batch that is not in host memory.
        """
        self._check_host()
        return self.data.numpy(), self.offsets.numpy()

    def arrays(self) -> list[NDArray[Any]]:
        """The items of pixels as [height, width, 3] uint8, those of samples as float32, for the verbs of `uform` that
        take arrays. Nothing is copied.

        Raises DeviceError for a batch that is not in host memory, ShapeMismatchError for an item whose bytes are not
        as many as its shape says, and InvalidArgumentError for a batch of neither pixels nor samples.
        """
        self._check_host()
        data, bounds = self.data.numpy(), self.offsets.tolist()
        _check_bounds(bounds, data.size)
        items = [data[start:stop] for start, stop in itertools.pairwise(bounds)]
        if self.shapes is not None:
            return [
                _picture(item, shape[0], shape[1], index)
                for index, (item, shape) in enumerate(zip(items, self.shapes.tolist(), strict=True))
            ]
        if self.sample_rate is None:
            raise InvalidArgumentError(f"the batch is neither pixels nor samples, but {self.modality.name}")
        return [_recording(item, index) for index, item in enumerate(items)]

    def to(self, device: torch.device | str | int, *, non_blocking: bool = False) -> TapeBatch:
        """All tensors on a device, as `Tensor.to` brings them there; the batch itself where they are already."""
        moved = [tensor.to(device, non_blocking=non_blocking) for tensor in self._tensors()]
        return self._of(moved)

    def cpu(self) -> TapeBatch:
        """All tensors in host memory."""
        return self.to("cpu")

    def pin_memory(self, device: torch.device | str | None = None) -> TapeBatch:
        """All tensors in page-locked memory; raises torch's RuntimeError where it drives no device.

        device: taken because DataLoader may pass it; torch pins for the current accelerator.
        """
        return self._of([tensor.pin_memory() for tensor in self._tensors()])

    def is_pinned(self) -> bool:
        """Whether all of its tensors are page-locked."""
        return all(tensor.is_pinned() for tensor in self._tensors())

    def share_memory_(self) -> TapeBatch:
        """Moves all tensors to memory that processes share, and answers the batch."""
        for tensor in self._tensors():
            tensor.share_memory_()  # type: ignore[no-untyped-call]
        return self

    def is_shared(self) -> bool:
        """Whether all of its tensors are in memory that processes share."""
        return all(tensor.is_shared() for tensor in self._tensors())  # type: ignore[no-untyped-call]

    def __reduce__(self) -> tuple[Any, ...]:
        # As bytes all of them: torch.save refuses tensors of several types that share memory, as a worker's do.
        shapes = None if self.shapes is None else self.shapes.contiguous().view(-1).view(torch.uint8)
        offsets = self.offsets.contiguous().view(torch.uint8)
        return _unpickled, (self.data, offsets, int(self.modality), shapes, self.sample_rate)

    def __repr__(self) -> str:
        more = (
            " pixels" if self.shapes is not None else f" samples at {self.sample_rate} Hz" if self.sample_rate else ""
        )
        name = f"{self.modality.name}{more}"
        return f"<uform_torch.TapeBatch of {len(self)} items, {name}, {self.data.shape[0]} bytes on {self.device}>"

    def _tensors(self) -> list[torch.Tensor]:
        return [self.data, self.offsets] if self.shapes is None else [self.data, self.offsets, self.shapes]

    def _of(self, tensors: list[torch.Tensor]) -> TapeBatch:
        if all(new is old for new, old in zip(tensors, self._tensors(), strict=True)):
            return self
        return self._with(tensors[0], tensors[1], tensors[2] if len(tensors) == 3 else None)

    def _with(self, data: torch.Tensor, offsets: torch.Tensor, shapes: torch.Tensor | None) -> TapeBatch:
        return _rebuilt(data, offsets, self.modality, shapes, self.sample_rate)

    def _gathered(self, indices: Sequence[int]) -> TapeBatch:
        bounds = self.offsets.tolist()
        parts = [self.data[bounds[index] : bounds[index + 1]] for index in indices]
        data = torch.cat(parts) if parts else self.data[:0]
        lengths = torch.tensor([0, *(len(part) for part in parts)], dtype=torch.int64, device=self.offsets.device)
        return self._with(data, lengths.cumsum(0), None if self.shapes is None else self.shapes[list(indices)])

    def _check_host(self) -> None:
        if any(tensor.device.type != "cpu" for tensor in self._tensors()):
            raise DeviceError(f"the batch is on {self.device}, and encoders read host memory: call `cpu()` first")


_VERBS = {
    Modality.TEXT: "text_encode",
    Modality.IMAGE: "image_encode",
    Modality.VIDEO: "video_encode",
    Modality.AUDIO: "audio_encode",
}


def _unpickled(
    data: torch.Tensor, offsets: torch.Tensor, modality: int, shapes: torch.Tensor | None, sample_rate: int | None
) -> TapeBatch:
    shapes = None if shapes is None else shapes.view(torch.int64).view(-1, 2)
    return _rebuilt(data, offsets.view(torch.int64), modality, shapes, sample_rate)


def _rebuilt(
    data: torch.Tensor, offsets: torch.Tensor, modality: int, shapes: torch.Tensor | None, sample_rate: int | None
) -> TapeBatch:
    """Of parts that were a batch before."""
    return TapeBatch(data, offsets, Modality(modality), shapes=shapes, sample_rate=sample_rate)


def _form(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of {tuple(tensor.shape)}"


def _check_bounds(bounds: list[int], size: int) -> None:
    """What the library checks of a tape that is lent."""
    if bounds[0] != 0:
        raise InvalidArgumentError(f"offsets: the first has to be 0, not {bounds[0]}")
    for item, (start, stop) in enumerate(itertools.pairwise(bounds)):
        if stop < start or stop > size:
            raise InvalidArgumentError(
                f"offsets: item {item} ends at {stop}, before its start or after the data's {size} bytes", item=item
            )


def _picture(item: NDArray[np.uint8], height: int, width: int, index: int) -> NDArray[np.uint8]:
    if height < 0 or width < 0 or item.size != height * width * 3:
        raise ShapeMismatchError(
            f"shapes: item {index} is of [{height}, {width}, 3], but has {item.size} bytes", item=index
        )
    return item.reshape(height, width, 3)


def _recording(item: NDArray[np.uint8], index: int) -> NDArray[np.float32]:
    if item.size % 4:
        raise ShapeMismatchError(f"data: item {index} has {item.size} bytes, which are no float32 samples", item=index)
    return item.view(np.float32)


def _flatten(batch: TapeBatch) -> tuple[list[Any], tuple[int, int | None]]:
    return [batch.data, batch.offsets, batch.shapes], (int(batch.modality), batch.sample_rate)


def _flatten_with_keys(batch: TapeBatch) -> tuple[list[tuple[Any, Any]], tuple[int, int | None]]:
    leaves, context = _flatten(batch)
    keys = ("data", "offsets", "shapes")
    return [(pytree.GetAttrKey(key), leaf) for key, leaf in zip(keys, leaves, strict=True)], context


def _unflatten(leaves: Iterable[Any], context: tuple[int, int | None]) -> TapeBatch:
    """Unchecked: torch also makes trees of what are no tensors."""
    batch = object.__new__(TapeBatch)
    batch.data, batch.offsets, batch.shapes = leaves
    batch.modality, batch.sample_rate = Modality(context[0]), context[1]
    return batch


# Exported programs take batches as inputs, and are saved with their class by name.
pytree.register_pytree_node(
    TapeBatch,
    _flatten,
    _unflatten,
    serialized_type_name="uform_torch.TapeBatch",
    to_dumpable_context=list,
    from_dumpable_context=tuple,
    flatten_with_keys_fn=_flatten_with_keys,
)
# What it does is to make a batch of tensors, so files with batches load with `weights_only=True`.
torch.serialization.add_safe_globals([_unpickled])
