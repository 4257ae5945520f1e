"""A second look at candidates: late interaction over token vectors, or a calibrated answer to a question a pair."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from uform import Arena, Executor, Model, Outputs, RowsTape, rank
from uform_torch.retrieval import Ranking, Vectors, host_array, host_tensor
from uform_torch.tensors import to_tensor

__all__ = ["ChoiceReranker", "LateInteractionReranker", "Reranker", "maxsim"]

Tokens = RowsTape | tuple[Vectors, Vectors] | list[Vectors]
"""Token vectors of items: a `RowsTape`; a tuple of (vectors, width) float32 or bfloat16 and (count + 1) offsets; or a
list of one matrix an item, which is put together first."""

Candidates = Sequence[int] | NDArray[np.int64]


def maxsim(
    queries: Tokens,
    documents: Tokens,
    *,
    candidates: Sequence[Candidates] | torch.Tensor | None = None,
    executor: Executor | None = None,
) -> torch.Tensor:
    """Late-interaction scores, of ragged token vectors, without padding: see `uform.rank.maxsim`.

    candidates: None compares all pairs, and answers (queries, documents). Otherwise the documents of each query: a
        matrix answers a score for each, and lists answer the scores of all of them, one after another.
    """
    tapes = *_tape(queries, "queries"), *_tape(documents, "documents")
    if candidates is None:
        return torch.from_numpy(rank.maxsim(*tapes, executor=executor))
    lists = [_ids(ids) for ids in candidates]
    offsets = np.concatenate(([0], np.cumsum([len(ids) for ids in lists]))).astype(np.int64)
    named = np.concatenate(lists) if lists else np.empty(0, np.int64)
    scores = torch.from_numpy(rank.maxsim(*tapes, candidates=(named, offsets), executor=executor))
    return scores.view(candidates.shape) if isinstance(candidates, torch.Tensor) else scores


class Reranker(ABC):
    """Orders the candidates of each query anew."""

    @abstractmethod
    def scores(
        self, queries: Sequence[str], documents: Sequence[str], candidates: Sequence[Candidates]
    ) -> list[torch.Tensor]:
        """A score of each query's candidates: float32, the larger the better.

        candidates: ids of documents, a list a query.
        """

    def rank(
        self,
        queries: Sequence[str],
        documents: Sequence[str],
        candidates: Sequence[Candidates] | torch.Tensor,
        k: int | None = None,
    ) -> Ranking:
        """The best `k` candidates of each query, all of them by default; of equals those with the smallest ids.

        candidates: ids of documents, a list a query, or what `top_k` answered: negative ids are none. An id that is
            there twice counts once.

        Raises ValueError for a list too few or too many, IndexError for an id that is no document's.
        """
        if k is not None and k < 0:
            raise ValueError(f"k: must not be negative, not {k}")
        if len(candidates) != len(queries):
            raise ValueError(f"candidates: lists of {len(candidates)} queries, but there are {len(queries)}")
        lists = [np.unique(ids[ids >= 0]) for ids in map(_ids, candidates)]
        for query, ids in enumerate(lists):
            if len(ids) and ids[-1] >= len(documents):
                raise IndexError(f"candidates: query {query} names document {ids[-1]} of {len(documents)}")
        width = max((len(ids) for ids in lists), default=0) if k is None else k
        scores = torch.zeros(len(queries), width)
        found = torch.full((len(queries), width), -1, dtype=torch.int64)
        for row, (ids, values) in enumerate(zip(lists, self.scores(queries, documents, lists), strict=True)):
            # Ids rise, and a stable order keeps that of equals.
            # A score that is no number is the worst.
            numbers = torch.nan_to_num(values, nan=float("-inf"), posinf=float("inf"), neginf=float("-inf"))
            order = torch.argsort(numbers, descending=True, stable=True)[:width]
            scores[row, : len(order)] = values[order]
            found[row, : len(order)] = torch.from_numpy(ids)[order]
        return Ranking(scores, found)


class LateInteractionReranker(Reranker):
    """MaxSim of token vectors; a document that several queries name is encoded once.

    model: with a token head (`describe().token_width`).
    executor: where it runs; None: on the calling thread.
    batch: documents that are encoded at once.
    """

    def __init__(self, model: Model, *, executor: Executor | None = None, batch: int = 256) -> None:
        self._receiver = model if executor is None else model.on(executor)
        self._executor = executor
        self._batch = batch

    def scores(
        self, queries: Sequence[str], documents: Sequence[str], candidates: Sequence[Candidates]
    ) -> list[torch.Tensor]:
        lists = [_ids(ids) for ids in candidates]
        parts = [torch.empty(len(ids)) for ids in lists]
        wanted = self._tokens(queries)
        named = np.unique(np.concatenate(lists)) if lists else np.empty(0, np.int64)
        for first in range(0, len(named), self._batch):
            chunk = named[first : first + self._batch]
            tokens = self._tokens([documents[document] for document in chunk])
            places = [np.flatnonzero(np.isin(ids, chunk)) for ids in lists]
            inside = [np.searchsorted(chunk, ids[own]) for ids, own in zip(lists, places, strict=True)]
            values = maxsim(wanted, tokens, candidates=inside, executor=self._executor)
            for part, own, some in zip(parts, places, torch.split(values, [len(own) for own in places]), strict=True):
                part[torch.from_numpy(own)] = some
        return parts

    def _tokens(self, texts: Sequence[str]) -> Tokens:
        encoded = self._receiver.text_encode(list(texts), Arena(), outputs=Outputs.TOKEN_VECTORS)
        assert encoded.token_vectors is not None
        return encoded.token_vectors


class ChoiceReranker(Reranker):
    """Asks the model about every pair, and takes the expected value of its calibrated answer as the score.

    model: with a byte decoder (`describe().choice_temperature_groups`).
    template: the question, with `{query}` and `{document}`.
    values: what each answer, a letter, is worth: `{"y": 1.0, "n": 0.0}` scores the probability of a yes.
    group: the type of the question, of those that the model was calibrated for.
    batch: pairs that are asked about at once.
    """

    def __init__(
        self,
        model: Model,
        *,
        template: str = "{query}\n{document}\nmatch? ",
        values: dict[str, float] | None = None,
        group: int = 0,
        executor: Executor | None = None,
        batch: int = 256,
    ) -> None:
        self._receiver = model if executor is None else model.on(executor)
        self._template = template
        self._values = {"y": 1.0, "n": 0.0} if values is None else dict(values)
        if not self._values:
            raise ValueError("values: at least one answer is needed")
        self._group = group
        self._batch = batch

    def scores(
        self, queries: Sequence[str], documents: Sequence[str], candidates: Sequence[Candidates]
    ) -> list[torch.Tensor]:
        pairs = [(query, document) for query, ids in enumerate(candidates) for document in ids]
        values, letters = torch.tensor(list(self._values.values())), "".join(self._values)
        scores = torch.empty(len(pairs))
        arena = Arena()
        for first in range(0, len(pairs), self._batch):
            some = pairs[first : first + self._batch]
            prompts = [self._template.format(query=queries[q], document=documents[d]) for q, d in some]
            groups = np.full(len(some), self._group, np.uint32)
            answers = self._receiver.text_choose(prompts, [letters] * len(some), arena, temperature_groups=groups)
            probabilities = torch.from_numpy(np.array(answers)).view(len(some), len(letters))
            scores[first : first + len(some)] = probabilities @ values
        return list(torch.split(scores, [len(ids) for ids in candidates]))


def _ids(candidates: Candidates | torch.Tensor) -> NDArray[np.int64]:
    ids = np.asarray(candidates)
    if ids.size and ids.dtype.kind not in "iu":
        raise TypeError(f"candidates: integers are needed, not {ids.dtype}")
    return ids.astype(np.int64)


def _tape(tokens: Tokens, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows and offsets as `uform.rank` takes them."""
    if isinstance(tokens, RowsTape):
        return _rows(to_tensor(tokens), name), host_array(to_tensor(tokens.offsets), name)
    if isinstance(tokens, list):
        items = [_rows(item, f"{name}: item {index}") for index, item in enumerate(tokens)]
        for index, item in enumerate(items):
            if item.ndim != 2 or item.shape[1:] != items[0].shape[1:] or item.dtype != items[0].dtype:
                raise ValueError(
                    f"{name}: item {index} has to be a matrix like item 0, {items[0].dtype} of the shape "
                    f"{items[0].shape}, not {item.dtype} of {item.shape}"
                )
        if not items:
            raise ValueError(f"{name}: a list of at least one matrix is needed")
        return np.concatenate(items), np.cumsum([0, *map(len, items)])
    if not isinstance(tokens, tuple) or len(tokens) != 2:
        raise TypeError(f"{name}: a RowsTape, a tuple (vectors, offsets) or a list is needed, not {type(tokens)}")
    offsets = host_array(tokens[1], f"{name}: the offsets")
    if offsets.dtype.kind not in "iu":
        raise TypeError(f"{name}: the offsets have to be integers, not {offsets.dtype}")
    return _rows(tokens[0], name), offsets.astype(np.int64)


def _rows(vectors: Vectors, name: str) -> NDArray[Any]:
    """float32, or the bits of bfloat16."""
    if isinstance(vectors, torch.Tensor) and vectors.dtype is torch.bfloat16:
        bits: NDArray[Any] = host_tensor(vectors, name).view(torch.uint16).numpy()
        return bits
    return host_array(vectors, name)
