"""`uform describe`: what a checkpoint is, and how it would run here."""

from __future__ import annotations

import enum

import click

import uform
from uform.cli.console import json_line
from uform.cli.settings import Settings, cpu_class_option, quantization_option


@click.command(short_help="Print what a checkpoint is.")
@click.argument("checkpoint", required=False)
@quantization_option
@cpu_class_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def describe(checkpoint: str | None, quantization: str, cpu_class: str | None, as_json: bool) -> None:
    """Describes CHECKPOINT, or the one that comes with uform, and how it would run on this machine."""
    path = checkpoint if checkpoint is not None else str(uform.default_checkpoint())
    model, _ = Settings(path, quantization, cpu_class).load()
    description = model.describe()
    record: dict[str, object] = {"checkpoint": path}
    for name, value in description._asdict().items():
        if isinstance(value, uform.Modality):
            record[name] = [modality.name for modality in uform.Modality if modality in value]
        else:
            record[name] = value.name if isinstance(value, enum.Enum) else value
    if as_json:
        click.echo(json_line(record))
        return
    width = max(map(len, record))
    for name, value in record.items():
        click.echo(f"{name.replace('_', ' '):<{width}}  {_shown(value)}")


def _shown(value: object) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
