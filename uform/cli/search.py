"""`uform search`: the items of a corpus that are nearest to a query."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, cast

import click
from numpy.typing import NDArray

import uform
from uform.cli.console import Failure, bar, clip, json_line, note, place_bytes, readable, terminal_columns
from uform.cli.corpus import STANDARD_INPUT, UNITS, Corpus, Item, numbered_lines
from uform.cli.encoding import Encoder, Totals
from uform.cli.ranking import Best, Match, dot_products, late_interaction
from uform.cli.settings import Settings, json_option, only_option, progress_option, skip_malformed_option, with_settings
from uform.cli.sniff import NOUNS, kind_name

LONGEST_EXCERPT = 240


@click.command(short_help="Find the texts and media files that are nearest to a query.")
@click.argument("arguments", nargs=-1, metavar="[QUERY] [PATH]...")
@click.option("-q", "--query", "queries", multiple=True, metavar="TEXT", help="A query. May be given many times.")
@click.option("--queries", "queries_file", metavar="FILE", help="A file of queries, one a line; '-' is stdin.")
@click.option("-k", "--top", type=click.IntRange(min=1), default=10, show_default=True, help="Matches to print.")
@click.option(
    "--unit",
    type=click.Choice(list(UNITS)),
    default="line",
    show_default=True,
    help="What is scored in files of text: each line, each paragraph (lines up to a blank one), or each file.",
)
@click.option(
    "--rerank",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Rank the best N, or --top if more, anew: token by token (late interaction).",
)
@click.option("--distinct", is_flag=True, help="Print equal items once, at the first place.")
@json_option
@click.option("--binary", is_flag=True, help="Read files with NUL bytes, too.")
@click.option("--hidden", is_flag=True, help="Read what is hidden in folders, too.")
@only_option
@skip_malformed_option
@progress_option
@with_settings
def search(
    settings: Settings,
    arguments: tuple[str, ...],
    queries: tuple[str, ...],
    queries_file: str | None,
    top: int,
    unit: str,
    rerank: int,
    distinct: bool,
    as_json: bool,
    binary: bool,
    hidden: bool,
    only: uform.Modality | None,
    skip_malformed: bool,
    progress: bool | None,
) -> int:
    """Finds what is nearest in meaning to QUERY in files, in folders, and in stdin ('-').

    Texts are scored by --unit; a picture (JPEG, PNG, WebP), a video (MP4, WebM) or a recording (WAV, FLAC, MP3, Opus)
    is scored as a whole, told by its bytes. With --query or --queries, all arguments are PATHs. Files named .gz, .bz2
    or .xz are read decompressed. A corpus may be larger than memory. Equal scores rank by place.

    \b
      uform search "compare two files" notes.txt
      apropos . | uform search "copy files to another machine"
      uform search --unit paragraph --top 3 "how do I build it" docs README.md
    """
    texts, paths = _queries_and_paths(arguments, queries, queries_file)
    encoder = Encoder(settings, skip_malformed)
    totals = Totals()
    if rerank:
        encoder.shape("token_vectors", uform.Scalar.F32)
    corpus = Corpus(
        paths, lambda path: UNITS[unit](encoder.limit), binary=binary, hidden=hidden, media=encoder.media, only=only
    )
    best = [Best(max(top, rerank), distinct) for _ in texts]
    matches = _search(encoder, texts, corpus, best, progress, totals)
    if rerank:
        matches = _reranked(encoder, texts, corpus, matches)
    for text, found in zip(texts, matches, strict=True):
        if as_json:
            _print_json(text, found[:top])
        else:
            _print(text, found[:top], heading=len(texts) > 1, lines=unit == "line")
    status = _report(encoder, corpus, totals)
    if not totals.items:
        raise Failure("there is nothing to search")
    return status


def _queries_and_paths(
    arguments: Sequence[str], queries: Sequence[str], queries_file: str | None
) -> tuple[list[str], list[str]]:
    texts = list(queries)
    if queries_file is not None:
        with cast(BinaryIO, click.open_file(queries_file, "rb")) as stream:
            lines = (line.decode("utf-8", "surrogateescape") for _, line in numbered_lines(stream, 1 << 20))
            texts += [line for line in lines if line.strip()]
        if not texts:
            raise Failure(f"{queries_file}: holds no query")
    paths = list(arguments)
    if not texts:
        if not paths:
            raise click.UsageError("missing the query")
        texts, paths = paths[:1], paths[1:]
    if not all(text.strip() for text in texts):
        raise click.UsageError("the query is empty")
    if not paths:
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError("nothing to search: name files or folders, or pipe text in")
        paths = [STANDARD_INPUT]
    if [*paths, queries_file].count(STANDARD_INPUT) > 1:
        raise click.UsageError("stdin ('-') can be read only once")
    return texts, paths


def _search(
    encoder: Encoder,
    queries: Sequence[str],
    corpus: Corpus,
    best: Sequence[Best],
    progress: bool | None,
    totals: Totals,
) -> list[list[Match]]:
    wanted = list(_encoded(encoder, _query_items(queries), "embeddings"))
    with bar(progress, corpus.size) as shown:
        for items, surface in encoder.encode(_filled(corpus), "embeddings", uform.Scalar.F32, totals):
            fine = [index for index, item in enumerate(items) if not item.fault]
            items, rows = [items[index] for index in fine], surface.rows[fine]
            for query, kept in zip(wanted, best, strict=True):
                kept.add(items, dot_products(rows, query))
            shown.update(corpus.consumed - shown.n)
    return [kept.ranked() for kept in best]


def _reranked(
    encoder: Encoder, queries: Sequence[str], corpus: Corpus, matches: list[list[Match]]
) -> list[list[Match]]:
    wanted = list(_encoded(encoder, _query_items(queries), "token_vectors"))
    ranked = []
    for query, found in zip(wanted, matches, strict=True):
        vectors = _encoded(encoder, (corpus.read_again(match.item) for match in found), "token_vectors")
        scores = (late_interaction(query, text) for text in vectors)
        ranked.append(sorted((m._replace(score=score) for m, score in zip(found, scores, strict=True)), reverse=True))
    return ranked


def _encoded(encoder: Encoder, items: Iterable[Item], surface: str) -> Iterator[NDArray[Any]]:
    """Each item's rows: one of embeddings, one a token of the others."""
    for batch, encoded in encoder.encode(items, surface, uform.Scalar.F32, Totals()):
        yield from (encoded.of(index) for index in range(len(batch)))


def _filled(corpus: Corpus) -> Iterator[Item]:
    """The items that are not blank, texts without the white space around them."""
    for item in corpus:
        if item.kind != uform.Modality.TEXT:
            yield item
        elif data := item.data.strip():
            yield replace(item, data=data)


def _query_items(queries: Sequence[str]) -> list[Item]:
    return [Item("query", 0, os.fsencode(query).strip()) for query in queries]


def _print_json(query: str, matches: Sequence[Match]) -> None:
    for rank, match in enumerate(matches, 1):
        item = match.item
        record = {"query": query, "rank": rank, "score": match.score, "similarity": match.similarity}
        text = item.data.decode("utf-8", "replace") if item.kind == uform.Modality.TEXT else None
        record |= {"path": item.path, "line": item.line or None, "kind": kind_name(item.kind), "text": text}
        click.echo(json_line(record))


def _print(query: str, matches: Sequence[Match], *, heading: bool, lines: bool) -> None:
    """A line a match: on a terminal as much as fits, elsewhere whole lines, and the start of longer texts."""
    columns = terminal_columns() or (None if lines else LONGEST_EXCERPT)
    if heading:
        click.echo(b"# " + readable(os.fsencode(query)).encode())
    for match in matches:
        start, place, kind = f"{match.score:7.4f}  ", match.item.place, match.item.kind
        text = readable(match.item.data) if kind == uform.Modality.TEXT else f"({NOUNS[kind]})"
        if columns is not None:
            text = clip(text, max(columns - len(start) - len(place) - 2, columns // 3))
        click.echo(start.encode() + place_bytes(place) + b"  " + text.encode())
    if heading:
        click.echo()


def _report(encoder: Encoder, corpus: Corpus, totals: Totals) -> int:
    """Says what was left out; the exit status."""
    totals.report(encoder.context, encoder.description.trained_modalities)
    if corpus.binary.count:
        note(f"left out, for they hold NUL bytes (--binary takes them): {corpus.binary}")
    if corpus.untaken.count:
        note(f"left out, for the model takes no such files: {corpus.untaken}")
    if corpus.unreadable.count:
        note(f"could not be read: {corpus.unreadable}")
    return 1 if corpus.unreadable.count else 0
