"""`.npy` files that are written as their rows come, and files that appear only once they are whole."""

from __future__ import annotations

import os
import shutil
import stat
from types import TracebackType
from typing import Any, BinaryIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from uform.cli.console import Failure

HEADER_BYTES = 128
"""NumPy's header for any matrix: 10 bytes, a dictionary of less than 100, and spaces."""

replacement_type = TypeVar("replacement_type", bound="Replacement")


class Replacement:
    """Writes a file beside `path`, which takes its place at the end of a `with` block, unless that raises."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._final = os.path.realpath(path)
        folder, name = os.path.split(self._final)
        self._beside = os.path.join(folder, f".{name}.{os.getpid()}.part")
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            raise Failure(f"{path}: not a regular file")

    def __enter__(self: replacement_type) -> replacement_type:
        try:
            self._file: BinaryIO = open(self._beside, "xb")
        except OSError as error:
            raise self._failure(error) from None
        return self

    def write(self, data: bytes | memoryview) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise self._failure(error) from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with self._file:
                if error is None:
                    self._complete()
                    self._file.flush()
                    os.fsync(self._file.fileno())
            if error is None:
                if os.path.exists(self._final):
                    shutil.copymode(self._final, self._beside)
                os.replace(self._beside, self._final)
        except OSError as failed:
            raise self._failure(failed) from None
        finally:
            if os.path.exists(self._beside):
                os.unlink(self._beside)

    def _complete(self) -> None:
        """What is to be written last."""

    def _failure(self, error: OSError) -> Failure:
        return Failure(f"{self.path}: {error.strerror or error}")


class NpyFile(Replacement):
    """A matrix, or a vector where `columns` is None, of a length that only the end knows."""

    def __init__(self, path: str, kind: np.dtype[Any], columns: int | None) -> None:
        super().__init__(path)
        self._kind = kind
        self._columns = () if columns is None else (columns,)
        self.rows = 0

    def __enter__(self) -> NpyFile:
        super().__enter__()
        self.write(self._header())
        return self

    def append(self, rows: NDArray[Any]) -> None:
        self.write(np.ascontiguousarray(rows, self._kind).data)
        self.rows += len(rows)

    def _complete(self) -> None:
        self._file.seek(0)
        self._file.write(self._header())

    def _header(self) -> bytes:
        """Version 1.0 of NumPy's format."""
        shape = (self.rows, *self._columns)
        start = f"{{'descr': {self._kind.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}".encode("ascii")
        length = HEADER_BYTES - 10
        return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + start.ljust(length - 1) + b"\n"
