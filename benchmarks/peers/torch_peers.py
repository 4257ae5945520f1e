"""PyTorch, eager and compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from benchmarks.harness import THREADS
from benchmarks.peers.padded import Embedder, as_tensors, gather
from tests.oracle import Oracle

SCALARS = {"bf16": torch.bfloat16, "f32": torch.float32}


class Eager:
    """Length-sorted micro-batches in eager mode, as sentence-transformers runs them."""

    def __init__(self, path: Path, scalar: str) -> None:
        torch.set_num_threads(THREADS)
        self.module = Embedder(Oracle.from_checkpoint(path, dtype=SCALARS[scalar]).eval())
        self.dimensions = self.module.oracle.configuration.dimensions

    def run(self, tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return self.module(*as_tensors(tokens, lengths)).float().numpy()

    def encode(self, texts: list[bytes]) -> np.ndarray:
        with torch.inference_mode():
            return gather(texts, self.dimensions, step=1, fixed=False, run=self.run)


class Compiled(Eager):
    """`torch.compile` with fixed shapes: one graph for each padded length."""

    def __init__(self, path: Path, scalar: str) -> None:
        super().__init__(path, scalar)
        self.module = torch.compile(self.module, dynamic=False)  # type: ignore[assignment]
        torch._dynamo.config.cache_size_limit = 64

    def encode(self, texts: list[bytes]) -> np.ndarray:
        with torch.no_grad():
            return gather(texts, self.dimensions, step=32, fixed=True, run=self.run)
