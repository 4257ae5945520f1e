"""`text_encode` against the same model in other engines: same weights, same texts, two threads, interleaved in one run.

python -m benchmarks.text_encode --model tiny --tcmalloc
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import uform
from benchmarks.harness import MODELS, THREADS, Timing, checkpoint, interleave, machine, workloads
from benchmarks.peers import PEERS
from tests.oracle import Oracle

LEAST_COSINE = 0.999
# Peers in bf16 keep their residuals in it, and so lose accuracy; their times stand, for less accurate results.
LEAST_COSINE_OF_BF16_PEERS = 0.99
CLASSES = ["SKYLAKE", "HASWELL"]
TCMALLOC = Path("/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4")


class Ours:
    """UForm with one executor and one arena."""

    def __init__(self, path: Path, quantization: uform.Scalar, cpu_class: uform.CPUClass | None = None) -> None:
        self.model = uform.Model.load_ram(path, quantization=quantization, cpu_class=cpu_class)
        self.executor = uform.Executor.for_ram(THREADS)
        self.arena = uform.Arena(self.executor)

    def encode(self, texts: list[bytes]) -> np.ndarray:
        return np.array(self.model.on(self.executor).text_encode(texts, self.arena).embeddings)


def ours(path: Path, classes: list[str]) -> dict[str, Ours]:
    """BF16, E4M3, and those of the F32 classes that are below the one that the machine derives."""
    sides = {"uform BF16": Ours(path, uform.Scalar.BF16), "uform E4M3": Ours(path, uform.Scalar.E4M3)}
    derived = sides["uform BF16"].model.describe().cpu_class
    for cpu_class in (uform.CPUClass[name] for name in classes):
        if derived is not None and cpu_class < derived:
            sides[f"uform {cpu_class.name}"] = Ours(path, uform.Scalar.BF16, cpu_class)
    return sides


def with_tcmalloc() -> None:
    """Starts again with tcmalloc: glibc returns PyTorch's large buffers, and then pays for every page again."""
    if "libtcmalloc" in os.environ.get("LD_PRELOAD", ""):
        return
    if not TCMALLOC.exists():
        sys.exit(f"{TCMALLOC} is missing: apt-get install libtcmalloc-minimal4")
    os.execve(sys.executable, [sys.executable, "-m", "benchmarks.text_encode", *sys.argv[1:]],
              os.environ | {"LD_PRELOAD": str(TCMALLOC)})  # fmt: skip


def lowest_cosine(embeddings: np.ndarray, expected: np.ndarray) -> float:
    """Between the rows of a side and the oracle's in F32: nobody is fast by computing something else."""
    return float((embeddings * expected).sum(1).min() if np.isfinite(embeddings).all() else -1.0)


def least_cosine(name: str) -> float:
    """What a side's embeddings have to agree with the oracle by."""
    return LEAST_COSINE_OF_BF16_PEERS if name in PEERS and "bf16" in name else LEAST_COSINE


def peak(name: str, arguments: argparse.Namespace) -> float:
    """FLOP/s that the cores reach in the products that a side computes with."""
    f32 = "f32" in name or "SKYLAKE" in name or "HASWELL" in name
    return 1e9 * THREADS * (arguments.peak_f32 if f32 else arguments.peak_bf16)


def best(timings: dict[str, Timing], scalar: str) -> float:
    """The fastest peer of a scalar; infinite without any."""
    peers = [timing.median for name, timing in timings.items() if not name.startswith("uform") and scalar in name]
    return min(peers, default=float("inf"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="tiny")
    parser.add_argument("--workloads", nargs="+", default=["W1", "W2", "W3", "W4"])
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--classes", nargs="*", default=CLASSES, choices=CLASSES, help="ours in F32")
    parser.add_argument("--seconds", type=float, default=6.0, help="spent on each side and workload")
    parser.add_argument("--rounds", type=int, default=5, help="at least, whatever they take")
    parser.add_argument(
        "--tcmalloc", action="store_true", help="for all sides; OpenVINO, which crashes over it, is left out"
    )
    parser.add_argument("--peak-bf16", type=float, default=232.0, help="GFLOP/s of one core in VDPBF16PS")
    parser.add_argument("--peak-f32", type=float, default=117.0, help="GFLOP/s of one core in F32")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.tcmalloc:
        # OpenVINO frees memory that it did not get from the allocator in place, and crashes.
        arguments.peers = [name for name in arguments.peers if "OpenVINO" not in name]
        with_tcmalloc()

    path, configuration = checkpoint(arguments.model), MODELS[arguments.model]
    sides = {**ours(path, arguments.classes), **{name: PEERS[name](path) for name in arguments.peers}}
    oracle = Oracle.from_checkpoint(path, dtype=torch.float32)
    console, results, wrong = Console(width=120), {}, []
    console.print(f"{machine()}, tcmalloc {'on' if arguments.tcmalloc else 'off'}, torch {torch.__version__}")
    for workload in workloads():
        if workload.name not in arguments.workloads:
            continue
        expected = oracle.encode_texts(workload.texts)[0].numpy()
        texts = workload.texts
        cosines = {name: lowest_cosine(side.encode(texts), expected) for name, side in sides.items()}
        wrong += [f"{name} on {workload.name}" for name, cosine in cosines.items() if cosine < least_cosine(name)]
        timings = interleave({name: lambda side=side, texts=texts: side.encode(texts) for name, side in sides.items()},
                             arguments.seconds, arguments.rounds)  # fmt: skip
        flops, best_bf16, best_f32 = workload.flops(configuration), best(timings, "bf16"), best(timings, "f32")
        title = f"{arguments.model} {workload.name}: {workload.description}, {flops / 1e9:.1f} GFLOP"
        table = Table(
            "side", "median ms", "spread", "GFLOP/s", "of peak", "x best bf16 peer", "x best f32 peer", "lowest cosine",
            title=title,
        )  # fmt: skip
        for name, timing in timings.items():
            table.add_row(
                name, f"{timing.median * 1e3:.2f}", f"{timing.spread:.0%}", f"{flops / timing.median / 1e9:.0f}",
                f"{flops / timing.median / peak(name, arguments):.0%}",
                f"{best_bf16 / timing.median:.2f}", f"{best_f32 / timing.median:.2f}", f"{cosines[name]:.5f}",
            )  # fmt: skip
        console.print(table)
        results[workload.name] = {name: timing.rounds for name, timing in timings.items()}
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "model": arguments.model, "rounds": results}))
    if wrong:
        sys.exit(f"too far from the F32 oracle: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
