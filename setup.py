"""Builds libuform, a shared object of its own with a C ABI, and `uform._uform`, the Python module over it."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from glob import glob

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

try:
    from torch.utils import cpp_extension
except ImportError as error:
    sys.exit(f"torch is needed to build UForm ({error}): pip install torch==2.13.0")

LIBRARY = "uform.lib.libuform"
MODULE = "uform._uform"
HEADERS = "csrc/include/uform/*.h"
IS_MACOS = sys.platform == "darwin"
LIBRARY_SUFFIX = ".dylib" if IS_MACOS else ".so"

# No -march: files choose instruction sets by themselves. No contraction: a class gives the same bits wherever built.
COMPILE = [
    "-std=c++20",
    "-O3",
    "-g0",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-fno-math-errno",
    "-ffp-contract=off",
    # GCC's headers of intrinsics start vectors from values that they leave undefined.
    "-Wno-maybe-uninitialized",
    "-Wno-uninitialized",
]


def find(*patterns: str) -> list[str]:
    return sorted(path for pattern in patterns for path in glob(pattern, recursive=True))


def extensions() -> list[Extension]:
    exported = "csrc/exported.macos" if IS_MACOS else "csrc/exported.map"
    name = os.path.basename(LIBRARY.replace(".", "/")) + LIBRARY_SUFFIX
    if IS_MACOS:
        library_link = [f"-Wl,-install_name,@rpath/{name}", f"-Wl,-exported_symbols_list,{exported}"]
        run_path = "@loader_path/lib"
    else:
        library_link = [f"-Wl,-soname,{name}", f"-Wl,--version-script={exported}", "-Wl,--no-undefined", "-pthread"]
        run_path = "$ORIGIN/lib"
    folders = ("core", "kernels", "model", "encode")
    library = Extension(
        LIBRARY,
        sources=find(*(f"csrc/{folder}/**/*.cpp" for folder in folders)),
        depends=[*find(*(f"csrc/{folder}/**/*.h" for folder in folders), HEADERS), exported],
        include_dirs=[os.path.abspath("csrc/include")],
        extra_compile_args=COMPILE,
        extra_link_args=library_link,
        language="c++",
    )
    # torch ships the headers of pybind11; the module links nothing of torch.
    torch_headers = os.path.join(os.path.dirname(cpp_extension.__file__), "..", "include")
    module = Extension(
        MODULE,
        sources=find("csrc/python/*.cpp"),
        depends=find("csrc/python/*.h", HEADERS),
        include_dirs=[os.path.abspath("csrc/include"), os.path.normpath(torch_headers)],
        libraries=["uform"],
        extra_compile_args=COMPILE,
        extra_link_args=[f"-Wl,-rpath,{run_path}"],
        language="c++",
    )
    return [library, module]


class BuildExtension(cpp_extension.BuildExtension):
    """The library first, then the module that links it."""

    def initialize_options(self) -> None:
        super().initialize_options()
        # Kept from build to build, so that only what changed is compiled again.
        self.build_temp = os.path.join("build", f"objects-{sysconfig.get_platform()}-{sys.implementation.cache_tag}")

    def build_extensions(self) -> None:
        check_tools()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        os.environ.setdefault("MAX_JOBS", str(cores))
        super().build_extensions()

    def build_extension(self, extension: Extension) -> None:
        if extension.name == MODULE:
            extension.library_dirs = [os.path.dirname(self.get_ext_fullpath(LIBRARY))]
        super().build_extension(extension)

    def copy_extensions_to_source(self) -> None:
        os.makedirs(os.path.dirname(LIBRARY.replace(".", "/")), exist_ok=True)
        super().copy_extensions_to_source()

    def get_ext_filename(self, fullname: str) -> str:
        # Asked for by the full name and by the last part of it alone.
        if fullname.split(".")[-1] == LIBRARY.split(".")[-1]:
            return os.path.join(*fullname.split(".")) + LIBRARY_SUFFIX
        return str(super().get_ext_filename(fullname))


class BuildPackage(build_py):
    """Puts the headers inside the package. An editable install has them in csrc."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for header, copy in self.headers().items():
                self.mkpath(os.path.dirname(copy))
                shutil.copyfile(header, copy)

    def headers(self) -> dict[str, str]:
        target = os.path.join(self.build_lib, "uform", "include", "uform")
        return {header: os.path.join(target, os.path.basename(header)) for header in find(HEADERS)}

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        outputs: list[str] = super().get_outputs(include_bytecode)
        return outputs if self.editable_mode else outputs + list(self.headers().values())


def check_tools() -> None:
    """Ends with the commands that bring what is missing."""
    missing = {}
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        missing[f"a C++20 compiler ({compiler})"] = ("g++", "llvm")
    if not cpp_extension.is_ninja_available():
        missing["ninja"] = ("ninja-build", "ninja")
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        missing["the headers of Python"] = (f"python{version}-dev", f"python@{version}")
    if missing:
        apt = " ".join(package for package, _ in missing.values())
        brew = " ".join(package for _, package in missing.values())
        sys.exit(
            f"Building UForm needs {' and '.join(missing)}.\n"
            f"Debian and Ubuntu: sudo apt-get install {apt}\n"
            f"macOS: brew install {brew}"
        )


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtension, "build_py": BuildPackage})
