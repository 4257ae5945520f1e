"""Tensors over outputs: what `to_tensor` costs beside other ways, and what an arena over torch's memory adds to a call.

python -m benchmarks.tensors
"""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable

import numpy as np
import torch

import uform
from benchmarks.harness import THREADS, checkpoint, interleave, machine, workloads
from uform_torch import TensorArena, to_tensor

CALLS = 200
"""In a run: short enough to fall between the turns of others on a shared machine."""
RUNS = 1000
GOAL = 3e-6


def per_call(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call: of the best run, and of the median one."""
    runs = [seconds / CALLS for seconds in timeit.repeat(call, number=CALLS, repeat=RUNS)]
    return min(runs), statistics.median(runs)


def show(name: str, best: float, median: float) -> None:
    print(f"{name:60} {best * 1e6:6.2f} us, median {median * 1e6:6.2f} us")


def views(model: uform.Model) -> float:
    """Slowest best run of `to_tensor`."""
    slowest = 0.0
    texts = [bytes(20)] * 256
    for scalar in (uform.Scalar.F32, uform.Scalar.BF16):
        for arena in (uform.Arena(), TensorArena()):
            outputs = uform.Outputs.EMBEDDINGS | uform.Outputs.STATES
            encoded = model.text_encode(texts, arena, outputs=outputs, outputs_scalar=scalar)
            kind = type(arena).__name__
            assert encoded.embeddings is not None
            assert encoded.states is not None
            for name, view in {
                "embeddings": encoded.embeddings,
                "states": encoded.states,
                "an item's states": encoded.states[3],
                "offsets": encoded.states.offsets,
            }.items():
                best, median = per_call(lambda: to_tensor(view))  # noqa: B023
                show(f"to_tensor, {kind}, {scalar.name}, {name}", best, median)
                slowest = max(slowest, best)
    return slowest


def others(model: uform.Model) -> None:
    view = model.text_encode([bytes(20)] * 256, uform.Arena()).embeddings
    for name, call in {
        "torch.from_dlpack(view)": lambda: torch.from_dlpack(view),
        "torch.from_numpy(numpy.asarray(view))": lambda: torch.from_numpy(np.asarray(view)),
        "torch.tensor(numpy.asarray(view)), a copy": lambda: torch.tensor(np.asarray(view)),
    }.items():
        show(name, *per_call(call))


def calls(model: uform.Model) -> None:
    """Whole calls, with a tensor as the result."""
    w1 = workloads()[0]
    with uform.Executor.for_ram(THREADS) as executor:
        on = model.on(executor)
        for name, texts in (("an empty batch", []), (w1.name, w1.texts)):
            own, over = uform.Arena(executor), TensorArena()
            timings = interleave(
                {
                    "copied": lambda: torch.tensor(np.asarray(on.text_encode(texts, own).embeddings)),  # noqa: B023
                    "TensorArena": lambda: to_tensor(on.text_encode(texts, over).embeddings),  # type: ignore[arg-type]  # noqa: B023
                },
                seconds=8,
            )
            for side, timing in timings.items():
                print(f"{name}, {side}: {timing.median * 1e6:.1f} us ({timing.spread:.0%})")


def main() -> None:
    print(machine())
    torch.set_num_threads(1)
    model = uform.Model.load_ram(checkpoint("tiny"))
    slowest = views(model)
    others(model)
    calls(model)
    print(f"slowest to_tensor: {slowest * 1e6:.2f} us (goal: under {GOAL * 1e6:.0f})")


if __name__ == "__main__":
    main()
