"""README.md's code does what it says: the Python blocks in one session, the C block against the installed library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import uform

README = (Path(__file__).parent.parent / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def checkpoint() -> str:
    return os.environ.get("UFORM_TEST_CHECKPOINT") or uform.default_checkpoint()


def test_python_blocks(checkpoint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    is_default = checkpoint == uform.default_checkpoint()
    monkeypatch.setattr(uform, "default_checkpoint", lambda: checkpoint)
    session: dict[str, object] = {}
    for index, block in enumerate(blocks("python")):
        exec(compile(block, f"README.md, Python block {index}", "exec"), session)
    printed = capsys.readouterr().out
    if is_default:
        assert "diffutils compares files line by line" in printed.splitlines()[0]


def test_c_block(checkpoint: str, tmp_path: Path) -> None:
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        pytest.skip(f"no C compiler: {compiler}")
    [source] = blocks("c")
    [build] = [block for block in blocks("sh") if "get_library" in block]
    (tmp_path / "quick_start.c").write_text(source)
    build = build.replace("cc -std=c99", f"{compiler} -std=c99 -Wall -Wextra -Werror -pedantic")
    build = build.replace("$(python -c 'import uform; print(uform.default_checkpoint())')", checkpoint)
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-ec", build], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"2 embeddings of \d+ numbers\n", done.stdout)


def test_commands_have_the_options_that_are_shown() -> None:
    """Every line that starts with `uform`, or pipes into it, parses: its options exist."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    commands = [line[line.index("uform ") :] for line in lines if re.search(r"(^|\| )uform ", line)]
    assert len(commands) >= 4
    for command in commands:
        for option in re.findall(r"\s(--[a-z-]+)", command):
            shown = subprocess.run(
                [sys.executable, "-m", "uform", command.split()[1], "--help"],
                capture_output=True,
                text=True,
                check=True,
            )
            assert option in shown.stdout, command


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target


def test_every_error_is_in_the_table() -> None:
    for status in uform.Status:
        assert (f"| `{status.name}` |" in README) == (status < 0), status.name
