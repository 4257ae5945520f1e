"""Files compiled for newer instruction sets lend the rest of the library nothing that an older machine cannot run.

The linker keeps one copy of an inline function. Were it the copy of a file for AVX-512, a machine without that would
crash in code that has nothing to do with that file.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CLASSES = ("haswell", "skylake", "genoa", "sapphire")
PATTERNS = ("csrc/kernels/*/{}.cpp", "csrc/media/**/*_{}.cpp")
FILES = sorted(path for name in CLASSES for pattern in PATTERNS for path in ROOT.glob(pattern.format(name)))
COMPILER = os.environ.get("CXX", "c++").split()

pytestmark = [
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the classes are of x86-64"),
    *(
        pytest.mark.skipif(shutil.which(tool) is None, reason=f"there is no {tool}")
        for tool in ("nm", "objdump", COMPILER[-1])
    ),
]


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Name of a class and the object of a file of it, not optimized: nothing is inlined away."""
    source: Path = request.param
    target = tmp_path_factory.mktemp("objects") / "object.o"
    run(*COMPILER, "-std=c++20", "-O0", "-w", "-Icsrc/include", "-Icsrc", "-c", str(source), "-o", str(target))
    return source.stem.split("_")[-1], str(target)


def test_files_are_found() -> None:
    assert {path.stem.split("_")[-1] for path in FILES} == set(CLASSES)


def test_only_entry_points_are_strong(compiled: tuple[str, str]) -> None:
    name, target = compiled
    lines = [line.split(maxsplit=2) for line in run("nm", "--demangle", "--defined-only", target).splitlines()]
    strong = [symbol for _, kind, symbol in lines if kind in "ABCDRST"]
    assert strong
    assert [symbol for symbol in strong if not re.match(rf"uform::\w+_{name}(\(|$)", symbol)] == []


def test_what_the_linker_may_share_runs_anywhere(compiled: tuple[str, str]) -> None:
    _, target = compiled
    lines = [line.split(maxsplit=2) for line in run("nm", "--defined-only", target).splitlines()]
    weak = {symbol for _, kind, symbol in lines if kind in "uVW"}
    newer, function, instructions = [], "", 0
    for line in run("objdump", "--disassemble", "--no-show-raw-insn", target).splitlines():
        if heading := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            function = heading[1]
        elif instruction := re.match(r" +[0-9a-f]+:\t(?:\{\w+\} )?(\w+)", line):
            # Every instruction of AVX and later on vectors starts with this letter, those of masks with the other.
            is_newer = instruction[1][0] in "vk" or instruction[1].startswith("tile")
            instructions += is_newer
            if function in weak and is_newer:
                newer.append((function, line.strip()))
    assert instructions, "the class's own instructions are not recognized"
    assert newer == []
