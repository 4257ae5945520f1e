"""Reranking: late interaction and calibrated choices, over candidates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import uform
import uform_torch

QUERIES = ["find files by name", "play music", ""]
DOCUMENTS = ["locate files on the filesystem", "a music player", "an editor of texts", "sound and music", "", "x"]
CANDIDATES = [[0, 2, 5], [3, 1, 4, 1], [2]]


def tokens(model: uform.Model, texts: list[str], scalar: uform.Scalar = uform.Scalar.F32) -> uform.RowsTape:
    encoded = model.text_encode(texts, uform.Arena(), outputs=uform.Outputs.TOKEN_VECTORS, outputs_scalar=scalar)
    assert encoded.token_vectors is not None
    return encoded.token_vectors


def expected(model: uform.Model, query: str, document: str) -> float:
    if not query:
        return 0.0
    if not document:
        return -np.inf
    left, right = (np.array(tokens(model, [text])).astype(np.float64) for text in (query, document))
    return float((left @ right.T).max(1).sum())


@pytest.mark.parametrize("scalar", [uform.Scalar.F32, uform.Scalar.BF16])
def test_maxsim_of_tapes(model: uform.Model, executor: uform.Executor, scalar: uform.Scalar) -> None:
    left, right = tokens(model, QUERIES, scalar), tokens(model, DOCUMENTS, scalar)
    scores = uform_torch.maxsim(left, right, executor=executor)
    wanted = torch.tensor([[expected(model, query, document) for document in DOCUMENTS] for query in QUERIES])
    tolerance = 1e-4 if scalar == uform.Scalar.F32 else 0.1
    torch.testing.assert_close(scores, wanted.float(), rtol=0, atol=tolerance)
    rows, offsets = uform_torch.to_tensor(left), uform_torch.to_tensor(left.offsets)
    assert torch.equal(uform_torch.maxsim((rows, offsets), right, executor=executor), scores)


def test_maxsim_of_matrices(model: uform.Model) -> None:
    """A matrix an item, as encoders of other libraries answer it, and tapes of NumPy's."""
    left, right = tokens(model, QUERIES), tokens(model, DOCUMENTS)
    scores = uform_torch.maxsim(left, right)
    rows, offsets = np.array(right), np.array(right.offsets)
    arrays = [rows[first:last] for first, last in itertools.pairwise(offsets)]
    tensors = [torch.from_numpy(array).double().requires_grad_() for array in arrays]
    assert torch.equal(uform_torch.maxsim(left, (rows, offsets.astype(np.int32))), scores)
    assert torch.equal(uform_torch.maxsim(left, list(arrays)), scores)
    assert torch.equal(uform_torch.maxsim(left, list(tensors)), scores)
    half: list[torch.Tensor] = [tensor.bfloat16() for tensor in tensors]
    queries = uform_torch.to_tensor(left).bfloat16(), uform_torch.to_tensor(left.offsets)
    assert torch.equal(
        uform_torch.maxsim(queries, list(half)), uform_torch.maxsim(queries, (torch.cat(half), torch.tensor(offsets)))
    )


@pytest.mark.parametrize(
    ("documents", "kind", "message"),
    [
        ([], ValueError, "documents: a list of at least one matrix is needed"),
        ([np.zeros((1, 64), np.float32), np.zeros((1, 9), np.float32)], ValueError, "documents: item 1 .*not float32"),
        ([np.zeros(64, np.float32)], ValueError, "documents: item 0 has to be a matrix"),
        ([np.zeros((1, 64), np.float32), "a"], TypeError, "documents: item 1: a tensor or an array is needed, not str"),
        ((np.zeros((1, 64), np.float32), [0, 1]), TypeError, "documents: the offsets: a tensor or an array is needed"),
        ((np.zeros((1, 64), np.float32), np.zeros(2)), TypeError, "documents: the offsets have to be integers"),
        (np.zeros((1, 64), np.float32), TypeError, r"documents: a RowsTape, a tuple \(vectors, offsets\) or a list"),
        ((torch.zeros(1, 64).to_sparse(), torch.tensor([0, 1])), TypeError, "documents: a dense tensor is needed"),
    ],
)
def test_arguments_of_maxsim(model: uform.Model, documents: object, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        uform_torch.maxsim(tokens(model, QUERIES), documents)  # type: ignore[arg-type]


def test_maxsim_of_candidates(model: uform.Model) -> None:
    left, right = tokens(model, QUERIES), tokens(model, DOCUMENTS)
    every = uform_torch.maxsim(left, right)
    lists = uform_torch.maxsim(left, right, candidates=CANDIDATES)
    assert torch.equal(lists, torch.cat([every[query, ids] for query, ids in enumerate(CANDIDATES)]))
    matrix = torch.tensor([[0, 1], [2, 3], [5, 4]])
    assert torch.equal(uform_torch.maxsim(left, right, candidates=matrix), every.gather(1, matrix))


@pytest.mark.parametrize("batch", [1, 2, 256])
def test_late_interaction(model: uform.Model, executor: uform.Executor, batch: int) -> None:
    reranker = uform_torch.LateInteractionReranker(model, executor=executor, batch=batch)
    scores, ids = reranker.rank(QUERIES, DOCUMENTS, CANDIDATES)
    for row, query in enumerate(QUERIES):
        values = {document: expected(model, query, DOCUMENTS[document]) for document in CANDIDATES[row]}
        order = sorted(values, key=lambda document: (-values[document], document))
        assert ids[row].tolist() == order + [-1] * (3 - len(order))
        assert scores[row, : len(order)].tolist() == pytest.approx([values[document] for document in order], abs=1e-4)


def test_choices(model: uform.Model, executor: uform.Executor) -> None:
    template, values = "{query}|{document}? ", {"a": 2.0, "b": -1.0, "c": 0.5}
    reranker = uform_torch.ChoiceReranker(model, template=template, values=values, group=1, executor=executor, batch=2)
    scores = reranker.scores(QUERIES, DOCUMENTS, CANDIDATES)
    for row, query in enumerate(QUERIES):
        prompts = [template.format(query=query, document=DOCUMENTS[document]) for document in CANDIDATES[row]]
        groups = np.full(len(prompts), 1, np.uint32)
        answers = model.text_choose(prompts, ["abc"] * len(prompts), uform.Arena(), temperature_groups=groups)
        wanted = np.array(answers).reshape(-1, 3) @ np.array(list(values.values()))
        assert scores[row].tolist() == pytest.approx(wanted.tolist(), abs=1e-5)
    ranking = reranker.rank(QUERIES, DOCUMENTS, CANDIDATES, 2)
    assert ranking.ids.shape == (3, 2)


class Constant(uform_torch.Reranker):
    def scores(self, queries, documents, candidates):  # type: ignore[no-untyped-def]
        return [torch.zeros(len(ids)) for ids in candidates]


def test_ties_go_to_the_smallest_id() -> None:
    ranking = Constant().rank(["q"], ["a"] * 9, torch.tensor([[5, 3, 8, -1, 3]]), 2)
    assert ranking.ids.tolist() == [[3, 5]]
    assert Constant().rank(["q"], ["a"] * 9, [[5, 3, 8, 3]]).ids.tolist() == [[3, 5, 8]]
    assert Constant().rank([], [], []).ids.shape == (0, 0)


class Broken(uform_torch.Reranker):
    def scores(self, queries, documents, candidates):  # type: ignore[no-untyped-def]
        return [torch.tensor([float("nan"), 1.0, 2.0])]


def test_what_is_no_number_comes_last() -> None:
    assert Broken().rank(["q"], ["a"] * 3, [[0, 1, 2]]).ids.tolist() == [[2, 1, 0]]


def test_wrong_arguments(model: uform.Model, headless: uform.Model) -> None:
    with pytest.raises(ValueError, match="lists of 1 queries, but there are 2"):
        Constant().rank(["q", "r"], ["a"], [[0]])
    with pytest.raises(IndexError, match="query 1 names document 7 of 2"):
        Constant().rank(["q", "r"], ["a", "b"], [[0], [7]])
    with pytest.raises(TypeError, match="candidates: integers are needed, not float64"):
        Constant().rank(["q"], ["a"], [[0.7]])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="k: must not be negative"):
        Constant().rank(["q"], ["a"], [[0]], -2)
    with pytest.raises(ValueError, match="values"):
        uform_torch.ChoiceReranker(model, values={})
    with pytest.raises(uform.UnsupportedError, match="token head"):
        uform_torch.LateInteractionReranker(headless).rank(["q"], ["a"], [[0]])
