"""Padded micro-batches: texts sorted by length, so that little is padded, as sentence-transformers does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from tests.oracle import Oracle

# Tokens of a micro-batch: enough for full-speed products, few enough for the caches. Found by trying 1,024 to 16,384.
MOST_TOKENS = 4096


class Embedder(nn.Module):
    """Tokens `[batch, tokens]` and lengths `[batch]` to embeddings `[batch, dimensions]`."""

    def __init__(self, oracle: Oracle) -> None:
        super().__init__()
        self.oracle = oracle

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        return self.oracle.pool(self.oracle(tokens, lengths), lengths)


def rounded(length: int, step: int) -> int:
    return -(-length // step) * step


def batches(texts: list[bytes], step: int, fixed: bool) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
    """Indices, tokens `[batch, padded]` and lengths of micro-batches.

    Lengths are rounded up to a multiple of `step`. `fixed`: to a power of two, and the batch to a size that depends on
    that length alone, so that a compiler meets few shapes.
    """
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    start = 0
    while start < len(order):
        end, width = start, 0
        while end < len(order):
            wider = rounded(len(texts[order[end]]), step)
            if fixed:
                wider = max(step, 1 << (wider - 1).bit_length()) if wider > 64 else 64
            if end > start and (wider * (end - start + 1) > MOST_TOKENS or (fixed and wider != width)):
                break
            width, end = wider, end + 1
        indices = order[start:end]
        size = min(max(1, MOST_TOKENS // width), len(texts)) if fixed else len(indices)
        tokens, lengths = np.zeros((size, width), np.int64), np.ones(size, np.int64)
        for row, index in enumerate(indices):
            tokens[row, : len(texts[index])] = np.frombuffer(texts[index], np.uint8)
            lengths[row] = len(texts[index])
        yield indices, tokens, lengths
        start = end


def gather(texts: list[bytes], dimensions: int, step: int, fixed: bool, run: object) -> np.ndarray:
    """Runs every micro-batch and puts the rows back in order."""
    out = np.empty((len(texts), dimensions), np.float32)
    for indices, tokens, lengths in batches(texts, step, fixed):
        out[indices] = run(tokens, lengths)[: len(indices)]  # type: ignore[operator]
    return out


def as_tensors(tokens: np.ndarray, lengths: np.ndarray) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(tokens), torch.from_numpy(lengths)
