"""Ranking of what was encoded: late interaction, and exact search. No model is needed. See `rank.h`.

Scores depend on their two items and on the CPU class alone: not on what else is in the call, nor on the threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from uform import _uform
from uform.errors import ArgumentTypeError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer

    from uform.types import Executor

    _Array: TypeAlias = Buffer | npt.NDArray[Any]

__all__ = ["maxsim", "top_k"]


def maxsim(
    queries: _Array,
    query_offsets: _Array,
    documents: _Array,
    document_offsets: _Array,
    *,
    candidates: tuple[_Array, _Array] | None = None,
    executor: Executor | None = None,
) -> npt.NDArray[np.float32]:
    """Late-interaction scores: over a query's vectors, the sum of the largest inner product with one of a document's.

    queries, documents: (vectors, width) of float32, or the bits of bfloat16 as uint16, or as the raw bytes that outputs
        of `Scalar.BF16` export; C-contiguous, read where they lie. Both of one kind.
    query_offsets, document_offsets: `count + 1` integers of 64 bits: item `i` has rows `offsets[i]` to
        `offsets[i + 1]`, as a `RowsTape` has them.
    candidates: None compares every query with every document. A tuple `(ids, offsets)` compares query `i` with the
        documents named by `ids[offsets[i]:offsets[i + 1]]`.
    executor: where it runs; None: on the calling thread.

    Answers (queries, documents) scores, or one for each candidate: 0 for a query without vectors, minus infinity for a
    document without any.

    Raises InvalidArgumentError (offsets and candidates, by item), ShapeMismatchError, UnsupportedLayoutError,
    ContendedError, OutOfMemoryError.
    """
    import numpy as np  # Not when `uform` is imported, which does without.

    ids, offsets = candidates or (None, None)
    shape: tuple[int, ...]
    if ids is None:
        shape = (max(np.asarray(query_offsets).size - 1, 0), max(np.asarray(document_offsets).size - 1, 0))
    else:
        shape = (np.asarray(ids).size,)
    scores = np.empty(shape, np.float32)
    _uform._maxsim(queries, query_offsets, documents, document_offsets, offsets, ids, scores, executor)
    return scores


def top_k(
    queries: _Array,
    corpus: _Array,
    k: int,
    *,
    first_id: int = 0,
    merge: tuple[npt.NDArray[np.generic], npt.NDArray[np.int64]] | None = None,
    executor: Executor | None = None,
) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64]]:
    """Exact search: the `k` rows of the corpus that suit each query best; of equals those with the smallest ids.

    queries, corpus: (rows, width) of float32 or int8, ranked by inner product, or of uint8, which are packed bits,
        ranked by Hamming distance; C-contiguous, read where they lie. Both of one kind.
    first_id: the id of the corpus' row 0, for a corpus that is searched block after block.
    merge: what the call for earlier blocks answered; it is written over with the results for all of them.
    executor: where it runs; None: on the calling thread.

    Answers scores and ids, (queries, k) each, best first: scores are float32, or int32 for int8 and bits; ids are
    int64, and -1 with a score of 0 where there are fewer than `k` rows. A score that is not a number is none.

    Raises InvalidArgumentError, ShapeMismatchError, UnsupportedLayoutError, ContendedError, OutOfMemoryError.
    """
    import numpy as np

    if isinstance(k, bool) or not hasattr(k, "__index__"):
        raise ArgumentTypeError(f"k: an integer is needed, not {type(k).__name__}")
    if merge is None:
        rows = np.asarray(queries)
        shape = (rows.shape[0] if rows.shape else 0, max(k, 0))
        scalar = np.float32 if rows.dtype == np.float32 else np.int32
        merge = np.empty(shape, scalar), np.empty(shape, np.int64)
        is_merged = False
    else:
        is_merged = True
    scores, ids = merge
    _uform._top_k(queries, corpus, k, first_id, is_merged, scores, ids, executor)
    return scores, ids
