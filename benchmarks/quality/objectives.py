"""What the default checkpoint is trained for: losses over embeddings, token vectors and choices, and a teacher."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

INVERSE_TEMPERATURE_LARGEST = 50.0


class Scale(nn.Module):
    """A learned inverse temperature of an InfoNCE loss, which never leaves (0, `INVERSE_TEMPERATURE_LARGEST`]."""

    def __init__(self, start: float) -> None:
        super().__init__()
        self.logarithm = nn.Parameter(torch.tensor(math.log(start)))

    def forward(self) -> Tensor:
        return self.logarithm.clamp(max=math.log(INVERSE_TEMPERATURE_LARGEST)).exp()


def info_nce(similarities: Tensor, scale: Tensor) -> Tensor:
    """Symmetric InfoNCE (van den Oord et al., 2018) of `[batch, batch]` similarities, whose diagonal pairs belong."""
    logits = similarities * scale
    targets = torch.arange(len(logits))
    return 0.5 * (functional.cross_entropy(logits, targets) + functional.cross_entropy(logits.T, targets))


def maxsim(queries: Tensor, query_lengths: Tensor, documents: Tensor, document_lengths: Tensor) -> Tensor:
    """Late interaction (Khattab and Zaharia, 2020), `[queries, documents]`: a query token's best match, averaged.

    `queries` `[queries, tokens, width]` and `documents` `[documents, tokens, width]` are padded to their lengths.
    """
    query_exists = torch.arange(queries.shape[1]) < query_lengths[:, None]
    document_exists = torch.arange(documents.shape[1]) < document_lengths[:, None]
    similarities = torch.einsum("qsw,dtw->qsdt", queries, documents)
    best = similarities.masked_fill(~document_exists[None, None], -2.0).amax(-1)
    return (best * query_exists[..., None]).sum(1) / query_lengths[:, None]


def choice_loss(logits: Tensor, legal: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of `[batch, 256]` logits over the bytes that `legal` `[batch, 256]` allows; `targets` `[batch]`."""
    return functional.cross_entropy(logits.float().masked_fill(~legal, -math.inf), targets)


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z][a-z0-9+]+", text.lower()))


def word_teacher(texts: Sequence[str], dimensions: int, seed: int) -> Tensor:
    """Latent semantic analysis (Deerwester et al., 1990): `[texts, dimensions]` of unit length.

    The first singular vectors of the texts' TF-IDF matrix, each scaled down by the root of its singular value: plain
    ones spend most of their length on the few directions that all texts share.
    """
    occurrences = [words(text) for text in texts]
    frequencies = Counter(word for group in occurrences for word in group)
    kept = sorted(word for word, count in frequencies.items() if 3 <= count <= 0.2 * len(texts))
    columns = {word: index for index, word in enumerate(kept)}
    rows_at, columns_at, values = [], [], []
    for row, group in enumerate(occurrences):
        known = sorted(group & columns.keys())
        weights = [math.log(len(texts) / frequencies[word]) for word in known]
        length = math.sqrt(sum(weight * weight for weight in weights)) or 1.0
        rows_at += [row] * len(known)
        columns_at += [columns[word] for word in known]
        values += [weight / length for weight in weights]
    shape = (len(texts), len(kept))
    matrix = torch.sparse_coo_tensor([rows_at, columns_at], values, shape, dtype=torch.float32, check_invariants=True)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        left, singular, _ = torch.svd_lowrank(matrix.coalesce(), q=dimensions + 16, niter=3)
    return functional.normalize(left[:, :dimensions] * singular[:dimensions].sqrt(), dim=1)
