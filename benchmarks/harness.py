"""What the benchmarks share: models, workloads, interleaved timing, and the machine."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.oracle import Audio, Configuration, Image, Oracle, Video

THREADS = 2
REST = 0.25
"""Seconds: longer than the default spin of OpenMP's threads."""
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "uform-benchmarks"

MODELS = {
    "tiny": Configuration(
        depth=6, hidden=256, head_dimension=64, width=704, dimensions=256, context=4096, token_width=64
    ),
    "base": Configuration(
        depth=12, hidden=512, head_dimension=64, width=1408, dimensions=512, context=4096, token_width=64
    ),
}
MODELS["tiny-media"] = replace(MODELS["tiny"], image=Image(), video=Video(), audio=Audio())
MODELS["front-end"] = replace(
    MODELS["tiny-media"], depth=1, hidden=32, head_dimension=32, width=64, dimensions=8, token_width=0, local_window=16
)
"""Next to no network: for what comes before it."""


def checkpoint(name: str) -> Path:
    """A checkpoint with random weights, made once."""
    path = CACHE / f"{name}.safetensors"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        Oracle.random(MODELS[name], seed=0).save(path)
    return path


@dataclass(frozen=True)
class Workload:
    """A batch of texts."""

    name: str
    description: str
    texts: list[bytes]

    @property
    def tokens(self) -> int:
        return sum(map(len, self.texts))

    def flops(self, configuration: Configuration) -> float:
        """Multiply-adds counted twice: products by the tokens, attention by their pairs. No padding, no heads."""
        hidden, width = configuration.hidden, configuration.width
        products = self.tokens * (8 * hidden**2 + 6 * hidden * width)
        pairs = sum(len(text) ** 2 for text in self.texts) * 4 * hidden
        return float(configuration.depth * (products + pairs))


def workloads() -> list[Workload]:
    generator = np.random.default_rng(1)

    def text(length: int) -> bytes:
        return generator.integers(32, 127, length, dtype=np.uint8).tobytes()

    # A log-normal of this spread has its mean at 1.26 times its median; the cut at 512 takes a little off.
    lengths = np.clip(np.exp(generator.normal(np.log(98), 0.68, 256)), 1, 512).astype(int)
    return [
        Workload("W1", f"256 ragged texts, mean {lengths.mean():.0f} bytes, at most 512", [text(n) for n in lengths]),
        Workload("W2", "one text of 64 bytes", [text(64)]),
        Workload("W3", "32 texts of 512 bytes", [text(512) for _ in range(32)]),
        Workload("W4", "4 texts of 4,096 bytes", [text(4096) for _ in range(4)]),
    ]


@dataclass(frozen=True)
class Timing:
    """Seconds of the rounds of one side."""

    rounds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float:
        """Interquartile range over the median."""
        if len(self.rounds) < 4:
            return 0.0
        quartiles = statistics.quantiles(self.rounds, n=4)
        return (quartiles[2] - quartiles[0]) / self.median


def interleave(sides: dict[str, Callable[[], object]], seconds: float = 6.0, least: int = 5) -> dict[str, Timing]:
    """Times every side in turn, round after round: at least `least` rounds, then until `seconds` a side are spent.

    A round of a fast side repeats it for 20 ms. Each side was warmed up by two calls of its own, and starts each round
    after a rest and one call that is not timed: the threads of some engines spin on for a while after a call.
    """
    repeats = {}
    for name, side in sides.items():
        side()
        start = time.perf_counter()
        side()
        repeats[name] = max(1, round(0.02 / max(time.perf_counter() - start, 1e-6)))
    rounds: dict[str, list[float]] = {name: [] for name in sides}
    begin = time.perf_counter()
    while len(next(iter(rounds.values()))) < least or time.perf_counter() - begin < seconds * len(sides):
        for name, side in sides.items():
            time.sleep(REST)
            if repeats[name] > 1:
                side()
            start = time.perf_counter()
            for _ in range(repeats[name]):
                side()
            rounds[name].append((time.perf_counter() - start) / repeats[name])
        if len(next(iter(rounds.values()))) >= 200:
            break
    return {name: Timing(times) for name, times in rounds.items()}


def has(module: str) -> bool:
    """Whether a peer's module is there; prints why not."""
    try:
        __import__(module)
    except (ImportError, OSError, RuntimeError) as error:
        print(f"{module} is left out: {str(error).splitlines()[0]}")
        return False
    return True


def machine() -> str:
    """Processor, cores, and the instruction sets that decide."""
    model, flags = platform.processor() or platform.machine(), set()
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            if key.strip() == "flags":
                flags = set(value.split())
    wanted = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if flag in flags]
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {' '.join(wanted)}, load {os.getloadavg()[0]:.1f}"
