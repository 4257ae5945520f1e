"""Pictures whose contents are known, for the tests: `python tests/media_files.py FOLDER`.

Made by Pillow, and by hand where Pillow cannot. What is in each is told where it is made.
"""

from __future__ import annotations

import io
import struct
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PNG_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Of interlaced pictures: first column, first row, columns apart, rows apart."""
ORIENTATIONS = (
    None,
    Image.Transpose.FLIP_LEFT_RIGHT,
    Image.Transpose.ROTATE_180,
    Image.Transpose.FLIP_TOP_BOTTOM,
    Image.Transpose.TRANSPOSE,
    Image.Transpose.ROTATE_270,
    Image.Transpose.TRANSVERSE,
    Image.Transpose.ROTATE_90,
)
"""What turns a stored picture upright, for EXIF's numbers from 1 on."""


def photo(width: int, height: int, seed: int = 0, roughness: float = 1.4) -> np.ndarray:
    """[height, width, 3] noise that is as smooth as photos are."""
    generator = np.random.default_rng(seed)
    frequencies = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None])
    frequencies[0, 0] = 1
    noise = generator.normal(size=(3, height, width))
    planes = np.fft.irfft2(np.fft.rfft2(noise) / frequencies**roughness, s=(height, width))
    grey, blue, red = planes / planes.std(axis=(1, 2), keepdims=True)
    blue, red = blue * 0.35, red * 0.35
    levels = 120 + 48 * np.stack([grey + red, grey - 0.3 * blue - 0.5 * red, grey + blue], axis=-1)
    pixels: np.ndarray = np.clip(levels, 0, 255).astype(np.uint8)
    return pixels


def blocks(width: int = 48, height: int = 32) -> np.ndarray:
    """[height, width, 3] squares of 8 x 8, each of another colour: no two of the eight orientations look the same."""
    squares = np.random.default_rng(1).integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
    return squares.repeat(8, axis=0).repeat(8, axis=1)


def exif(orientation: int, order: str = "<") -> bytes:
    """EXIF metadata with another tag before the orientation. `order`: "<" for Intel's, ">" for Motorola's."""
    mark = b"II" if order == "<" else b"MM"
    header = mark + struct.pack(order + "HI", 42, 8) + struct.pack(order + "H", 2)
    maker = struct.pack(order + "HHI4s", 0x010F, 2, 4, b"abc\0")
    turn = struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    return header + maker + turn + struct.pack(order + "I", 0)


def saved(picture: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_rows(pixels: np.ndarray, depth: int, filters: Iterable[int] = (0,)) -> bytes:
    """Filtered rows of [height, width, channels]; `filters` are used in turn."""
    height, _, channels = pixels.shape
    if depth == 16:
        packed = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    elif depth == 8:
        packed = pixels.astype(np.uint8).reshape(height, -1)
    else:
        bits = pixels.reshape(height, -1, 1) >> np.arange(depth - 1, -1, -1) & 1
        packed = np.packbits(bits.reshape(height, -1).astype(np.uint8), axis=1)
    apart = max(1, channels * depth // 8)
    numbers = list(filters)
    above = np.zeros(packed.shape[1], np.int64)
    lines = []
    for index, row in enumerate(packed.astype(np.int64)):
        left = np.concatenate([np.zeros(apart, np.int64), row[:-apart]])
        corner = np.concatenate([np.zeros(apart, np.int64), above[:-apart]])
        near = left + above - corner
        distances = np.abs(np.stack([near - left, near - above, near - corner]))
        paeth = np.choose(distances.argmin(axis=0), [left, above, corner])
        number = numbers[index % len(numbers)]
        predicted = (np.zeros_like(row), left, above, (left + above) // 2, paeth)[number]
        lines.append(bytes([number]) + (row - predicted).astype(np.uint8).tobytes())
        above = row
    return b"".join(lines)


def png_data(
    pixels: np.ndarray, depth: int, filters: Iterable[int] = (0,), interlaced: bool = False, level: int = -1
) -> bytes:
    """Compressed rows, in seven passes where they are interlaced."""
    rows = b""
    for left, top, across, down in PNG_PASSES if interlaced else ((0, 0, 1, 1),):
        part = pixels[top::down, left::across]
        if part.size:
            rows += png_rows(part, depth, filters)
    return zlib.compress(rows, level)


def png(
    pixels: np.ndarray,
    depth: int = 8,
    colour: int = 2,
    filters: Iterable[int] = (0,),
    interlaced: bool = False,
    before: bytes = b"",
    piece: int = 0,
    level: int = -1,
) -> bytes:
    """A PNG file of [height, width, channels].

    `before`: chunks before the data; `piece`: bytes of each of its chunks; `level`: of the compression.
    """
    height, width, channels = pixels.shape
    assert channels == PNG_CHANNELS[colour]
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    data = png_data(pixels, depth, filters, interlaced, level)
    pieces = [data[start : start + piece] for start in range(0, len(data), piece)] if piece else [data]
    body = b"".join(png_chunk(b"IDAT", part) for part in pieces)
    return PNG_SIGNATURE + png_chunk(b"IHDR", header) + before + body + png_chunk(b"IEND", b"")


def png_frame(number: int, width: int, height: int, left: int = 0, top: int = 0) -> bytes:
    """The header of an animation's frame."""
    fields = struct.pack(">IIIIIHHBB", number, width, height, left, top, 1, 10, 0, 0)
    return png_chunk(b"fcTL", fields)


def jpeg_of_scans(bits: int) -> bytes:
    """A block of 8 x 8, grey, all levels 128: after a scan for the mean, `bits` scans for each of 63 coefficients."""

    def segment(marker: int, data: bytes) -> bytes:
        return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data

    def scan(coefficient: int, above: int, bit: int) -> bytes:
        header = segment(0xDA, bytes([1, 1, 0, coefficient, coefficient, above << 4 | bit]))
        return header + b"\x7f"  # A code of one bit, zero, for nothing but zeros.

    file = b"\xff\xd8" + segment(0xDB, bytes([0] + [1] * 64))
    file += segment(0xC2, struct.pack(">BHHBBBB", 8, 8, 8, 1, 1, 0x11, 0))
    one_code = bytes([1] + [0] * 15 + [0])
    file += segment(0xC4, b"\x00" + one_code) + segment(0xC4, b"\x10" + one_code) + scan(0, 0, 0)
    for coefficient in range(1, 64):
        file += scan(coefficient, 0, bits - 1)
        file += b"".join(scan(coefficient, bit + 1, bit) for bit in reversed(range(bits - 1)))
    return file + b"\xff\xd9"


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    """A WebP file of chunks."""
    body = b"WEBP"
    for name, data in chunks:
        body += name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def u24(value: int) -> bytes:
    return struct.pack("<I", value)[:3]


def write_jpegs(folder: Path) -> None:
    natural = Image.fromarray(photo(320, 240))
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        (folder / f"photo_{name}.jpg").write_bytes(saved(natural, "JPEG", quality=92, subsampling=subsampling))
    # The same coefficients as photo_420.jpg: the same pixels.
    (folder / "photo_progressive.jpg").write_bytes(saved(natural, "JPEG", quality=92, progressive=True))
    (folder / "photo_optimized.jpg").write_bytes(saved(natural, "JPEG", quality=92, optimize=True))
    (folder / "photo_restarts.jpg").write_bytes(saved(natural, "JPEG", quality=92, restart_marker_blocks=3))
    (folder / "photo_grey.jpg").write_bytes(saved(natural.convert("L"), "JPEG", quality=92))
    (folder / "photo_rgb.jpg").write_bytes(saved(natural, "JPEG", quality=92, keep_rgb=True))
    odd = Image.fromarray(photo(317, 235))
    for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
        (folder / f"odd_{name}.jpg").write_bytes(saved(odd, "JPEG", quality=92, subsampling=subsampling))

    (folder / "small.jpg").write_bytes(saved(Image.fromarray(photo(8, 36)), "JPEG", quality=95))

    (folder / "scans_442.jpg").write_bytes(jpeg_of_scans(7))
    (folder / "scans_568.jpg").write_bytes(jpeg_of_scans(9))

    exact = {"quality": 100, "subsampling": 0}
    for orientation in range(1, 9):
        for order, byte_order in (("<", "intel"), (">", "motorola")):
            metadata = b"Exif\0\0" + exif(orientation, order)
            turned = saved(Image.fromarray(blocks()), "JPEG", exif=metadata, **exact)
            (folder / f"turned_{orientation}_{byte_order}.jpg").write_bytes(turned)
    (folder / "turned_9_intel.jpg").write_bytes(
        saved(Image.fromarray(blocks()), "JPEG", exif=b"Exif\0\0" + exif(9), **exact)
    )

    # Pillow inverts what it writes, as Adobe's programs do. The left half is red, the right one has all of black too.
    inks = np.zeros((16, 32, 4), np.uint8)
    inks[..., 1:3] = 255
    inks[:, 16:, 3] = 255
    cmyk = saved(Image.fromarray(inks, "CMYK"), "JPEG", quality=100)
    (folder / "cmyk.jpg").write_bytes(cmyk)
    # YCC of the inks themselves, since decoders invert it; the black ink is kept as it is.
    ycc = np.asarray(Image.fromarray(inks[..., :3]).convert("YCbCr"))
    planes = np.concatenate([255 - ycc, inks[..., 3:]], axis=-1)
    ycck = bytearray(saved(Image.fromarray(planes, "CMYK"), "JPEG", quality=100))
    ycck[ycck.index(b"Adobe") + 11] = 2
    (folder / "ycck.jpg").write_bytes(ycck)


def write_pngs(folder: Path) -> None:
    def write(name: str, data: bytes) -> None:
        (folder / f"{name}.png").write_bytes(data)

    # Every level there is, from left to right; as a file of one row, and of 9 rows that are interlaced.
    for depth in (1, 2, 4, 8, 16):
        levels = np.arange(256) * 257 if depth == 16 else np.arange(2**depth)
        row = levels.reshape(1, -1, 1)
        write(f"grey_{depth}", png(row, depth, 0))
        write(f"grey_{depth}_interlaced", png(row.repeat(9, axis=0), depth, 0, interlaced=True))
        key = struct.pack(">H", levels[0])
        write(f"grey_{depth}_key", png(row, depth, 0, before=png_chunk(b"tRNS", key)))
    # 16 bits are rounded to 8: 0, 0, 1, 1, 127, 128, 254, 255, 255.
    deep = np.array([0, 128, 129, 385, 32767, 32768, 65406, 65407, 65535]).reshape(1, -1, 1)
    write("rounding_16", png(deep, 16, 0))
    write("rgb_16", png(deep.repeat(3, axis=2), 16, 2))

    natural = photo(320, 240)
    write("photo", png(natural, filters=range(5)))
    write("photo_pieces", png(natural, filters=range(5), piece=1000))
    write("photo_interlaced", png(natural, filters=range(5), interlaced=True))
    odd = photo(317, 235)
    write("odd", png(odd, filters=(4, 3, 2, 1)))
    write("odd_interlaced", png(odd, filters=(4, 3, 2, 1), interlaced=True))
    for channels, colour in ((1, 0), (2, 4), (3, 2), (4, 6)):
        samples = np.random.default_rng(channels).integers(0, 65536, (19, 23, channels))
        for depth in (8, 16):
            noise = samples >> (16 - depth)
            write(f"noise_{colour}_{depth}", png(noise, depth, colour, filters=range(5)))
            write(f"noise_{colour}_{depth}_interlaced", png(noise, depth, colour, range(5), interlaced=True))
        # Most rows as photos have them.
        noise, filters = samples >> 8, (4, 4, 1, 4, 3, 4, 2, 4, 0)
        write(f"paeth_{colour}", png(noise, 8, colour, filters))
        write(f"paeth_{colour}_interlaced", png(noise, 8, colour, filters, interlaced=True))

    # Red, green, blue and half-transparent black, a quarter of the width each.
    palette = png_chunk(b"PLTE", bytes([255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0]))
    transparency = png_chunk(b"tRNS", bytes([255, 255, 255, 127]))
    for depth in (2, 4, 8):
        entries = np.arange(4).repeat(4).reshape(1, -1, 1).repeat(8, axis=0)
        write(f"palette_{depth}", png(entries, depth, 3, before=palette + transparency))
        write(f"palette_{depth}_interlaced", png(entries, depth, 3, interlaced=True, before=palette + transparency))
    two = png_chunk(b"PLTE", bytes([10, 20, 30, 40, 50, 60])) + png_chunk(b"tRNS", bytes([0]))
    write("palette_1", png(np.array([0, 1, 1]).reshape(1, 3, 1), 1, 3, before=two))
    # Red with alphas of 0, 51 and 255: white, (255, 204, 204), red.
    red = np.array([[[255, 0, 0, 0], [255, 0, 0, 51], [255, 0, 0, 255]]])
    write("alpha_8", png(red, 8, 6))
    write("alpha_16", png(red * 257, 16, 6))
    grey = np.array([[[0, 0], [0, 51], [0, 255]]])
    write("grey_alpha_8", png(grey, 8, 4))
    write("grey_alpha_16", png(grey * 257, 16, 4))
    # (1, 2, 3) is transparent.
    keyed = np.array([[[1, 2, 3], [3, 2, 1], [1, 2, 4]]])
    write("rgb_key_8", png(keyed, 8, 2, before=png_chunk(b"tRNS", struct.pack(">HHH", 1, 2, 3))))
    write("rgb_key_16", png(keyed * 257, 16, 2, before=png_chunk(b"tRNS", struct.pack(">HHH", 257, 514, 771))))

    # Not compressed: one stored block, whose rows are easily changed.
    for depth, colour in ((1, 0), (2, 3), (16, 4), (8, 2), (8, 6)):
        samples = np.random.default_rng(9).integers(0, 2**depth, (13, 9, PNG_CHANNELS[colour]))
        for interlaced in (False, True):
            chunks = palette + transparency if colour == 3 else b""
            name = f"stored_{depth}_{colour}" + "_interlaced" * interlaced
            write(name, png(samples, depth, colour, range(5), interlaced, chunks, level=0))

    for orientation in range(1, 9):
        write(f"turned_{orientation}", png(blocks(), before=png_chunk(b"eXIf", exif(orientation, ">"))))

    # Animations of a red frame and a blue one: the still picture is the first frame; or it is green and is not shown,
    # and the red frame covers the middle half of the canvas.
    control = png_chunk(b"acTL", struct.pack(">II", 2, 0))

    def solid(width: int, height: int, *levels: int) -> np.ndarray:
        return np.full((height, width, 3), levels, np.uint8)

    def numbered(number: int, pixels: np.ndarray) -> bytes:
        return png_chunk(b"fdAT", struct.pack(">I", number) + png_data(pixels, 8))

    end = png_chunk(b"IEND", b"")
    second = png_frame(1, 8, 8) + numbered(2, solid(8, 8, 0, 0, 255)) + end
    write("animation", png(solid(8, 8, 255, 0, 0), before=control + png_frame(0, 8, 8))[: -len(end)] + second)
    frames = png_frame(0, 4, 4, 2, 2) + numbered(1, solid(4, 4, 255, 0, 0))
    frames += png_frame(2, 8, 8) + numbered(3, solid(8, 8, 0, 0, 255)) + end
    write("animation_apart", png(solid(8, 8, 0, 255, 0), before=control)[: -len(end)] + frames)


def write_webps(folder: Path) -> None:
    def write(name: str, data: bytes) -> None:
        (folder / f"{name}.webp").write_bytes(data)

    natural = Image.fromarray(photo(320, 240))
    write("photo", saved(natural, "WEBP", quality=90))
    write("photo_lossless", saved(natural, "WEBP", lossless=True))
    write("odd", saved(Image.fromarray(photo(317, 235)), "WEBP", quality=90))
    for orientation in (3, 6):
        write(f"odd_{orientation}", saved(Image.fromarray(photo(317, 235)), "WEBP", quality=90, exif=exif(orientation)))
    red = Image.fromarray(np.array([[[255, 0, 0, 0], [255, 0, 0, 51], [255, 0, 0, 255]]], np.uint8))
    write("alpha", saved(red, "WEBP", lossless=True, exact=True))
    half = np.zeros((32, 32, 4), np.uint8)
    half[..., 3] = 127
    write("alpha_lossy", saved(Image.fromarray(half), "WEBP", quality=90, exact=True))
    for orientation in range(1, 9):
        turned = saved(Image.fromarray(blocks()), "WEBP", lossless=True, exif=exif(orientation))
        write(f"turned_{orientation}", turned)
    # Frames of red and blue; in the other one, the red frame covers the middle half of the canvas.
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    write("animation", saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True))
    small = saved(frames[0].resize((4, 4)), "WEBP", lossless=True)[12:]
    extent = u24(3) + u24(3) + u24(100) + b"\0"
    canvas = (b"VP8X", bytes([2, 0, 0, 0]) + u24(7) + u24(7))
    frame = (b"ANMF", u24(1) + u24(1) + extent + small)
    write("animation_apart", riff(canvas, (b"ANIM", bytes([0, 255, 0, 255, 0, 0])), frame))


def write_sizes(folder: Path) -> None:
    """Of all formats: pictures of extreme shapes, and a checkerboard of single pixels."""
    formats: dict[str, tuple[str, dict[str, Any]]] = {
        "jpg": ("JPEG", {"quality": 100, "subsampling": 0}),
        "png": ("PNG", {}),
        "webp": ("WEBP", {"lossless": True}),
    }
    for suffix, (kind, options) in formats.items():
        for width, height in ((1, 1), (3, 1), (1, 3), (1, 16000), (16000, 1), (17, 17)):
            grey = Image.new("RGB", (width, height), (60, 60, 60))
            (folder / f"size_{width}x{height}.{suffix}").write_bytes(saved(grey, kind, **options))
        board = (np.indices((256, 256)).sum(axis=0) % 2 * 255).astype(np.uint8)
        (folder / f"checkerboard.{suffix}").write_bytes(saved(Image.fromarray(board).convert("RGB"), kind, **options))
    (folder / "size_1x20000.png").write_bytes(saved(Image.new("RGB", (1, 20000), (60, 60, 60)), "PNG"))


def write_others(folder: Path) -> None:
    """What is no JPEG, PNG or WebP."""
    picture = Image.fromarray(blocks())
    for kind in ("GIF", "BMP", "TIFF", "ICO", "JPEG2000", "AVIF", "PPM"):
        (folder / f"other.{kind.lower()}").write_bytes(saved(picture, kind))
    (folder / "other.txt").write_bytes(b"No picture at all.\n")
    (folder / "other.svg").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "other.html").write_bytes(b"<!DOCTYPE html><p>404")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write_jpegs(folder)
    write_pngs(folder)
    write_webps(folder)
    write_sizes(folder)
    write_others(folder)


if __name__ == "__main__":
    main()
