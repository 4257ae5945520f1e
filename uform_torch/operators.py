"""The verbs as operators of torch, with fakes: what `torch.compile` and `torch.export` see of an encoder.

`torch.ops.uform.text_encode(data, offsets, encoder, outputs, outputs_scalar)`, and so on, each answering
(embeddings, states, offsets, token_vectors); what `outputs` leaves out has no rows. `encoder` is an encoder's `key`,
which names the weights, so that an exported program runs in another process once an encoder of them is there.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import torch

from uform import InvalidArgumentError, Modality, Outputs, Scalar
from uform_torch.batch import TapeBatch
from uform_torch.engine import Engine

__all__ = ["SCALARS", "encode", "register"]

SCALARS: dict[torch.dtype, Scalar] = {
    torch.float32: Scalar.F32,
    torch.bfloat16: Scalar.BF16,
    torch.float8_e4m3fn: Scalar.E4M3,
}
"""What calls can write; all other types are converted to."""
_DTYPES = {scalar: dtype for dtype, scalar in SCALARS.items()}

_ENGINES: weakref.WeakValueDictionary[str, Engine] = weakref.WeakValueDictionary()

_INPUTS = {
    "text_encode": (Modality.TEXT, ""),
    "image_encode": (Modality.IMAGE, ""),
    "image_encode_pixels": (Modality.IMAGE, "Tensor shapes, "),
    "video_encode": (Modality.VIDEO, ""),
    "audio_encode": (Modality.AUDIO, ""),
    "audio_encode_samples": (Modality.AUDIO, "int sample_rate, "),
}


def register(engine: Engine) -> None:
    """Has operators find an engine by its key as long as it lives. Of engines with one key, any does."""
    _ENGINES[engine.key] = engine


def encode(batch: TapeBatch, encoder: str, outputs: int, outputs_scalar: int) -> Sequence[torch.Tensor]:
    """A batch by the operator of its verb."""
    operator = getattr(torch.ops.uform, batch.verb)
    more = [part for part in (batch.shapes, batch.sample_rate) if part is not None]
    surfaces: Sequence[torch.Tensor] = operator(batch.data, batch.offsets, *more, encoder, outputs, outputs_scalar)
    return surfaces


def _engine(key: str) -> Engine:
    engine = _ENGINES.get(key)
    if engine is None:
        raise InvalidArgumentError(f"encoder: this process has none that is {key!r}: make it from the same checkpoint")
    return engine


def _define(verb: str, modality: Modality, extra: str) -> None:
    schema = (
        f"(Tensor data, Tensor offsets, {extra}str encoder, int outputs, int outputs_scalar) "
        "-> (Tensor embeddings, Tensor states, Tensor offsets, Tensor token_vectors)"
    )

    def compute(data: torch.Tensor, offsets: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, ...]:
        *more, encoder, outputs, outputs_scalar = rest
        engine, scalar = _engine(encoder), Scalar(outputs_scalar)
        shapes = more[0] if "shapes" in extra else None
        sample_rate = more[0] if "sample_rate" in extra else None
        batch = TapeBatch(data, offsets, modality, shapes=shapes, sample_rate=sample_rate)
        surfaces = engine.run_batch(batch, Outputs(outputs), scalar)
        none = _empty(engine, scalar, 0, 0, 0)
        if outputs == Outputs.EMBEDDINGS and surfaces.embeddings is not None:
            return surfaces.embeddings, *none[1:]
        # An operator's results may not share memory, which those of a call do.
        return tuple(none[i] if part is None else part.clone() for i, part in enumerate(surfaces))

    def fake(data: torch.Tensor, offsets: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, ...]:
        *_, encoder, outputs, outputs_scalar = rest
        count, has_rows = offsets.shape[0] - 1, outputs & (Outputs.STATES | Outputs.TOKEN_VECTORS)
        rows = torch.library.get_ctx().new_dynamic_size() if has_rows else 0
        scalar = Scalar(outputs_scalar)
        surfaces = _empty(_engine(encoder), scalar, count, rows, count + 1)
        none = _empty(_engine(encoder), scalar, 0, 0, 0)
        kept = (outputs & Outputs.EMBEDDINGS, outputs & Outputs.STATES, has_rows, outputs & Outputs.TOKEN_VECTORS)
        return tuple(part if is_kept else left for part, left, is_kept in zip(surfaces, none, kept, strict=True))

    torch.library.custom_op(f"uform::{verb}", compute, mutates_args=(), schema=schema).register_fake(fake)


def _empty(
    engine: Engine, scalar: Scalar, count: int, rows: int | torch.SymInt, bounds: int
) -> tuple[torch.Tensor, ...]:
    """Outputs of a size, on the CPU, or fake ones where fakes are made."""
    description, dtype = engine.description, _DTYPES[scalar]
    return (
        torch.empty(count, description.dimensions, dtype=dtype, device="cpu"),
        torch.empty(rows, description.hidden, dtype=dtype, device="cpu"),
        torch.empty(bounds, dtype=torch.int64, device="cpu"),
        torch.empty(rows, description.token_width, dtype=dtype, device="cpu"),
    )


for _verb, (_modality, _extra) in _INPUTS.items():
    _define(_verb, _modality, _extra)
