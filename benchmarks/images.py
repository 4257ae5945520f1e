"""Pictures decoded and resized, against what a user would call instead: the same files, interleaved in one run.

python -m benchmarks.images

Every side turns the same files of 1024 x 768 pixels into RGB (OpenCV: BGR) of the size that is asked for, antialiased:
Pillow and torchvision with a triangle filter, as UForm, OpenCV and simplejpeg with an area filter. On two threads, two
threads of Python take turns at the files: all sides decode without the GIL. UForm's decoders are called through the
table that `libuform_images` exports (csrc/media/codecs.h), as libuform itself does.
"""

from __future__ import annotations

import argparse
import ctypes
import io
import json
import sys
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import simplejpeg
from PIL import Image
from rich.console import Console
from rich.table import Table

import uform
from benchmarks.harness import THREADS, interleave, machine
from tests.media_files import photo

PICTURE = (1024, 768)
ROUGHNESS = 1.32
"""Makes files of some 280 KB, as JPEG and as WebP, and 1.5 MB as PNG."""
LARGEST_DIFFERENCE = 1.0
"""Levels of 255 between UForm and Pillow decoding at the same scale, on average."""
LIBRARY = Path(uform.__file__).parent / "lib" / f"libuform_images.{'dylib' if sys.platform == 'darwin' else 'so'}"

Side = Callable[[bytes, int, int], np.ndarray]


class File(ctypes.Structure):
    _fields_ = (("data", ctypes.c_char_p), ("length", ctypes.c_size_t))


class Limits(ctypes.Structure):
    _fields_ = (("pixels", ctypes.c_uint64), ("seconds", ctypes.c_uint64), ("bytes", ctypes.c_uint64))


class Size(ctypes.Structure):
    _fields_ = (("width", ctypes.c_uint32), ("height", ctypes.c_uint32))


class Fault(ctypes.Structure):
    _fields_ = (("status", ctypes.c_int), ("message", ctypes.c_char * 256))


class Codecs(ctypes.Structure):
    _fields_ = (
        ("probe", ctypes.c_void_p),
        (
            "decode",
            ctypes.CFUNCTYPE(ctypes.c_int, File, ctypes.POINTER(Limits), Size, ctypes.c_void_p, ctypes.POINTER(Fault)),
        ),
    )


def ours(library: Path) -> Side:
    """`images_codecs_t::decode` of a build."""
    entry = ctypes.CDLL(str(library)).uform_images_codecs
    entry.restype = ctypes.POINTER(Codecs)
    codecs, limits = entry().contents, Limits(1 << 28, 4 * 3600, 1 << 31)

    def decode(data: bytes, width: int, height: int) -> np.ndarray:
        rgb, fault = np.empty((height, width, 3), np.uint8), Fault()
        if codecs.decode(File(data, len(data)), limits, Size(width, height), rgb.ctypes.data, fault):
            raise ValueError(fault.message.decode())
        return rgb

    return decode


def pillow(data: bytes, width: int, height: int, draft: bool = False) -> np.ndarray:
    picture: Image.Image = Image.open(io.BytesIO(data))
    if draft:
        picture.draft("RGB", (width, height))
    return np.asarray(picture.convert("RGB").resize((width, height), Image.Resampling.BILINEAR))


def pillow_draft(data: bytes, width: int, height: int) -> np.ndarray:
    return pillow(data, width, height, draft=True)


def opencv(data: bytes, width: int, height: int, flags: int = cv2.IMREAD_COLOR) -> np.ndarray:
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    return np.asarray(cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA))


def opencv_reduced(data: bytes, width: int, height: int) -> np.ndarray:
    """At the largest reduction that leaves enough pixels."""
    ratio = min(PICTURE[0] / width, PICTURE[1] / height)
    flags = {8: cv2.IMREAD_REDUCED_COLOR_8, 4: cv2.IMREAD_REDUCED_COLOR_4, 2: cv2.IMREAD_REDUCED_COLOR_2}
    return opencv(data, width, height, next((flag for by, flag in flags.items() if by <= ratio), cv2.IMREAD_COLOR))


def simplejpeg_area(data: bytes, width: int, height: int) -> np.ndarray:
    picture = simplejpeg.decode_jpeg(data, min_width=width, min_height=height)
    return np.asarray(cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA))


def torchvision() -> dict[str, dict[str, Side]]:
    """By kind of file; none where it is not installed, or not for this build of torch."""
    try:
        from torchvision.io import ImageReadMode, decode_image
        from torchvision.transforms.v2.functional import resize
    except (ImportError, RuntimeError) as error:
        print(f"torchvision is left out: {error}", file=sys.stderr)
        return {}
    import torch

    def decode(data: bytes, width: int, height: int) -> np.ndarray:
        picture = decode_image(torch.frombuffer(bytearray(data), dtype=torch.uint8), ImageReadMode.RGB)
        shrunk: np.ndarray = resize(picture, [height, width], antialias=True).permute(1, 2, 0).numpy()
        return shrunk

    torch.set_num_threads(1)
    return {kind: {"torchvision": decode} for kind in FILES}


def saved(kind: str, pixels: np.ndarray, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


FILES: dict[str, Callable[[np.ndarray], bytes]] = {
    "JPEG": lambda pixels: saved("JPEG", pixels, quality=90),
    "progressive JPEG": lambda pixels: saved("JPEG", pixels, quality=90, progressive=True),
    "PNG": lambda pixels: saved("PNG", pixels),
    "WebP": lambda pixels: saved("WEBP", pixels, quality=90),
}
WHOLE: dict[str, Side] = {"Pillow": pillow, "OpenCV": opencv}
REDUCED: dict[str, Side] = {
    "Pillow, draft": pillow_draft,
    "OpenCV, reduced": opencv_reduced,
    "simplejpeg, min_width": simplejpeg_area,
}
PEERS = {kind: {**WHOLE, **(REDUCED if "JPEG" in kind else {})} for kind in FILES}


def decode_all(side: Side, files: list[bytes], width: int, height: int, run: Callable[..., Iterable[object]]) -> None:
    deque(run(lambda data: side(data, width, height), files), maxlen=0)


def size(text: str) -> tuple[int, int]:
    width, height = map(int, text.split("x"))
    return width, height


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--sizes", nargs="+", type=size, default=[(224, 224), (256, 192)])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, THREADS])
    parser.add_argument("--pictures", type=int, default=8, help="in a batch, each of its own")
    parser.add_argument("--seconds", type=float, default=2.0, help="spent on each side")
    parser.add_argument("--against", nargs="*", type=Path, default=[], help="other builds of libuform_images")
    parser.add_argument("--only-ours", action="store_true", help="without peers")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    cv2.setNumThreads(1)
    builds = {"UForm": ours(LIBRARY), **{f"UForm, {path.stem}": ours(path) for path in arguments.against}}
    vision = {} if arguments.only_ours else torchvision()
    pictures = [photo(*PICTURE, seed=seed, roughness=ROUGHNESS) for seed in range(arguments.pictures)]
    console, results, wrong = Console(width=120), {}, []
    console.print(f"{machine()}, {PICTURE[0]} x {PICTURE[1]} pixels")
    for kind in arguments.files:
        files = [FILES[kind](pixels) for pixels in pictures]
        peers = {} if arguments.only_ours else {**PEERS[kind], **vision.get(kind, {})}
        for width, height in arguments.sizes:
            sides = {**builds, **peers}
            reference = pillow_draft if "JPEG" in kind else pillow
            expected = [reference(data, width, height).astype(int) for data in files]
            differences = {}
            for name, side in sides.items():
                order = slice(None, None, -1) if "OpenCV" in name else slice(None)
                answers = [side(data, width, height)[..., order] for data in files]
                differences[name] = float(np.abs(np.stack(answers) - np.stack(expected)).mean())
                if name in builds and differences[name] > LARGEST_DIFFERENCE:
                    wrong.append(f"{name} on {kind}")
            for threads in arguments.threads:
                with ThreadPoolExecutor(threads) as pool:
                    run = pool.map if threads > 1 else map
                    batches = {
                        name: partial(decode_all, side, files, width, height, run) for name, side in sides.items()
                    }
                    timings = interleave(batches, arguments.seconds)
                best = min((timing.median for name, timing in timings.items() if name in peers), default=None)
                mean_bytes = sum(map(len, files)) / len(files)
                title = f"{kind}, {mean_bytes / 1024:.0f} KB, to {width} x {height}, threads: {threads}"
                table = Table("side", "images/s", "ms", "spread", "x Pillow", "x best peer", "difference", title=title)
                for name, timing in timings.items():
                    whole = timings["Pillow"].median if peers else timings["UForm"].median
                    table.add_row(
                        name, f"{len(files) / timing.median:.0f}", f"{timing.median / len(files) * 1e3:.2f}",
                        f"{timing.spread:.0%}", f"{whole / timing.median:.2f}",
                        f"{best / timing.median:.2f}" if best else "", f"{differences[name]:.2f}",
                    )  # fmt: skip
                console.print(table)
                results[title] = {name: timing.rounds for name, timing in timings.items()}
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "rounds": results}))
    if wrong:
        sys.exit(f"too far from Pillow: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
