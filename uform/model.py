"""Models: checkpoints in memory, and the receivers that run their verbs. See `model.h`."""

from __future__ import annotations

import os
from typing import NamedTuple

from uform._uform import CPUClass, DeferredOn, GPUClass, Modality, Model, On, Scalar

__all__ = ["DeferredOn", "Model", "ModelDescription", "On", "default_checkpoint"]


class ModelDescription(NamedTuple):
    """What a model is."""

    dimensions: int
    """Scalars of an embedding."""
    context: int
    """Tokens of an item at the most; longer ones are truncated."""
    quantization: Scalar
    """BF16 or E4M3."""
    memory_usage: int
    """Bytes that the loaded model holds."""
    cpu_class: CPUClass | None
    """Class that its calls run as, unless their executor is pinned to another; None for a model on devices."""
    gpu_class: GPUClass | None
    """None for a model in host memory."""
    token_width: int
    """Scalars of a token vector; 0 without a token head."""
    choice_temperature_groups: int
    """Question types of the byte decoder; 0 without one."""
    cpu_class_pinned: bool
    """Whether `cpu_class` was asked for, or derived."""
    depth: int
    """Blocks."""
    hidden: int
    """Scalars of a token's state."""
    head_dimension: int
    """Scalars of an attention head."""
    parameters: int
    """Numbers that were trained."""
    modalities: Modality
    """What it takes; text always."""
    trained_modalities: Modality
    """What its weights were trained on; outputs of others mean nothing."""


def default_checkpoint() -> str:
    """Path of the checkpoint that comes with the package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "checkpoints", "default.safetensors")
