"""`uform choose`: how probable a model takes each of a few one-byte answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

import click

from uform.cli.console import json_line, readable
from uform.cli.corpus import STANDARD_INPUT, Corpus, Item, lines
from uform.cli.encoding import Encoder, Totals
from uform.cli.settings import Settings, json_option, with_settings


def _legal_bytes(context: click.Context, parameter: click.Parameter, value: str) -> bytes:
    if not value:
        raise click.BadParameter("at least one choice is needed")
    if not value.isascii():
        raise click.BadParameter("a choice is a single byte, as ASCII letters are")
    if len(set(value)) < len(value):
        raise click.BadParameter("a choice is there twice")
    return value.encode("ascii")


@click.command(short_help="Print how probable one-letter answers are.")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option(
    "--choices", required=True, callback=_legal_bytes, metavar="LETTERS", help="The answers, a letter each: yn"
)
@click.option(
    "--group",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Type of the question, of those that the model was calibrated for.",
)
@json_option
@with_settings
def choose(settings: Settings, texts: tuple[str, ...], choices: bytes, group: int, as_json: bool) -> None:
    """Prints how probable each choice is to come after each TEXT, or after each line of stdin.

    \b
      uform choose --choices yn "Is GIMP a program for pictures? "
      uform choose --choices ABCD --group 1 --json < questions.txt
    """
    if not texts and (sys.stdin is None or sys.stdin.isatty()):
        raise click.UsageError("nothing to ask: give texts, or pipe lines in")
    encoder = Encoder(settings)
    groups = encoder.description.choice_temperature_groups
    if groups and group >= groups:
        raise click.UsageError(f"--group: {group}, but the model has groups 0 to {groups - 1}")
    totals = Totals()
    for items, probabilities in encoder.choose(_items(texts, encoder.limit), choices, group, totals):
        for item, row in zip(items, probabilities, strict=True):
            click.echo(_answer(item, choices, [float(probability) for probability in row], as_json))
    totals.report(encoder.context - 1, encoder.description.trained_modalities)


def _items(texts: Sequence[str], limit: int) -> Iterator[Item]:
    if texts:
        return (Item("text", index, os.fsencode(text)) for index, text in enumerate(texts, 1))
    return iter(Corpus([STANDARD_INPUT], lambda path: lines(limit), binary=True, strict=True))


def _answer(item: Item, choices: bytes, probabilities: Sequence[float], as_json: bool) -> bytes:
    letters = choices.decode("ascii")
    if as_json:
        best = letters[probabilities.index(max(probabilities))]
        by_letter = dict(zip(letters, probabilities, strict=True))
        return json_line({"text": item.data.decode("utf-8", "replace"), "best": best, "probabilities": by_letter})
    scores = (f"{readable(letter.encode())} {score:.4f}" for letter, score in zip(letters, probabilities, strict=True))
    return "  ".join((*scores, readable(item.data))).encode()
