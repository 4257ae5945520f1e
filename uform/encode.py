"""What the verbs take and answer. The verbs are methods of `Model`, `On` and `DeferredOn`. See `encode.h`."""

from __future__ import annotations

from typing import NamedTuple

from uform._uform import ArenaBuffer, Outputs, RowsTape, TextEncodeStats

__all__ = ["EncodedBatch", "Outputs", "TextEncodeStats"]


class EncodedBatch(NamedTuple):
    """Outputs of a call, views over its arena; None where `outputs` left a surface out."""

    embeddings: ArenaBuffer | None
    """(count, dimensions), rows of unit length; zeros for an item without tokens."""
    states: RowsTape | None
    """(tokens, hidden), after the final norm."""
    token_vectors: RowsTape | None
    """(tokens, token_width), rows of unit length, on the states' offsets."""
