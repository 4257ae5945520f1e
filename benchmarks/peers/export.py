"""The model as ONNX, with dynamic batches and lengths, for the engines that read it."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.peers.padded import Embedder
from tests.oracle import Oracle


def export(path: Path) -> Path:
    """Writes an ONNX file beside the checkpoint, once."""
    target = path.with_suffix(".onnx")
    if not target.exists():
        module = Embedder(Oracle.from_checkpoint(path, dtype=torch.float32).eval())
        example = (torch.randint(0, 256, (3, 48)), torch.tensor([48, 20, 7]))
        batch, tokens = torch.export.Dim("batch", min=1, max=4096), torch.export.Dim("tokens", min=2, max=4096)
        program = torch.onnx.export(
            module,
            example,
            dynamo=True,
            input_names=["tokens", "lengths"],
            output_names=["embeddings"],
            dynamic_shapes={"tokens": {0: batch, 1: tokens}, "lengths": {0: batch}},
        )
        assert program is not None
        program.save(str(target))
    return target
