"""What the verbs take and answer. The verbs are methods of `Model`, `On` and `DeferredOn`. See `encode.h`."""

from __future__ import annotations

from typing import NamedTuple

from uform._uform import (
    ArenaBuffer,
    AudioEncodeStats,
    ImageEncodeStats,
    Outputs,
    RowsTape,
    Status,
    TextEncodeStats,
    VideoEncodeStats,
)

__all__ = [
    "AudioEncodeStats",
    "EncodedBatch",
    "ImageEncodeStats",
    "MalformedItem",
    "MediaLimits",
    "Outputs",
    "TextEncodeStats",
    "VideoEncodeStats",
]


class EncodedBatch(NamedTuple):
    """Outputs of a call, views over its arena; None where `outputs` left a surface out."""

    embeddings: ArenaBuffer | None
    """(count, dimensions), rows of unit length; zeros for an item without tokens, or that was skipped."""
    states: RowsTape | None
    """(tokens, hidden), after the final norm."""
    token_vectors: RowsTape | None
    """(tokens, token_width), rows of unit length, on the states' offsets."""


class MediaLimits(NamedTuple):
    """What an item may take at the most, raised or lowered; 0 stands for the default.

    Checked against an item's headers before memory is asked for: what is over a limit is malformed.
    """

    pixels: int = 0
    """Of a picture, or of a video's frame. Default 2**28."""
    seconds: int = 0
    """Of a video or a recording. Default 14,400, four hours."""
    bytes: int = 0
    """Of memory while an item is decoded. Default 2**31."""


class MalformedItem(NamedTuple):
    """An item that `skip_malformed=True` had a call skip."""

    item: int
    """Its index in the batch."""
    status: Status
    """MALFORMED: broken, cut short, or over a limit. UNSUPPORTED_LAYOUT: a format that is not taken."""
    message: str
    """Why."""
