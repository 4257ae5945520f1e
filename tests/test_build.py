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
HEADERS = {"types.h", "model.h", "encode.h", "rank.h"}
DECODERS = {
    "images": {"jpeg", "deflate", "webp", "webpdemux"},
    "clips": {"avformat", "avcodec", "avutil", "swscale", "swresample"},
}
"""The libraries beside libuform, and what each needs of the system."""


def run(*command: str, folder: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def needs(tool: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"there is no {tool}")


def decoder(name: str) -> Path:
    library = Path(uform.get_library())
    return library.with_name(f"libuform_{name}{library.suffix}")


def exported(library: str | Path) -> set[str]:
    return {line.split()[-1] for line in run("nm", "-D", "--defined-only", str(library)).splitlines()}


@needs("nm")
def test_only_uform_symbols_are_exported() -> None:
    headers = "".join((Path(uform.get_include()) / "uform" / header).read_text() for header in HEADERS)
    declared = set(re.findall(r"^UFORM_API[^(]*?\b(uform_\w+)\(", headers, re.MULTILINE))
    assert exported(uform.get_library()) == declared


@needs("nm")
@pytest.mark.parametrize("name", DECODERS)
def test_decoders_export_one_function(name: str) -> None:
    assert exported(decoder(name)) == {f"uform_{name}_codecs"}


@needs("readelf")
def test_what_the_binaries_need() -> None:
    library = run("readelf", "-d", uform.get_library())
    assert "SONAME" in library
    system = re.compile(r"lib(stdc\+\+|gcc_s|c|m|dl|pthread)\.so\.\d+|ld-linux.*")
    assert [name for name in re.findall(r"NEEDED.*\[(.*)\]", library) if not system.fullmatch(name)] == []
    module = run("readelf", "-d", sys.modules["uform._uform"].__file__ or "")
    assert re.search(r"NEEDED.*\[libuform\.so\]", module)
    assert re.search(r"(RUNPATH|RPATH).*\[\$ORIGIN/lib\]", module)
    assert not re.search(r"NEEDED.*(torch|c10)", module)


@needs("readelf")
@pytest.mark.parametrize("name", DECODERS)
def test_what_the_decoders_need(name: str) -> None:
    library = run("readelf", "-d", str(decoder(name)))
    needed = set(re.findall(r"NEEDED.*\[lib(\w+)\.so\.\d+\]", library))
    assert needed - {"stdc", "gcc_s", "c", "m"} == DECODERS[name]
    assert re.search(r"(RUNPATH|RPATH).*\[\$ORIGIN\]", library)


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
        maps = open("/proc/self/maps").read() if os.path.exists("/proc/self/maps") else "libuform."
        assert "libuform." in maps and not [name for name in ("libuform_", "jpeg", "webp", "libav") if name in maps]
    """
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_importing_is_quick() -> None:
    """Under 60 ms of a core's time on top of Python and NumPy, whatever else runs; the best of some tries."""
    code = "import time, numpy; start = time.process_time(); import uform; print(time.process_time() - start)"
    assert min(float(run_python(code).stdout) for _ in range(7)) < 0.06


def refusal(folder: Path, **environment: str) -> str:
    """What a build says that cannot be."""
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--build-lib", str(folder)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    return done.stderr


def test_missing_tools_are_named(tmp_path: Path) -> None:
    message = refusal(tmp_path, CXX="no-such-compiler")
    assert "sudo apt-get install g++\n" in message
    assert "brew install llvm\n" in message


def test_missing_libraries_are_named_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, PKG_CONFIG_LIBDIR=str(tmp_path), PKG_CONFIG_PATH="")
    assert "Building UForm needs libjpeg and libdeflate and libwebp and libwebpdemux and libavformat 59.27 " in message
    assert "apt-get install libjpeg-dev libdeflate-dev libwebp-dev libavformat-dev libavcodec-dev" in message
    assert "brew install jpeg-turbo libdeflate webp ffmpeg\n" in message
    assert "UFORM_BUILD_MEDIA=0" in message


def test_an_older_library_is_missing(tmp_path: Path) -> None:
    (tmp_path / "libswscale.pc").write_text("Name: swscale\nDescription: old\nVersion: 5.9.100\n")
    message = refusal(tmp_path, PKG_CONFIG_PATH=str(tmp_path))
    assert "Building UForm needs libswscale 6.7 or later (not 5.9.100).\n" in message
    assert "apt-get install libswscale-dev\n" in message


def test_a_missing_pkg_config_is_named(tmp_path: Path) -> None:
    message = refusal(tmp_path, PKG_CONFIG="no-such-pkg-config")
    assert "Building UForm needs no-such-pkg-config and libjpeg and " in message
    assert "apt-get install pkg-config libjpeg-dev " in message


@pytest.fixture(scope="module")
def without_decoders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package that was built on a machine without any of the decoders' libraries."""
    folder = tmp_path_factory.mktemp("without_decoders")
    stale = folder / "uform/lib" / decoder("images").name
    stale.parent.mkdir(parents=True)
    stale.touch()
    run(
        *(sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", str(folder)),
        UFORM_BUILD_MEDIA="0",
        PKG_CONFIG="no-such-pkg-config",
    )
    shutil.copytree(ROOT / "uform", folder / "uform", ignore=shutil.ignore_patterns("*.so"), dirs_exist_ok=True)
    return folder


def test_decoders_can_be_left_out(without_decoders: Path) -> None:
    """What an earlier build has left is not taken for this one's, and what is installed in place is let be."""
    assert [path.name for path in (without_decoders / "uform/lib").iterdir()] == [Path(uform.get_library()).name]
    assert decoder("images").exists()


def test_a_decoder_that_cannot_be_loaded_is_named(without_decoders: Path) -> None:
    # A library whose own libraries are gone, in the place of one; the other is not there.
    clips = without_decoders / "uform/lib" / decoder("clips").name
    (without_decoders / "empty.c").touch()
    compiler = [*os.environ.get("CXX", "c++").split(), "-shared", "-xc", "empty.c", "-o"]
    run(*compiler, "libgone.so", folder=without_decoders)
    run(*compiler, str(clips), "-L.", "-Wl,--no-as-needed", "-lgone", folder=without_decoders)
    (without_decoders / "libgone.so").unlink()
    code = """
        import uform
        model = uform.Model.load_ram(uform.default_checkpoint())
        for verb in (model.image_encode, model.video_encode, model.audio_encode):
            try:
                verb([b"a file"], uform.Arena())
            except uform.UnsupportedError as error:
                print(error)
        print(model.text_encode(["a cat"], uform.Arena()).embeddings.shape[0], uform.get_library())
    """
    lines = run(
        *(sys.executable, "-c", textwrap.dedent(code)), folder=without_decoders, PYTHONPATH=str(without_decoders)
    ).splitlines()
    clips.unlink()
    assert len(lines) == 4
    assert re.search(r"libuform_images\.\w+ cannot be loaded: .*No such file.* apt-get install libjpeg-dev ", lines[0])
    gone = r"libuform_clips\.\w+ cannot be loaded: libgone\.so: .* apt-get install libavformat-dev "
    assert all(re.search(gone, line) for line in lines[1:3])
    assert lines[3].startswith(f"1 {without_decoders}"), "text works"


def test_a_wheel_has_everything(tmp_path: Path) -> None:
    """Installed elsewhere, it runs, and a C program builds against what it brings."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), ".")
    [wheel] = tmp_path.glob("uform-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    libraries = {"uform/lib/" + path.name for path in (Path(uform.get_library()), *map(decoder, DECODERS))}
    headers = {f"uform/include/uform/{path.name}" for path in (ROOT / "csrc/include/uform").glob("*.h")}
    packages = {"uform/py.typed", "uform/_uform.pyi", "uform/checkpoints/default.safetensors", "uform_torch/py.typed"}
    assert {"uform_torch/__init__.py"} | packages | headers <= names
    assert {name for name in names if name.startswith("uform/lib/")} == libraries
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
    folders = ("core", "kernels", "model", "encode", "media", "rank", "python", "include")
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
