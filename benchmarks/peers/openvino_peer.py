"""OpenVINO on the CPU, with BF16 or F32 inference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino

from benchmarks.harness import THREADS
from benchmarks.peers.export import export
from benchmarks.peers.padded import gather


class OpenVino:
    """Length-sorted micro-batches, one stream."""

    def __init__(self, path: Path, scalar: str) -> None:
        core = openvino.Core()
        settings = {
            "INFERENCE_NUM_THREADS": THREADS,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": scalar,
        }
        self.request = core.compile_model(str(export(path)), "CPU", settings).create_infer_request()
        self.dimensions = self.request.model_outputs[0].partial_shape[1].get_length()

    def run(self, tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return self.request.infer({"tokens": tokens, "lengths": lengths})[self.request.model_outputs[0]]

    def encode(self, texts: list[bytes]) -> np.ndarray:
        return gather(texts, self.dimensions, step=8, fixed=False, run=self.run)
