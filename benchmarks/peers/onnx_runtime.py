"""ONNX Runtime in F32, its graph optimisations on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks.harness import THREADS
from benchmarks.peers.export import export
from benchmarks.peers.padded import gather


class OnnxRuntime:
    """Length-sorted micro-batches."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(str(export(path)), options, providers=["CPUExecutionProvider"])
        self.dimensions = self.session.get_outputs()[0].shape[1]

    def run(self, tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return self.session.run(None, {"tokens": tokens, "lengths": lengths})[0]

    def encode(self, texts: list[bytes]) -> np.ndarray:
        return gather(texts, self.dimensions, step=1, fixed=False, run=self.run)
