"""Executors: what a call costs besides its work, per mood and way to call; two executors at once; and the import.

python -m benchmarks.executors
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import uform
from benchmarks.harness import THREADS, checkpoint, machine


def median(call: Callable[[], object], rounds: int = 300, pause: float = 0.0) -> float:
    """Median seconds of a call; `pause`: seconds of idleness before each."""
    times = []
    for _ in range(rounds):
        if pause:
            time.sleep(pause)
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def moods(model: uform.Model) -> None:
    """An empty batch: nothing but the way there and back. One text: with the work of two threads that meet often."""
    for mood in (uform.Mood.GRINDING, uform.Mood.CHILLING, uform.Mood.PARKED):
        with uform.Executor.for_ram(THREADS) as executor:
            executor.drain(mood)
            arena, on, deferred = uform.Arena(executor), model.on(executor), model.deferred(executor)
            for name, texts in (("an empty batch", []), ("one text of 64 bytes", [bytes(64)])):
                for pause in (0.0, 0.002):
                    blocking = median(lambda: on.text_encode(texts, arena), pause=pause)  # noqa: B023
                    waited = median(lambda: deferred.text_encode(texts, arena).wait(), pause=pause)  # noqa: B023
                    print(
                        f"{mood.name:9} {name}, {'after 2 ms idle' if pause else 'back to back'}: "
                        f"blocking {blocking * 1e6:.1f} us, deferred {waited * 1e6:.1f} us"
                    )


def together(model: uform.Model, executors: int, calls: int = 40) -> float:
    """Texts a second that so many executors of two threads encode at once, each from a thread of its own."""
    texts = [bytes(120)] * 32

    def run() -> None:
        executor = uform.Executor.for_ram(THREADS)
        arena = uform.Arena(executor)
        for _ in range(calls):
            model.on(executor).text_encode(texts, arena)

    threads = [threading.Thread(target=run) for _ in range(executors)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return executors * calls * len(texts) / (time.perf_counter() - start)


def importing() -> float:
    """Median seconds that `import uform` takes in a process that has NumPy."""
    program = "import numpy, time; start = time.perf_counter(); import uform; print(time.perf_counter() - start)"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(9)
    ]
    return statistics.median(float(run.stdout) for run in runs)


def main() -> None:
    print(machine())
    model = uform.Model.load_ram(checkpoint("tiny"))
    moods(model)
    one, two = together(model, 1), together(model, 2)
    print(f"one executor: {one:.0f} texts/s; two at once: {two:.0f} texts/s together, {two / one:.2f} x")
    print(f"import uform, on top of NumPy: {importing() * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
