"""UForm: text, images, video and audio as embeddings, token states and token vectors.

    executor = uform.Executor.for_ram()
    arena = uform.Arena(executor)
    model = uform.Model.load_ram(uform.default_checkpoint())
    encoded = model.on(executor).text_encode(["a cat on a mat", "a dog in the fog"], arena)
    embeddings = numpy.asarray(encoded.embeddings)  # (2, dimensions), no copy

Modules are named as the C headers: `types`, `model`, `encode`, whose names are here as well, and `rank`.
"""

from __future__ import annotations

import os
import sys

from uform import rank
from uform._uform import version
from uform.encode import (
    AudioEncodeStats,
    EncodedBatch,
    ImageEncodeStats,
    MalformedItem,
    MediaLimits,
    Outputs,
    TextEncodeStats,
    VideoEncodeStats,
)
from uform.errors import (
    ArgumentTypeError,
    CancelledError,
    ConfigMismatchError,
    ContendedError,
    DeviceError,
    Error,
    InputOutputError,
    InternalError,
    InvalidArgumentError,
    MalformedError,
    OutOfMemoryError,
    ShapeMismatchError,
    UnknownKindError,
    UnsupportedError,
    UnsupportedLayoutError,
)
from uform.model import DeferredOn, Model, ModelDescription, On, default_checkpoint
from uform.types import (
    Arena,
    ArenaBuffer,
    CPUClass,
    Deferred,
    Executor,
    GPUClass,
    GPUDevice,
    Modality,
    Mood,
    RowsTape,
    Scalar,
    Status,
    gpu_devices,
)

__all__ = [
    "Arena",
    "ArenaBuffer",
    "ArgumentTypeError",
    "AudioEncodeStats",
    "CPUClass",
    "CancelledError",
    "ConfigMismatchError",
    "ContendedError",
    "Deferred",
    "DeferredOn",
    "DeviceError",
    "EncodedBatch",
    "Error",
    "Executor",
    "GPUClass",
    "GPUDevice",
    "ImageEncodeStats",
    "InputOutputError",
    "InternalError",
    "InvalidArgumentError",
    "MalformedError",
    "MalformedItem",
    "MediaLimits",
    "Modality",
    "Model",
    "ModelDescription",
    "Mood",
    "On",
    "OutOfMemoryError",
    "Outputs",
    "RowsTape",
    "Scalar",
    "ShapeMismatchError",
    "Status",
    "TextEncodeStats",
    "UnknownKindError",
    "UnsupportedError",
    "UnsupportedLayoutError",
    "VideoEncodeStats",
    "default_checkpoint",
    "get_include",
    "get_library",
    "gpu_devices",
    "rank",
]

__version__ = version()

_HERE = os.path.dirname(os.path.abspath(__file__))


def get_include() -> str:
    """Folder of the C headers, for `#include <uform/encode.h>`."""
    packaged = os.path.join(_HERE, "include")
    # An editable install has them in the source tree alone.
    return packaged if os.path.isdir(packaged) else os.path.join(os.path.dirname(_HERE), "csrc", "include")


def get_library() -> str:
    """Path of libuform, the shared object that C programs link and that this package runs on."""
    return os.path.join(_HERE, "lib", "libuform.dylib" if sys.platform == "darwin" else "libuform.so")
