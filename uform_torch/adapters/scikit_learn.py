"""An encoder as a transformer of scikit-learn, for pipelines."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from typing_extensions import Self

from uform import Scalar
from uform_torch.encoder import Encoder

__all__ = ["TextEmbedder"]


class TextEmbedder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Texts to embeddings, (count, dimensions) float32 of unit length. There is nothing to fit.

    checkpoint: path of a checkpoint; None for the default one.
    dimensions: embeddings are cut to so many scalars, and scaled to unit length again; None for all.
    threads: that calls run on; None for the calling thread, 0 for the cores that this process may run on.
    quantization: of the weights, "BF16" or "E4M3".
    batch_size: texts a call; results do not depend on it.

    Its parameters are plain values, so that it can be cloned, searched over and pickled; the encoder is made with the
    first call, once a process.
    """

    def __init__(
        self,
        checkpoint: str | os.PathLike[str] | None = None,
        *,
        dimensions: int | None = None,
        threads: int | None = None,
        quantization: str = "BF16",
        batch_size: int = 256,
    ) -> None:
        self.checkpoint = checkpoint
        self.dimensions = dimensions
        self.threads = threads
        self.quantization = quantization
        self.batch_size = batch_size

    def fit(self, X: Iterable[str] | None = None, y: Any = None) -> Self:
        """Does nothing, as the weights are there already."""
        return self

    def transform(self, X: Iterable[str]) -> NDArray[np.float32]:
        """Embeddings of texts, of any iterable or array of them."""
        encoder, texts = self._encoder(), list(X)
        rows = np.empty((len(texts), encoder.dimensions), np.float32)
        for first in range(0, len(texts), self.batch_size):
            embeddings = encoder.encode_text(texts[first : first + self.batch_size]).embeddings
            assert embeddings is not None
            rows[first : first + len(embeddings)] = embeddings.numpy()
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """embedding0, embedding1, ..."""
        return np.array([f"embedding{index}" for index in range(self._encoder().dimensions)], object)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_made", None)
        return state

    def _encoder(self) -> Encoder:
        """The encoder of the present parameters, which `set_params` may have changed since the last call."""
        asked = (self.checkpoint, self.dimensions, self.threads, self.quantization)
        made: tuple[Any, Encoder] | None = getattr(self, "_made", None)
        if made is None or made[0] != asked:
            encoder = Encoder(
                self.checkpoint,
                dimensions=self.dimensions,
                executor=self.threads,
                quantization=Scalar[self.quantization],
            )
            made = self._made = (asked, encoder)
        return made[1]
