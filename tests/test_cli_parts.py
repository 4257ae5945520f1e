"""What the command line is made of: rankings, readers, files of rows, text for a terminal."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uform.cli.console import clip, readable
from uform.cli.corpus import Item, lines, paragraphs, whole
from uform.cli.npy import NpyFile
from uform.cli.ranking import Best, dot_products, late_interaction


@given(st.lists(st.integers(-9, 9)), st.integers(1, 8), st.integers(1, 5), st.booleans())
def test_best_is_a_stable_sort(scores: list[int], count: int, batch: int, distinct: bool) -> None:
    items = [Item("file", line, b"%d" % score) for line, score in enumerate(scores, 1)]
    best = Best(count, distinct)
    for begin in range(0, len(items), batch):
        best.add(items[begin : begin + batch], np.array(scores[begin : begin + batch], np.float64))
    order = sorted(range(len(scores)), key=lambda index: (-scores[index], index))
    if distinct:
        order = [index for index in order if index == scores.index(scores[index])]
    assert [match.item.line for match in best.ranked()] == [index + 1 for index in order[:count]]
    assert len(best._contents) <= count


@given(st.integers(1, 40), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_dot_products_of_a_row_do_not_depend_on_the_others(rows: int, columns: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix, query = random.normal(size=(rows, columns)).astype(np.float32), random.normal(size=columns)
    alone = [dot_products(row[None], query)[0] for row in matrix]
    np.testing.assert_array_equal(dot_products(matrix, query), alone)
    np.testing.assert_allclose(alone, matrix.astype(np.float64) @ query, atol=1e-9)


def test_late_interaction_by_hand() -> None:
    query, text = np.eye(3, dtype=np.float32)[:2], np.array([[-1, 0, 0], [0, 0.5, 0.5]], np.float32)
    assert late_interaction(query, text) == (0 + 0.5) / 2
    assert late_interaction(query, -query) == 0.0
    assert late_interaction(query[:1], -query[:1]) == -1.0
    assert late_interaction(query, query[:0]) == -1.0


@given(st.binary(max_size=200), st.integers(1, 20))
def test_readers_cover_the_stream(data: bytes, limit: int) -> None:
    expected = data.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    expected = [line.removesuffix(b"\r")[:limit] for line in expected]
    assert list(lines(limit)(io.BytesIO(data))) == [(index, line) for index, line in enumerate(expected, 1)]
    for number, paragraph in paragraphs(limit)(io.BytesIO(data)):
        assert paragraph.strip()
        assert len(paragraph) <= limit
        assert paragraph.startswith(expected[number - 1])
    assert list(whole(limit)(io.BytesIO(data))) == [(0, data[:limit])]


def test_npy_files(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npy")
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    with NpyFile(path, rows.dtype, 3) as file:
        file.append(rows[:1])
        assert os.listdir(tmp_path) == [f".a.npy.{os.getpid()}.part"]
        file.append(rows[1:])
    np.testing.assert_array_equal(np.load(path), rows)
    np.testing.assert_array_equal(np.load(path, mmap_mode="r"), rows)
    with pytest.raises(ValueError, match="broadcast"), NpyFile(path, rows.dtype, 3) as file:
        file.append(rows[:1] + rows[:, :2])
    np.testing.assert_array_equal(np.load(path), rows)
    assert os.listdir(tmp_path) == ["a.npy"]
    with NpyFile(path, np.dtype("<u8"), None) as file:
        file.append(np.arange(1000))
    np.testing.assert_array_equal(np.load(path), np.arange(1000, dtype=np.uint64))


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("日本", 4, "日本"),
        ("日本語", 4, "日…"),
        ("e\u0301a", 2, "e\u0301a"),
        ("", 0, ""),
    ],
)
def test_clip(text: str, columns: int, expected: str) -> None:
    assert clip(text, columns) == expected


def test_readable() -> None:
    assert readable(b" a\tb\r\n\n c\x00\x1b\xff ") == "a b c\ufffd\ufffd\ufffd"
