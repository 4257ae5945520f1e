"""A module that encodes: `Encoder(checkpoint)(batch).embeddings`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from typing_extensions import Buffer, Self

from uform import (
    ArgumentTypeError,
    AudioEncodeStats,
    CPUClass,
    Executor,
    ImageEncodeStats,
    InvalidArgumentError,
    Modality,
    Model,
    ModelDescription,
    Outputs,
    Scalar,
    TextEncodeStats,
    UnsupportedError,
    VideoEncodeStats,
    default_checkpoint,
)
from uform_torch.batch import TapeBatch
from uform_torch.collate import AudioFile, ImageFile, Samples, VideoFile, collate
from uform_torch.engine import Engine, engine_of
from uform_torch.operators import SCALARS, encode, register

__all__ = ["Encoded", "Encoder"]

_Tape: TypeAlias = "TapeBatch | tuple[Any, Any]"


class Encoded(NamedTuple):
    """Outputs of a batch: ordinary tensors, which no later call rewrites; None where `outputs` left one out."""

    embeddings: torch.Tensor | None
    """(count, dimensions), rows of unit length; zeros for an item without tokens."""
    states: torch.Tensor | None
    """(tokens, hidden), after the final norm."""
    offsets: torch.Tensor | None
    """(count + 1,), int64: item `i` has the rows of states and token vectors from offsets[i] up to offsets[i + 1]."""
    token_vectors: torch.Tensor | None
    """(tokens, token_width), rows of unit length."""


_FILES = (bytes, bytearray, memoryview, str, os.PathLike)


class Encoder(torch.nn.Module):
    """A checkpoint as a module: batches of texts, pictures, videos and recordings in, tensors out.

    checkpoint: a path, the default one if none is given; or a `uform.Model` that is loaded already.
    outputs: the surfaces that calls keep.
    dimensions: embeddings are cut to their first so many scalars, and scaled to unit length again.
    dtype: of outputs. float32, bfloat16 and float8_e4m3fn are written by the call; others are converted to.
    executor: what calls run on: None for the calling thread, a number of threads (0: the cores that this process may
        run on) for an executor of its own, or a `uform.Executor`. Threads that call at once wait for each other there.
    quantization, cpu_class: as `uform.Model.load_ram` takes them.

    It computes no gradients: it has no parameters, is always in eval mode, `requires_grad_()` raises UnsupportedError,
    and outputs require none; `train()` of a module around it leaves it as it is.
    It computes on the CPU, and `to(device)` and `to(dtype)` choose where and as what outputs are given back.
    `state_dict()` has the checkpoint's bytes, from which `load_state_dict()` loads the weights; `copy.deepcopy` shares
    them, and pickle brings them to another process. Over a `uform.Model` that was loaded from a buffer, whose bytes
    nobody keeps, there is only the copy.
    `torch.compile(fullgraph=True)` and `torch.export` see its calls with a `TapeBatch` as operators; see `operators`.
    """

    def __init__(
        self,
        checkpoint: str | os.PathLike[str] | Model | None = None,
        *,
        outputs: Outputs = Outputs.EMBEDDINGS,
        dimensions: int | None = None,
        dtype: torch.dtype = torch.float32,
        executor: Executor | int | None = None,
        quantization: Scalar = Scalar.BF16,
        cpu_class: CPUClass | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(dtype, torch.dtype):
            raise ArgumentTypeError(f"dtype: a torch.dtype is needed, not {dtype!r}")
        if not dtype.is_floating_point:
            raise InvalidArgumentError(f"dtype: a floating-point type is needed, not {dtype}")
        source = default_checkpoint() if checkpoint is None else checkpoint
        self._engine = engine_of(source, executor, quantization, cpu_class)
        self._outputs = _checked_outputs(outputs, self._engine.model)
        self._dimensions = dimensions
        self._check_dimensions(self._engine)
        # Empty, and not in the state: it goes where `to` sends the module, and outputs follow.
        self.register_buffer("_like", torch.empty(0, dtype=dtype, device="cpu"), persistent=False)
        self._ready()

    @property
    def outputs(self) -> Outputs:
        """The surfaces that calls keep."""
        return self._outputs

    @property
    def dimensions(self) -> int:
        """Scalars of an embedding."""
        return self._engine.description.dimensions if self._dimensions is None else self._dimensions

    @property
    def dtype(self) -> torch.dtype:
        """Of outputs."""
        return self._placed().dtype

    @property
    def device(self) -> torch.device:
        """Where outputs are given back."""
        return self._placed().device

    @property
    def model(self) -> Model:
        """What computes."""
        return self._engine.model

    @property
    def executor(self) -> Executor | None:
        """What calls run on; None for the calling thread."""
        return self._engine.executor

    @property
    def key(self) -> str:
        """What operators find it by: the weights' digest, and how they run."""
        return self._key

    def describe(self) -> ModelDescription:
        """What the model is, as `uform.Model.describe`."""
        return self._engine.description

    def forward(self, batch: TapeBatch | Sequence[Any]) -> Encoded:
        """Encodes a batch by what it holds; a sequence is collated first, by `uform_torch.collate`."""
        if not isinstance(batch, TapeBatch):
            batch = _batch_of(batch)
        return self._encode(batch)

    def encode_text(self, texts: Sequence[str | Buffer] | _Tape, *, stats: TextEncodeStats | None = None) -> Encoded:
        """Encodes texts: str and bytes, a `TapeBatch`, or a tape `(data, offsets)` of tensors or buffers, which is read
        where it lies.

        stats: overwritten with the texts that were truncated and the tokens, as in all of these methods; not where
            torch compiles or exports.
        """
        options = {} if stats is None else {"stats": stats}
        if isinstance(texts, tuple) and len(texts) == 2:
            data, offsets = texts
            if isinstance(data, torch.Tensor) and isinstance(offsets, torch.Tensor):
                texts = TapeBatch(data, offsets)
        if isinstance(texts, TapeBatch):
            return self._encode(_of_modality(texts, Modality.TEXT), options)
        return self._landed(*self._engine.run("text_encode", self._outputs, self._scalar(), texts, **options))

    def encode_image(
        self,
        images: Sequence[Any] | TapeBatch,
        *,
        skip_malformed: bool = False,
        stats: ImageEncodeStats | None = None,
    ) -> Encoded:
        """Encodes pictures: files as bytes or paths, or pixels of [height, width, 3] uint8; or a batch of them.

        skip_malformed: a file that cannot be decoded gets an embedding of zeros, no tokens, and a line in `stats`.
        """
        return self._encode_media(images, Modality.IMAGE, ImageFile, skip_malformed, stats)

    def encode_video(
        self,
        videos: Sequence[Any] | TapeBatch,
        *,
        skip_malformed: bool = False,
        stats: VideoEncodeStats | None = None,
    ) -> Encoded:
        """Encodes videos: files as bytes or paths; or a batch of them. Options are those of `encode_image`."""
        return self._encode_media(videos, Modality.VIDEO, VideoFile, skip_malformed, stats)

    def encode_audio(
        self,
        recordings: Sequence[Any] | TapeBatch,
        sample_rate: int | None = None,
        *,
        skip_malformed: bool = False,
        stats: AudioEncodeStats | None = None,
    ) -> Encoded:
        """Encodes recordings: files as bytes or paths, `Samples`, or float32 vectors of `sample_rate` hertz; or a batch
        of them. Options are those of `encode_image`."""
        if sample_rate is not None:
            if isinstance(recordings, TapeBatch):
                raise InvalidArgumentError("sample_rate: the batch has its own")
            recordings = [Samples(samples, sample_rate) for samples in recordings]
        return self._encode_media(recordings, Modality.AUDIO, AudioFile, skip_malformed, stats)

    def train(self, mode: bool = True) -> Self:
        """Does nothing: the module is always in eval mode, also within one that is trained."""
        return super().train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Raises UnsupportedError if gradients are asked for."""
        if requires_grad:
            raise UnsupportedError("requires_grad: an Encoder computes no gradients; train heads on its outputs")
        return self

    def get_extra_state(self) -> torch.Tensor:
        """The checkpoint's bytes, for `state_dict()`."""
        return self._engine.checkpoint_bytes()

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Loads the weights from a checkpoint's bytes, for `load_state_dict()`; nothing changes if they are broken."""
        engine = self._engine.replaced(state.contiguous().cpu())
        _checked_outputs(self._outputs, engine.model)
        self._check_dimensions(engine)
        self._engine = engine
        self._ready()

    def extra_repr(self) -> str:
        surfaces = " | ".join(str(surface.name) for surface in Outputs if surface in self._outputs)
        return f"{surfaces}, dimensions={self.dimensions}, dtype={self.dtype}, executor={self.executor}"

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._ready()

    def _ready(self) -> None:
        """Has the operators find the engine."""
        self._key = self._engine.key
        register(self._engine)
        super().train(False)

    def _check_dimensions(self, engine: Engine) -> None:
        most = engine.description.dimensions
        if self._dimensions is not None and not 1 <= self._dimensions <= most:
            raise InvalidArgumentError(f"dimensions: the model has {most}, and {self._dimensions} were asked for")

    def _placed(self) -> torch.Tensor:
        like = self._like
        assert isinstance(like, torch.Tensor)
        return like

    def _scalar(self) -> Scalar:
        """What calls write: what needs more work is written in full."""
        if self._dimensions is not None and Outputs.EMBEDDINGS in self._outputs:
            return Scalar.F32
        return SCALARS.get(self.dtype, Scalar.F32)

    def _encode_media(
        self,
        items: Sequence[Any] | TapeBatch,
        modality: Modality,
        wrap: Any,
        skip_malformed: bool,
        stats: ImageEncodeStats | VideoEncodeStats | AudioEncodeStats | None,
    ) -> Encoded:
        if not isinstance(items, TapeBatch):
            _refuse_single(items)
            items = _batch_of([wrap(item) if isinstance(item, _FILES) else item for item in items])
        options: dict[str, Any] = {} if stats is None else {"stats": stats}
        if skip_malformed and items.shapes is None and items.sample_rate is None:  # Arrays cannot be malformed.
            options["skip_malformed"] = True
        return self._encode(_of_modality(items, modality), options)

    def _encode(self, batch: TapeBatch, options: dict[str, Any] | None = None) -> Encoded:
        if torch.compiler.is_compiling() or type(batch.data) is not torch.Tensor:
            if options:
                raise UnsupportedError(f"{', '.join(options)}: not where torch compiles or exports")
            surfaces = encode(batch, self._key, int(self._outputs), int(self._scalar()))
            has_rows = bool(self._outputs & (Outputs.STATES | Outputs.TOKEN_VECTORS))
            kept = (Outputs.EMBEDDINGS in self._outputs, Outputs.STATES in self._outputs, has_rows,
                    Outputs.TOKEN_VECTORS in self._outputs)  # fmt: skip
            return self._landed(*(part if is_kept else None for part, is_kept in zip(surfaces, kept, strict=True)))
        return self._landed(*self._engine.run_batch(batch, self._outputs, self._scalar(), **(options or {})))

    def _landed(
        self,
        embeddings: torch.Tensor | None,
        states: torch.Tensor | None,
        offsets: torch.Tensor | None,
        token_vectors: torch.Tensor | None,
    ) -> Encoded:
        """Where and as what they were asked for."""
        like = self._placed()
        if embeddings is not None:
            if self._dimensions is not None:
                embeddings = torch.nn.functional.normalize(embeddings[:, : self._dimensions], dim=1)
            embeddings = embeddings.to(like.device, like.dtype)
        return Encoded(
            embeddings,
            None if states is None else states.to(like.device, like.dtype),
            None if offsets is None else offsets.to(like.device),
            None if token_vectors is None else token_vectors.to(like.device, like.dtype),
        )


def _checked_outputs(outputs: Outputs, model: Model) -> Outputs:
    if not outputs or not isinstance(outputs, Outputs):
        raise InvalidArgumentError(f"outputs: at least one surface of uform.Outputs is needed, not {outputs!r}")
    if Outputs.TOKEN_VECTORS in outputs and model.describe().token_width == 0:
        raise UnsupportedError("outputs: the model has no token head, and so no token vectors")
    return outputs


def _refuse_single(items: object) -> None:
    if isinstance(items, _FILES):
        raise ArgumentTypeError(f"batch: a sequence is needed, not a single {type(items).__name__}: wrap it in a list")


def _batch_of(items: Sequence[Any]) -> TapeBatch:
    _refuse_single(items)
    batch = collate(items)
    if isinstance(batch, TapeBatch):
        return batch
    first = items[0]
    if isinstance(first, (np.ndarray, torch.Tensor)):
        raise ArgumentTypeError(
            f"batch: item 0 is {type(first).__name__} of {tuple(first.shape)}, {first.dtype}, but pixels are "
            "[height, width, 3] of uint8, and recordings are Samples",
            item=0,
        )
    raise ArgumentTypeError(f"batch: items of one modality are needed, not {type(first).__name__}", item=0)


def _of_modality(batch: TapeBatch, modality: Modality) -> TapeBatch:
    if batch.modality != modality:
        raise ArgumentTypeError(f"batch: it holds {batch.modality.name}, not {modality.name}")
    return batch
