"""Tensors over what calls leave in arenas, without a copy."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.dlpack import from_dlpack

from uform import Arena, ArenaBuffer, ArgumentTypeError, RowsTape, Scalar

__all__ = ["TensorArena", "to_tensor"]

_DLPACK = (1, 0)
_EMPTY_F32, _EMPTY_BF16, _EMPTY_E4M3, _EMPTY_OFFSETS = (
    torch.empty(0, dtype=dtype, device="cpu")
    for dtype in (torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64)
)


class TensorArena(Arena):
    """An arena whose memory is torch's: what `to_tensor` makes of its views are ordinary tensors.

    Each call takes a new block from torch's allocator, and the tensors over a block share it: no later call rewrites
    them, and none finds the arena pinned. The block goes back to torch with the last of them. The views themselves go
    stale with the next call, as those of every arena do.

    pin_memory: whether blocks are page-locked, so that `tensor.to(device, non_blocking=True)` overlaps; torch raises
        RuntimeError here where it drives no device.
    """

    def __init__(self, *, pin_memory: bool = False) -> None:
        def allocate(size: int) -> NDArray[np.uint8]:
            # On whatever thread runs the call, which may have other defaults; the array keeps the tensor as its base.
            return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=pin_memory).numpy()

        if pin_memory:
            allocate(64)
        super().__init__(allocate=allocate)
        self._pin_memory = pin_memory

    @property
    def pin_memory(self) -> bool:
        """Whether its memory is page-locked."""
        return self._pin_memory

    def __repr__(self) -> str:
        return f"<uform_torch.TensorArena capacity={self.capacity} pin_memory={self._pin_memory}>"


def to_tensor(view: ArenaBuffer | RowsTape) -> torch.Tensor:
    """A tensor over a view's memory, of its shape; for a tape, over all of its rows. Nothing is copied.

    F32 is torch.float32, BF16 torch.bfloat16, E4M3 torch.float8_e4m3fn, and offsets are torch.int64.

    Over an arena's own memory, the tensor and all that shares its storage pin the arena: calls that name it raise
    ContendedError until they are gone. Over a TensorArena, they keep the block, and calls go on with another one.
    Offsets are not to be written to: the tape finds its items by them.

    Raises InvalidArgumentError (the arena was rewound since), ContendedError (a call is rewriting it),
    ArgumentTypeError (None, where the call's `outputs` left the surface out).
    """
    kind = type(view)
    if kind is not ArenaBuffer and kind is not RowsTape:
        raise ArgumentTypeError(f"view: an ArenaBuffer or a RowsTape is needed, not {kind.__name__}")
    place = view.block
    if place is not None:
        block, offset = place
        owner = getattr(block, "base", None)
        if isinstance(owner, torch.Tensor):
            return _over(owner.untyped_storage(), offset, view.scalar, view.shape)
    tensor = from_dlpack(view.__dlpack__(max_version=_DLPACK))
    return tensor.view(torch.int64) if tensor.dtype is torch.uint64 else tensor


def _over(storage: torch.UntypedStorage, offset: int, scalar: Scalar | None, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor of torch's own storage, so that its allocator knows of copies to devices that are on their way."""
    if scalar is Scalar.F32:
        kind = _EMPTY_F32
    elif scalar is None:
        kind = _EMPTY_OFFSETS
    else:
        kind = _EMPTY_BF16 if scalar is Scalar.BF16 else _EMPTY_E4M3
    strides = (shape[1], 1) if len(shape) == 2 else (1,)
    return kind.new_empty(0).set_(storage, offset // kind.itemsize, shape, strides)
