"""Peak memory of loading and of calls, and what stays after many of them; every figure from a process of its own.

    python -m benchmarks.memory

Linux alone: it reads and resets the peak that the kernel keeps in /proc/self.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import uform

MIB = 1 << 20
THREADS = 2
CALLS = 5000


def resident(key: str) -> int:
    """Bytes under a key of /proc/self/status: `VmRSS` now, or `VmHWM` at the peak since `reset_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {key} in /proc/self/status")


def reset_peak() -> int:
    """Forgets the peak so far and returns what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def growth(action: Callable[[], Any]) -> tuple[int, int, Any]:
    """Bytes that `action` added at its peak, bytes that it left, and its result."""
    before = reset_peak()
    result = action()
    return resident("VmHWM") - before, resident("VmRSS") - before, result


def random_text(generator: np.random.Generator, length: int) -> bytes:
    return generator.integers(32, 127, length, dtype=np.uint8).tobytes()


def load(path: Path, quantization: uform.Scalar) -> dict[str, float]:
    """Loading: its peak, and what the model keeps."""
    peak, kept, model = growth(lambda: uform.Model.load_ram(path, quantization=quantization))
    return {"peak": peak, "kept": kept, "weights": model.describe().memory_usage, "file": path.stat().st_size}


def call(path: Path, texts: list[bytes]) -> dict[str, float]:
    """One call beyond the loaded weights; its arena, its scratch and its threads' stacks included."""
    model = uform.Model.load_ram(path)
    executor = uform.Executor.for_ram(THREADS)
    model.on(executor).text_encode([b"the library's own pages"], uform.Arena(executor))
    arena = uform.Arena(executor)
    peak, kept, _ = growth(lambda: model.on(executor).text_encode(texts, arena))
    return {"peak": peak, "kept": kept, "arena": arena.capacity}


def mixed(path: Path) -> dict[str, float]:
    """Calls of every kind and size, failing ones among them; what is resident after the first fifth, and at the end."""
    model = uform.Model.load_ram(path)
    executor = uform.Executor.for_ram(THREADS)
    arenas = [uform.Arena(executor) for _ in range(2)]
    outputs = uform.Outputs.EMBEDDINGS | uform.Outputs.STATES | uform.Outputs.TOKEN_VECTORS
    generator = np.random.default_rng(2)

    def once(index: int) -> None:
        arena = arenas[index // 6 % 2]
        texts = [random_text(generator, n) for n in generator.integers(0, 200, generator.integers(1, 9))]
        match index % 6:
            case 0:
                model.on(executor).text_encode(texts, arena)
            case 1:
                model.on(executor).text_encode(texts, arena, outputs=outputs, outputs_scalar=uform.Scalar.BF16)
            case 2:
                model.deferred(executor).text_encode(texts, arena).wait()
            case 3:
                model.on(executor).text_choose(texts, [b"yn"] * len(texts), arena)
            case 4:
                model.text_encode(texts[:2], arena, stats=uform.TextEncodeStats())
            case 5:
                try:
                    model.on(executor).text_choose(texts, [b""] * len(texts), arena)
                except uform.Error:
                    return
                raise RuntimeError("an empty set of choices was taken")

    for index in range(CALLS // 5):
        once(index)
    before = resident("VmRSS")
    for index in range(CALLS // 5, CALLS):
        once(index)
    return {"before": before, "growth": resident("VmRSS") - before}


def measure(name: str, path: Path) -> dict[str, float]:
    """One measurement, in this process."""
    from benchmarks.harness import workloads

    generator = np.random.default_rng(1)
    short = [random_text(generator, n) for n in generator.integers(20, 60, 709)]
    long = random_text(generator, 4096)
    match name:
        case "load BF16" | "load E4M3":
            return load(path, uform.Scalar[name.split()[1]])
        case "W1":
            return call(path, workloads()[0].texts)
        case "long alone":
            return call(path, [long])
        case "short alone":
            return call(path, short)
        case "long among short":
            return call(path, [*short[:400], long, *short[400:]])
        case "mixed":
            return mixed(path)
    raise ValueError(f"no measurement named {name}")


def in_its_own_process(name: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.memory", "--measure", name, "--path", str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def report() -> bool:
    """Prints every figure beside its limit; whether all are within theirs."""
    from rich.console import Console
    from rich.table import Table

    from benchmarks.harness import CACHE, checkpoint
    from tests.oracle import Configuration, Oracle

    small = CACHE / "small.safetensors"
    table, within = Table("model", "measurement", "MiB", "in relation", "limit"), True

    def row(model: str, name: str, size: float, relation: str, limit: str, good: bool = True) -> None:
        nonlocal within
        within &= good
        table.add_row(model, name, f"{size / MIB:.1f}", relation, limit if good else f"[red]{limit} MISSED")

    for model in ("tiny", "base"):
        path = checkpoint(model)
        for name in ("load BF16", "load E4M3"):
            figures = in_its_own_process(name, path)
            ratio = figures["peak"] / figures["weights"]
            relation = f"{ratio:.2f} of the weights' {figures['weights'] / MIB:.1f}"
            row(model, f"{name}, peak", figures["peak"], relation, "1.2", ratio <= 1.2)
            row(model, f"{name}, kept", figures["kept"], f"{figures['kept'] / figures['weights']:.2f} of them", "")
        weights = figures["weights"]
        w1 = in_its_own_process("W1", path)
        row(model, "W1, peak beyond the weights", w1["peak"], f"{w1['peak'] / weights:.2f} of E4M3 weights", "")
        alone, among = in_its_own_process("long alone", path), in_its_own_process("long among short", path)
        row(model, "4,096 bytes alone, peak", alone["peak"], "", "")
        row(model, "709 short ones, peak", in_its_own_process("short alone", path)["peak"], "", "")
        ratio = among["peak"] / alone["peak"]
        row(model, "4,096 bytes among 709 short ones", among["peak"], f"{ratio:.2f} of alone", "2", ratio < 2)

    configuration = Configuration(
        depth=2, hidden=128, head_dimension=32, width=384, dimensions=128, context=512, token_width=32,
        choice_temperature_groups=2,
    )  # fmt: skip
    Oracle.random(configuration, seed=0).save(small)
    figures = in_its_own_process("mixed", small)
    name = f"growth from call {CALLS // 5:,} to call {CALLS:,}"
    row("small", name, figures["growth"], f"of {figures['before'] / MIB:.1f}", "1 MiB", figures["growth"] < MIB)
    Console(width=120).print(table)
    return within


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.path)))
    elif not report():
        sys.exit("a limit was missed")


if __name__ == "__main__":
    main()
