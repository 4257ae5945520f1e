"""The binding of libuform. Docstrings are in the module itself: see `help(uform)`."""

import os
from collections.abc import Callable, Generator, Sequence
from enum import IntEnum, IntFlag
from types import TracebackType
from typing import Any, Generic, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import Buffer, CapsuleType, Self

from uform.encode import EncodedBatch, MalformedItem, MediaLimits
from uform.model import ModelDescription

_T_co = TypeVar("_T_co", covariant=True)

_Progress: TypeAlias = Callable[[int, int], object]
_Batch: TypeAlias = Sequence[str | Buffer] | tuple[Buffer, Buffer]
_Files: TypeAlias = Sequence[Buffer] | tuple[Buffer, Buffer]
_Arrays: TypeAlias = Sequence[Buffer] | Buffer
_Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]

def version() -> str: ...

class Status(IntEnum):
    SUCCESS = 0
    DEFERRED = 1
    OUT_OF_MEMORY = -1
    SHAPE_MISMATCH = -2
    UNSUPPORTED_LAYOUT = -3
    UNKNOWN_KIND = -4
    IO = -5
    DEVICE = -6
    MALFORMED = -7
    INTERNAL = -8
    CONFIG_MISMATCH = -9
    CONTENDED = -10
    CANCELLED = -11
    UNSUPPORTED = -12
    INVALID_ARGUMENT = -13

class Scalar(IntEnum):
    F32 = 1
    BF16 = 2
    E4M3 = 3

class Mood(IntEnum):
    GRINDING = 1
    CHILLING = 2
    PARKED = 3

class CPUClass(IntEnum):
    SERIAL = 1
    HASWELL = 2
    SKYLAKE = 3
    GENOA = 4
    SAPPHIRE = 5
    NEON = 6

class GPUClass(IntEnum):
    VOLTA = 1
    AMPERE = 2
    HOPPER = 3
    BLACKWELL = 4
    CDNA2 = 5
    CDNA3 = 6

class Modality(IntFlag):
    TEXT = 1
    IMAGE = 2
    VIDEO = 4
    AUDIO = 8

class Outputs(IntFlag):
    EMBEDDINGS = 1
    STATES = 2
    TOKEN_VECTORS = 4

@final
class Executor:
    @staticmethod
    def for_ram(
        threads: int = 0, *, memory_domains: Sequence[int] | None = None, cpu_class: CPUClass | None = None
    ) -> Executor: ...
    @staticmethod
    def for_vram(
        devices: Sequence[int] | None = None, *, scratch_limit: int = 0, gpu_class: GPUClass | None = None
    ) -> Executor: ...
    @staticmethod
    def on_pool(pool: object) -> Executor: ...
    @property
    def threads(self) -> int: ...
    @property
    def cpu_class(self) -> CPUClass | None: ...
    @property
    def busy(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    def drain(self, mood: Mood) -> None: ...
    def close(self, /) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

class Arena:
    def __init__(
        self, executor: Executor | None = None, *, allocate: Callable[[int], Buffer | NDArray[Any]] | None = None
    ) -> None: ...
    @property
    def capacity(self) -> int: ...
    @property
    def busy(self) -> bool: ...
    @property
    def pins(self) -> int: ...

@final
class ArenaBuffer:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def scalar(self) -> Scalar | None: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def block(self) -> tuple[Any, int] | None: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __array__(self, dtype: DTypeLike | None = None, *, copy: bool | None = None) -> NDArray[Any]: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self, /) -> tuple[int, int]: ...

@final
class RowsTape:
    @property
    def rows(self) -> ArenaBuffer: ...
    @property
    def offsets(self) -> ArenaBuffer: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def scalar(self) -> Scalar: ...
    @property
    def block(self) -> tuple[Any, int] | None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> ArenaBuffer: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __array__(self, dtype: DTypeLike | None = None, *, copy: bool | None = None) -> NDArray[Any]: ...
    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self, /) -> tuple[int, int]: ...

@final
class Deferred(Generic[_T_co]):
    @property
    def status(self) -> Status: ...
    def wait(self, /) -> _T_co: ...
    def __await__(self) -> Generator[Any, None, _T_co]: ...

@final
class TextEncodeStats:
    def __init__(self) -> None: ...
    @property
    def truncated_items(self) -> int: ...
    @property
    def encoded_tokens(self) -> int: ...

@final
class ImageEncodeStats:
    def __init__(self) -> None: ...
    @property
    def truncated_items(self) -> int: ...
    @property
    def encoded_tokens(self) -> int: ...
    @property
    def malformed_items(self) -> int: ...
    @property
    def decoded_bytes(self) -> int: ...
    @property
    def malformed(self) -> list[MalformedItem]: ...

@final
class VideoEncodeStats:
    def __init__(self) -> None: ...
    @property
    def truncated_items(self) -> int: ...
    @property
    def encoded_tokens(self) -> int: ...
    @property
    def malformed_items(self) -> int: ...
    @property
    def decoded_bytes(self) -> int: ...
    @property
    def malformed(self) -> list[MalformedItem]: ...
    @property
    def encoded_frames(self) -> int: ...

@final
class AudioEncodeStats:
    def __init__(self) -> None: ...
    @property
    def truncated_items(self) -> int: ...
    @property
    def encoded_tokens(self) -> int: ...
    @property
    def malformed_items(self) -> int: ...
    @property
    def decoded_bytes(self) -> int: ...
    @property
    def malformed(self) -> list[MalformedItem]: ...
    @property
    def encoded_seconds(self) -> float: ...

@final
class On:
    def text_encode(
        self,
        texts: _Batch,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        stats: TextEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...
    def text_choose(
        self,
        texts: _Batch,
        choices: _Batch,
        arena: Arena,
        *,
        temperature_groups: Sequence[int] | NDArray[np.integer[Any]] | None = None,
        stats: TextEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> RowsTape: ...
    def image_encode(
        self,
        files: _Files,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        limits: MediaLimits | None = None,
        skip_malformed: bool = False,
        stats: ImageEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...
    def image_encode_pixels(
        self,
        pixels: _Arrays,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        stats: ImageEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...
    def video_encode(
        self,
        files: _Files,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        limits: MediaLimits | None = None,
        skip_malformed: bool = False,
        stats: VideoEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...
    def audio_encode(
        self,
        files: _Files,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        limits: MediaLimits | None = None,
        skip_malformed: bool = False,
        stats: AudioEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...
    def audio_encode_samples(
        self,
        samples: _Arrays,
        sample_rate: int,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        stats: AudioEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...

@final
class DeferredOn:
    def text_encode(
        self,
        texts: _Batch,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        stats: TextEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> Deferred[EncodedBatch]: ...
    def text_choose(
        self,
        texts: _Batch,
        choices: _Batch,
        arena: Arena,
        *,
        temperature_groups: Sequence[int] | NDArray[np.integer[Any]] | None = None,
        stats: TextEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> Deferred[RowsTape]: ...
    def image_encode(
        self,
        files: _Files,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        limits: MediaLimits | None = None,
        skip_malformed: bool = False,
        stats: ImageEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> Deferred[EncodedBatch]: ...
    def image_encode_pixels(
        self,
        pixels: _Arrays,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        stats: ImageEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> Deferred[EncodedBatch]: ...
    def video_encode(
        self,
        files: _Files,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        limits: MediaLimits | None = None,
        skip_malformed: bool = False,
        stats: VideoEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> Deferred[EncodedBatch]: ...
    def audio_encode(
        self,
        files: _Files,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        limits: MediaLimits | None = None,
        skip_malformed: bool = False,
        stats: AudioEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> Deferred[EncodedBatch]: ...
    def audio_encode_samples(
        self,
        samples: _Arrays,
        sample_rate: int,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        stats: AudioEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> Deferred[EncodedBatch]: ...

@final
class Model:
    @property
    def _file(self) -> tuple[str, os.stat_result] | None: ...
    @staticmethod
    def load_ram(
        path: _Path,
        *,
        quantization: Scalar = ...,
        executor: Executor | None = None,
        progress: _Progress | None = None,
        cpu_class: CPUClass | None = None,
    ) -> Model: ...
    @staticmethod
    def load_ram_buffer(
        data: Buffer,
        *,
        quantization: Scalar = ...,
        executor: Executor | None = None,
        progress: _Progress | None = None,
        cpu_class: CPUClass | None = None,
    ) -> Model: ...
    @staticmethod
    def load_vram(
        path: _Path,
        devices: Sequence[int] | None = None,
        *,
        quantization: Scalar = ...,
        executor: Executor | None = None,
        progress: _Progress | None = None,
        gpu_class: GPUClass | None = None,
    ) -> Model: ...
    @staticmethod
    def load_vram_buffer(
        data: Buffer,
        devices: Sequence[int] | None = None,
        *,
        quantization: Scalar = ...,
        executor: Executor | None = None,
        progress: _Progress | None = None,
        gpu_class: GPUClass | None = None,
    ) -> Model: ...
    def describe(self, /) -> ModelDescription: ...
    def on(self, executor: Executor) -> On: ...
    def deferred(self, executor: Executor) -> DeferredOn: ...
    def text_encode(
        self,
        texts: _Batch,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        stats: TextEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...
    def text_choose(
        self,
        texts: _Batch,
        choices: _Batch,
        arena: Arena,
        *,
        temperature_groups: Sequence[int] | NDArray[np.integer[Any]] | None = None,
        stats: TextEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> RowsTape: ...
    def image_encode(
        self,
        files: _Files,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        limits: MediaLimits | None = None,
        skip_malformed: bool = False,
        stats: ImageEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...
    def image_encode_pixels(
        self,
        pixels: _Arrays,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        stats: ImageEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...
    def video_encode(
        self,
        files: _Files,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        limits: MediaLimits | None = None,
        skip_malformed: bool = False,
        stats: VideoEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...
    def audio_encode(
        self,
        files: _Files,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        limits: MediaLimits | None = None,
        skip_malformed: bool = False,
        stats: AudioEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...
    def audio_encode_samples(
        self,
        samples: _Arrays,
        sample_rate: int,
        arena: Arena,
        *,
        outputs: Outputs = ...,
        outputs_scalar: Scalar = ...,
        stats: AudioEncodeStats | None = None,
        progress: _Progress | None = None,
    ) -> EncodedBatch: ...

def _maxsim(
    queries: Buffer | NDArray[Any],
    query_offsets: Buffer | NDArray[Any],
    documents: Buffer | NDArray[Any],
    document_offsets: Buffer | NDArray[Any],
    candidate_offsets: Buffer | NDArray[Any] | None,
    candidates: Buffer | NDArray[Any] | None,
    scores: NDArray[Any],
    executor: Executor | None,
) -> None: ...
def _top_k(
    queries: Buffer | NDArray[Any],
    corpus: Buffer | NDArray[Any],
    k: int,
    first_id: int,
    merge: bool,
    scores: NDArray[Any],
    ids: NDArray[Any],
    executor: Executor | None,
) -> None: ...
