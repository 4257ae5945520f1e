"""Builds libuform, a shared object of its own with a C ABI, and `uform._uform`, the Python module over it.

Beside libuform lie the decoders, which it loads when they are first needed: `libuform_images` and `libuform_clips`.
They alone need system libraries, and `UFORM_BUILD_MEDIA=0` leaves them out.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
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
IMAGES = "uform.lib.libuform_images"
CLIPS = "uform.lib.libuform_clips"
LIBRARIES = (LIBRARY, IMAGES, CLIPS)
# What pkg-config calls the libraries of the decoders, the least version (FFmpeg's are those of 5.1), and the packages
# of Debian and of Homebrew that bring them.
NEEDS = {
    IMAGES: {
        "libjpeg": ("", "libjpeg-dev", "jpeg-turbo"),
        "libdeflate": ("", "libdeflate-dev", "libdeflate"),
        "libwebp": ("", "libwebp-dev", "webp"),
        "libwebpdemux": ("", "libwebp-dev", "webp"),
    },
    CLIPS: {
        "libavformat": ("59.27", "libavformat-dev", "ffmpeg"),
        "libavcodec": ("59.37", "libavcodec-dev", "ffmpeg"),
        "libavutil": ("57.28", "libavutil-dev", "ffmpeg"),
        "libswscale": ("6.7", "libswscale-dev", "ffmpeg"),
        "libswresample": ("4.7", "libswresample-dev", "ffmpeg"),
    },
}
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
    name = LIBRARY.split(".")[-1] + LIBRARY_SUFFIX
    if IS_MACOS:
        origin = "@loader_path"
        exports = [f"-Wl,-exported_symbols_list,{exported}"]
        library_link = [f"-Wl,-install_name,@rpath/{name}", *exports]
    else:
        origin = "$ORIGIN"
        exports = [f"-Wl,--version-script={exported}", "-Wl,--no-undefined", "-pthread"]
        library_link = [f"-Wl,-soname,{name}", *exports, "-ldl"]
    include_dirs = [os.path.abspath("csrc/include"), os.path.abspath("csrc")]
    depends = [*find("csrc/core/**/*.h", "csrc/kernels/**/*.h", "csrc/media/**/*.h", HEADERS), exported]
    folders = ("core", "kernels", "model", "encode", "rank")
    library = Extension(
        LIBRARY,
        sources=find(*(f"csrc/{folder}/**/*.cpp" for folder in folders), "csrc/media/*.cpp"),
        depends=sorted({*depends, *find(*(f"csrc/{folder}/**/*.h" for folder in folders))}),
        include_dirs=include_dirs,
        extra_compile_args=COMPILE,
        extra_link_args=library_link,
        language="c++",
    )
    sources = {
        IMAGES: find("csrc/media/images/*.cpp", "csrc/media/resize*.cpp"),
        CLIPS: find("csrc/media/clips/*.cpp"),
    }
    # Copies of the system's libraries that a wheel may bring along are found beside the decoders.
    decoders = [
        Extension(
            name,
            sources=sources[name],
            depends=depends,
            include_dirs=include_dirs,
            extra_compile_args=COMPILE,
            extra_link_args=[*exports, f"-Wl,-rpath,{origin}"],
            language="c++",
        )
        for name in NEEDS
    ]
    # torch ships the headers of pybind11; the module links nothing of torch.
    torch_headers = os.path.join(os.path.dirname(cpp_extension.__file__), "..", "include")
    module = Extension(
        MODULE,
        sources=find("csrc/python/*.cpp"),
        depends=find("csrc/python/*.h", HEADERS),
        include_dirs=[os.path.abspath("csrc/include"), os.path.normpath(torch_headers)],
        libraries=["uform"],
        extra_compile_args=COMPILE,
        extra_link_args=[f"-Wl,-rpath,{origin}/lib"],
        language="c++",
    )
    return [library, *decoders, module]


class BuildExtension(cpp_extension.BuildExtension):
    """The libraries first, then the module that links one of them."""

    def initialize_options(self) -> None:
        super().initialize_options()
        # Kept from build to build, so that only what changed is compiled again.
        self.build_temp = os.path.join("build", f"objects-{sysconfig.get_platform()}-{sys.implementation.cache_tag}")

    def run(self) -> None:
        # Not when the list is made: a source distribution has all of it.
        if not is_media_built():
            self.extensions = [extension for extension in self.extensions if extension.name not in NEEDS]
            for name in NEEDS:
                self.remove_built(name)
        super().run()

    def remove_built(self, name: str) -> None:
        """An earlier build's: it would be taken for this one's."""
        file = self.get_ext_filename(name)
        folders = [self.build_lib, ""] if self.inplace or self.editable_mode else [self.build_lib]
        for path in [os.path.join(folder, file) for folder in folders]:
            if os.path.exists(path):
                os.remove(path)

    def build_extensions(self) -> None:
        check_tools()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        os.environ.setdefault("MAX_JOBS", str(cores))
        super().build_extensions()

    def build_extension(self, extension: Extension) -> None:
        if extension.name == MODULE:
            extension.library_dirs = [os.path.dirname(self.get_ext_fullpath(LIBRARY))]
        if extension.name in NEEDS:
            extension.extra_compile_args = [*COMPILE, *pkg_config("--cflags", *NEEDS[extension.name])]
            extension.extra_link_args += pkg_config("--libs", *NEEDS[extension.name])
        # Files that two libraries have are compiled with the options of each.
        shared, self.build_temp = self.build_temp, os.path.join(self.build_temp, extension.name.split(".")[-1])
        super().build_extension(extension)
        self.build_temp = shared

    def copy_extensions_to_source(self) -> None:
        os.makedirs(os.path.dirname(LIBRARY.replace(".", "/")), exist_ok=True)
        super().copy_extensions_to_source()

    def get_ext_filename(self, fullname: str) -> str:
        # Asked for by the full name and by the last part of it alone.
        if fullname.split(".")[-1] in [name.split(".")[-1] for name in LIBRARIES]:
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


def is_media_built() -> bool:
    return os.environ.get("UFORM_BUILD_MEDIA", "1") != "0"


def pkg_config(*arguments: str) -> list[str]:
    command = [os.environ.get("PKG_CONFIG", "pkg-config"), *arguments]
    return shlex.split(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


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
    media = missing_media() if is_media_built() else {}
    missing |= media
    if missing:
        # Some packages bring several of these.
        apt = " ".join(dict.fromkeys(package for package, _ in missing.values()))
        brew = " ".join(dict.fromkeys(package for _, package in missing.values()))
        message = (
            f"Building UForm needs {' and '.join(missing)}.\n"
            f"Debian and Ubuntu: sudo apt-get install {apt}\n"
            f"macOS: brew install {brew}"
        )
        if media:
            message += "\nWithout images, video and audio: UFORM_BUILD_MEDIA=0"
        sys.exit(message)


def missing_media() -> dict[str, tuple[str, str]]:
    """What the decoders need and do not find, with its packages of Debian and Homebrew."""
    program = os.environ.get("PKG_CONFIG", "pkg-config")
    needs = {name: need for library in NEEDS.values() for name, need in library.items()}
    if shutil.which(program) is None:
        # It alone could tell which of them are there.
        return {program: ("pkg-config", "pkgconf")} | {name: packages for name, (_, *packages) in needs.items()}
    missing = {}
    for name, (version, apt, brew) in needs.items():
        found = subprocess.run([program, "--modversion", name], capture_output=True, text=True).stdout.strip()
        if not found:
            missing[f"{name} {version}".rstrip()] = (apt, brew)
        elif version and subprocess.run([program, f"--atleast-version={version}", name]).returncode:
            missing[f"{name} {version} or later (not {found})"] = (apt, brew)
    return missing


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtension, "build_py": BuildPackage})
