"""The command line on pictures, videos and recordings: told by their bytes, mixed with texts, skipped where broken."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

import uform
from tests.clip_files import ffmpeg
from tests.command_line import Uform, peak_memory, refused, start
from tests.media_files import photo, png, saved
from tests.media_verbs import speech, wav
from uform.cli.sniff import sniff, sniff_tracks

IMAGE, VIDEO, AUDIO, TEXT = uform.Modality.IMAGE, uform.Modality.VIDEO, uform.Modality.AUDIO, uform.Modality.TEXT


@pytest.fixture(scope="module")
def checkpoint(small_checkpoint: str) -> str:
    """A model that takes everything, and says that it was trained on texts and pictures."""
    return small_checkpoint


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, videos: list[bytes]) -> Path:
    """A folder of files whose names tell nothing, or the wrong thing."""
    folder = tmp_path_factory.mktemp("library")
    files = {
        "a": b"first line\n\nthird line\n",
        "b.txt": png(photo(60, 40, 0)),
        "c": wav(speech(8000)),
        "d": videos[0],
        "e.md": b"a note\n",
        "f.wav": saved(Image.fromarray(photo(40, 40, 1)), "JPEG"),
        "g": wav(speech(4000, 1)),
        "h": videos[1],
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


KINDS = [TEXT, TEXT, TEXT, IMAGE, AUDIO, VIDEO, TEXT, IMAGE, AUDIO, VIDEO]
"""Of the library's items."""


def directly(checkpoint: str, library: Path, outputs: uform.Outputs) -> list[np.ndarray]:
    """Each item's rows, encoded alone."""
    model, arena, rows = uform.Model.load_ram(checkpoint), uform.Arena(), []
    stats = {IMAGE: model.image_encode, VIDEO: model.video_encode, AUDIO: model.audio_encode}
    items: list[bytes] = []
    for path in sorted(library.iterdir()):
        data = path.read_bytes()
        items += data.decode().splitlines() if path.name in ("a", "e.md") else [data]
    for kind, item in zip(KINDS, items, strict=True):
        encode = stats.get(kind, model.text_encode)
        encoded = encode([item], arena, outputs=outputs)
        rows.append(np.array(encoded.embeddings if outputs == uform.Outputs.EMBEDDINGS else encoded.token_vectors))
    return rows


# What a file is


def test_files_are_told_by_their_bytes(tmp_path: Path, videos: list[bytes]) -> None:
    picture = Image.fromarray(photo(48, 32))
    kinds: dict[uform.Modality, list[bytes]] = {IMAGE: [], VIDEO: [], AUDIO: [], TEXT: []}
    for form in ("PNG", "JPEG", "WEBP"):
        kinds[IMAGE].append(saved(picture, form))
    kinds[IMAGE].append(saved(picture, "WEBP", lossless=True))
    kinds[VIDEO] = list(videos)
    source = tmp_path / "source.wav"
    soundfile.write(source, speech(48000), 48000)
    names = ("flac", "mp3", "ogg", "opus", "webm", "mka")
    for name in names:
        ffmpeg("-i", source, *(["-c:a", "libopus"] if name in ("ogg", "webm", "mka") else []), tmp_path / f"a.{name}")
    ffmpeg("-i", source, "-id3v2_version", "0", "-write_xing", "0", tmp_path / "b.mp3")  # No tag.
    ffmpeg("-i", source, "-ar", "16000", "-b:a", "40k", "-id3v2_version", "0", tmp_path / "c.mp3")  # MPEG-2.
    ffmpeg("-i", source, "-c:a", "libopus", tmp_path / "a.mp4")
    for name in [*(f"a.{name}" for name in names), "b.mp3", "c.mp3", "a.mp4", "source.wav"]:
        kinds[AUDIO].append((tmp_path / name).read_bytes())
    kinds[AUDIO].append(wav(speech(100), subtype="PCM_16"))
    kinds[TEXT] = [
        b"",
        b"a text",
        b"ID3 is a format of tags",
        "\ufeffUTF-16".encode("utf-16"),
        "ÿû is no sound, whatever follows".encode("latin-1"),
        b"\xff\xfb\x90\x00" + b"text " * 1000,
        b"RIFF of a guitar",
        b"RIFF\0\0\0\0AVI LIST",
        b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
        b"BM\0\0", b"GIF89a\1\0\1\0", b"%PDF-1.7", b"\x7fELF\2\1\1\0", gzip.compress(b"text"),
    ]  # fmt: skip
    for kind, files in kinds.items():
        for file in files:
            assert sniff_tracks(sniff(file[:65536]), file) == kind, (kind, file[:40])


# Encode


def test_encode_a_mixed_folder(cli: Uform, checkpoint: str, library: Path, tmp_path: Path) -> None:
    """Row by row in the folder's order, whatever is called together."""
    expected = np.concatenate(directly(checkpoint, library, uform.Outputs.EMBEDDINGS))
    for batch, threads in ((1024, 2), (3, 1), (1, 2), (4, 3)):
        output, places = tmp_path / "out.npy", tmp_path / "places.jsonl"
        result = cli("encode", library, "-o", output, "--places", places, "--batch", batch, "--threads", threads)
        assert result.status == 0
        assert np.load(output).tobytes() == expected.tobytes()
        records = [json.loads(line) for line in places.read_text().splitlines()]
        names = ["a", "a", "a", "b.txt", "c", "d", "e.md", "f.wav", "g", "h"]
        assert [os.path.basename(record["path"]) for record in records] == names
        assert [record["line"] for record in records] == [1, 2, 3, None, None, None, 1, None, None, None]
        assert [uform.Modality[record["kind"].upper()] for record in records] == KINDS
        assert {record["malformed"] for record in records} == {None}
    assert result.err.splitlines()[0] == (
        "uform: results for videos and recordings mean nothing yet: the model was not trained on them (see --only)"
    )
    assert len(result.err.splitlines()) == 2


def test_encode_tokens_of_a_mixed_folder(cli: Uform, checkpoint: str, library: Path, tmp_path: Path) -> None:
    rows = directly(checkpoint, library, uform.Outputs.TOKEN_VECTORS)
    for batch in (1024, 3):
        output = tmp_path / "out.npy"
        assert cli("encode", library, "-o", output, "--surface", "token_vectors", "--batch", batch).status == 0
        assert np.load(output).tobytes() == np.concatenate(rows).tobytes()
        assert np.load(tmp_path / "out.offsets.npy").tolist() == np.cumsum([0, *map(len, rows)]).tolist()


def test_encode_names_the_file_that_is_broken(cli: Uform, library: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.npy"
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(saved(Image.fromarray(photo(60, 40)), "JPEG")[:500])
    refused(cli("encode", library / "b.txt", broken, "-o", output), 1, f"uform: {broken}: ", "end of JPEG")
    refused(cli("search", "x", library / "a", broken), 1, f"uform: {broken}: ", "end of JPEG")
    assert os.listdir(tmp_path) == ["broken.jpg"]


def test_malformed_files_are_skipped_and_listed(cli: Uform, checkpoint: str, library: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    whole = (library / "f.wav").read_bytes()
    (folder / "1.jpg").write_bytes(whole[:500])
    (folder / "2.txt").write_bytes(b"text\n")
    (folder / "3.png").write_bytes((library / "b.txt").read_bytes()[:-30])
    (folder / "4.jpg").write_bytes(whole)
    (folder / "5.mp4").write_bytes((library / "d").read_bytes()[:1500])
    output, places = tmp_path / "out.npy", tmp_path / "places.jsonl"
    for batch in (1024, 2):
        result = cli("encode", folder, "-o", output, "--skip-malformed", "--places", places, "--batch", batch)
        assert result.status == 0
        lines = result.err.splitlines()
        assert sorted(line.split(": ")[1] for line in lines[:3]) == [
            f"skipped {folder / name}" for name in ("1.jpg", "3.png", "5.mp4")
        ]
        assert lines[3] == "uform: 3 files skipped, for they cannot be decoded"
        rows = np.load(output)
        assert rows.any(axis=1).tolist() == [False, True, False, True, False]
        model = uform.Model.load_ram(checkpoint)
        assert rows[3].tobytes() == np.array(model.image_encode([whole], uform.Arena()).embeddings).tobytes()
        faults = [json.loads(line)["malformed"] for line in places.read_text().splitlines()]
        assert [fault is not None for fault in faults] == [True, False, True, False, True]
    found = cli("search", "text", folder, "--skip-malformed")
    assert {place for place, _ in found.matches} == {f"{folder}/2.txt:1", f"{folder}/4.jpg"}
    assert "3 files skipped" in found.err


def test_models_that_take_text_alone(cli: Uform, library: Path, tmp_path: Path, headless: uform.Model) -> None:
    """Media files are left out of a search, and end an encoding by name; --binary takes them as they were texts."""
    from tests.oracle import Configuration, Oracle

    path = tmp_path / "text.safetensors"
    configuration = Configuration(depth=1, hidden=64, head_dimension=32, width=192, dimensions=32, context=48)
    Oracle.random(configuration, seed=8).save(path)
    found = cli("search", "line", library, "--checkpoint", path)
    assert found.status == 0
    assert [place.removeprefix(f"{library}/") for place, _ in sorted(found.matches)] == ["a:1", "a:3", "e.md:1"]
    assert "left out, for the model takes no such files: " in found.err
    assert f"{library}/b.txt" in found.err
    output = tmp_path / "out.npy"
    refused(
        cli("encode", library / "a", library / "c", "-o", output, "--checkpoint", path),
        *(1, f"{library}/c: is a recording, and the model takes none"),
    )
    assert cli("encode", library / "c", "-o", output, "--binary", "--checkpoint", path).status == 0


# Search


def test_search_a_mixed_folder(cli: Uform, checkpoint: str, library: Path) -> None:
    rows = np.concatenate(directly(checkpoint, library, uform.Outputs.EMBEDDINGS))
    model = uform.Model.load_ram(checkpoint)
    query = np.array(model.text_encode(["a note"], uform.Arena()).embeddings)[0]
    result = cli("search", "a note", library, "--json")
    assert result.status == 0
    filled = [index for index in range(len(KINDS)) if index != 1]  # Without the blank line.
    order = sorted(filled, key=lambda index: -float(rows[index].astype(np.float64) @ query.astype(np.float64)))
    names = ["a", "a", "a", "b.txt", "c", "d", "e.md", "f.wav", "g", "h"]
    assert [os.path.basename(record["path"]) for record in result.records] == [names[index] for index in order]
    assert [uform.Modality[record["kind"].upper()] for record in result.records] == [KINDS[index] for index in order]
    for record in result.records:
        assert (record["text"] is None) == (record["kind"] != "text")
    printed = dict(cli("search", "a note", library).matches)
    assert printed[f"{library}/b.txt"] == "(picture)"
    assert printed[f"{library}/c"] == "(recording)"
    assert printed[f"{library}/d"] == "(video)"
    assert printed[f"{library}/e.md:1"] == "a note"


def test_search_does_not_depend_on_batch_nor_threads(cli: Uform, library: Path) -> None:
    outputs = {
        cli("search", "line", library, "--json", "--rerank", "9", "--batch", batch, "--threads", threads).out
        for batch, threads in ((1024, 1), (1, 2), (3, 3))
    }
    assert len(outputs) == 1


def test_rerank_reads_files_again(cli: Uform, checkpoint: str, library: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress((library / "b.txt").read_bytes()))
    records = cli("search", "a note", library, packed, "--json", "--rerank", "10", "--top", "20").records
    model = uform.Model.load_ram(checkpoint)
    query = np.array(model.text_encode(["a note"], uform.Arena(), outputs=uform.Outputs.TOKEN_VECTORS).token_vectors)
    vectors = directly(checkpoint, library, uform.Outputs.TOKEN_VECTORS)
    expected = {index: float((query @ vectors[index].T).max(axis=1).mean()) for index in (3, 4, 5)}
    scores = {record["path"]: record["score"] for record in records}
    assert scores[f"{library}/b.txt"] == pytest.approx(expected[3], abs=1e-6)
    assert scores[f"{library}/c"] == pytest.approx(expected[4], abs=1e-6)
    assert scores[f"{library}/d"] == pytest.approx(expected[5], abs=1e-6)
    assert scores[str(packed)] == scores[f"{library}/b.txt"]


def test_stdin_may_be_a_file(cli: Uform, library: Path, checkpoint: str, tmp_path: Path) -> None:
    data = (library / "b.txt").read_bytes()
    for rerank in ("0", "5"):
        result = cli("search", "x", "-", "--rerank", rerank, stdin=data)
        assert result.matches == [("-", "(picture)")]
    assert cli("encode", "-o", tmp_path / "out.npy", stdin=data).status == 0
    expected = np.array(uform.Model.load_ram(checkpoint).image_encode([data], uform.Arena()).embeddings)
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)


def test_only_some_kinds(cli: Uform, library: Path, tmp_path: Path) -> None:
    """The rest is left out without a word, broken or not."""
    for number, only in enumerate((["text"], ["image"], ["video", "AUDIO"], ["text", "image"])):
        options = [word for name in only for word in ("--only", name)]
        wanted = [kind for kind in KINDS if str(kind.name).lower() in map(str.lower, only)]
        found = cli("search", "x", library, "--json", *options)
        kinds = [record["kind"] for record in found.records]
        filled = len(wanted) - (TEXT in wanted)  # Without the blank line.
        assert (len(kinds), set(kinds)) == (filled, {str(kind.name).lower() for kind in wanted})
        output = tmp_path / f"{number}.npy"
        result = cli("encode", library, "-o", output, *options)
        assert (result.status, len(np.load(output))) == (0, len(wanted))
        assert ("mean nothing" in result.err) == ("video" in only)
    refused(cli("search", "x", library, "--only", "smell"), 2, "--only")


def test_equal_files_are_printed_once(cli: Uform, library: Path, tmp_path: Path) -> None:
    for name in ("1", "2", "3"):
        (tmp_path / name).write_bytes((library / ("f.wav" if name == "2" else "b.txt")).read_bytes())
    result = cli("search", "x", tmp_path, "--distinct", "--batch", "1")
    assert sorted(place for place, _ in result.matches) == [f"{tmp_path}/1", f"{tmp_path}/2"]


def test_what_is_too_long_is_told(cli: Uform, tmp_path: Path) -> None:
    (tmp_path / "long.wav").write_bytes(wav(speech(100_000)))
    (tmp_path / "short.wav").write_bytes(wav(speech(1000)))
    result = cli("search", "x", tmp_path)
    assert "uform: 1 of 2 recordings cut where the model stops reading\n" in result.err
    assert "results for recordings mean nothing yet" in result.err


def test_describe_tells_modalities(cli: Uform, checkpoint: str) -> None:
    [record] = cli("describe", checkpoint, "--json").records
    assert record["modalities"] == ["TEXT", "IMAGE", "VIDEO", "AUDIO"]
    assert record["trained_modalities"] == ["TEXT", "IMAGE"]
    table = cli("describe", checkpoint).out
    assert "modalities                 TEXT, IMAGE, VIDEO, AUDIO\n" in table
    assert "trained modalities         TEXT, IMAGE\n" in table


def test_memory_does_not_grow_with_the_files(checkpoint: str, tmp_path: Path) -> None:
    """400 files of 2 MB, 800 MB in all, against 50."""
    folder = tmp_path / "files"
    folder.mkdir()
    first = folder / "0000"
    samples = np.random.default_rng(0).integers(-9999, 9999, 1_000_000).astype(np.int16)
    file = io.BytesIO()
    soundfile.write(file, samples, 48000, subtype="PCM_16", format="WAV")
    first.write_bytes(file.getvalue())
    arguments = ["encode", str(folder), "-o", str(tmp_path / "out.npy"), "--checkpoint", checkpoint, "--threads", "1"]
    peaks = []
    for count in (50, 400):
        for number in range(1, count):
            if not (folder / f"{number:04}").exists():
                os.link(first, folder / f"{number:04}")
        peaks.append(peak_memory(arguments, lambda stream: None))
        assert len(np.load(tmp_path / "out.npy")) == count
    assert peaks[1] - peaks[0] < 96 << 20


def test_interruptions_are_quiet_and_leave_no_file(checkpoint: str, library: Path, tmp_path: Path) -> None:
    folder, output = tmp_path / "files", tmp_path / "out"
    folder.mkdir()
    output.mkdir()
    for number in range(3000):
        os.link(library / "d", folder / f"{number:04}")
    arguments = ["encode", str(folder), "-o", str(output / "rows.npy"), "--checkpoint", checkpoint, "--batch", "50"]
    with start(arguments, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        deadline = time.monotonic() + 60
        while not os.listdir(output) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGINT
    assert os.listdir(output) == []
