"""The texts of a corpus, one after another, in memory that does not grow with it.

A corpus is files, folders and standard input. How a file's bytes become texts is a reader's business: see
`lines`, `paragraphs` and `whole` here, and the JSON reader of the command `encode`.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, BinaryIO

from uform.cli.console import Failure, Tally

STANDARD_INPUT = "-"
BLOCK = 1 << 16
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
COMPRESSIONS: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)

Reader = Callable[[BinaryIO], Iterator[tuple[int, bytes]]]
"""From a stream to its texts, each with the number of the line that it starts on; 0 for the whole of a file."""


@dataclass(frozen=True)
class Item:
    """A text and where it is from."""

    path: str
    line: int
    data: bytes

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


class BadRecord(Exception):
    """Raised by readers: a line that is not what it should be."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def numbered_lines(stream: BinaryIO, limit: int) -> Iterator[tuple[int, bytes]]:
    """Lines without their ends. Of a line, only the first `limit` bytes are kept, and no more are held."""
    number = 0
    while piece := stream.readline(limit + 2):
        number += 1
        line = piece
        while piece and not piece.endswith(b"\n"):
            piece = stream.readline(BLOCK)
        yield number, line.removesuffix(b"\n").removesuffix(b"\r")[:limit]


def lines(limit: int) -> Reader:
    """Every line is a text, empty ones too."""
    return lambda stream: numbered_lines(stream, limit)


def paragraphs(limit: int) -> Reader:
    """Lines up to the next blank one are a text."""

    def read(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
        start, paragraph = 0, b""
        for number, line in numbered_lines(stream, limit):
            if not line.strip():
                if start:
                    yield start, paragraph
                start, paragraph = 0, b""
            elif not start:
                start, paragraph = number, line
            elif len(paragraph) < limit:
                paragraph = (paragraph + b"\n" + line)[:limit]
        if start:
            yield start, paragraph

    return read


def whole(limit: int) -> Reader:
    """A file is a text."""

    def read(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
        yield 0, stream.read(limit)

    return read


UNITS: dict[str, Callable[[int], Reader]] = {"line": lines, "paragraph": paragraphs, "file": whole}


class _Counted(io.RawIOBase):
    """Passes bytes on and counts them."""

    def __init__(self, stream: BinaryIO) -> None:
        self._read = getattr(stream, "readinto1", None) or stream.readinto  # type: ignore[attr-defined]
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count: int = self._read(buffer)
        self.count += count
        return count


class Corpus:
    """Iterates over the texts of files, of folders with all below them, in order of their names, and of `-`.

    Hidden files and symbolic links inside of folders are left out. `strict` makes a failure of a file that cannot be
    read or that holds NUL bytes; otherwise such a file is counted in `unreadable` or `binary` and left out.
    """

    def __init__(
        self,
        paths: Sequence[str],
        reader_of: Callable[[str], Reader],
        *,
        binary: bool = False,
        hidden: bool = False,
        strict: bool = False,
    ) -> None:
        self.unreadable = Tally()
        self.binary = Tally()
        self._paths = paths
        self._reader_of = reader_of
        self._binary_too = binary
        self._hidden_too = hidden
        self._strict = strict
        self._finished = 0
        self._current: _Counted | None = None
        for path in paths:
            if path != STANDARD_INPUT:
                os.stat(path)

    @property
    def consumed(self) -> int:
        """Bytes of files that are done with, as they lie on the disk."""
        return self._finished + (self._current.count if self._current else 0)

    def size(self) -> int | None:
        """What `consumed` rises to; None where that cannot be known."""
        total = 0
        for path in self._files(lambda path, error: None):
            try:
                status = None if path == STANDARD_INPUT else os.stat(path)
            except OSError:
                continue
            if status is None or not stat.S_ISREG(status.st_mode):
                return None
            total += status.st_size
        return total

    def __iter__(self) -> Iterator[Item]:
        for path in self._files(self._skip):
            try:
                with self._open(path) as stream:
                    yield from self._texts(path, stream)
            except BadRecord as error:
                raise Failure(f"{path}:{error.line}: {error}") from None
            except UNREADABLE as error:
                self._skip(path, error)

    def _files(self, skip: Callable[[str, Exception], None]) -> Iterator[str]:
        for path in self._paths:
            if path != STANDARD_INPUT and os.path.isdir(path):
                yield from self._walk(path, skip)
            else:
                yield path

    def _walk(self, folder: str, skip: Callable[[str, Exception], None]) -> Iterator[str]:
        pending = [folder]
        while pending:
            folder = pending.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                skip(folder, error)
                continue
            shown = [entry for entry in entries if self._hidden_too or not entry.name.startswith(".")]
            yield from (entry.path for entry in shown if entry.is_file(follow_symlinks=False))
            pending.extend(entry.path for entry in reversed(shown) if entry.is_dir(follow_symlinks=False))

    @contextmanager
    def _open(self, path: str) -> Iterator[io.BufferedReader]:
        with nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else open(path, "rb") as source:
            length = 0 if path == STANDARD_INPUT else os.fstat(source.fileno()).st_size
            self._current = _Counted(source)
            decompress = COMPRESSIONS.get(os.path.splitext(path)[1].lower(), lambda stream: stream)
            try:
                yield io.BufferedReader(decompress(io.BufferedReader(self._current, BLOCK)), BLOCK)
            finally:
                self._finished += max(length, self._current.count)
                self._current = None

    def _texts(self, path: str, stream: io.BufferedReader) -> Iterator[Item]:
        start = stream.peek(BLOCK)
        if b"\0" in start and not self._binary_too:
            if self._strict:
                raise Failure(f"{path}: holds NUL bytes; --binary takes it all the same")
            self.binary.add(path)
            return
        if start.startswith(BYTE_ORDER_MARK):
            stream.read(len(BYTE_ORDER_MARK))
        for line, data in self._reader_of(path)(stream):
            yield Item(path, line, data)

    def _skip(self, path: str, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or str(error)
        if self._strict:
            raise Failure(f"{path}: {reason}")
        self.unreadable.add(f"{path} ({reason})")
