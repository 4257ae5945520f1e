"""`uform encode`: the embeddings of a corpus in a `.npy` file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import BinaryIO

import click
import numpy as np

import uform
from uform.cli.console import Failure, bar, json_line, note, plural
from uform.cli.corpus import COMPRESSIONS, STANDARD_INPUT, UNITS, BadRecord, Corpus, Reader, numbered_lines
from uform.cli.encoding import SURFACES, Encoder, Totals
from uform.cli.npy import NpyFile, Replacement
from uform.cli.settings import Settings, only_option, progress_option, skip_malformed_option, with_settings
from uform.cli.sniff import kind_name

JSON_LINES = (".jsonl", ".ndjson")
LONGEST_RECORD = 1 << 26


@click.command(short_help="Write the embeddings of texts and media files to a .npy file.")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("-o", "--output", required=True, metavar="FILE", help="The .npy file to write.")
@click.option(
    "--field",
    metavar="NAME",
    help="Read JSON lines, and encode this field of each.  [default: 'text' of files named .jsonl or .ndjson]",
)
@click.option(
    "--unit",
    type=click.Choice(list(UNITS)),
    default="line",
    show_default=True,
    help="What gets a row, in files of text that are not JSON lines.",
)
@click.option(
    "--surface",
    type=click.Choice(list(SURFACES)),
    default="embeddings",
    show_default=True,
    help="A row for each item, or the rows of each item's tokens with their offsets in a file of their own.",
)
@click.option(
    "--scalar",
    type=click.Choice(["f32", "bf16", "e4m3"]),
    default="f32",
    show_default=True,
    help="Numbers of the output. Those that NumPy does not have are written as their bytes (uint8).",
)
@click.option("--places", metavar="FILE", help="Also write where each row is from, as JSON lines.")
@click.option("--binary", is_flag=True, help="Read files with NUL bytes, too.")
@click.option("--hidden", is_flag=True, help="Read what is hidden in folders, too.")
@only_option
@skip_malformed_option
@progress_option
@with_settings
def encode(
    settings: Settings,
    paths: tuple[str, ...],
    output: str,
    field: str | None,
    unit: str,
    surface: str,
    scalar: str,
    places: str | None,
    binary: bool,
    hidden: bool,
    only: uform.Modality | None,
    skip_malformed: bool,
    progress: bool | None,
) -> None:
    """Encodes the lines or JSON lines of files, of folders, and of stdin ('-') into a .npy file.

    A picture (JPEG, PNG, WebP), a video (MP4, WebM) or a recording (WAV, FLAC, MP3, Opus) is an item as a whole, told
    by its bytes. Row i is item i: blank lines have rows too, of zeros, and so have files that --skip-malformed skips.
    Files named .gz, .bz2 or .xz are read decompressed. A corpus may be larger than memory. The output appears once it
    is whole; a failure leaves what was there before.

    \b
      uform encode corpus.txt --output corpus.npy
      uform encode photos/ --skip-malformed --places photos.jsonl --output photos.npy
      uform encode reviews.jsonl.gz --field body --scalar bf16 --output reviews.npy
      uform encode --surface token_vectors notes.txt --output notes.npy   # and notes.offsets.npy
    """
    if field is not None and unit != "line":
        raise click.UsageError("--unit does not go with --field")
    sources = _sources(paths)
    offsets_path = os.path.splitext(output)[0] + ".offsets.npy" if surface != "embeddings" else None
    _check_outputs([path for path in (output, offsets_path, places) if path is not None], sources)

    encoder = Encoder(settings, skip_malformed)
    kind = uform.Scalar[scalar.upper()]
    columns, element = encoder.shape(surface, kind)

    def reader_of(path: str) -> Reader:
        name, extension = os.path.splitext(path.lower())
        if extension in COMPRESSIONS:
            extension = os.path.splitext(name)[1]
        if field is not None or extension in JSON_LINES:
            return records(field if field is not None else "text", encoder.limit)
        return UNITS[unit](encoder.limit)

    corpus = Corpus(sources, reader_of, binary=binary, hidden=hidden, strict=True, media=encoder.media, only=only)
    totals = Totals()
    with ExitStack() as files:
        shown = files.enter_context(bar(progress, corpus.size))
        rows = files.enter_context(NpyFile(output, element, columns))
        offsets = files.enter_context(NpyFile(offsets_path, np.dtype("<u8"), None)) if offsets_path else None
        origins = files.enter_context(Replacement(places)) if places is not None else None
        if offsets:
            offsets.append(np.zeros(1))
        for items, encoded in encoder.encode(corpus, surface, kind, totals):
            if offsets and encoded.offsets is not None:
                offsets.append(encoded.offsets[1:] + np.uint64(rows.rows))
            rows.append(encoded.rows)
            if origins:
                for item in items:
                    place = {"path": item.path, "line": item.line or None, "kind": kind_name(item.kind)}
                    origins.write(json_line({**place, "malformed": item.fault or None}) + b"\n")
            shown.update(corpus.consumed - shown.n)
    totals.report(encoder.context, encoder.description.trained_modalities)
    note(f"{output}: {plural(rows.rows, 'row')} of {columns} {element}, {plural(totals.tokens, 'token')}")
    if offsets:
        note(
            f"{offsets.path}: {plural(totals.items, 'item')}, whose rows are those from offsets[i] up to offsets[i + 1]"
        )


def records(field: str, limit: int) -> Reader:
    """Every line is a JSON object, one of whose fields is a text; blank lines are passed over."""

    def read(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
        for number, line in numbered_lines(stream, LONGEST_RECORD):
            if not line.strip():
                continue
            if len(line) == LONGEST_RECORD:
                raise BadRecord(number, f"a line of {LONGEST_RECORD:,} bytes or more")
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadRecord(number, f"not JSON: {error}") from None
            if not isinstance(record, dict):
                raise BadRecord(number, "not a JSON object")
            if field not in record:
                raise BadRecord(number, f"no field {field!r}")
            if not isinstance(record[field], str):
                raise BadRecord(number, f"field {field!r} is no string")
            try:
                yield number, record[field].encode("utf-8")[:limit]
            except UnicodeEncodeError:
                raise BadRecord(number, f"field {field!r} has a lone surrogate, which UTF-8 cannot hold") from None

    return read


def _sources(paths: Sequence[str]) -> Sequence[str]:
    if paths.count(STANDARD_INPUT) > 1:
        raise click.UsageError("stdin ('-') can be read only once")
    if not paths and (sys.stdin is None or sys.stdin.isatty()):
        raise click.UsageError("nothing to encode: name files or folders, or pipe text in")
    return paths or (STANDARD_INPUT,)


def _check_outputs(outputs: Sequence[str], sources: Sequence[str]) -> None:
    for index, path in enumerate(outputs):
        if path in outputs[:index]:
            raise click.UsageError(f"{path}: two outputs in one file")
        if os.path.isdir(path):
            raise Failure(f"{path}: is a folder")
        for source in sources:
            if source != STANDARD_INPUT and os.path.exists(path) and os.path.samefile(path, source):
                raise click.UsageError(f"{path}: the output is the input, too")
