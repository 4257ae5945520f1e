"""Items of each media verb, for the tests of them, and the fixtures that call the verbs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

import uform
from tests.clip_files import colours, ffmpeg
from tests.media_files import photo, saved

ALL = uform.Outputs.EMBEDDINGS | uform.Outputs.STATES | uform.Outputs.TOKEN_VECTORS
RATE = 16000


def wav(samples: np.ndarray, rate: int = RATE, subtype: str = "FLOAT") -> bytes:
    """[samples] or [samples, channels] as a file."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, subtype=subtype, format="WAV")
    return file.getvalue()


def speech(count: int, seed: int = 0) -> np.ndarray:
    """[count] float32 of noise that comes and goes."""
    generator = np.random.default_rng(seed)
    loudness = np.interp(np.arange(count), np.linspace(0, max(count, 1), 12), generator.random(12))
    return (0.5 * loudness * generator.normal(size=count)).clip(-1, 1).astype(np.float32)


PICTURES = [photo(60, 40, 0), np.full((1, 1, 3), 99, np.uint8), photo(200, 7, 2), photo(31, 33, 3)]
RECORDINGS = [speech(count, count) for count in (16000, 1, 5000, 640, 100_000)]


@pytest.fixture(scope="session")
def media(small_checkpoint: str) -> uform.Model:
    """A random model that takes everything."""
    return uform.Model.load_ram(small_checkpoint)


@pytest.fixture(scope="session")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Two seconds of four colours as MP4 and as WebM, and half of a second."""
    folder = tmp_path_factory.mktemp("videos")
    sharp = ["-crf", "4", "-pix_fmt", "yuv420p"]
    ffmpeg(*colours(), "-c:v", "libx264", "-preset", "ultrafast", *sharp, folder / "colours.mp4")
    vp9 = ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-b:v", "0"]
    ffmpeg(*colours(), *vp9, *sharp, folder / "colours.webm")
    ffmpeg("-i", folder / "colours.mp4", "-t", "0.5", "-c", "copy", folder / "short.mp4")
    return [(folder / name).read_bytes() for name in ("colours.mp4", "colours.webm", "short.mp4")]


@dataclass
class Verb:
    """A verb with items that it takes."""

    name: str
    items: list[Any]
    stats: type[uform.ImageEncodeStats] | type[uform.VideoEncodeStats] | type[uform.AudioEncodeStats]
    extra: tuple[Any, ...] = ()

    def on(self, receiver: Any, items: Any, arena: uform.Arena | None = None, **options: Any) -> Any:
        """Calls it; an arena is made where none is given."""
        return getattr(receiver, self.name)(items, *self.extra, arena or uform.Arena(), **options)


FILES = ["image_encode", "video_encode", "audio_encode"]
ARRAYS = ["image_encode_pixels", "audio_encode_samples"]


@pytest.fixture
def verb(request: pytest.FixtureRequest, videos: list[bytes]) -> Verb:
    name = request.param
    if name == "image_encode":
        files = [saved(Image.fromarray(picture), kind) for picture in PICTURES for kind in ("PNG", "JPEG", "WEBP")]
        return Verb(name, files, uform.ImageEncodeStats)
    if name == "image_encode_pixels":
        return Verb(name, PICTURES, uform.ImageEncodeStats)
    if name == "video_encode":
        return Verb(name, videos, uform.VideoEncodeStats)
    if name == "audio_encode":
        return Verb(name, [wav(recording) for recording in RECORDINGS], uform.AudioEncodeStats)
    return Verb(name, RECORDINGS, uform.AudioEncodeStats, (RATE,))


every_verb = pytest.mark.parametrize("verb", FILES + ARRAYS, indirect=True)
every_file_verb = pytest.mark.parametrize("verb", FILES, indirect=True)


def copied(encoded: uform.EncodedBatch) -> tuple[np.ndarray, ...]:
    """Embeddings, states, token vectors, and both offsets."""
    assert encoded.states is not None
    assert encoded.token_vectors is not None
    surfaces = (*encoded, encoded.states.offsets, encoded.token_vectors.offsets)
    return tuple(np.array(surface) for surface in surfaces)


def assert_same(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    """To the bit."""
    for left, right in zip(found, expected, strict=True):
        assert left.tobytes() == right.tobytes()


def assert_near(rows: np.ndarray, expected: np.ndarray, cosine: float, error: float) -> None:
    """Each row of [rows, columns] by its cosine and by its largest difference, a share of the row's largest number."""
    found = rows.astype(np.float64)
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    assert ((found * expected).sum(axis=1) / lengths).min() > cosine
    assert (np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)).max() < error
