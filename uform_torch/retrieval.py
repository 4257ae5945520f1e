"""Exact search over embeddings, and embeddings of a byte or a bit a number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from uform import Executor, rank

__all__ = ["Quantizer", "Ranking", "top_k"]

Vectors = torch.Tensor | NDArray[Any]
_CONVERTED_ROWS = 65536
"""Of a corpus that has to be copied, at once."""


class Ranking(NamedTuple):
    """Results of queries, best first."""

    scores: torch.Tensor
    """(queries, k): float32; int32 of int8 and of bits, where they are Hamming distances, smallest first."""
    ids: torch.Tensor
    """(queries, k) int64; -1 where there are fewer than `k`."""


def top_k(
    queries: Vectors, corpus: Vectors | Iterable[Vectors], k: int, *, executor: Executor | None = None
) -> Ranking:
    """The `k` rows of the corpus that suit each query best; of equals those with the smallest ids. Exact.

    queries: (queries, width) of float32 or int8, ranked by inner product, or of uint8, packed bits, ranked by Hamming
        distance. Other floats become float32, those of the corpus a block at a time.
    corpus: (rows, width) of the same kind, a tensor, an array or a `numpy.memmap`, read where it lies; or an iterable
        of such blocks, for one that is made on the way. Memory beyond it: a few `k` results a query and thread.
    executor: where it runs; None: on the calling thread.

    Raises what `uform.rank.top_k` does.
    """
    wanted = host_array(queries, "queries")
    if isinstance(corpus, torch.Tensor | np.ndarray):
        if _is_read_in_place(corpus):
            return _ranking(rank.top_k(wanted, host_array(corpus, "corpus"), k, executor=executor))
        if isinstance(corpus, torch.Tensor):
            _check_dense(corpus, "corpus")
        whole, step = corpus, _CONVERTED_ROWS
        corpus = (whole[first : first + step] for first in range(0, len(whole), step))
    first, merged = 0, None
    for block in corpus:
        rows = host_array(block, "corpus")
        merged = rank.top_k(wanted, rows, k, first_id=first, merge=merged, executor=executor)
        first += len(rows)
    if merged is None:
        merged = rank.top_k(wanted, wanted[:0], k, executor=executor)
    return _ranking(merged)


class Quantizer:
    """Embeddings of a byte or a bit a number, and the ranges that they were made with.

    int8: `round(x / limit * 127)`, with one limit for all dimensions, the largest magnitude of `ranges`: inner products
    of bytes are those of the numbers, times `(127 / limit) ** 2`, but for rounding. Numbers past it saturate.
    binary: a bit is set where a number is above 0. Hamming distances of unit vectors follow their angles.
    """

    def __init__(self, kind: Literal["int8", "binary"], ranges: torch.Tensor) -> None:
        """ranges: (2, width) float32, the lowest and the highest number of each dimension."""
        if kind not in ("int8", "binary"):
            raise ValueError(f"kind: 'int8' or 'binary' is needed, not {kind!r}")
        if ranges.ndim != 2 or len(ranges) != 2 or not bool(torch.isfinite(ranges).all()):
            raise ValueError(f"ranges: (2, width) finite numbers are needed, not the shape {tuple(ranges.shape)}")
        self.kind = kind
        self.ranges = ranges.float()
        self.limit = float(self.ranges.abs().max()) if self.ranges.numel() else 0.0

    @classmethod
    def fit(cls, embeddings: Vectors, kind: Literal["int8", "binary"] = "int8") -> Quantizer:
        """The ranges of these embeddings, (rows, width) with at least one row."""
        rows = _floats(embeddings, "embeddings")
        if not len(rows):
            raise ValueError("embeddings: at least one row is needed")
        return cls(kind, torch.stack((rows.amin(0), rows.amax(0))))

    def pack(self, embeddings: Vectors) -> torch.Tensor:
        """(rows, width) int8, or (rows, width / 8) uint8 with the first number in the highest bit."""
        rows = _floats(embeddings, "embeddings")
        self._check_width(rows.shape[1])
        if self.kind == "binary":
            return torch.from_numpy(np.packbits(rows.numpy() > 0, axis=1))
        scale = 127 / self.limit if self.limit else 0.0
        return (rows * scale).round().clamp(-127, 127).to(torch.int8)

    def unpack(self, packed: Vectors) -> torch.Tensor:
        """(rows, width) float32: the nearest that bytes tell, or of bits -1 and 1."""
        rows = torch.as_tensor(packed)
        if self.kind == "binary":
            bits = np.unpackbits(rows.numpy(), axis=1, count=self.ranges.shape[1])
            return torch.from_numpy(bits.astype(np.float32) * 2 - 1)
        self._check_width(rows.shape[1])
        return rows.float() * (self.limit / 127)

    def _check_width(self, width: int) -> None:
        if width != self.ranges.shape[1]:
            raise ValueError(f"embeddings: a width of {self.ranges.shape[1]} is needed, not {width}")

    def __repr__(self) -> str:
        return f"Quantizer({self.kind!r}, width={self.ranges.shape[1]}, limit={self.limit:.4g})"


def _floats(vectors: Vectors, name: str) -> torch.Tensor:
    rows = torch.as_tensor(vectors).detach()
    if rows.ndim != 2:
        raise ValueError(f"{name}: two dimensions are needed, not {rows.ndim}")
    return rows.cpu().float()


def _is_read_in_place(vectors: Vectors) -> bool:
    """Whether `host_array` copies nothing."""
    if isinstance(vectors, np.ndarray):
        return vectors.flags.c_contiguous and (vectors.dtype == np.float32 or vectors.dtype.kind != "f")
    on_host = vectors.device.type == "cpu" and vectors.layout is torch.strided and vectors.is_contiguous()
    return on_host and (vectors.dtype is torch.float32 or not vectors.dtype.is_floating_point)


def host_array(vectors: Vectors, name: str) -> NDArray[Any]:
    """C-contiguous, and float32 where they are floats. Raises TypeError for what is neither a tensor nor an array."""
    if isinstance(vectors, np.ndarray):
        return np.ascontiguousarray(vectors, np.float32 if vectors.dtype.kind == "f" else None)
    tensor = host_tensor(vectors, name)
    array: NDArray[Any] = (tensor.float() if tensor.dtype.is_floating_point else tensor).numpy()
    return array


def host_tensor(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """Contiguous, without a gradient. Raises TypeError for what has no such memory."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: a tensor or an array is needed, not {type(tensor).__name__}")
    _check_dense(tensor, name)
    return tensor.detach().cpu().resolve_neg().resolve_conj().contiguous()


def _check_dense(tensor: torch.Tensor, name: str) -> None:
    if tensor.layout is not torch.strided or tensor.device.type == "meta":
        raise TypeError(f"{name}: a dense tensor is needed, not {tensor.layout} on {tensor.device}")


def _ranking(found: tuple[NDArray[Any], NDArray[np.int64]]) -> Ranking:
    return Ranking(torch.from_numpy(found[0]), torch.from_numpy(found[1]))
