"""What encoders share: a model, the executor that its calls run on, and where its checkpoint is."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from uform import (
    ArgumentTypeError,
    CPUClass,
    EncodedBatch,
    Executor,
    InputOutputError,
    InvalidArgumentError,
    Model,
    Outputs,
    Scalar,
    UnsupportedError,
)
from uform_torch.batch import TapeBatch
from uform_torch.tensors import TensorArena, to_tensor

__all__ = ["Engine", "Surfaces"]

_COUNTER = itertools.count()


class Surfaces(NamedTuple):
    """A call's outputs as tensors of a block of their own; None where `outputs` left one out."""

    embeddings: torch.Tensor | None
    states: torch.Tensor | None
    offsets: torch.Tensor | None
    token_vectors: torch.Tensor | None


class Checkpoint:
    """The bytes that a model was loaded from: in memory, or in a file that has not changed since.

    A file is read again when it is asked for, so that weights are not held twice.
    """

    def __init__(self, source: str | os.PathLike[str] | torch.Tensor, status: os.stat_result | None = None) -> None:
        """status: of the file when it was loaded; None: it is loaded later."""
        self._data = source if isinstance(source, torch.Tensor) else None
        self._path = None if isinstance(source, torch.Tensor) else Path(source).absolute()
        self._identity = self._identify() if status is None else _identity_of(status)

    def load(self, quantization: Scalar, cpu_class: CPUClass | None) -> Model:
        if self._data is not None:
            return Model.load_ram_buffer(_memory_of(self._data), quantization=quantization, cpu_class=cpu_class)
        assert self._path is not None
        return Model.load_ram(self._path, quantization=quantization, cpu_class=cpu_class)

    def digest(self) -> str:
        """Of the bytes, which names the weights in every process."""
        if self._data is not None:
            return hashlib.sha256(_memory_of(self._data)).hexdigest()
        assert self._path is not None
        digest = hashlib.sha256()
        with open(self._path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()

    def bytes(self) -> torch.Tensor:
        """All of them, uint8. Raises InputOutputError for a file that is gone, or another one by now."""
        if self._data is not None:
            return self._data
        assert self._path is not None
        if self._identify() != self._identity:
            raise InputOutputError(f"the checkpoint {self._path} changed since it was loaded")
        return torch.from_numpy(np.fromfile(self._path, np.uint8))

    def _identify(self) -> tuple[int, ...]:
        if self._path is None:
            return ()
        try:
            return _identity_of(os.stat(self._path))
        except OSError as error:
            raise InputOutputError(f"the checkpoint cannot be read: {error}") from error


class Engine:
    """Runs verbs on batches; any number of threads may call at once, and wait for each other on one executor.

    A copy is the engine itself: its weights never change. Pickled, it is the checkpoint's bytes and the options, and an
    executor is made anew with as many threads.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None,
        executor: Executor | int | None,
        quantization: Scalar,
        cpu_class: CPUClass | None,
        model: Model | None = None,
    ) -> None:
        """model: one that is loaded already; its checkpoint, if that is known, is read when it is asked for."""
        self.quantization, self.cpu_class = quantization, cpu_class
        self._checkpoint = checkpoint
        if isinstance(executor, bool) or not isinstance(executor, (Executor, int, type(None))):
            raise TypeError(f"executor: an Executor, a number of threads or None is needed, not {executor!r}")
        if model is None:
            assert checkpoint is not None
            model = checkpoint.load(quantization, cpu_class)
            names_weights = not isinstance(executor, Executor)  # What others made, they may close.
        else:
            names_weights = False
        self.model = model
        self.description = self.model.describe()
        self._asked = executor
        self.executor = Executor.for_ram(executor, cpu_class=cpu_class) if isinstance(executor, int) else executor
        self._receiver: Any = self.model if self.executor is None else self.model.on(self.executor)
        self._turn = (os.getpid(), threading.Lock())
        if checkpoint is not None and names_weights:
            runs_as = "" if self.description.cpu_class is None else self.description.cpu_class.name
            self.key = f"{checkpoint.digest()} {quantization.name} {runs_as} {executor}"
        else:
            self.key = f"encoder {next(_COUNTER)} of process {os.getpid()}"

    def checkpoint_bytes(self) -> torch.Tensor:
        """The checkpoint, uint8. Raises UnsupportedError over a `uform.Model` of a buffer, which nobody keeps."""
        if self._checkpoint is None:
            raise UnsupportedError(
                "the encoder was made over a uform.Model that was loaded from a buffer, whose bytes are not kept: "
                "load it from a file, or make the encoder from the path"
            )
        return self._checkpoint.bytes()

    def replaced(self, checkpoint: torch.Tensor) -> Engine:
        """An engine of other weights, with the same options."""
        return Engine(Checkpoint(checkpoint), self._asked, self.quantization, self.cpu_class)

    def run_batch(self, batch: TapeBatch, outputs: Outputs, scalar: Scalar, **options: Any) -> Surfaces:
        """A batch by its own verb, over its own memory."""
        if batch.shapes is not None:
            return self.run("image_encode_pixels", outputs, scalar, batch.arrays(), **options)
        if batch.sample_rate is not None:
            return self.run("audio_encode_samples", outputs, scalar, batch.arrays(), batch.sample_rate, **options)
        return self.run(batch.verb, outputs, scalar, batch.tape(), **options)

    def run(self, verb: str, outputs: Outputs, scalar: Scalar, *inputs: Any, **options: Any) -> Surfaces:
        """A verb on what it takes; options are its own, as `stats`."""
        arena = TensorArena()
        call: Callable[..., EncodedBatch] = getattr(self._receiver, verb)
        with self._my_turn():
            encoded = call(*inputs, arena, outputs=outputs, outputs_scalar=scalar, **options)
        ragged = encoded.states if encoded.states is not None else encoded.token_vectors
        return Surfaces(
            None if encoded.embeddings is None else to_tensor(encoded.embeddings),
            None if encoded.states is None else to_tensor(encoded.states),
            None if ragged is None else to_tensor(ragged.offsets),
            None if encoded.token_vectors is None else to_tensor(encoded.token_vectors),
        )

    @contextlib.contextmanager
    def _my_turn(self) -> Iterator[None]:
        """An executor runs one call at a time, and refuses a second; threads of a program would rather wait."""
        if self.executor is None:
            yield
            return
        process, lock = self._turn
        if process != os.getpid():  # A thread that does not exist in this child may have held the parent's lock.
            lock = threading.Lock()
            self._turn = (os.getpid(), lock)
        with lock:
            yield

    def __copy__(self) -> Engine:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Engine:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        asked, cpu_class = self._asked, self.cpu_class
        if isinstance(asked, Executor):
            cpu_class = cpu_class or asked.cpu_class
            asked = asked.threads
        # As bytes: spawn would free a tensor that nothing else holds before the child has mapped its memory.
        checkpoint = self.checkpoint_bytes().numpy().tobytes()
        return _unpickled, (checkpoint, asked, int(self.quantization), cpu_class)


def engine_of(
    source: str | os.PathLike[str] | Model | torch.Tensor,
    executor: Executor | int | None,
    quantization: Scalar,
    cpu_class: CPUClass | None,
) -> Engine:
    """An engine from what a user has."""
    if isinstance(source, Model):
        description = source.describe()
        if cpu_class is not None or quantization not in (Scalar.BF16, description.quantization):
            raise InvalidArgumentError(
                "quantization, cpu_class: a uform.Model has its own: give them when it is loaded"
            )
        file = source._file
        checkpoint = None if file is None else Checkpoint(*file)
        pinned = description.cpu_class if description.cpu_class_pinned else None
        return Engine(checkpoint, executor, description.quantization, pinned, source)
    if not isinstance(source, (str, os.PathLike, torch.Tensor)):
        raise ArgumentTypeError(f"checkpoint: a path, a uform.Model or None is needed, not {type(source).__name__}")
    return Engine(Checkpoint(source), executor, quantization, cpu_class)


def _identity_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _memory_of(tensor: torch.Tensor) -> memoryview:
    """A tensor's bytes in host memory, where they are."""
    array: Any = tensor.numpy()
    return memoryview(array)


def _unpickled(checkpoint: bytes, executor: int | None, quantization: int, cpu_class: CPUClass | None) -> Engine:
    data = torch.frombuffer(bytearray(checkpoint), dtype=torch.uint8)
    return Engine(Checkpoint(data), executor, Scalar(quantization), cpu_class)
