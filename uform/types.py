"""What every other module shares: executors, arenas and their views, deferred calls, enumerations. See `types.h`."""

from __future__ import annotations

from typing import NamedTuple

from uform._uform import (
    Arena,
    ArenaBuffer,
    CPUClass,
    Deferred,
    Executor,
    GPUClass,
    Modality,
    Mood,
    RowsTape,
    Scalar,
    Status,
)

__all__ = [
    "Arena",
    "ArenaBuffer",
    "CPUClass",
    "Deferred",
    "Executor",
    "GPUClass",
    "GPUDevice",
    "Modality",
    "Mood",
    "RowsTape",
    "Scalar",
    "Status",
    "gpu_devices",
]


class GPUDevice(NamedTuple):
    """A GPU that the process can drive. Its position in `gpu_devices()` is its number in every argument."""

    name: str
    gpu_class: GPUClass
    memory: int
    """Bytes."""


def gpu_devices() -> list[GPUDevice]:
    """GPUs that the process can drive, NVIDIA's first, then AMD's. This build drives none: the list is empty."""
    return []
