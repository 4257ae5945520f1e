"""Memory of batches: one block for all of a batch's tensors, shared from the start where a worker makes it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import get_worker_info

_ALIGNMENT = 64


class TapeBlock(NamedTuple):
    """Tensors over one block: so a worker sends one handle, and not one a tensor."""

    data: torch.Tensor
    """uint8, not filled yet."""
    offsets: torch.Tensor
    """int64, (count + 1,)."""
    shapes: torch.Tensor
    """int64, (count, 2), not filled yet; (0, 2) unless it was asked for."""


def tape_block(sizes: NDArray[np.int64], *, with_shapes: bool = False) -> TapeBlock:
    """A block for items of `sizes` bytes; in memory that processes share if this is a DataLoader's worker."""
    count = len(sizes)
    offsets_end = _aligned((count + 1) * 8)
    shapes_end = offsets_end + (_aligned(count * 16) if with_shapes else 0)
    block = _allocated(shapes_end + int(sizes.sum()))
    offsets = block[: (count + 1) * 8].view(torch.int64)
    bounds = offsets.numpy()
    bounds[0] = 0
    np.cumsum(sizes, out=bounds[1:])
    shapes = block[offsets_end : offsets_end + (count * 16 if with_shapes else 0)].view(torch.int64).view(-1, 2)
    return TapeBlock(block[shapes_end:], offsets, shapes)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _allocated(size: int) -> torch.Tensor:
    if get_worker_info() is None:
        return torch.empty(size, dtype=torch.uint8, device="cpu")
    # As torch's own default_collate does.
    storage = torch.UntypedStorage._new_shared(size, device="cpu")  # type: ignore[no-untyped-call]
    return torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage)
