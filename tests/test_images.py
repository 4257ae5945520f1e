"""Decoders of pictures: pixels against Pillow's. Literal values and hostile files are in tests/c/test_images.cpp."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

HERE = Path(__file__).parent
LIBRARIES = ("libjpeg", "libdeflate", "libwebp", "libwebpdemux")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of tests, sanitized."""
    program = tmp_path_factory.mktemp("images") / "test_images"
    root = HERE.parent
    includes = [f"-I{root / folder}" for folder in ("csrc", "csrc/include", "tests/c")]
    media = root / "csrc/media"
    sources = [*media.glob("images/*.cpp"), *media.glob("resize*.cpp"), root / "tests/c/test_images.cpp"]
    found = subprocess.run(["pkg-config", "--cflags", "--libs", *LIBRARIES], check=True, capture_output=True, text=True)
    compiler = os.environ.get("CXX", "c++")
    command = [compiler, "-std=c++20", "-O1", "-g", *SANITIZE, "-pthread", *includes, *map(str, sources)]
    subprocess.run([*command, *found.stdout.split(), "-o", str(program)], check=True)
    return program


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    subprocess.run([sys.executable, str(HERE / "media_files.py"), str(folder)], check=True)
    return folder


@pytest.fixture
def decode(program: Path, files: Path, tmp_path: Path) -> Callable[..., np.ndarray]:
    """Decodes a file to a size, or to its own: [height, width, 3]."""

    def decode(name: str, size: tuple[int, int] = (0, 0)) -> np.ndarray:
        output = tmp_path / "rgb"
        command = [str(program), "--decode", str(files / name), *map(str, size), str(output)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        width, height = map(int, answer.split())
        return np.fromfile(output, np.uint8).reshape(height, width, 3)

    return decode


def over_white(picture: Image.Image) -> Image.Image:
    if "A" in picture.getbands() or "transparency" in picture.info:
        page = Image.new("RGBA", picture.size, "white")
        page.alpha_composite(picture.convert("RGBA"))
        picture = page
    return picture.convert("RGB")


def distance(ours: np.ndarray, picture: Image.Image) -> float:
    """The mean of absolute differences, in levels."""
    theirs = np.asarray(picture)
    assert ours.shape == theirs.shape
    return float(np.abs(ours.astype(int) - theirs).mean())


PICTURES = [
    *("photo_444.jpg", "photo_422.jpg", "photo_420.jpg", "photo_grey.jpg", "photo_rgb.jpg", "photo_progressive.jpg"),
    *("odd_444.jpg", "odd_422.jpg", "odd_420.jpg", "cmyk.jpg", "ycck.jpg"),
    *("photo.png", "odd_interlaced.png", "noise_0_8.png", "noise_2_8.png", "noise_4_8.png", "noise_6_8.png"),
    *("paeth_2.png", "paeth_6.png", "paeth_2_interlaced.png", "paeth_6_interlaced.png"),
    *("palette_4.png", "photo.webp", "photo_lossless.webp", "odd.webp", "alpha_lossy.webp"),
]


@pytest.mark.parametrize("name", PICTURES)
def test_pixels_equal_those_of_pillow(decode: Callable[..., np.ndarray], files: Path, name: str) -> None:
    assert distance(decode(name), over_white(Image.open(files / name))) <= 0.5


@pytest.mark.parametrize("size", [(160, 112), (224, 224), (80, 60), (37, 200), (640, 480)], ids=str)
@pytest.mark.parametrize("name", PICTURES)
def test_sizes_equal_those_of_pillow(
    decode: Callable[..., np.ndarray], files: Path, name: str, size: tuple[int, int]
) -> None:
    picture: Image.Image = Image.open(files / name)
    box = None
    if picture.format == "JPEG":
        # Pillow decodes at the same scale. The last pixel of what that gives may not be a whole one.
        box = (picture.draft(None, size) or (None, None))[1]
    picture = over_white(picture)
    expected = picture.resize(size, Image.Resampling.BILINEAR, box=box)
    assert distance(decode(name, size), expected) <= 1


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["_intel.jpg", "_motorola.jpg", ".png", ".webp"])
def test_orientations_equal_those_of_pillow(
    decode: Callable[..., np.ndarray], files: Path, kind: str, orientation: int
) -> None:
    name = f"turned_{orientation}{kind}"
    picture = Image.open(files / name)
    assert distance(decode(name), ImageOps.exif_transpose(picture).convert("RGB")) <= 0.5


@pytest.mark.parametrize("name", ["odd_3.webp", "odd_6.webp"])
def test_reduced_planes_are_turned(decode: Callable[..., np.ndarray], files: Path, name: str) -> None:
    picture = ImageOps.exif_transpose(Image.open(files / name)).convert("RGB")
    assert distance(decode(name, (64, 80)), picture.resize((64, 80), Image.Resampling.BILINEAR)) <= 0.5


def test_scales_of_jpeg_leave_enough_rows(decode: Callable[..., np.ndarray], files: Path) -> None:
    """36 rows are 4.5 at 1/8, which is too few for 5."""
    picture = Image.open(files / "small.jpg")
    picture.draft("RGB", (2, 9))
    assert picture.size == (2, 9)
    assert distance(decode("small.jpg", (1, 5)), picture.resize((1, 5), Image.Resampling.BILINEAR)) <= 1
