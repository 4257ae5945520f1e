"""Late interaction and exact search, on every CPU class, against the same in float64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uform
from tests.conftest import supported_cpu_classes


@pytest.fixture
def pinned(cpu_class: uform.CPUClass) -> Iterator[uform.Executor]:
    with uform.Executor.for_ram(2, cpu_class=cpu_class) as executor:
        yield executor


def offsets_of(lengths: list[int]) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.uint64))).astype(np.uint64)


def to_bf16(rows: np.ndarray) -> np.ndarray:
    """Rounded to nearest even, as bits."""
    bits = rows.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


class Tokens:
    """Ragged token vectors of unit length."""

    def __init__(self, lengths: list[int], width: int, seed: int) -> None:
        rows = np.random.default_rng(seed).normal(size=(sum(lengths), width))
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        self.rows = rows.astype(np.float32)
        self.offsets = offsets_of(lengths)

    def items(self, rows: np.ndarray) -> list[np.ndarray]:
        bounds = self.offsets.astype(int)
        return [rows[begin:end].astype(np.float64) for begin, end in itertools.pairwise(bounds)]


def expected_maxsim(queries: list[np.ndarray], documents: list[np.ndarray]) -> np.ndarray:
    def score(query: np.ndarray, document: np.ndarray) -> float:
        if not len(query):
            return 0.0
        return float((query @ document.T).max(1).sum()) if len(document) else -np.inf

    return np.array([[score(query, document) for document in documents] for query in queries])


LENGTHS = ([1, 0, 32, 33, 70, 5], [1, 180, 0, 96, 97, 3, 300, 12, 31])


@pytest.mark.parametrize("width", [1, 7, 24, 64, 100, 128])
@pytest.mark.parametrize("scalar", ["F32", "BF16"])
def test_maxsim(pinned: uform.Executor, width: int, scalar: str) -> None:
    queries, documents = Tokens(LENGTHS[0], width, 1), Tokens(LENGTHS[1], width, 2)
    rows = [queries.rows, documents.rows]
    exact = rows
    if scalar == "BF16":
        rows = [to_bf16(part) for part in rows]
        exact = [from_bf16(part) for part in rows]
    found = uform.rank.maxsim(rows[0], queries.offsets, rows[1], documents.offsets, executor=pinned)
    expected = expected_maxsim(queries.items(exact[0]), documents.items(exact[1]))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    np.testing.assert_allclose(found[finite], expected[finite], rtol=0, atol=2e-5 * 70)
    assert found[1].tolist()[0] == 0.0
    assert found[0, 2] == -np.inf


def test_raw_bytes_are_bf16() -> None:
    queries, documents = Tokens([3], 16, 1), Tokens([4, 5], 16, 2)
    bits = [to_bf16(queries.rows), to_bf16(documents.rows)]
    from_bits = uform.rank.maxsim(bits[0], queries.offsets, bits[1], documents.offsets)
    raw = [part.view(np.uint8) for part in bits]
    from_bytes = uform.rank.maxsim(raw[0], queries.offsets, raw[1], documents.offsets)
    np.testing.assert_array_equal(from_bits, from_bytes)


@pytest.mark.parametrize("scalar", ["F32", "BF16"])
def test_candidates_have_the_bits_of_all_pairs(pinned: uform.Executor, scalar: str) -> None:
    queries, documents = Tokens(LENGTHS[0], 48, 1), Tokens(LENGTHS[1], 48, 2)
    rows = [queries.rows, documents.rows] if scalar == "F32" else [to_bf16(queries.rows), to_bf16(documents.rows)]
    every = uform.rank.maxsim(rows[0], queries.offsets, rows[1], documents.offsets, executor=pinned)
    generator = np.random.default_rng(3)
    lists = [generator.integers(0, 9, count) for count in (20, 0, 1, 3, 0, 7)]
    ids, offsets = np.concatenate(lists).astype(np.int64), offsets_of([len(part) for part in lists])
    found = uform.rank.maxsim(
        rows[0], queries.offsets, rows[1], documents.offsets, candidates=(ids, offsets), executor=pinned
    )
    expected = np.concatenate([every[query, part] for query, part in enumerate(lists)])
    np.testing.assert_array_equal(found, expected)


@given(data=st.data())
def test_a_pair_has_its_bits_whatever_the_batch(data: st.DataObject) -> None:
    lengths = st.lists(st.integers(0, 110), min_size=1, max_size=5)
    width = data.draw(st.sampled_from([8, 20, 64]))
    queries, documents = Tokens(data.draw(lengths), width, 4), Tokens(data.draw(lengths), width, 5)
    cpu_class = data.draw(st.sampled_from(supported_cpu_classes()))
    is_bf16 = data.draw(st.booleans())
    rows = [to_bf16(part.rows) if is_bf16 else part.rows for part in (queries, documents)]
    bounds = [part.offsets.astype(int) for part in (queries, documents)]
    with (
        uform.Executor.for_ram(data.draw(st.integers(1, 3)), cpu_class=cpu_class) as executor,
        uform.Executor.for_ram(1, cpu_class=cpu_class) as alone,
    ):
        every = uform.rank.maxsim(rows[0], queries.offsets, rows[1], documents.offsets, executor=executor)
        query, document = (data.draw(st.integers(0, len(part) - 2)) for part in bounds)
        pair = [
            rows[0][bounds[0][query] : bounds[0][query + 1]],
            rows[1][bounds[1][document] : bounds[1][document + 1]],
        ]
        one = uform.rank.maxsim(
            pair[0], offsets_of([len(pair[0])]), pair[1], offsets_of([len(pair[1])]), executor=alone
        )
    assert one[0, 0].tobytes() == every[query, document].tobytes()


def expected_top_k(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest scores [queries, rows], of equals the smallest ids."""
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, ids, 1), ids


@pytest.mark.parametrize("queries", [1, 8, 9, 40])
@pytest.mark.parametrize(("rows", "k"), [(1000, 10), (5000, 100), (3, 3), (777, 1)])
@pytest.mark.parametrize("width", [1, 33, 130])
def test_int8(pinned: uform.Executor, queries: int, rows: int, k: int, width: int) -> None:
    generator = np.random.default_rng(rows)
    wanted = generator.integers(-128, 128, (queries, width), dtype=np.int8)
    corpus = generator.integers(-128, 128, (rows, width), dtype=np.int8)
    corpus[rows // 2 :] = corpus[: rows - rows // 2]  # Ties.
    scores, ids = uform.rank.top_k(wanted, corpus, k, executor=pinned)
    expected = expected_top_k(wanted.astype(np.int64) @ corpus.astype(np.int64).T, k)
    np.testing.assert_array_equal(scores, expected[0])
    np.testing.assert_array_equal(ids, expected[1])
    assert scores.dtype == np.int32


@pytest.mark.parametrize("width", [1, 4, 8, 13, 32, 100])
@pytest.mark.parametrize("k", [1, 50])
@pytest.mark.parametrize("queries", [1, 11])
def test_bits(pinned: uform.Executor, width: int, k: int, queries: int) -> None:
    """Of few bits, nearly all rows are ties."""
    generator = np.random.default_rng(width)
    wanted = generator.integers(0, 256, (queries, width), dtype=np.uint8)
    corpus = generator.integers(0, 256, (3000, width), dtype=np.uint8)
    distances = np.array([np.unpackbits(query ^ corpus, axis=1).sum(1) for query in wanted]).astype(np.int64)
    scores, ids = uform.rank.top_k(wanted, corpus, k, executor=pinned)
    expected = expected_top_k(-distances, k)
    np.testing.assert_array_equal(scores, -expected[0])
    np.testing.assert_array_equal(ids, expected[1])


@pytest.mark.parametrize("queries", [1, 8, 9, 33])
@pytest.mark.parametrize("width", [1, 31, 256])
def test_f32(pinned: uform.Executor, queries: int, width: int) -> None:
    generator = np.random.default_rng(width)
    wanted = generator.normal(size=(queries, width)).astype(np.float32)
    corpus = generator.normal(size=(4001, width)).astype(np.float32)
    scores, ids = uform.rank.top_k(wanted, corpus, 20, executor=pinned)
    exact = wanted.astype(np.float64) @ corpus.astype(np.float64).T
    np.testing.assert_allclose(scores, expected_top_k(exact, 20)[0], rtol=0, atol=1e-5 * width**0.5 * 4)
    np.testing.assert_allclose(np.take_along_axis(exact, ids, 1), scores, rtol=0, atol=1e-5 * width**0.5 * 4)
    assert all(len(set(row)) == 20 for row in ids.tolist())


def test_f32_has_the_same_bits_in_every_class() -> None:
    generator = np.random.default_rng(0)
    wanted, corpus = (generator.normal(size=(rows, 96)).astype(np.float32) for rows in (12, 500))
    found = []
    for cpu_class in supported_cpu_classes():
        with uform.Executor.for_ram(2, cpu_class=cpu_class) as executor:
            found.append(uform.rank.top_k(wanted, corpus, 7, executor=executor))
            found.append(uform.rank.top_k(wanted[:3], corpus, 7, executor=executor))
    for scores, ids in found:
        np.testing.assert_array_equal(scores, found[0][0][: len(scores)])
        np.testing.assert_array_equal(ids, found[0][1][: len(ids)])


def test_blocks_merge_into_the_whole(pinned: uform.Executor) -> None:
    generator = np.random.default_rng(0)
    for corpus in (
        generator.integers(-3, 4, (2000, 5)).astype(np.int8),
        generator.integers(0, 256, (2000, 2), dtype=np.uint8),
        generator.integers(-3, 4, (2000, 5)).astype(np.float32),
    ):
        wanted = corpus[:13]
        whole = uform.rank.top_k(wanted, corpus, 30, executor=pinned)
        merged = None
        for first in range(0, 2000, 333):
            block = corpus[first : first + 333]
            merged = uform.rank.top_k(wanted, block, 30, first_id=first, merge=merged, executor=pinned)
        assert merged
        np.testing.assert_array_equal(merged[0], whole[0])
        np.testing.assert_array_equal(merged[1], whole[1])


def test_fewer_rows_than_k() -> None:
    corpus = np.eye(4, dtype=np.float32)
    corpus[2] = np.nan
    scores, ids = uform.rank.top_k(corpus[:1], corpus, 6)
    assert ids.tolist() == [[0, 1, 3, -1, -1, -1]]
    assert scores.tolist() == [[1, 0, 0, 0, 0, 0]]
    scores, ids = uform.rank.top_k(corpus[:1], corpus[:0], 2)
    assert ids.tolist() == [[-1, -1]]
    scores, ids = uform.rank.top_k(corpus[:0], corpus, 2)
    assert scores.shape == ids.shape == (0, 2)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"queries": np.zeros(4, np.float32)}, uform.ShapeMismatchError, "queries: two dimensions"),
        ({"queries": np.zeros((4, 4))}, uform.UnsupportedLayoutError, "queries: float32"),
        ({"queries": np.zeros((4, 8), np.float32)[:, ::2]}, uform.UnsupportedLayoutError, "queries: .* C-contiguous"),
        ({"documents": np.zeros((4, 5), np.float32)}, uform.ShapeMismatchError, "documents: rows of 5"),
        ({"documents": np.zeros((4, 4), np.uint16)}, uform.UnsupportedLayoutError, "documents: BF16"),
        ({"query_offsets": np.array([0, 5], np.uint64)}, uform.InvalidArgumentError, "query_offsets: item 0 ends at 5"),
        ({"query_offsets": np.array([1, 2], np.uint64)}, uform.InvalidArgumentError, "query_offsets: the first is 1"),
        ({"query_offsets": np.array([], np.uint64)}, uform.InvalidArgumentError, "query_offsets"),
        ({"query_offsets": np.array([0, 2], np.uint32)}, uform.UnsupportedLayoutError, "query_offsets"),
        ({"document_offsets": np.array([0, 3, 2], np.uint64)}, uform.InvalidArgumentError, "document_offsets: item 1"),
        (
            {"candidates": (np.array([2]), np.array([0, 1]))},
            uform.InvalidArgumentError,
            "query 0 names document 2 of 2",
        ),
        ({"candidates": (np.array([-1]), np.array([0, 1]))}, uform.InvalidArgumentError, "document -1"),
        ({"candidates": (np.array([1]), np.array([0, 2]))}, uform.InvalidArgumentError, "candidates: 1 of them"),
        ({"candidates": (np.array([1]), np.array([0, 0, 1]))}, uform.ShapeMismatchError, "lists of 2 queries"),
        ({"executor": 3}, uform.ArgumentTypeError, "executor"),
        ({"queries": [[1.0, 2.0]]}, uform.ArgumentTypeError, "queries: an array is needed"),
        ({"query_offsets": np.array([0, -4])}, uform.InvalidArgumentError, "query_offsets: item 0 ends below 0"),
    ],
)
def test_arguments_of_maxsim(change: dict[str, object], kind: type[uform.Error], message: str) -> None:
    arguments: dict[str, object] = {
        "queries": np.zeros((4, 4), np.float32),
        "query_offsets": np.array([0, 4], np.uint64),
        "documents": np.zeros((4, 4), np.float32),
        "document_offsets": np.array([0, 2, 4], np.uint64),
    } | change
    positional = [arguments.pop(name) for name in ("queries", "query_offsets", "documents", "document_offsets")]
    with pytest.raises(kind, match=message):
        uform.rank.maxsim(*positional, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"k": 0}, uform.InvalidArgumentError, "k: must not be 0"),
        ({"k": 1.5}, uform.ArgumentTypeError, "k: an integer is needed, not float"),
        ({"k": True}, uform.ArgumentTypeError, "k: an integer is needed, not bool"),
        ({"corpus": np.zeros((4, 5), np.float32)}, uform.ShapeMismatchError, "corpus: rows of 5"),
        ({"corpus": np.zeros((4, 4), np.int8)}, uform.UnsupportedLayoutError, "corpus: I8, but the queries are F32"),
        ({"corpus": np.zeros((4, 4), np.int16)}, uform.UnsupportedLayoutError, "corpus: float32, int8"),
        ({"first_id": -1}, uform.InvalidArgumentError, "first_id"),
        ({"merge": (np.zeros((1, 2), np.float32), np.zeros((1, 2), np.int64))}, uform.ShapeMismatchError, "merge"),
        ({"merge": (np.zeros((2, 2), np.int32), np.zeros((2, 2), np.int64))}, uform.UnsupportedLayoutError, "merge"),
    ],
)
def test_arguments_of_top_k(change: dict[str, object], kind: type[uform.Error], message: str) -> None:
    arguments: dict[str, object] = {
        "queries": np.zeros((2, 4), np.float32),
        "corpus": np.zeros((4, 4), np.float32),
        "k": 2,
    } | change
    positional = [arguments.pop(name) for name in ("queries", "corpus", "k")]
    with pytest.raises(kind, match=message):
        uform.rank.top_k(*positional, **arguments)  # type: ignore[arg-type]
