"""The command line: every command, what it prints, what it refuses and how, and corpora that are larger than memory."""

from __future__ import annotations

import errno
import gzip
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

import uform
from tests.command_line import Uform, peak_memory, refused, start
from tests.oracle import Configuration, Oracle
from uform.cli.commands import run

CONTEXT = 48


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that is quick and knows nothing, with all heads."""
    configuration = Configuration(
        depth=1,
        hidden=64,
        head_dimension=32,
        width=Configuration.width_for(64),
        dimensions=32,
        context=CONTEXT,
        token_width=32,
        choice_temperature_groups=2,
    )
    path = tmp_path_factory.mktemp("checkpoints") / "tiny.safetensors"
    Oracle.random(configuration, seed=7).save(path)
    return str(path)


@pytest.fixture(scope="session")
def headless(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of embeddings alone."""
    configuration = Configuration(depth=1, hidden=64, head_dimension=32, width=192, dimensions=32, context=CONTEXT)
    path = tmp_path_factory.mktemp("checkpoints") / "headless.safetensors"
    Oracle.random(configuration, seed=8).save(path)
    return str(path)


def embedded(checkpoint: str, texts: Sequence[bytes | str]) -> np.ndarray[Any, Any]:
    arena = uform.Arena()
    return np.array(uform.Model.load_ram(checkpoint).text_encode(texts, arena).embeddings)


TEXTS = ["gimp - edits photographs", "nano - small text editor", "rsync - copies files", "vim - improved vi"]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


# Search


def test_search_ranks_by_cosine(cli: Uform, checkpoint: str, notes: Path) -> None:
    result = cli("search", "rsync - copies files", notes)
    cosines = embedded(checkpoint, TEXTS) @ embedded(checkpoint, ["rsync - copies files"])[0]
    assert result.status == 0
    assert result.err == ""
    assert result.matches == [(f"{notes}:{index + 1}", TEXTS[index]) for index in np.argsort(-cosines)]
    assert result.out.splitlines()[0].split()[0] == "1.0000"


def test_search_prints_json(cli: Uform, notes: Path) -> None:
    first, second = cli("search", "vim", notes, "--json", "--top", "2").records
    assert first.keys() == {"query", "rank", "score", "similarity", "path", "line", "kind", "text"}
    assert (first["query"], first["rank"], second["rank"], first["path"]) == ("vim", 1, 2, str(notes))
    assert first["score"] >= second["score"]


def test_search_reads_stdin(cli: Uform, notes: Path) -> None:
    for paths in ([], ["-"]):
        result = cli("search", "vim - improved vi", *paths, "--top", "1", stdin=notes.read_bytes())
        assert result.matches == [("-:4", TEXTS[3])]


def test_search_takes_many_queries(cli: Uform, notes: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries"
    queries.write_text(f"{TEXTS[2]}\n\n{TEXTS[3]}\n")
    result = cli("search", "-k1", "-q", TEXTS[1], "--queries", queries, notes)
    blocks = result.out.split("\n\n")
    assert [block.splitlines()[0] for block in blocks[:3]] == [f"# {TEXTS[index]}" for index in (1, 2, 3)]
    assert [block.splitlines()[1].split("  ")[-1] for block in blocks[:3]] == [TEXTS[1], TEXTS[2], TEXTS[3]]
    records = cli("search", "-k1", "--json", "-q", TEXTS[1], "-q", TEXTS[0], notes).records
    assert [record["text"] for record in records] == [TEXTS[1], TEXTS[0]]


def test_search_passes_over_blank_lines_and_white_space(cli: Uform, tmp_path: Path) -> None:
    path = tmp_path / "odd.txt"
    path.write_bytes(b"\xef\xbb\xbfvim\r\n\r\n   \n\t vim \nother\n\nlast")
    result = cli("search", "vim", path)
    assert [place for place, _ in result.matches][:2] == [f"{path}:1", f"{path}:4"]
    assert {place for place, _ in result.matches} == {f"{path}:{line}" for line in (1, 4, 5, 7)}
    assert [line[:7] for line in result.out.splitlines()[:2]] == [" 1.0000"] * 2


@pytest.mark.parametrize("batch", [1, 2, 3, 1024])
def test_ties_rank_by_place_whatever_the_batch(cli: Uform, tmp_path: Path, batch: int) -> None:
    path = tmp_path / "same.txt"
    path.write_text("same\n" * 20 + "other\n" + "same\n" * 20)
    result = cli("search", "same", path, "--top", "30", "--batch", batch)
    expected = [*range(1, 21), *range(22, 32)]
    assert [place for place, _ in result.matches] == [f"{path}:{line}" for line in expected]


def test_distinct_texts_are_printed_once(cli: Uform, tmp_path: Path) -> None:
    path = tmp_path / "same.txt"
    path.write_text("other\nsame\nsame\nother\n same\nsamey\n")
    result = cli("search", "same", path, "--distinct", "--batch", "1", "--rerank", "5")
    assert sorted(place for place, _ in result.matches) == [f"{path}:{line}" for line in (1, 2, 6)]
    assert result.matches[0] == (f"{path}:2", "same")


def test_long_texts_are_printed_in_part(cli: Uform, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("word " * 1000)
    assert len(cli("search", "word", path).out) > 5000
    assert len(cli("search", "word", path, "--unit", "paragraph").out) == 241
    assert len(cli("search", "word", path, "--unit", "file", "--json").records[0]["text"]) == 4999


def test_results_do_not_depend_on_batch_nor_threads(cli: Uform, tmp_path: Path) -> None:
    path = tmp_path / "many.txt"
    path.write_text("".join(f"line {number} {'x' * (number % 50)}\n" for number in range(500)))
    outputs = {
        cli("search", "line 77", path, "--json", "--rerank", "20", "--batch", batch, "--threads", threads).out
        for batch, threads in [(1024, 1), (7, 2), (1, 1), (100, 3)]
    }
    assert len(outputs) == 1


def test_search_units(cli: Uform, tmp_path: Path) -> None:
    path = tmp_path / "units.txt"
    path.write_text("\none\ntwo\n \n\nthree\n")
    by_unit = {unit: cli("search", "one", path, "--json", "--unit", unit).records for unit in UNIT_NAMES}
    found = {unit: {(record["line"], record["text"]) for record in records} for unit, records in by_unit.items()}
    assert found["line"] == {(2, "one"), (3, "two"), (6, "three")}
    assert found["paragraph"] == {(2, "one\ntwo"), (6, "three")}
    assert found["file"] == {(None, "one\ntwo\n \n\nthree")}
    assert cli("search", "one", path, "--unit", "file").matches == [(str(path), "one two three")]


UNIT_NAMES = ("line", "paragraph", "file")


def test_rerank_is_late_interaction(cli: Uform, checkpoint: str, notes: Path) -> None:
    records = cli("search", "copy", notes, "--json", "--rerank", "3", "--top", "2").records
    encoded = uform.Model.load_ram(checkpoint).text_encode(
        ["copy", *(record["text"] for record in records)], uform.Arena(), outputs=uform.Outputs.TOKEN_VECTORS
    )
    vectors, offsets = np.array(encoded.token_vectors), np.array(encoded.token_vectors.offsets)
    query, *items = (vectors[begin:end] for begin, end in itertools.pairwise(offsets))
    expected = [float((query @ item.T).max(axis=1).mean()) for item in items]
    assert len(records) == 2
    assert expected[0] >= expected[1]
    np.testing.assert_allclose([record["score"] for record in records], expected, atol=1e-6)
    pooled = {record["text"]: record["score"] for record in cli("search", "copy", notes, "--json").records}
    assert all(record["similarity"] == pooled[record["text"]] for record in records)


def test_rerank_with_more_queries_than_a_batch_holds(cli: Uform, notes: Path) -> None:
    queries = [word for text in TEXTS for word in ("-q", text)]
    result = cli("search", *queries, notes, "--rerank", "2", "--top", "1", "--batch", "1", "--json")
    assert [record["text"] for record in result.records] == TEXTS


def test_folders_are_read_in_order_without_what_is_hidden(cli: Uform, tmp_path: Path) -> None:
    for name in ("b/2.txt", "b/1.txt", "a.txt", ".hidden/x.txt", "b/.x.txt", "c/d/e/f.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("same\n")
    (tmp_path / "link").symlink_to(tmp_path)
    places = [place.removeprefix(f"{tmp_path}/") for place, _ in cli("search", "same", tmp_path).matches]
    assert places == ["a.txt:1", "b/1.txt:1", "b/2.txt:1", "c/d/e/f.txt:1"]
    assert len(cli("search", "same", tmp_path, "--hidden").matches) == 6
    assert cli("search", "same", f"{tmp_path}/link", "-k1").matches[0][0] == f"{tmp_path}/link/a.txt:1"


def test_compressed_files(cli: Uform, tmp_path: Path) -> None:
    import bz2
    import lzma

    for name, compress in {"a.gz": gzip.compress, "b.BZ2": bz2.compress, "c.xz": lzma.compress}.items():
        (tmp_path / name).write_bytes(compress(f"in {name}\n".encode()))
    assert sorted(text for _, text in cli("search", "in", tmp_path).matches) == ["in a.gz", "in b.BZ2", "in c.xz"]


@pytest.mark.parametrize("data", [b"no gzip at all", gzip.compress(b"cut off " * 1000)[:-20], b""])
def test_broken_compressed_files_are_named(cli: Uform, notes: Path, data: bytes) -> None:
    broken = notes.parent / "broken.gz"
    broken.write_bytes(data)
    result = cli("search", TEXTS[0], broken, notes, "--top", "1")
    assert result.matches == [(f"{notes}:1", TEXTS[0])]
    if data:
        assert result.status == 1
        assert result.err.startswith(f"uform: could not be read: {broken} (")
        refused(cli("encode", broken, "-o", notes.parent / "out.npy"), 1, f"{broken}: ")


def test_binary_files_are_left_out_with_a_note(cli: Uform, notes: Path) -> None:
    for index in range(12):
        (notes.parent / f"z{index:02}.bin").write_bytes(b"text\n\0\1\2\n")
    result = cli("search", "text", notes.parent)
    assert result.status == 0
    assert len(result.matches) == len(TEXTS)
    assert "z00.bin" in result.err
    assert "z09.bin and 2 more" in result.err
    assert "--binary" in result.err
    assert len(cli("search", "text", notes.parent, "--binary", "--top", "100").matches) == len(TEXTS) + 24


def test_bytes_that_are_no_utf8_are_searched_and_printed(cli: Uform, tmp_path: Path) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes("café\n".encode("latin-1") + "日本語\n".encode() + b"\x1b[31mred\x1b[0m\tx\n")
    result = cli("search", "café", path)
    assert {text for _, text in result.matches} == {"caf\ufffd", "日本語", "\ufffd[31mred\ufffd[0m x"}


def test_odd_names_of_files(cli: Uform, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/new\nline \xff"
    with open(name, "wb") as file:
        file.write(b"text\n")
    result = cli("search", "text", tmp_path)
    assert os.fsencode(result.out) == b" 1.0000  " + os.fsencode(tmp_path) + b"/new\\nline \xff:1  text\n"
    [record] = cli("search", "text", tmp_path, "--json").records
    assert os.fsencode(record["path"]) == name


def test_truncation_is_reported(cli: Uform, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("x" * CONTEXT + "\n" + "y" * (CONTEXT + 1) + "\n" + "z" * 200_000 + "\n")
    result = cli("search", "x", path)
    assert result.status == 0
    assert result.err == f"uform: 2 of 3 texts cut at {CONTEXT} bytes, all that the model reads\n"


def test_search_refusals(cli: Uform, notes: Path, headless: str, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = notes.parent / "missing.txt"
    refused(cli("search"), 2, "query")
    refused(cli("search", "", notes), 2, "the query is empty")
    refused(cli("search", " \t", notes), 2, "the query is empty")
    refused(cli("search", "x", missing), 1, f"{missing}: No such file")
    refused(cli("search", "x", "-", "-"), 2, "only once")
    refused(cli("search", "--queries", "-", "-"), 1, "no query")
    refused(cli("search", "--queries", "-", "-", stdin=b"x\n"), 2, "only once")
    refused(cli("search", "--queries", missing, notes), 1, str(missing))
    refused(cli("search", "x", "--top", "0", notes), 2, "--top")
    refused(cli("search", "x", "--nothing", notes), 2, "--nothing")
    refused(cli("search", "x", stdin=b"\n \n"), 1, "nothing to search")
    refused(cli("search", "x", notes, "--checkpoint", missing), 1, str(missing))
    refused(cli("search", "x", notes, "--checkpoint", notes), 1, str(notes))
    refused(cli("search", "x", notes, "--checkpoint", headless, "--rerank", "2"), 1, "token head")
    monkeypatch.setattr(sys, "stdin", None)
    refused(cli("nosuch"), 2, "nosuch")


def test_unreadable_files_in_folders_are_named(cli: Uform, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = notes.parent / "secret"
    secret.write_text("x")

    def guarded(path: str, mode: str) -> BinaryIO:
        if path == str(secret):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return open(path, mode)  # type: ignore[return-value]

    monkeypatch.setattr("uform.cli.corpus.open", guarded, raising=False)
    result = cli("search", "x", notes.parent)
    assert result.status == 1
    assert len(result.matches) == len(TEXTS)
    assert result.err == f"uform: could not be read: {secret} (Permission denied)\n"
    refused(cli("encode", notes.parent, "-o", notes.parent / "out.npy"), 1, f"{secret}: Permission denied")


# Encode


def test_encode_writes_what_the_model_answers(cli: Uform, checkpoint: str, notes: Path) -> None:
    output = notes.parent / "out.npy"
    result = cli("encode", notes, "--output", output, "--batch", "3")
    assert result.status == 0
    assert result.out == ""
    assert result.err == f"uform: {output}: 4 rows of 32 float32, {sum(map(len, TEXTS))} tokens\n"
    rows = np.load(output)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, embedded(checkpoint, TEXTS))


def test_encode_has_a_row_for_every_line(cli: Uform, checkpoint: str, tmp_path: Path) -> None:
    output = tmp_path / "out.npy"
    assert cli("encode", "-o", output, stdin=b"a\n\n b \r\nlast").status == 0
    np.testing.assert_array_equal(np.load(output), embedded(checkpoint, [b"a", b"", b" b ", b"last"]))
    assert not np.load(output)[1].any()
    assert cli("encode", "-o", output, stdin=b"").status == 0
    assert np.load(output).shape == (0, 32)


@pytest.mark.parametrize("scalar", ["bf16", "e4m3"])
def test_encode_narrow_scalars_are_bytes(cli: Uform, checkpoint: str, notes: Path, scalar: str) -> None:
    output = notes.parent / "out.npy"
    assert cli("encode", notes, "-o", output, "--scalar", scalar).status == 0
    model, arena = uform.Model.load_ram(checkpoint), uform.Arena()
    expected = model.text_encode(TEXTS, arena, outputs_scalar=uform.Scalar[scalar.upper()]).embeddings
    rows = np.load(output)
    assert rows.dtype == np.uint8
    assert rows.shape == (4, 32 * (2 if scalar == "bf16" else 1))
    np.testing.assert_array_equal(rows, np.asarray(expected))


@pytest.mark.parametrize("surface", ["states", "token_vectors"])
def test_encode_ragged_surfaces(cli: Uform, checkpoint: str, tmp_path: Path, surface: str) -> None:
    texts = [b"one", b"", b"three", b"x" * (CONTEXT + 9)]
    output = tmp_path / "out.npy"
    result = cli("encode", "-o", output, "--surface", surface, "--batch", "2", stdin=b"\n".join(texts))
    assert result.status == 0
    assert f"1 of 4 texts cut at {CONTEXT} bytes" in result.err
    surfaces = uform.Outputs[surface.upper()]
    encoded = uform.Model.load_ram(checkpoint).text_encode(texts, uform.Arena(), outputs=surfaces)
    expected = getattr(encoded, surface)
    np.testing.assert_array_equal(np.load(output), np.asarray(expected))
    offsets = np.load(tmp_path / "out.offsets.npy")
    assert offsets.dtype == np.uint64
    np.testing.assert_array_equal(offsets, np.asarray(expected.offsets))


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.jsonl.gz", "a.dat"])
def test_encode_json_lines(cli: Uform, checkpoint: str, tmp_path: Path, name: str) -> None:
    data = '{"text": "caf\\u00e9", "body": "x"}\n\n{"body": "", "text": "日本"}'.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    field = ["--field", "text"] if name == "a.dat" else []
    output = tmp_path / "out.npy"
    assert cli("encode", tmp_path / name, *field, "-o", output).status == 0
    np.testing.assert_array_equal(np.load(output), embedded(checkpoint, ["café", "日本"]))
    assert cli("encode", tmp_path / name, "--field", "body", "-o", output).status == 0
    np.testing.assert_array_equal(np.load(output), embedded(checkpoint, ["x", ""]))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "x"', "not JSON"),
        (b"text", "not JSON"),
        (b'{"text": "\xff"}', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'"text"', "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'{"Text": "x"}', "no field 'text'"),
        (b'{"text": 1}', "field 'text' is no string"),
        (b'{"text": null}', "field 'text' is no string"),
        (b'{"text": "\\ud800"}', "lone surrogate"),
    ],
)
def test_malformed_records_are_named_and_nothing_is_written(
    cli: Uform, tmp_path: Path, line: bytes, reason: str
) -> None:
    path, output = tmp_path / "a.jsonl", tmp_path / "out.npy"
    output.write_text("what was there")
    path.write_bytes(b'{"text": "fine"}\n' * 2 + b"\n" + line + b"\n")
    refused(cli("encode", path, "-o", output, "--batch", "1"), 1, f"{path}:4: ", reason)
    assert sorted(os.listdir(tmp_path)) == ["a.jsonl", "out.npy"]
    assert output.read_text() == "what was there"


def test_encode_places(cli: Uform, tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/a.txt").write_text("1\n2\n")
    (tmp_path / "corpus/b.jsonl").write_text('\n{"text": "3"}\n')
    places, output = tmp_path / "places.jsonl", tmp_path / "out.npy"
    assert cli("encode", tmp_path / "corpus", "-o", output, "--places", places).status == 0
    found = [json.loads(line) for line in places.read_text().splitlines()]
    assert [(os.path.basename(place["path"]), place["line"]) for place in found] == [
        ("a.txt", 1),
        ("a.txt", 2),
        ("b.jsonl", 2),
    ]
    assert len(np.load(output)) == 3


def test_encode_keeps_links_and_modes(cli: Uform, notes: Path) -> None:
    real, link = notes.parent / "real.npy", notes.parent / "link.npy"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    assert cli("encode", notes, "-o", link).status == 0
    assert link.is_symlink()
    assert len(np.load(real)) == 4
    assert real.stat().st_mode & 0o777 == 0o600


def test_encode_refusals(cli: Uform, notes: Path, headless: str) -> None:
    folder, output = notes.parent, notes.parent / "out.npy"
    binary = folder / "binary"
    binary.write_bytes(b"a\0b")
    refused(cli("encode", notes), 2, "--output")
    refused(cli("encode", notes, "-o", notes), 2, "the output is the input")
    refused(cli("encode", notes, "-o", folder), 1, str(folder))
    refused(cli("encode", notes, "-o", "/dev/null"), 1, "/dev/null: not a regular file")
    refused(cli("encode", notes, "-o", folder / "no/such/folder.npy"), 1, "No such file")
    refused(cli("encode", notes, "-o", output, "--places", output), 2, "two outputs")
    refused(cli("encode", notes, "-o", output, "--field", "x", "--unit", "file"), 2, "--unit")
    refused(cli("encode", "-", "-", "-o", output), 2, "only once")
    refused(cli("encode", folder / "missing", "-o", output), 1, "missing: No such file")
    refused(cli("encode", binary, "-o", output), 1, f"{binary}: holds NUL bytes", "--binary")
    refused(cli("encode", notes, "-o", output, "--surface", "token_vectors", "--checkpoint", headless), 1, "token head")
    assert sorted(os.listdir(folder)) == ["binary", "notes.txt"]
    assert cli("encode", binary, "-o", output, "--binary").status == 0


# Choose and describe


def test_choose(cli: Uform, checkpoint: str) -> None:
    texts = ["Is it so? ", "Or\nso? "]
    arena, model = uform.Arena(), uform.Model.load_ram(checkpoint)
    expected = np.array(model.text_choose(texts, ["yn"] * 2, arena, temperature_groups=[1, 1])).reshape(2, 2)
    result = cli("choose", "--choices", "yn", "--group", "1", *texts)
    assert result.status == 0
    assert result.err == ""
    assert result.out.splitlines() == [
        f"y {expected[0, 0]:.4f}  n {expected[0, 1]:.4f}  Is it so?",
        f"y {expected[1, 0]:.4f}  n {expected[1, 1]:.4f}  Or so?",
    ]
    records = cli("choose", "--choices", "yn", "--group", "1", "--json", *texts).records
    assert [record["text"] for record in records] == texts
    assert [record["probabilities"] for record in records] == [
        {"y": float(row[0]), "n": float(row[1])} for row in expected
    ]
    assert [record["best"] for record in records] == ["yn"[row.argmax()] for row in expected]


def test_choose_reads_lines(cli: Uform) -> None:
    piped = cli("choose", "--choices", "abc", "--batch", "2", stdin=b"one\n\nthree \xff\n")
    assert piped.status == 0
    assert [line.split("  ", 3)[3] for line in piped.out.splitlines()] == ["one", "", "three \ufffd"]
    assert cli("choose", "--choices", "abc", "one").out == piped.out.splitlines(keepends=True)[0]


def test_choose_refusals(cli: Uform, headless: str) -> None:
    refused(cli("choose", "text"), 2, "--choices")
    refused(cli("choose", "--choices", "", "text"), 2, "at least one")
    refused(cli("choose", "--choices", "é", "text"), 2, "single byte")
    refused(cli("choose", "--choices", "yny", "text"), 2, "twice")
    refused(cli("choose", "--choices", "yn", "--group", "2", "text"), 2, "groups 0 to 1")
    refused(cli("choose", "--choices", "yn", "--checkpoint", headless, "text"), 1, "byte decoder")


def test_describe(cli: Uform, checkpoint: str) -> None:
    [record] = cli("describe", checkpoint, "--json").records
    description = uform.Model.load_ram(checkpoint).describe()
    assert record["checkpoint"] == checkpoint
    assert (record["dimensions"], record["context"], record["quantization"]) == (32, CONTEXT, "BF16")
    assert record.keys() - {"checkpoint"} == set(description._fields)
    table = cli("describe", checkpoint, "--quantization", "e4m3", "--cpu-class", "serial")
    assert table.status == 0
    rows = dict(line.split(None, 1) for line in table.out.splitlines() if len(line.split()) == 2)
    assert (rows["dimensions"], rows["quantization"]) == ("32", "E4M3")
    assert "SERIAL" in table.out
    assert "cpu class pinned           yes\n" in table.out
    refused(cli("describe", checkpoint + ".missing"), 1, ".missing")


def test_the_default_checkpoint_is_the_default(cli: Uform, notes: Path) -> None:
    [record] = cli("describe", "--json").records
    assert record["checkpoint"] == uform.default_checkpoint()
    result = run(["search", "copies files", str(notes)])
    assert result == 0


def test_help_and_version(cli: Uform) -> None:
    assert cli("--version").out == f"uform {uform.__version__}\n"
    assert cli().out == cli("--help").out == cli("-h").out
    for command in ("search", "encode", "choose", "describe"):
        assert command in cli("--help").out
        help_text = cli(command, "--help")
        assert help_text.status == 0
        assert help_text.out.startswith(f"Usage: uform {command}")


# Processes: pipes, signals, memory


def test_a_broken_pipe_is_quiet(checkpoint: str, tmp_path: Path) -> None:
    path = tmp_path / "many.txt"
    path.write_text("".join(f"line {number}\n" for number in range(20_000)))
    arguments = ["search", "line", path, "--top", "20000", "--checkpoint", checkpoint]
    with start(list(map(str, arguments)), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_quiet_and_leave_no_file(checkpoint: str, tmp_path: Path, number: signal.Signals) -> None:
    output = tmp_path / "out.npy"
    arguments = ["encode", "-o", str(output), "--batch", "1", "--checkpoint", checkpoint]
    with start(arguments, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"text\n" * 100)
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not os.listdir(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert os.listdir(tmp_path) == [f".out.npy.{process.pid}.part"]
        process.send_signal(number)
        assert process.stderr.read() == b""
    assert process.returncode == 128 + number
    assert os.listdir(tmp_path) == []


def test_closed_and_full_streams(checkpoint: str, notes: Path) -> None:
    command = f'"{sys.executable}" -m uform search x "{notes}" --checkpoint "{checkpoint}"'

    def shell(text: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["sh", "-c", text], capture_output=True, check=False)

    assert shell(f"{command} <&-").returncode == 0
    assert shell(f"{command} >&- 2>&-").returncode == 0
    without = shell(f'"{sys.executable}" -m uform search x --checkpoint "{checkpoint}" <&-')
    assert without.returncode == 2
    assert b"nothing to search" in without.stderr
    if os.path.exists("/dev/full"):
        full = shell(f"{command} >/dev/full")
        assert full.returncode == 1
        assert full.stderr == b"uform: No space left on device\n"


def test_a_bar_shows_when_asked_for(checkpoint: str, notes: Path) -> None:
    for choice, shown in (("--progress", True), ("--no-progress", False)):
        arguments = ["search", "x", str(notes), choice, "--checkpoint", checkpoint]
        with start(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            out, err = process.communicate()
        assert len(out.splitlines()) == len(TEXTS)
        assert (b"100%" in err) == shown


@pytest.mark.parametrize("shape", ["many lines", "long lines", "no line ends"])
@pytest.mark.parametrize("command", ["search", "encode"])
def test_memory_does_not_grow_with_the_corpus(checkpoint: str, tmp_path: Path, command: str, shape: str) -> None:
    line = {"many lines": b"ab\n" * 1000, "long lines": b"x" * 1_000_000 + b"\n", "no line ends": b"x" * 1_000_000}[
        shape
    ]
    arguments = {"search": ["search", "ab"], "encode": ["encode", "-o", str(tmp_path / "out.npy")]}[command]
    arguments = [*arguments, "--checkpoint", checkpoint, "--threads", "1"]

    def feed(times: int) -> Callable[[io.BufferedWriter], None]:
        return lambda stream: [stream.write(line) for _ in range(times)] and None

    small = peak_memory(arguments, feed(2))
    large = peak_memory(arguments, feed(150))
    # 150 MB of long lines; 150,000 lines are 19 MB of embeddings.
    assert large - small < 12 << 20
