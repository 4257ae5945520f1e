"""An encoder with the interface that the evaluators and utilities of sentence-transformers call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from uform import InvalidArgumentError, UnsupportedError
from uform_torch.encoder import Encoder

__all__ = ["EvaluationRecord", "SentenceEncoder"]


class EvaluationRecord:
    """What evaluators found; they report it to what is a model's card elsewhere."""

    def __init__(self) -> None:
        self.metrics: dict[str, float] = {}

    def set_evaluation_metrics(self, evaluator: object, metrics: Mapping[str, float], epoch: int, step: int) -> None:
        """Keeps the last value of each metric."""
        self.metrics.update(metrics)


class SentenceEncoder:
    """For `InformationRetrievalEvaluator` and its siblings, and for `util.semantic_search` over what `encode` answers.

    encoder: with embeddings among its `outputs`; they are of unit length, so cosine is what compares them.
    prompts: texts by name, which `prompt_name` has put before each text; "query" and "document" are the defaults of
        `encode_query` and `encode_document`.

    `model_card_data.metrics` has what evaluators found. sentence-transformers itself is not imported.
    """

    similarity_fn_name = "cosine"

    def __init__(self, encoder: Encoder, *, prompts: Mapping[str, str] | None = None) -> None:
        self.encoder = encoder
        self.prompts = dict(prompts or {})
        self.truncate_dim: int | None = None
        self.model_card_data = EvaluationRecord()

    @property
    def device(self) -> torch.device:
        """Where embeddings are given back."""
        return self.encoder.device

    def encode(
        self,
        inputs: Sequence[str] | str,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 256,
        show_progress_bar: bool | None = None,
        output_value: str = "sentence_embedding",
        precision: str | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: str | torch.device | None = None,
        normalize_embeddings: bool = True,
        truncate_dim: int | None = None,
    ) -> Any:
        """Embeddings of texts, (count, dimensions), or of one text, (dimensions,); as float32 arrays, or as tensors
        with `convert_to_tensor=True` or `convert_to_numpy=False`.

        batch_size: texts a call; results do not depend on it.
        truncate_dim: embeddings are cut to so many scalars, and scaled to unit length again.
        show_progress_bar, normalize_embeddings: taken, and change nothing: embeddings are of unit length anyway.

        Raises UnsupportedError for an `output_value`, `precision` or `device` that is not the default, and
        InvalidArgumentError for a prompt without a name here, or more dimensions than there are.
        """
        if output_value != "sentence_embedding" or precision not in (None, "float32"):
            raise UnsupportedError(f"output_value, precision: {output_value!r} and {precision!r} are not made here")
        if device is not None and torch.device(device) != self.device:
            raise UnsupportedError(f"device: the encoder gives back on {self.device}: move it, and not a call")
        prefix = self._prompt(prompt_name, prompt)
        is_single = isinstance(inputs, str)
        texts = [inputs] if isinstance(inputs, str) else inputs
        parts = [
            self.encoder.encode_text([prefix + text for text in texts[first : first + batch_size]]).embeddings
            for first in range(0, len(texts), batch_size)
        ]
        embeddings = torch.cat([part for part in parts if part is not None]) if parts else self._none()
        embeddings = self._cut(embeddings, self.truncate_dim if truncate_dim is None else truncate_dim)
        if is_single:
            embeddings = embeddings[0]
        return embeddings if convert_to_tensor or not convert_to_numpy else embeddings.float().cpu().numpy()

    def encode_query(self, inputs: Sequence[str] | str, **options: Any) -> Any:
        """`encode`, with the prompt "query" if there is one."""
        return self.encode(inputs, **self._with_prompt("query", options))

    def encode_document(self, inputs: Sequence[str] | str, **options: Any) -> Any:
        """`encode`, with the prompt "document" if there is one."""
        return self.encode(inputs, **self._with_prompt("document", options))

    def similarity(
        self, first: torch.Tensor | NDArray[np.float32], second: torch.Tensor | NDArray[np.float32]
    ) -> torch.Tensor:
        """Cosines of all pairs, (rows of the first, rows of the second)."""
        return _unit(torch.as_tensor(first)) @ _unit(torch.as_tensor(second)).T

    def similarity_pairwise(
        self, first: torch.Tensor | NDArray[np.float32], second: torch.Tensor | NDArray[np.float32]
    ) -> torch.Tensor:
        """Cosines of row and row, (rows,)."""
        return (_unit(torch.as_tensor(first)) * _unit(torch.as_tensor(second))).sum(-1)

    def get_embedding_dimension(self) -> int:
        """Scalars of an embedding."""
        return self.encoder.dimensions if self.truncate_dim is None else self.truncate_dim

    def _with_prompt(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
        is_given = options.get("prompt") is not None or options.get("prompt_name") is not None
        return options if is_given or name not in self.prompts else options | {"prompt_name": name}

    def _prompt(self, name: str | None, prompt: str | None) -> str:
        if prompt is not None:
            return prompt
        if name is not None and name not in self.prompts:
            raise InvalidArgumentError(f"prompt_name: there is no {name!r} among {sorted(self.prompts)}")
        return "" if name is None else self.prompts[name]

    def _none(self) -> torch.Tensor:
        return torch.empty(0, self.encoder.dimensions, dtype=self.encoder.dtype, device=self.device)

    def _cut(self, embeddings: torch.Tensor, dimensions: int | None) -> torch.Tensor:
        if dimensions is None:
            return embeddings
        if not 1 <= dimensions <= self.encoder.dimensions:
            raise InvalidArgumentError(
                f"truncate_dim: embeddings have {self.encoder.dimensions}, and {dimensions} were asked for"
            )
        return _unit(embeddings[:, :dimensions])


def _unit(rows: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(rows.float() if rows.dtype is torch.float16 else rows, dim=-1)
