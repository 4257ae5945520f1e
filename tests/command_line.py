"""Running commands, in this process and in others, for the tests of the command line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from uform.cli.commands import run


@dataclass
class Result:
    status: int
    out: str
    err: str

    @property
    def matches(self) -> list[tuple[str, str]]:
        """(place, text) of each line that `search` printed, with single spaces."""
        rows = [line.split(None, 2) for line in self.out.splitlines()]
        return [(row[1], row[2] if len(row) > 2 else "") for row in rows]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Uform = Callable[..., Result]


@pytest.fixture
def cli(checkpoint: str, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Uform:
    """Runs a command in this process, on the tiny model unless the arguments name one."""

    def call(*arguments: str | Path, stdin: bytes = b"") -> Result:
        words = list(map(str, arguments))
        if words[:1] in (["search"], ["encode"], ["choose"]) and "--checkpoint" not in words:
            words += ["--checkpoint", checkpoint]
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = run(words)
        out, err = capsysbinary.readouterr()
        return Result(status, out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape"))

    return call


def start(arguments: Sequence[str | bytes], **options: Any) -> subprocess.Popen[bytes]:
    """A process of its own."""
    return subprocess.Popen([sys.executable, "-m", "uform", *arguments], **options)


def refused(result: Result, status: int, *words: str) -> None:
    """The exit status, and one line on stderr that has the words, with nothing on stdout."""
    assert result.status == status
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err
    for word in words:
        assert word in result.err


def peak_memory(arguments: Sequence[str], feed: Callable[[io.BufferedWriter], None]) -> int:
    """Bytes that a process took at the most, while it was fed through a pipe."""
    process = start(arguments, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert isinstance(process.stdin, io.BufferedWriter)
    feed(process.stdin)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
