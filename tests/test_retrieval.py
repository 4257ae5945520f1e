"""Exact search in torch, and embeddings of bytes and bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from usearch.index import Index, MetricKind

import uform
import uform_torch


def unit(rows: int, width: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(rows, width, generator=generator))


def test_top_k_is_that_of_torch(executor: uform.Executor) -> None:
    queries, corpus = unit(5, 48, 0), unit(900, 48, 1)
    expected = torch.topk(queries @ corpus.T, 10)
    for kwargs in ({}, {"executor": executor}):
        scores, ids = uform_torch.top_k(queries, corpus, 10, **kwargs)
        torch.testing.assert_close(scores, expected.values)
        assert torch.equal(ids, expected.indices)


def test_blocks_are_as_good_as_the_whole(executor: uform.Executor, tmp_path: Path) -> None:
    queries, corpus = unit(5, 48, 0), unit(900, 48, 1)
    whole = uform_torch.top_k(queries, corpus, 20)
    blocks = uform_torch.top_k(queries, corpus.split(77), 20, executor=executor)
    assert torch.equal(blocks.ids, whole.ids)
    assert torch.equal(blocks.scores, whole.scores)
    np.save(tmp_path / "corpus.npy", corpus.numpy())
    mapped = uform_torch.top_k(queries, np.load(tmp_path / "corpus.npy", mmap_mode="r"), 20)
    assert torch.equal(mapped.ids, whole.ids)
    nothing = uform_torch.top_k(queries, iter([]), 3)
    assert nothing.ids.tolist() == [[-1] * 3] * 5


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_floats_become_float32(dtype: torch.dtype) -> None:
    queries, corpus = unit(3, 16, 0).to(dtype), unit(50, 16, 1).to(dtype)
    expected = torch.topk(queries.float() @ corpus.float().T, 5)
    assert torch.equal(uform_torch.top_k(queries, corpus, 5).ids, expected.indices)


def test_arrays_that_have_to_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other floats and other layouts, a block at a time."""
    monkeypatch.setattr("uform_torch.retrieval._CONVERTED_ROWS", 7)
    queries, corpus = unit(3, 16, 0).numpy(), unit(50, 16, 1).numpy()
    expected = uform_torch.top_k(queries, corpus, 5).ids
    for copied in (corpus.astype(np.float64), np.asfortranarray(corpus), torch.from_numpy(corpus).double()):
        assert torch.equal(uform_torch.top_k(queries.astype(np.float64), copied, 5).ids, expected)


def test_ties_go_to_the_smallest_id() -> None:
    corpus = torch.ones(9, 4)
    assert uform_torch.top_k(corpus[:1], corpus, 3).ids.tolist() == [[0, 1, 2]]
    assert uform_torch.top_k(corpus[:1], corpus.split(2), 3).ids.tolist() == [[0, 1, 2]]


def test_int8_keeps_the_order() -> None:
    corpus = unit(2000, 64, 1)
    queries = corpus[:50]
    quantizer = uform_torch.Quantizer.fit(corpus)
    packed = quantizer.pack(corpus)
    assert packed.dtype is torch.int8
    assert packed.abs().max() == 127
    torch.testing.assert_close(quantizer.unpack(packed), corpus, rtol=0, atol=quantizer.limit / 253)
    found = uform_torch.top_k(quantizer.pack(queries), packed, 10)
    exact = uform_torch.top_k(queries, corpus, 10)
    shared = [len(set(a) & set(b)) for a, b in zip(found.ids.tolist(), exact.ids.tolist(), strict=True)]
    assert sum(shared) / 500 > 0.9
    assert found.ids[:, 0].tolist() == list(range(50))


def test_bits() -> None:
    corpus = unit(2000, 72, 1)
    quantizer = uform_torch.Quantizer.fit(corpus, "binary")
    packed = quantizer.pack(corpus)
    assert (packed.dtype, packed.shape) == (torch.uint8, (2000, 9))
    assert torch.equal(quantizer.unpack(packed), torch.where(corpus > 0, 1.0, -1.0))
    found = uform_torch.top_k(packed[:7], packed, 5)
    distances = (corpus[:7, None] > 0).ne(corpus[None] > 0).sum(2)
    assert torch.equal(found.scores.long(), distances.sort(stable=True, dim=1).values[:, :5])
    assert torch.equal(found.ids, distances.sort(stable=True, dim=1).indices[:, :5])


def test_ranges_are_stored() -> None:
    corpus = unit(100, 8, 1)
    quantizer = uform_torch.Quantizer.fit(corpus)
    again = uform_torch.Quantizer("int8", quantizer.ranges)
    assert torch.equal(again.pack(corpus), quantizer.pack(corpus))
    assert torch.equal(quantizer.ranges, torch.stack((corpus.amin(0), corpus.amax(0))))
    assert torch.equal(again.pack(torch.full((1, 8), 9.0)), torch.full((1, 8), 127, dtype=torch.int8))
    zeros = uform_torch.Quantizer.fit(torch.zeros(2, 3))
    assert zeros.unpack(zeros.pack(torch.zeros(1, 3))).tolist() == [[0, 0, 0]]


def test_wrong_arguments() -> None:
    quantizer = uform_torch.Quantizer.fit(unit(5, 8, 0))
    with pytest.raises(ValueError, match="a width of 8 is needed, not 9"):
        quantizer.pack(unit(5, 9, 0))
    with pytest.raises(ValueError, match="kind"):
        uform_torch.Quantizer("int4", quantizer.ranges)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ranges"):
        uform_torch.Quantizer("int8", torch.zeros(3, 8))
    with pytest.raises(ValueError, match="at least one row"):
        uform_torch.Quantizer.fit(torch.zeros(0, 8))
    with pytest.raises(TypeError, match="corpus: a tensor or an array is needed, not str"):
        uform_torch.top_k(unit(1, 8, 0), ["a"], 1)  # type: ignore[list-item]
    with pytest.raises(uform.ShapeMismatchError, match="corpus: rows of 9"):
        uform_torch.top_k(unit(1, 8, 0), unit(1, 9, 0), 1)


@pytest.mark.parametrize("strange", [unit(2, 8, 0).to_sparse(), unit(2, 8, 0).to("meta")], ids=["sparse", "meta"])
def test_tensors_without_rows_in_memory(strange: torch.Tensor) -> None:
    with pytest.raises(TypeError, match="queries: a dense tensor is needed, not torch"):
        uform_torch.top_k(strange, unit(3, 8, 1), 1)
    with pytest.raises(TypeError, match="corpus: a dense tensor is needed, not torch"):
        uform_torch.top_k(unit(3, 8, 1), strange, 1)


def test_lazy_negatives_are_made() -> None:
    queries, corpus = unit(2, 8, 0), unit(9, 8, 1)
    found = uform_torch.top_k(torch._neg_view(queries), corpus, 3)
    assert torch.equal(found.ids, uform_torch.top_k(-queries, corpus, 3).ids)


def test_usearch_goes_on_where_exact_search_ends() -> None:
    """USearch takes the same arrays, through its own API. It is approximate, and no two graphs are alike."""
    corpus = unit(2000, 32, 1)
    index = Index(ndim=32, metric=MetricKind.IP)
    index.add(np.arange(2000), corpus.numpy())
    matches = index.search(corpus[:20].numpy(), 5)
    exact = uform_torch.top_k(corpus[:20], corpus, 5)
    assert (matches.keys[:, 0] == exact.ids[:, 0].numpy()).mean() >= 0.8
