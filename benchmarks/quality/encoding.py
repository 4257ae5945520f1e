"""Texts of many lengths through the model: in groups of like length, on threads that share the work as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tests.oracle import Oracle

Forward = Callable[[Tensor, Tensor], Tensor]
"""Tokens `[batch, tokens]` and lengths `[batch]` to states: the model, compiled or not."""
GROUP_TOKENS = 4096


@dataclass
class Group:
    """Texts that are padded to one length."""

    indices: list[int]
    tokens: Tensor
    """`[texts, tokens]`"""
    lengths: Tensor
    """`[texts]`"""
    computed: Tensor | None = None
    """States `[texts, tokens, hidden]` as the model gave them, with what a backward pass needs."""
    states: Tensor | None = None
    """The same states, cut from the model: losses leave their gradient here."""


@dataclass
class Encoded:
    """The states of texts, by group."""

    groups: list[Group]
    where: dict[int, tuple[int, int]]
    """The group, and the row in it, of each text."""

    def padded(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """States `[indices, tokens, hidden]` of some texts, and their lengths."""
        places = [self.where[index] for index in indices]
        lengths = torch.stack([self.groups[group].lengths[row] for group, row in places])
        rows = [self.groups[group].states[row, : self.groups[group].lengths[row]] for group, row in places]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True), lengths

    def last(self, indices: Sequence[int]) -> Tensor:
        """`[indices, hidden]`: the state of the last token of each of some texts."""
        places = [self.where[index] for index in indices]
        return torch.stack(
            [self.groups[group].states[row, self.groups[group].lengths[row] - 1] for group, row in places]
        )

    def pooled(self, model: Oracle, count: int | None = None) -> Tensor:
        """Embeddings `[count, dimensions]` of the first `count` texts, or all, float32."""
        order = torch.tensor([index for group in self.groups for index in group.indices])
        rows = torch.cat([model.pool(group.states, group.lengths).float() for group in self.groups])
        return rows[order.argsort()[:count]]


def products_in(dtype: torch.dtype) -> torch.autocast:
    """Matrix products in bfloat16, or in float32, which is faster on a processor that has no instructions for BF16."""
    return torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16)


class Crew:
    """Threads that take groups one after another, each group on one thread.

    On cores that others use too, threads that share every matrix product wait for the slowest of them at each; threads
    that share groups do not.
    """

    def __init__(self, model: Oracle, forward: Forward, threads: int, products: torch.dtype = torch.bfloat16) -> None:
        self.model, self.forward, self.products = model, forward, products
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        torch.set_num_threads(1)
        self.pool = ThreadPoolExecutor(threads, initializer=lambda: torch.set_num_threads(1))

    def encode(self, texts: Sequence[Sequence[int]], gradients: bool = False) -> Encoded:
        """Runs texts (tokens), sorted by length, padded to a multiple of 16."""
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        groups: list[Group] = []
        where = {}
        while order:
            width = -(-len(texts[order[0]]) // 16) * 16
            count = max(1, GROUP_TOKENS // width)
            indices, order = order[:count], order[count:]
            tokens = torch.zeros(len(indices), width, dtype=torch.int64)
            for row, index in enumerate(indices):
                tokens[row, : len(texts[index])] = torch.tensor(list(texts[index]))
                where[index] = (len(groups), row)
            groups.append(Group(indices, tokens, torch.tensor([len(texts[index]) for index in indices])))

        def run(group: Group) -> None:
            with torch.set_grad_enabled(gradients), products_in(self.products):
                group.computed = self.forward(group.tokens, group.lengths)
            group.states = group.computed.detach().requires_grad_(gradients)

        list(self.pool.map(run, groups))
        return Encoded(groups, where)

    def backward(self, encoded: Encoded) -> None:
        """Carries the gradients that losses left in the states on to the model's parameters.

        They are summed in the order of the groups, so that a run does not depend on which thread was first.
        """

        def run(group: Group) -> tuple[Tensor | None, ...]:
            return torch.autograd.grad(group.computed, self.parameters, group.states.grad, allow_unused=True)

        for gradients in self.pool.map(run, encoded.groups):
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                if gradient is not None:
                    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
