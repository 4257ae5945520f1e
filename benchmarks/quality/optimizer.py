"""Muon for the blocks' matrices, AdamW for the rest.

Muon (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon/) replaces a matrix's momentum by the nearest
orthogonal matrix, so that every direction learns at the same rate. On small encoders it needs about half the steps that
AdamW does.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

# An odd quintic that takes any singular value in (0, 1] close to 1 in five rounds; from the source above.
QUINTIC = (3.4445, -4.7750, 2.0315)
ROUNDS = 5
# How many square or tall matrices, trained as one product, a stacked weight really is.
STACKED = {"qkv": 3, "gate_up": 2}


def orthogonalize(matrices: Tensor) -> Tensor:
    """The nearest semi-orthogonal matrix of each in `[count, rows, columns]`, about: singular values in 0.7 to 1.2."""
    wide = matrices.shape[1] < matrices.shape[2]
    result = matrices if wide else matrices.mT
    result = result / (result.norm(dim=(1, 2), keepdim=True) + 1e-7)
    first, third, fifth = QUINTIC
    for _ in range(ROUNDS):
        gram = result @ result.mT
        result = first * result + (third * gram + fifth * gram @ gram) @ result
    return result if wide else result.mT


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, orthogonalized; the update's root mean square is that of a `max(1, rows / columns)` share."""

    def __init__(self, named: list[tuple[str, nn.Parameter]], lr: float, momentum: float, weight_decay: float) -> None:
        self.names = {parameter: name.split(".")[-1] for name, parameter in named}
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__([parameter for _, parameter in named], defaults)

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state["momentum"] = torch.zeros_like(parameter)
                momentum = state["momentum"]
                momentum.lerp_(parameter.grad, 1 - group["momentum"])
                update = parameter.grad.lerp(momentum, group["momentum"])
                count = STACKED.get(self.names[parameter], 1)
                update = orthogonalize(update.view(count, -1, update.shape[1]))
                scale = max(1.0, update.shape[1] / update.shape[2]) ** 0.5
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(update.reshape(parameter.shape), alpha=-group["lr"] * scale)


def optimizers(
    model: nn.Module, extra: list[nn.Parameter], muon_rate: float, adam_rate: float, weight_decay: float
) -> list[torch.optim.Optimizer]:
    """Muon over the blocks' matrices; AdamW, which decays nothing, over embeddings, gains, heads and `extra`."""
    matrices, others = [], list(extra)
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if name.startswith("blocks.") and parameter.dim() == 2:
            matrices.append((name, parameter))
        else:
            others.append(parameter)
    return [
        Muon(matrices, muon_rate, 0.95, weight_decay),
        torch.optim.AdamW(others, adam_rate, betas=(0.9, 0.98), weight_decay=0.0),
    ]
