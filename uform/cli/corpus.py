"""The items of a corpus, one after another, in memory that does not grow with it.

A corpus is files, folders and standard input. A media file is one item. How the bytes of other files become texts is a
reader's business: see `lines`, `paragraphs` and `whole` here, and the JSON reader of the command `encode`.
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
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from uform import Modality
from uform.cli.console import Failure, Tally
from uform.cli.sniff import NOUNS, sniff, sniff_tracks

STANDARD_INPUT = "-"
BLOCK = 1 << 16
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
COMPRESSIONS: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)

Reader = Callable[[BinaryIO], Iterator[tuple[int, bytes]]]
"""From a stream to its texts, each with the number of the line that it starts on; 0 for the whole of a file."""


@dataclass(frozen=True)
class Item:
    """A text or a media file, and where it is from."""

    path: str
    line: int
    data: bytes
    kind: Modality = Modality.TEXT
    fault: str = ""
    """Why it could not be decoded."""

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path

    def light(self) -> Item:
        """Without the bytes of a file, which can be read again: see `Corpus.read_again`."""
        return self if self.kind == Modality.TEXT or self.path == STANDARD_INPUT else replace(self, data=b"")


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
    """Iterates over the items of files, of folders with all below them, in order of their names, and of `-`.

    `media` are the kinds of media files that are items; None: every file is texts. `only` are the kinds of files that
    are read at all; None: all. Hidden files and symbolic links inside of folders are left out.

    `strict` makes a failure of a file that cannot be read, that holds NUL bytes, or of a kind that is not in `media`;
    otherwise such a file is counted in `unreadable`, `binary` or `untaken` and left out.
    """

    def __init__(
        self,
        paths: Sequence[str],
        reader_of: Callable[[str], Reader],
        *,
        binary: bool = False,
        hidden: bool = False,
        strict: bool = False,
        media: Modality | None = None,
        only: Modality | None = None,
    ) -> None:
        self.unreadable = Tally()
        self.binary = Tally()
        self.untaken = Tally()
        self._paths = paths
        self._reader_of = reader_of
        self._binary_too = binary
        self._hidden_too = hidden
        self._strict = strict
        self._media = media
        self._only = only
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
                    yield from self._items(path, stream)
            except BadRecord as error:
                raise Failure(f"{path}:{error.line}: {error}") from None
            except UNREADABLE as error:
                self._skip(path, error)
            except MemoryError:
                self._skip(path, MemoryError("it does not fit in memory"))

    def read_again(self, item: Item) -> Item:
        """The item with its bytes."""
        if item.kind == Modality.TEXT or item.data:
            return item
        with self._open(item.path) as stream:
            return replace(item, data=stream.read())

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

    def _items(self, path: str, stream: io.BufferedReader) -> Iterator[Item]:
        start = stream.peek(BLOCK)
        kind = Modality.TEXT if self._media is None else sniff(start)
        if kind != Modality.TEXT and (self._takes(kind) or not self._binary_too):
            data = stream.read() if self._takes(kind) else start
            kind = sniff_tracks(kind, data)
            if self._is_left_out(kind):
                return
            if self._takes(kind):
                yield Item(path, 0, data, kind)
            elif self._strict:
                raise Failure(f"{path}: is a {NOUNS[kind]}, and the model takes none")
            else:
                self.untaken.add(path)
            return
        if self._is_left_out(Modality.TEXT):
            return
        if b"\0" in start and not self._binary_too:
            if self._strict:
                raise Failure(f"{path}: holds NUL bytes; --binary takes it all the same")
            self.binary.add(path)
            return
        if start.startswith(BYTE_ORDER_MARK):
            stream.read(len(BYTE_ORDER_MARK))
        for line, data in self._reader_of(path)(stream):
            yield Item(path, line, data)

    def _is_left_out(self, kind: Modality) -> bool:
        return self._only is not None and kind not in self._only

    def _takes(self, kind: Modality) -> bool:
        return self._media is not None and kind in self._media

    def _skip(self, path: str, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or str(error)
        if self._strict:
            raise Failure(f"{path}: {reason}")
        self.unreadable.add(f"{path} ({reason})")
