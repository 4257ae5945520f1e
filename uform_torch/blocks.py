"""Memory of batches: in a DataLoader's worker, one block that processes share, so that it sends one handle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import get_worker_info

_ALIGNMENT = 64


class TapeBlock(NamedTuple):
    """Tensors of a batch."""

    data: torch.Tensor
    """uint8, not filled yet."""
    offsets: torch.Tensor
    """int64, (count + 1,)."""
    shapes: torch.Tensor
    """int64, (count, 2), not filled yet; (0, 2) unless it was asked for."""


def tape_block(sizes: NDArray[np.int64], *, with_shapes: bool = False) -> TapeBlock:
    """Memory for items of `sizes` bytes."""
    count = len(sizes)
    parts = [(count + 1) * 8, count * 16 if with_shapes else 0, int(sizes.sum())]
    offsets, shapes, data = _allocated(parts) if get_worker_info() is None else _shared(parts)
    block = TapeBlock(data, offsets.view(torch.int64), shapes.view(torch.int64).view(-1, 2))
    bounds = block.offsets.numpy()
    bounds[0] = 0
    np.cumsum(sizes, out=bounds[1:])
    return block


def _allocated(parts: list[int]) -> list[torch.Tensor]:
    """A tensor a part: torch saves no tensors of several types that share memory."""
    return [torch.empty(size, dtype=torch.uint8, device="cpu") for size in parts]


def _shared(parts: list[int]) -> list[torch.Tensor]:
    """All in one block, from the start where other processes see it."""
    sizes = [-(-size // _ALIGNMENT) * _ALIGNMENT for size in parts]
    # As torch's own default_collate does.
    storage = torch.UntypedStorage._new_shared(sum(sizes), device="cpu")  # type: ignore[no-untyped-call]
    block = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage)
    return [part[:size] for part, size in zip(torch.split(block, sizes), parts, strict=True)]
