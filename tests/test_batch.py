"""Batches as tensors: collating, the DataLoader's workers, datasets in files, and the verbs over them."""

from __future__ import annotations

import copy
import io
import pickle
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

import uform
from tests import media_files
from tests.media_verbs import speech, wav
from uform_torch import (
    AudioFile,
    ImageFile,
    Samples,
    TapeBatch,
    TapeDataset,
    Text,
    VideoFile,
    collate,
    write_tape,
)

TEXTS = ["", "a", "naïve café", "\n", "z" * 300, "日本語"]


def contents(batch: TapeBatch) -> list[bytes]:
    return [item.numpy().tobytes() for item in batch]


class Words(Dataset[str]):
    """Picklable, so that it goes to workers made by spawn."""

    def __len__(self) -> int:
        return 50

    def __getitem__(self, index: int) -> str:
        return f"word {index}" * (index % 7)


class Stream(IterableDataset[tuple[str, int]]):
    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter([(f"text {index}", index) for index in range(10)])


class Where(Dataset[Any]):
    """Pixels, and whether their batch was made in shared memory."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> np.ndarray:
        return np.full((index + 1, 2, 3), index, np.uint8)


def pinned_by_name(tensor: torch.Tensor) -> torch.Tensor:
    """What stands for pinning where torch drives no device."""
    copied = tensor.clone()
    copied._was_pinned = True  # type: ignore[attr-defined]
    return copied


# What items are.


@settings(deadline=None, max_examples=60)
@given(st.lists(st.one_of(st.text(), st.binary()), min_size=1, max_size=12))
def test_collate_keeps_every_byte(texts: list[str | bytes]) -> None:
    batch = collate(texts)
    assert contents(batch) == [text if isinstance(text, bytes) else text.encode() for text in texts]
    assert batch.modality is uform.Modality.TEXT
    assert batch.data.dtype is torch.uint8
    assert batch.offsets.dtype is torch.int64
    assert len(batch) == len(texts)


def test_texts_of_all_types() -> None:
    items = ["a", b"b", bytearray(b"c"), memoryview(b"d"), Text(b"e"), Text("f"), memoryview(b"g-g-")[::2]]
    assert contents(collate(items)) == [b"a", b"b", b"c", b"d", b"e", b"f", b"gg"]


def test_large_items_are_copied_one_by_one() -> None:
    files = [bytes([index]) * 200_000 for index in range(3)]
    assert contents(collate([ImageFile(file) for file in files])) == files


def test_files_by_class_path_and_first_bytes(tmp_path: Path) -> None:
    photo = media_files.saved(media_files.Image.fromarray(media_files.photo(9, 7)), "PNG")
    path = tmp_path / "no suffix"
    path.write_bytes(photo)
    for item in (path, ImageFile(path), ImageFile(str(path)), ImageFile(photo)):
        batch = collate([item])
        assert (batch.modality, batch.verb, contents(batch)) == (uform.Modality.IMAGE, "image_encode", [photo])
    sound = wav(speech(300))
    path.write_bytes(sound)
    assert collate([path]).verb == collate([AudioFile(sound)]).verb == "audio_encode"
    assert collate([VideoFile(b"?")]).verb == "video_encode"
    path.write_bytes(b"plain words")
    with pytest.raises(uform.MalformedError, match="item 1, .*no suffix, is no picture") as raised:
        collate([ImageFile(photo), path])
    assert raised.value.item == 1
    with pytest.raises(FileNotFoundError):
        collate([tmp_path / "missing"])


def test_pixels_keep_their_shapes() -> None:
    pictures = [media_files.photo(5, 4), media_files.photo(2, 9)[::-1], torch.zeros(3, 3, 3, dtype=torch.uint8)]
    batch = collate([*pictures, media_files.Image.fromarray(pictures[0])])
    assert batch.verb == "image_encode_pixels"
    assert batch.shapes is not None
    assert batch.shapes.tolist() == [[4, 5], [9, 2], [3, 3], [4, 5]]
    for found, expected in zip(batch.arrays(), [*pictures, pictures[0]], strict=True):
        np.testing.assert_array_equal(found, np.asarray(expected))


def test_samples_keep_their_rate() -> None:
    batch = collate([Samples(speech(40), 8000), Samples(torch.zeros(0), 8000), Samples(speech(80)[::2], 8000)])
    assert (batch.verb, batch.sample_rate) == ("audio_encode_samples", 8000)
    assert [array.tolist() for array in batch.arrays()] == [speech(40).tolist(), [], speech(80)[::2].tolist()]


def test_fields_are_collated_by_themselves_and_keep_their_class() -> None:
    Pair = namedtuple("Pair", "text label")
    pair = collate([Pair("a", 1), Pair("b", 2)])
    assert isinstance(pair, Pair)
    assert contents(pair.text) == [b"a", b"b"]
    assert pair.label.tolist() == [1, 2]
    mapped = collate([{"query": "a", "more": [b"x", 1.5]}, {"query": "b", "more": [b"y", 2.5]}])
    assert contents(mapped["query"]) == [b"a", b"b"]
    assert contents(mapped["more"][0]) == [b"x", b"y"]
    assert mapped["more"][1].tolist() == [1.5, 2.5]
    assert collate([torch.ones(2), torch.zeros(2)]).shape == (2, 2)


@pytest.mark.parametrize(
    ("items", "kind", "message", "item"),
    [
        (["a", ImageFile(b"b")], uform.ArgumentTypeError, "item 1 is a picture's file, but item 0 is a text", 1),
        (["a", 5], uform.ArgumentTypeError, "item 1 is int, but item 0 is a text", 1),
        ([Samples(speech(4), 8000), Samples(speech(4), 9000)], uform.ArgumentTypeError, "9000 Hz, but item 0 is", 1),
        (["a", "b\ud800"], uform.MalformedError, "item 1 has a lone surrogate, U\\+D800 at index 1", 1),
        ([np.zeros((3, 8, 8), np.uint8)], uform.ShapeMismatchError, "item 0 .*channels come last", 0),
        ([media_files.Image.new("L", (4, 4))], uform.ShapeMismatchError, "item 0 .*convert\\('RGB'\\)", 0),
        ([Samples(np.zeros((4, 2), np.float32), 8000)], uform.ShapeMismatchError, "mono ones have one axis", 0),
        ([Samples(np.zeros(4), 8000)], uform.ArgumentTypeError, "float64, not of float32", 0),
        ([Samples(np.zeros(4, np.float32), 0)], uform.InvalidArgumentError, "sample_rate: .*positive, not 0", None),
        ([Samples(torch.zeros(4, requires_grad=True), 8000)], uform.ArgumentTypeError, "requires a gradient", 0),
        ([("a", 1), ("b",)], uform.ShapeMismatchError, "item 1 has 1 fields, but item 0 has 2", 1),
        ([], uform.ArgumentTypeError, "none are there", None),
    ],
)
def test_refusals_name_the_item(items: list[Any], kind: type[uform.Error], message: str, item: int | None) -> None:
    with pytest.raises(kind, match=message) as raised:
        collate(items)
    assert raised.value.item == item


# The batch itself.


def test_constructor_refuses_what_does_not_fit() -> None:
    data, offsets = torch.zeros(4, dtype=torch.uint8), torch.tensor([0, 4])
    with pytest.raises(uform.ArgumentTypeError, match="data: a vector of uint8"):
        TapeBatch(data.float(), offsets)
    with pytest.raises(uform.ArgumentTypeError, match="offsets: a vector of int64"):
        TapeBatch(data, offsets.int())
    with pytest.raises(uform.InvalidArgumentError, match="offsets: there are none"):
        TapeBatch(data, offsets[:0])
    with pytest.raises(uform.InvalidArgumentError, match="modality: one is needed"):
        TapeBatch(data, offsets, uform.Modality.TEXT | uform.Modality.IMAGE)
    with pytest.raises(uform.InvalidArgumentError, match="shapes: only pixels"):
        TapeBatch(data, offsets, shapes=torch.zeros(1, 2, dtype=torch.int64))
    with pytest.raises(uform.ShapeMismatchError, match=r"shapes: int64 of \(1, 2\)"):
        TapeBatch(data, offsets, uform.Modality.IMAGE, shapes=torch.zeros(2, 2, dtype=torch.int64))
    with pytest.raises(uform.InvalidArgumentError, match="sample_rate: only samples"):
        TapeBatch(data, offsets, sample_rate=8000)
    with pytest.raises(uform.DeviceError, match="on meta"):
        TapeBatch(data.to("meta"), offsets).tape()
    with pytest.raises(uform.InvalidArgumentError, match="neither pixels nor samples"):
        TapeBatch(data, offsets).arrays()


def test_arrays_never_read_past_their_bytes() -> None:
    data, shapes = torch.zeros(12, dtype=torch.uint8), torch.tensor([[2, 2]])
    with pytest.raises(uform.ShapeMismatchError, match=r"item 0 is of \[2, 3, 3\], but has 12 bytes"):
        TapeBatch(data, torch.tensor([0, 12]), uform.Modality.IMAGE, shapes=torch.tensor([[2, 3]])).arrays()
    for offsets in ([0, 13], [1, 12], [0, -1]):
        with pytest.raises(uform.InvalidArgumentError, match="offsets"):
            TapeBatch(data, torch.tensor(offsets), uform.Modality.IMAGE, shapes=shapes).arrays()
    with pytest.raises(uform.ShapeMismatchError, match="item 0 has 6 bytes"):
        TapeBatch(data, torch.tensor([0, 6]), uform.Modality.AUDIO, sample_rate=8000).arrays()


def test_items_and_slices_share_memory() -> None:
    batch = collate(TEXTS)
    assert bytes(batch[2].numpy()) == bytes(batch[-4].numpy()) == "naïve café".encode()
    assert batch[2].untyped_storage().data_ptr() == batch.data.untyped_storage().data_ptr()
    for chosen in (slice(1, 4), slice(4, None), slice(2, 2), slice(None, None, 2), slice(None, None, -1), slice(9, 12)):
        part = batch[chosen]
        assert isinstance(part, TapeBatch)
        assert contents(part) == [text.encode() for text in TEXTS[chosen]]
        assert int(part.offsets[0]) == 0
    assert batch[1:4].data.untyped_storage().data_ptr() == batch.data.untyped_storage().data_ptr()  # type: ignore[union-attr]
    with pytest.raises(IndexError, match="has 6 items"):
        batch[6]


def saved_and_loaded(batch: TapeBatch) -> Any:
    stream = io.BytesIO()
    torch.save(batch, stream)
    stream.seek(0)
    return torch.load(stream, weights_only=True)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch)), saved_and_loaded]
)
def test_copies_and_pickles(again: Any) -> None:
    for batch in (collate(TEXTS), collate([np.ones((2, 3, 3), np.uint8)]), collate([Samples(speech(9), 8000)])):
        other = again(batch)
        assert contents(other) == contents(batch)
        assert (other.verb, other.sample_rate) == (batch.verb, batch.sample_rate)


def test_moves_keep_the_class() -> None:
    batch = collate([np.ones((2, 3, 3), np.uint8)])
    assert batch.to("cpu") is batch
    assert batch.cpu() is batch
    moved = batch.to("meta")
    assert (type(moved), moved.device.type, moved.verb) == (TapeBatch, "meta", "image_encode_pixels")
    assert moved.shapes is not None
    assert moved.shapes.device.type == moved.offsets.device.type == "meta"
    assert batch.share_memory_() is batch
    assert batch.is_shared()
    assert "1 items, IMAGE pixels, 18 bytes on cpu" in repr(batch)


def test_pin_memory_keeps_the_class_and_pins_every_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils.data._utils.pin_memory import pin_memory

    batch = collate([np.ones((2, 3, 3), np.uint8)])
    if not torch.accelerator.is_available():
        with pytest.raises(RuntimeError):  # It is torch that says why it cannot.
            batch.pin_memory()
        monkeypatch.setattr(torch.Tensor, "pin_memory", pinned_by_name)
        monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: hasattr(tensor, "_was_pinned"))
    assert not batch.is_pinned()
    fields = pin_memory({"batch": batch, "labels": [torch.ones(1)]})  # What DataLoader's thread does.
    assert type(fields["batch"]) is TapeBatch
    assert fields["batch"].is_pinned()
    assert contents(fields["batch"]) == contents(batch)


# Workers.


@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
def test_workers_of_every_kind(context: str) -> None:
    loader = DataLoader(
        Words(),
        batch_size=8,
        num_workers=2,
        collate_fn=collate,
        multiprocessing_context=context,
        persistent_workers=True,
    )
    expected = [Words()[index].encode() for index in range(50)]
    for _ in range(2):
        batches = list(loader)
        assert all(batch.is_shared() for batch in batches)
        assert [text for batch in batches for text in contents(batch)] == expected


def test_a_worker_sends_one_handle_of_shared_memory() -> None:
    [batch] = DataLoader(Where(), batch_size=4, num_workers=1, collate_fn=collate, multiprocessing_context="fork")
    assert batch.is_shared()
    assert batch.shapes is not None
    storages = {tensor.untyped_storage().data_ptr() for tensor in (batch.data, batch.offsets, batch.shapes)}
    assert len(storages) == 1
    assert [array.shape for array in batch.arrays()] == [(index + 1, 2, 3) for index in range(4)]
    again = saved_and_loaded(batch)
    assert contents(again) == contents(batch)
    assert again.shapes.tolist() == batch.shapes.tolist()


def test_iterable_datasets() -> None:
    batches = list(DataLoader(Stream(), batch_size=4, collate_fn=collate))
    assert [contents(texts) for texts, _ in batches][2] == [b"text 8", b"text 9"]
    assert [numbers.tolist() for _, numbers in batches][2] == [8, 9]


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")
def test_loaders_that_pin() -> None:
    for batch in DataLoader(Words(), batch_size=25, num_workers=1, collate_fn=collate, pin_memory=True):
        assert type(batch) is TapeBatch
        assert batch.is_pinned() == torch.accelerator.is_available()


# Tapes on disk.


@pytest.fixture
def tape(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "texts.bin", tmp_path / "texts.npy"
    assert write_tape(iter(TEXTS), *paths) == len(TEXTS)
    return paths


def test_dataset_answers_items_views_and_batches(tape: tuple[Path, Path]) -> None:
    dataset = TapeDataset(*tape)
    expected = [text.encode() for text in TEXTS]
    assert list(dataset) == expected
    assert dataset[-1] == dataset[np.int64(5)] == expected[5]
    for chosen in (slice(None), slice(1, 4), slice(None, None, -2), slice(3, 3)):
        assert list(dataset[chosen]) == contents(dataset[chosen].batch()) == expected[chosen]
    assert list(dataset[1:][[0, -1]]) == [expected[1], expected[5]]
    assert contents(dataset[torch.tensor([4, 0])].batch()) == [expected[4], expected[0]]
    assert contents(dataset[[]].batch()) == []
    shuffled = dataset.shuffled(7)
    assert sorted(shuffled) == sorted(expected)
    assert list(shuffled) == list(dataset.shuffled(np.random.default_rng(7)))
    assert list(shuffled[2:4]) == list(shuffled)[2:4]
    for wrong in (6, -7, [6], [-7]):
        with pytest.raises(IndexError, match="has 6 items"):
            dataset[wrong]
    for wrong in ("a", [0.5], [[1]]):
        with pytest.raises(TypeError, match="indices"):
            dataset[wrong]


def test_neighbours_are_lent_and_the_file_is_never_written(tape: tuple[Path, Path]) -> None:
    dataset = TapeDataset(*tape)
    before = tape[0].read_bytes()
    for part in (dataset[1:5], dataset[[1, 2, 3, 4]]):
        batch = part.batch()
        start = dataset._data.ctypes.data
        assert start <= batch.data.data_ptr() < start + len(before)
        assert contents(batch) == [text.encode() for text in TEXTS[1:5]]
    batch.data.fill_(0)
    assert tape[0].read_bytes() == before


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_dataset_in_workers(tape: tuple[Path, Path], context: str) -> None:
    dataset = TapeDataset(*tape)
    assert len(pickle.dumps(dataset)) < 1000  # Paths, not contents.
    expected = [text.encode() for text in TEXTS]
    for data in (dataset, Subset(dataset, range(6))):
        loader = DataLoader(data, batch_size=4, num_workers=2, collate_fn=collate, multiprocessing_context=context)
        assert [text for batch in loader for text in contents(batch)] == expected
    loader = DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=collate)
    assert sorted(text for batch in loader for text in contents(batch)) == sorted(expected)


def test_dataset_of_files(tmp_path: Path) -> None:
    paths = tmp_path / "photos.bin", tmp_path / "photos.npy"
    assert write_tape([ImageFile(b"one"), ImageFile(b"three")], *paths) == 2
    dataset = TapeDataset(*paths, uform.Modality.IMAGE)
    assert dataset[1] == ImageFile(b"three")
    assert collate([dataset[0]]).verb == dataset.batch().verb == "image_encode"
    with pytest.raises(uform.InvalidArgumentError, match="holds texts or files"):
        write_tape([np.ones((2, 2, 3), np.uint8)], *paths)


def test_empty_tapes(tmp_path: Path) -> None:
    paths = tmp_path / "texts.bin", tmp_path / "texts.npy"
    assert write_tape([], *paths) == 0
    assert len(TapeDataset(*paths).batch()) == 0
    assert write_tape(["", ""], *paths) == 2
    assert contents(TapeDataset(*paths).batch()) == [b"", b""]


def test_files_that_are_no_tape(tape: tuple[Path, Path]) -> None:
    data, offsets = tape
    good = np.load(offsets)
    for bad in (good + 1, good.astype(np.int32), good[None], good[:0], np.append(good, good[-1] + 1)):
        np.save(offsets, bad)
        with pytest.raises(uform.MalformedError, match="offsets"):
            TapeDataset(data, offsets)
    offsets.write_bytes(b"not an array")
    with pytest.raises(uform.MalformedError, match="no array in NumPy's format"):
        TapeDataset(data, offsets)
    bad = good.copy()
    bad[2], bad[3] = good[-1] + 5, good[2]
    np.save(offsets, bad)
    dataset = TapeDataset(data, offsets)
    for read in (lambda: dataset[1], lambda: dataset.batch(), lambda: dataset[[1, 0]].batch(), lambda: dataset[2]):
        with pytest.raises(uform.MalformedError, match="offsets: item [12] goes from"):
            read()
    with pytest.raises(FileNotFoundError):
        TapeDataset(data, offsets.with_name("missing"))


def test_unsigned_offsets(tape: tuple[Path, Path]) -> None:
    np.save(tape[1], np.load(tape[1]).astype(np.uint64))
    assert contents(TapeDataset(*tape).batch()) == [text.encode() for text in TEXTS]


# The verbs.


def test_a_batch_goes_into_the_verbs_as_a_lent_tape(model: uform.Model, executor: uform.Executor) -> None:
    batch, arena = collate(TEXTS), uform.Arena()
    data, offsets = batch.tape()
    assert (data.ctypes.data, offsets.ctypes.data) == (batch.data.data_ptr(), batch.offsets.data_ptr())
    expected = np.array(model.text_encode(TEXTS, uform.Arena()).embeddings)
    np.testing.assert_array_equal(np.array(model.on(executor).text_encode(batch.tape(), arena).embeddings), expected)
    part = batch[2:5]
    assert isinstance(part, TapeBatch)
    np.testing.assert_array_equal(np.array(model.text_encode(part.tape(), arena).embeddings), expected[2:5])


def test_pixels_and_samples_go_into_the_verbs(media: uform.Model) -> None:
    arena = uform.Arena()
    pictures = [media_files.photo(20, 16), media_files.photo(9, 31)]
    expected = np.array(media.image_encode_pixels(pictures, arena).embeddings)
    np.testing.assert_array_equal(
        np.array(media.image_encode_pixels(collate(pictures).arrays(), arena).embeddings), expected
    )
    sounds = [speech(4000), speech(900, seed=1)]
    expected = np.array(media.audio_encode_samples(sounds, 8000, arena).embeddings)
    batch = collate([Samples(sound, 8000) for sound in sounds])
    np.testing.assert_array_equal(
        np.array(media.audio_encode_samples(batch.arrays(), 8000, arena).embeddings), expected
    )
