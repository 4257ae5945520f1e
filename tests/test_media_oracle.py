"""Pictures, videos and recordings through the network, against the plain model in float64 on the same patches."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Sequence

import numpy as np
import pytest
import torch

import uform
from tests import front_end
from tests.oracle import Audio, Configuration, Image, Oracle, Video

EVERY = uform.Outputs.EMBEDDINGS | uform.Outputs.STATES | uform.Outputs.TOKEN_VECTORS
SIDE, FPS = 16, 4.0

CONFIGURATION = Configuration(
    depth=3,
    hidden=128,
    head_dimension=64,
    width=Configuration.width_for(128),
    dimensions=48,
    context=160,
    token_width=40,
    image=Image(patch_side=SIDE, max_patches=60),
    video=Video(patch_side=SIDE, max_patches=20, frames=2, max_frames=14, frame_rate=FPS),
    audio=Audio(frames_per_token=4),
    local_window=12,
    global_every=3,
)
# A patch of 3 x 7 x 7 numbers fills no whole vector, tile or panel.
ODD = Configuration(
    depth=1,
    hidden=64,
    head_dimension=32,
    width=Configuration.width_for(64),
    dimensions=33,
    context=40,
    token_width=7,
    image=Image(patch_side=7, max_patches=33),
    audio=Audio(frames_per_token=3),
)


class Pair:
    """A model and its oracle."""

    def __init__(self, configuration: Configuration, path: str) -> None:
        Oracle.random(configuration, seed=5).save(path)
        self.configuration = configuration
        self.path = path
        self.oracle = Oracle.from_checkpoint(path, torch.float64)
        self.quantized = Oracle.from_checkpoint(path, torch.float64, e4m3=True)

    def load(self, cpu_class: uform.CPUClass, quantization: uform.Scalar = uform.Scalar.BF16) -> uform.Model:
        return uform.Model.load_ram(self.path, cpu_class=cpu_class, quantization=quantization)

    def check(
        self, model: uform.Model, encoded: uform.EncodedBatch, modality: str, items: Sequence[np.ndarray]
    ) -> None:
        """`items`: the patches that each item has become, [times, rows, columns, patch width]."""
        oracle = self.quantized if model.describe().quantization == uform.Scalar.E4M3 else self.oracle
        embeddings = np.array(encoded.embeddings)
        states, vectors = np.array(encoded.states), np.array(encoded.token_vectors)
        offsets = np.array(encoded.states.offsets)
        assert offsets.tolist() == np.array(encoded.token_vectors.offsets).tolist()
        assert (len(embeddings), len(offsets)) == (len(items), len(items) + 1)
        for index, patches in enumerate(items):
            wanted, wanted_states = oracle.encode_patches(modality, torch.from_numpy(patches))
            own = slice(int(offsets[index]), int(offsets[index + 1]))
            assert own.stop - own.start == np.prod(patches.shape[:3])
            assert embeddings[index] @ wanted.numpy() >= 0.9999
            wanted_vectors = oracle.token_vectors(wanted_states).detach().numpy()
            assert (vectors[own] * wanted_vectors).sum(1).min() >= 0.999
            scale = wanted_states.abs().max().item()
            np.testing.assert_allclose(states[own], wanted_states.numpy(), rtol=0, atol=0.03 * scale)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(CONFIGURATION, str(tmp_path_factory.mktemp("media") / "pair.safetensors"))


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(ODD, str(tmp_path_factory.mktemp("media") / "odd.safetensors"))


def pictures(sides: Sequence[tuple[int, int]], side: int) -> list[np.ndarray]:
    """Pictures of so many patches, which need no resizing."""
    random = np.random.default_rng(1)
    return [random.integers(0, 256, (side * rows, side * columns, 3), dtype=np.uint8) for rows, columns in sides]


def recordings(counts: Sequence[int]) -> list[np.ndarray]:
    random = np.random.default_rng(2)
    return [random.normal(0, 0.1, count).astype(np.float32) for count in counts]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pixels(pair: Pair, cpu_class: uform.CPUClass, threads: int) -> None:
    items = pictures([(1, 1), (6, 10), (7, 7), (1, 60), (20, 3), (2, 5)], SIDE)
    model = pair.load(cpu_class)
    with uform.Executor.for_ram(threads) as executor:
        encoded = model.on(executor).image_encode_pixels(items, uform.Arena(), outputs=EVERY)
    pair.check(model, encoded, "image", [front_end.cut(item[None], SIDE) for item in items])


def test_pixels_of_a_quantized_model(pair: Pair, cpu_class: uform.CPUClass) -> None:
    items = pictures([(3, 4), (6, 10)], SIDE)
    model = pair.load(cpu_class, uform.Scalar.E4M3)
    encoded = model.image_encode_pixels(items, uform.Arena(), outputs=EVERY)
    pair.check(model, encoded, "image", [front_end.cut(item[None], SIDE) for item in items])


def test_patches_that_fill_no_vector(odd: Pair, cpu_class: uform.CPUClass) -> None:
    model = odd.load(cpu_class)
    items = pictures([(1, 1), (5, 6), (3, 11)], 7)
    encoded = model.image_encode_pixels(items, uform.Arena(), outputs=EVERY)
    odd.check(model, encoded, "image", [front_end.cut(item[None], 7) for item in items])
    sounds = recordings([1, 480, 481, 5000])
    encoded = model.audio_encode_samples(sounds, 16000, uform.Arena(), outputs=EVERY)
    odd.check(model, encoded, "audio", [front_end.audio_patches(sound, 3) for sound in sounds])


def test_samples(pair: Pair, cpu_class: uform.CPUClass) -> None:
    sounds = recordings([1, 159, 640, 641, 16000, 160 * 640])
    model = pair.load(cpu_class)
    encoded = model.audio_encode_samples(sounds, 16000, uform.Arena(), outputs=EVERY)
    pair.check(model, encoded, "audio", [front_end.audio_patches(sound, 4) for sound in sounds])


def test_samples_past_the_context(pair: Pair, cpu_class: uform.CPUClass) -> None:
    """What is cut off has no say: not in the loudest frame either."""
    most = 160 * 4 * CONFIGURATION.context
    sound = recordings([most + 2000])[0]
    sound[most + 1000 :] *= 100
    stats = uform.AudioEncodeStats()
    model = pair.load(cpu_class)
    encoded = model.audio_encode_samples([sound], 16000, uform.Arena(), outputs=EVERY, stats=stats)
    pair.check(model, encoded, "audio", [front_end.audio_patches(sound[:most], 4)])
    assert (stats.truncated_items, stats.encoded_tokens) == (1, CONFIGURATION.context)


def wave(sound: np.ndarray) -> bytes:
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, sound, 16000, subtype="FLOAT", format="WAV")
    return file.getvalue()


def test_a_file_of_samples_is_those_samples(pair: Pair) -> None:
    sounds = recordings([1, 2000, 16000])
    model = pair.load(uform.CPUClass.SERIAL)
    from_samples = model.audio_encode_samples(sounds, 16000, uform.Arena())
    from_files = model.audio_encode([wave(sound) for sound in sounds], uform.Arena())
    np.testing.assert_array_equal(np.array(from_files.embeddings), np.array(from_samples.embeddings))


def png(picture: np.ndarray) -> bytes:
    from PIL import Image as Pillow

    file = io.BytesIO()
    Pillow.fromarray(picture).save(file, "PNG")
    return file.getvalue()


def test_a_file_of_pixels_is_those_pixels(pair: Pair) -> None:
    random = np.random.default_rng(3)
    items = [
        random.integers(0, 256, (height, width, 3), dtype=np.uint8) for height, width in [(5, 9), (64, 64), (333, 200)]
    ]
    model = pair.load(uform.CPUClass.SERIAL)
    from_pixels = model.image_encode_pixels(items, uform.Arena())
    from_files = model.image_encode([png(item) for item in items], uform.Arena())
    np.testing.assert_array_equal(np.array(from_files.embeddings), np.array(from_pixels.embeddings))


def lossless_clip(frames: np.ndarray, rate: int) -> bytes:
    """MP4 of H.264 without loss, in RGB; in fragments, which a pipe can take."""
    height, width = frames.shape[1:3]
    raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(rate), "-i", "-"]
    coded = ["-c:v", "libx264rgb", "-qp", "0", "-preset", "ultrafast", "-f", "mp4", "-movflags", "empty_moov", "-"]
    command = ["ffmpeg", "-v", "error", *raw, *coded]
    return subprocess.run(command, input=frames.tobytes(), check=True, capture_output=True).stdout


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_videos(pair: Pair, cpu_class: uform.CPUClass, count: int) -> None:
    random = np.random.default_rng(count)
    rate, (rows, columns) = 8, (4, 5)
    frames = random.integers(0, 256, (count, rows * SIDE, columns * SIDE, 3), dtype=np.uint8)
    stats = uform.VideoEncodeStats()
    model = pair.load(cpu_class)
    encoded = model.video_encode([lossless_clip(frames, rate)], uform.Arena(), outputs=EVERY, stats=stats)
    assert CONFIGURATION.video
    picked = frames[:: int(rate / FPS)][: CONFIGURATION.video.max_frames]
    pair.check(model, encoded, "video", [front_end.cut(picked, SIDE, 2)])
    assert stats.encoded_frames == len(picked)
    assert stats.truncated_items == (count == 40)


@pytest.mark.parametrize(
    ("height", "width"), [(1, 1), (768, 1024), (1024, 768), (1, 5000), (5000, 1), (375, 500), (20, 20), (4000, 3000)]
)
def test_grids(pair: Pair, height: int, width: int) -> None:
    encoded = pair.load(uform.CPUClass.SERIAL).image_encode_pixels(
        [np.zeros((height, width, 3), np.uint8)], uform.Arena(), outputs=uform.Outputs.STATES
    )
    assert CONFIGURATION.image
    rows, columns = front_end.grid(height, width, SIDE, CONFIGURATION.image.max_patches)
    assert np.array(encoded.states.offsets).tolist() == [0, rows * columns]
