"""The log-mel front end against the same in NumPy, in float64."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.front_end import BINS, RATE, log_mel

HERE = Path(__file__).parent


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
