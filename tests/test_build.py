"""What is built and installed: exported symbols, headers, wheels, and what importing costs."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
import venv
import zipfile
from pathlib import Path

import pytest

import uform
from tests.test_executor import run_python

ROOT = Path(__file__).parent.parent
HEADERS = {"types.h", "model.h", "encode.h"}


def run(*command: str, folder: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def needs(tool: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"there is no {tool}")


@needs("nm")
def test_only_uform_symbols_are_exported() -> None:
    symbols = {line.split()[-1] for line in run("nm", "-D", "--defined-only", uform.get_library()).splitlines()}
    headers = "".join((Path(uform.get_include()) / "uform" / header).read_text() for header in HEADERS)
    declared = set(re.findall(r"^UFORM_API[^(]*?\b(uform_\w+)\(", headers, re.MULTILINE))
    assert symbols == declared


@needs("readelf")
def test_what_the_binaries_need() -> None:
    library = run("readelf", "-d", uform.get_library())
    assert "SONAME" in library
    assert not re.search(r"NEEDED.*(torch|c10|python)", library)
    module = run("readelf", "-d", sys.modules["uform._uform"].__file__ or "")
    assert re.search(r"NEEDED.*\[libuform\.so\]", module)
    assert re.search(r"(RUNPATH|RPATH).*\[\$ORIGIN/lib\]", module)
    assert not re.search(r"NEEDED.*(torch|c10)", module)


def test_headers_and_library_are_found() -> None:
    installed = {path.name for path in (Path(uform.get_include()) / "uform").iterdir()}
    assert installed >= HEADERS
    assert Path(uform.get_library()).is_file()


def test_the_version_is_one() -> None:
    assert uform.__version__ == importlib.metadata.version("uform")
    header = (Path(uform.get_include()) / "uform" / "types.h").read_text()
    numbers = re.findall(r"#define UFORM_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
    assert ".".join(numbers) == uform.__version__


def test_importing_brings_little() -> None:
    code = """
        import os, sys
        import uform
        assert not {"torch", "numpy", "asyncio", "click", "tqdm"} & sys.modules.keys(), sys.modules.keys()
        assert not os.path.isdir("/proc/self/task") or len(os.listdir("/proc/self/task")) == 1
    """
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_importing_is_quick() -> None:
    """Under 60 ms on top of Python and NumPy; the best of some tries, since machines are shared."""
    code = "import time, numpy; start = time.perf_counter(); import uform; print(time.perf_counter() - start)"
    assert min(float(run_python(code).stdout) for _ in range(7)) < 0.06


def test_missing_tools_are_named() -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext"],
        cwd=ROOT,
        env=os.environ | {"CXX": "no-such-compiler"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "sudo apt-get install g++" in done.stderr
    assert "brew install llvm" in done.stderr


def test_a_wheel_has_everything(tmp_path: Path) -> None:
    """Installed elsewhere, it runs, and a C program builds against what it brings."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), ".")
    [wheel] = tmp_path.glob("uform-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    library = "uform/lib/" + Path(uform.get_library()).name
    headers = {f"uform/include/uform/{path.name}" for path in (ROOT / "csrc/include/uform").glob("*.h")}
    packages = {"uform/py.typed", "uform/_uform.pyi", "uform/checkpoints/default.safetensors", "uform_torch/py.typed"}
    assert {library, "uform_torch/__init__.py"} | packages | headers <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests", "csrc", "benchmarks"))]

    venv.create(tmp_path / "environment", with_pip=False, system_site_packages=True)
    python = str(tmp_path / "environment/bin/python")
    [packages] = (tmp_path / "environment/lib").glob("python*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    code = """
        import numpy, uform
        model = uform.Model.load_ram(uform.default_checkpoint())
        print(numpy.asarray(model.text_encode(["a cat"], uform.Arena()).embeddings).shape[0])
        print(uform.__file__, uform.get_include(), uform.get_library())
    """
    # NumPy may be in an environment around this one, which `system_site_packages` does not reach.
    paths = [path for path in sys.path if path.endswith("site-packages")]
    lines = run(
        python, "-c", textwrap.dedent(code), folder=tmp_path, PYTHONPATH=os.pathsep.join([str(packages), *paths])
    )
    rows, places = lines.splitlines()
    assert rows == "1"
    assert all(place.startswith(str(packages)) for place in places.split())


def test_a_source_distribution_has_every_source(tmp_path: Path) -> None:
    run(sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", str(tmp_path))
    [archive] = tmp_path.glob("uform-*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    folders = ("core", "kernels", "model", "encode", "python", "include")
    sources = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / "csrc" / folder).rglob("*")
        if path.suffix in (".cpp", ".h")
    }
    assert sources <= names
    assert {"setup.py", "pyproject.toml", "LICENSE", "README.md", "csrc/exported.map", "uform/py.typed"} <= names
    assert {"uform_torch/__init__.py", "uform_torch/py.typed"} <= names
    assert not [name for name in names if name.endswith((".so", ".o"))]
