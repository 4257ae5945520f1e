"""How pictures, videos and recordings become patches, in NumPy: see csrc/model/FORMAT.md."""

from __future__ import annotations

import math

import numpy as np

from tests.oracle import Image, Video

WINDOW, HOP, BINS, RATE = 400, 160, 80, 16000


def hertz(mel: np.ndarray) -> np.ndarray:
    """Slaney's scale (Auditory Toolbox, 1998): linear to 1 kHz, or 15 mel, and logarithmic above."""
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))


def filters() -> np.ndarray:
    """[BINS, WINDOW // 2 + 1] triangles of unit area."""
    top = 15 + 27 * np.log(RATE / 2 / 1000) / np.log(6.4)
    corners = hertz(np.linspace(0, top, BINS + 2))[:, None]
    frequencies = np.fft.rfftfreq(WINDOW, 1 / RATE)
    rising = (frequencies - corners[:-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[2:] - frequencies) / (corners[2:] - corners[1:-1])
    return np.maximum(0, np.minimum(rising, falling)) * 2 / (corners[2:] - corners[:-2])


def log_mel(samples: np.ndarray) -> np.ndarray:
    """[samples] to [frames, BINS]"""
    frames = -(-len(samples) // HOP)
    padded = np.pad(samples.astype(np.float64), WINDOW, mode="reflect" if len(samples) > 1 else "edge")
    starts = WINDOW // 2 + HOP * np.arange(frames)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    power = np.abs(np.fft.rfft(padded[starts[:, None] + np.arange(WINDOW)] * window)) ** 2
    levels = np.log10(np.maximum(power @ filters().T, 1e-10))
    return (np.maximum(levels, levels.max() - 8) + 4) / 4


def grid(height: int, width: int, side: int, most: int) -> tuple[int, int]:
    """Rows and columns of patches of a picture."""

    def along(length: int, across: int) -> int:
        return max(1, min(math.isqrt(most * length // across), -(-length // side), most))

    return along(height, width), along(width, height)


def cut(frames: np.ndarray, side: int, depth: int = 1) -> np.ndarray:
    """Pictures [frames, height, width, 3] of bytes to patches [times, rows, columns, patch width] in [-1, 1].

    The last picture stands in for those that a last tubelet of `depth` pictures lacks.
    """
    count, height, width, _ = frames.shape
    times, rows, columns = -(-count // depth), height // side, width // side
    taken = frames[np.minimum(np.arange(times * depth), count - 1)].astype(np.float64) / 127.5 - 1
    blocks = taken.reshape(times, depth, rows, side, columns, side, 3)
    return blocks.transpose(0, 2, 4, 1, 3, 5, 6).reshape(times, rows, columns, -1)


def image_patches(picture: np.ndarray, image: Image) -> np.ndarray:
    """A picture that has the size of its grid already."""
    return cut(picture[None], image.patch_side)


def video_patches(frames: np.ndarray, video: Video) -> np.ndarray:
    """Frames that have the size of their grid already."""
    return cut(frames, video.patch_side, video.frames)


def audio_patches(samples: np.ndarray, frames_per_token: int) -> np.ndarray:
    """Samples at 16 kHz to [tokens, 1, 1, patch width]; the last frame stands in for those that a last token lacks."""
    frames = log_mel(samples)
    tokens = -(-len(frames) // frames_per_token)
    taken = frames[np.minimum(np.arange(tokens * frames_per_token), len(frames) - 1)]
    return taken.reshape(tokens, 1, 1, -1)
