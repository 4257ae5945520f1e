"""What people see: failures, notes, bars, and text made fit for a terminal."""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TextIO

import click
from tqdm import tqdm  # type: ignore[import-untyped]


class Failure(click.ClickException):
    """What ends a command with status 1: one sentence that names the place at fault."""


@dataclass
class Tally:
    """Counts things, and remembers the first few to name them."""

    shown: int = 10
    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        self.count += 1
        if len(self.first) < self.shown:
            self.first.append(name)

    def __str__(self) -> str:
        more = self.count - len(self.first)
        return ", ".join(self.first) + (f" and {more:,} more" if more else "")


def note(message: str) -> None:
    """A line on stderr that stops nothing."""
    click.echo(f"uform: {message}", err=True)


def plural(count: int, noun: str) -> str:
    """ "1 text", "2,000 texts"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def bar(wanted: bool | None, total: Callable[[], int | None]) -> tqdm[NoReturn]:
    """A bar of bytes read, on stderr. Unless said whether it is wanted: on terminals, for work that takes a while."""
    shown = is_terminal(sys.stderr) if wanted is None else wanted
    return tqdm(
        total=total() if shown else None,
        unit="B",
        unit_scale=True,
        file=sys.stderr,
        disable=not shown,
        delay=0.5 if wanted is None else 0,
        leave=bool(wanted),
        dynamic_ncols=True,
    )


def readable(data: bytes) -> str:
    """Text of one line: what is no UTF-8 is replaced, white space is single, and control characters are gone."""
    text = " ".join(data.decode("utf-8", "replace").split())
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(letter) == "Cc" else letter for letter in text)


def place_bytes(place: str) -> bytes:
    """A file's name as the system has it, so that it can be pasted, save that control characters are escaped."""
    return os.fsencode(
        "".join(repr(letter)[1:-1] if ord(letter) < 32 or letter == "\x7f" else letter for letter in place)
    )


def clip(text: str, columns: int) -> str:
    """The start of the text that fits so many columns of a terminal."""
    used = 0
    for index, letter in enumerate(text):
        wide = 0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if used + wide > columns - 1 and (used + wide > columns or index + 1 < len(text)):
            return text[:index] + "…"
        used += wide
    return text


def terminal_columns() -> int | None:
    """Columns of the terminal that stdout is; None where it is a file or a pipe."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def is_terminal(stream: TextIO | None) -> bool:
    """False as well for a stream that was closed before the process started, which Python has as None."""
    return stream is not None and stream.isatty()


def json_line(record: Mapping[str, object]) -> bytes:
    """One object in UTF-8; in ASCII with escapes where a file's name is no UTF-8."""
    try:
        return json.dumps(record, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(record).encode("ascii")
