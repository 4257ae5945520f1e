"""The same model in other engines, each the way that a competent user would run it.

A peer is a class over a checkpoint's path with `encode(texts) -> embeddings`; `PEERS` names them all.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np


class Peer(Protocol):
    """One engine with the model loaded."""

    def encode(self, texts: list[bytes]) -> np.ndarray:
        """Embeddings `[texts, dimensions]`."""
        ...


def _torch(kind: str, scalar: str) -> Callable[[Path], Peer]:
    def make(path: Path) -> Peer:
        from benchmarks.peers import torch_peers

        return getattr(torch_peers, kind)(path, scalar)

    return make


def _onnx_runtime(path: Path) -> Peer:
    from benchmarks.peers.onnx_runtime import OnnxRuntime

    return OnnxRuntime(path)


def _openvino(scalar: str) -> Callable[[Path], Peer]:
    def make(path: Path) -> Peer:
        from benchmarks.peers.openvino_peer import OpenVino

        return OpenVino(path, scalar)

    return make


PEERS: dict[str, Callable[[Path], Peer]] = {
    "torch eager bf16": _torch("Eager", "bf16"),
    "torch eager f32": _torch("Eager", "f32"),
    "torch compile bf16": _torch("Compiled", "bf16"),
    "torch compile f32": _torch("Compiled", "f32"),
    "ONNX Runtime f32": _onnx_runtime,
    "OpenVINO bf16": _openvino("bf16"),
    "OpenVINO f32": _openvino("f32"),
}
