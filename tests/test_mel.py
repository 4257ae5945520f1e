"""The log-mel front end against the same in NumPy, in float64."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
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


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("mel") / "test_mel"
    root = HERE.parent
    includes = [f"-I{root / folder}" for folder in ("csrc", "csrc/include", "tests/c")]
    sources = [root / "csrc/media/mel.cpp", root / "tests/c/test_mel.cpp"]
    compiler = os.environ.get("CXX", "c++")
    subprocess.run([compiler, "-std=c++20", "-O2", *includes, *map(str, sources), "-o", str(program)], check=True)
    return program


@pytest.mark.parametrize("count", [1, 2, 159, 160, 161, 400, 16000, 123457])
@pytest.mark.parametrize("kind", ["noise", "tone", "chirp", "silence"])
def test_frames_equal_those_of_numpy(program: Path, tmp_path: Path, kind: str, count: int) -> None:
    time = np.arange(count) / RATE
    samples = {
        "noise": np.random.default_rng(count).normal(0, 0.1, count),
        "tone": np.sin(2 * np.pi * 440 * time),
        "chirp": 0.5 * np.sin(2 * np.pi * (100 + 3000 * time) * time) * np.exp(-time),
        "silence": np.zeros(count),
    }[kind].astype(np.float32)
    samples.tofile(tmp_path / "samples")
    subprocess.run([str(program), str(tmp_path / "samples"), str(tmp_path / "frames")], check=True)
    frames = np.fromfile(tmp_path / "frames", np.float32).reshape(-1, BINS)
    expected = log_mel(samples)
    assert frames.shape == expected.shape
    np.testing.assert_allclose(frames, expected, rtol=0, atol=1e-4)
