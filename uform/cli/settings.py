"""Options that every command which runs a model has, and the model that they ask for."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

import uform
from uform.cli.console import Failure


def _enumeration(
    kind: type[uform.Scalar] | type[uform.CPUClass] | type[uform.Modality], *names: str
) -> click.Choice[str]:
    return click.Choice(names or [str(member.name).lower() for member in kind], case_sensitive=False)


def _kinds(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> uform.Modality | None:
    if not names:
        return None
    return functools.reduce(operator.or_, (uform.Modality[name.upper()] for name in names))


checkpoint_option = click.option(
    "--checkpoint", metavar="FILE", help="Checkpoint (safetensors) to use instead of the one that comes with uform."
)
quantization_option = click.option(
    "--quantization",
    type=_enumeration(uform.Scalar, "bf16", "e4m3"),
    default="bf16",
    show_default=True,
    help="What the weights are kept as: as stored, or in half the memory.",
)
cpu_class_option = click.option(
    "--cpu-class",
    type=_enumeration(uform.CPUClass),
    help="Instruction set to compute with. Where it is the same, so are results, to the bit.  [default: the best]",
)
threads_option = click.option(
    "--threads",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Threads to compute with.  [default: as many as this process may run on]",
)
batch_option = click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=1024,
    show_default=True,
    metavar="N",
    help="Items encoded at a time, at the most. Changes speed and memory, never the results.",
)
skip_malformed_option = click.option(
    "--skip-malformed",
    is_flag=True,
    help="Go on after media files that cannot be decoded, and list them on stderr; else the first one ends it.",
)
only_option = click.option(
    "--only",
    type=_enumeration(uform.Modality),
    multiple=True,
    callback=_kinds,
    help="Leave out all but files of this kind. May be given many times.",
)
progress_option = click.option(
    "--progress/--no-progress", default=None, help="Show a bar on stderr.  [default: on a terminal]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, an object a line.")


@dataclass(frozen=True)
class Settings:
    """What the options said."""

    checkpoint: str | None
    quantization: str
    cpu_class: str | None
    threads: int = 1
    batch: int = 1

    def load(self) -> tuple[uform.Model, uform.Executor]:
        cpu_class = uform.CPUClass[self.cpu_class.upper()] if self.cpu_class else None
        executor = uform.Executor.for_ram(self.threads, cpu_class=cpu_class)
        path = self.checkpoint if self.checkpoint is not None else uform.default_checkpoint()
        quantization = uform.Scalar[self.quantization.upper()]
        try:
            model = uform.Model.load_ram(path, quantization=quantization, executor=executor, cpu_class=cpu_class)
        except uform.Error as error:
            raise Failure(str(error) if path in str(error) else f"{path}: {error}") from None
        return model, executor


def with_settings(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options, and calls it with what they said as its first argument."""

    @checkpoint_option
    @quantization_option
    @cpu_class_option
    @threads_option
    @batch_option
    @functools.wraps(function)
    def command(
        checkpoint: str | None, quantization: str, cpu_class: str | None, threads: int, batch: int, **rest: Any
    ) -> Any:
        return function(Settings(checkpoint, quantization, cpu_class, threads, batch), **rest)

    return command
