"""What media verbs are given: buffers that are read where they lie, broken files, limits, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import uform
from tests.conftest import SMALL, Gate
from tests.media_files import photo
from tests.media_verbs import (
    ALL,
    PICTURES,
    RATE,
    RECORDINGS,
    Verb,
    assert_same,
    copied,
    every_file_verb,
    every_verb,
    speech,
    wav,
)

# Inputs


@every_file_verb
def test_files_are_lent_as_tapes(media: uform.Model, executor: uform.Executor, verb: Verb) -> None:
    expected = copied(verb.on(media, verb.items, outputs=ALL))
    data = b"".join(verb.items)
    offsets = np.cumsum([0, *map(len, verb.items)]).astype(np.uint64)
    assert_same(copied(verb.on(media, (data, offsets), outputs=ALL)), expected)
    buffers = [np.frombuffer(file, np.uint8) for file in verb.items]
    assert_same(copied(verb.on(media, buffers, outputs=ALL)), expected)
    assert_same(copied(verb.on(media, [bytearray(file) for file in verb.items], outputs=ALL)), expected)
    broken = offsets.copy()
    broken[1] = broken[2] + 1
    with pytest.raises(uform.InvalidArgumentError, match="files: item 1") as caught:
        verb.on(media, (data, broken))
    assert caught.value.item == 1


def test_arrays_of_many(media: uform.Model) -> None:
    """One array of all items, and one of objects, are what a list of them is."""
    pictures = np.stack([photo(24, 16, seed) for seed in range(5)])
    expected = copied(media.image_encode_pixels(list(pictures), uform.Arena(), outputs=ALL))
    objects = np.empty(5, object)
    for index, picture in enumerate(pictures):
        objects[index] = picture
    read_only = pictures.copy()
    read_only.setflags(write=False)
    for form in (pictures, memoryview(pictures), objects, read_only, tuple(pictures)):
        assert_same(copied(media.image_encode_pixels(form, uform.Arena(), outputs=ALL)), expected)
    samples = np.stack([speech(2000, seed) for seed in range(5)])
    expected = copied(media.audio_encode_samples(list(samples), RATE, uform.Arena(), outputs=ALL))
    for form in (samples, memoryview(samples)):
        assert_same(copied(media.audio_encode_samples(form, RATE, uform.Arena(), outputs=ALL)), expected)


def test_two_arrays_are_two_items(media: uform.Model) -> None:
    """A tuple of two is no tape here."""
    pair = (PICTURES[0], PICTURES[3])
    assert media.image_encode_pixels(pair, uform.Arena()).embeddings.shape == (2, SMALL.dimensions)  # type: ignore[union-attr]
    expected = copied(media.image_encode_pixels(list(pair), uform.Arena(), outputs=ALL))
    assert_same(copied(media.image_encode_pixels(pair, uform.Arena(), outputs=ALL)), expected)


def test_arrays_are_held_until_the_call_is_final(media: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    """They are read where they lie: the arrays stay, and cannot be resized."""
    picture = bytearray(PICTURES[0].tobytes())
    view = memoryview(picture).cast("B", shape=list(PICTURES[0].shape))
    arena = uform.Arena(executor)
    references = sys.getrefcount(view)
    call = media.deferred(executor).image_encode_pixels([view, PICTURES[3]], arena, progress=gate)
    gate.await_entry()
    assert sys.getrefcount(view) > references
    with pytest.raises(BufferError):
        picture.append(0)
    gate.open()
    found = np.array(call.wait().embeddings)
    assert sys.getrefcount(view) == references
    expected = media.image_encode_pixels([PICTURES[0], PICTURES[3]], uform.Arena()).embeddings
    assert np.array_equal(found, np.array(expected))


def test_temporary_arrays_are_kept_alive(media: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    receiver = media.deferred(executor)
    call = receiver.audio_encode_samples([samples.copy() for samples in RECORDINGS], RATE, uform.Arena(), progress=gate)
    gate.await_entry()
    noise = [np.full(len(samples), 0.5, np.float32) for samples in RECORDINGS]
    gate.open()
    expected = np.array(media.audio_encode_samples(RECORDINGS, RATE, uform.Arena()).embeddings)
    assert np.array_equal(np.array(call.wait().embeddings), expected)
    del noise


WRONG_FILES: list[tuple[object, type[uform.Error], str, int | None]] = [
    ("a.png", uform.ArgumentTypeError, "files: a sequence is needed, not a single str", None),
    (b"\xff\xd8\xff", uform.ArgumentTypeError, "files: a sequence is needed, not a single bytes", None),
    (["a.png"], uform.ArgumentTypeError, "files: item 0 is a str, .* read it first", 0),
    ([b"", Path("a.png")], uform.ArgumentTypeError, "files: item 1 is a PosixPath, .* read it first", 1),
    ([5], uform.ArgumentTypeError, "files: item 0 has to be bytes-like, not int", 0),
    (5, uform.ArgumentTypeError, "files: a sequence of bytes-like objects, or a tuple .* is needed, not int", None),
    ([b"", np.zeros(4, np.float32)], uform.UnsupportedLayoutError, "files: item|files: an item has to be a buffer", 1),
    ([np.zeros(8, np.uint8)[::2]], uform.UnsupportedLayoutError, "C-contiguous", 0),
]


@every_file_verb
@pytest.mark.parametrize("wrong", range(len(WRONG_FILES)))
def test_wrong_files(media: uform.Model, verb: Verb, wrong: int) -> None:
    value, kind, message, item = WRONG_FILES[wrong]
    with pytest.raises(kind, match=message) as caught:
        verb.on(media, value)
    assert type(caught.value) is kind
    assert caught.value.item == item


def wrong_arrays() -> list[tuple[str, object, type[uform.Error], str, int | None]]:
    pixels, samples = "image_encode_pixels", "audio_encode_samples"
    good, sound = PICTURES[0], RECORDINGS[3]
    unaligned = np.frombuffer(b"\0" * 401, np.uint8)[1:].view(np.float32)
    return [
        (pixels, good, uform.ShapeMismatchError, "not \\[40, 60, 3\\]: wrap a single one in a list", None),
        (pixels, [good, good[0]], uform.ShapeMismatchError, "item 1 has to be \\[height, width, 3\\]", 1),
        (pixels, [good[..., :2].copy()], uform.ShapeMismatchError, "item 0 .* not \\[40, 60, 2\\]", 0),
        (pixels, [good.transpose(2, 0, 1).copy()], uform.ShapeMismatchError, "channels come last", 0),
        (pixels, np.zeros((2, 3, 8, 8), np.uint8), uform.ShapeMismatchError, "channels come last", None),
        (pixels, [good, np.zeros((0, 4, 3), np.uint8)], uform.ShapeMismatchError, "item 1: a picture of 4 x 0", 1),
        (pixels, [good, good[:, ::2]], uform.UnsupportedLayoutError, "item 1 has to be C-contiguous", 1),
        (pixels, [good[::-1]], uform.UnsupportedLayoutError, "item 0 has to be C-contiguous", 0),
        (pixels, [np.asfortranarray(good)], uform.UnsupportedLayoutError, "item 0 has to be C-contiguous", 0),
        (pixels, [good / np.float32(255)], uform.UnsupportedLayoutError, "item 0 has to be of uint8, not of 'f'", 0),
        (pixels, [good.astype(np.int8)], uform.UnsupportedLayoutError, "item 0 has to be of uint8", 0),
        (pixels, [Image.fromarray(good)], uform.ArgumentTypeError, "item 0 .* numpy.asarray makes it, not Image", 0),
        (pixels, [good.tolist()], uform.ArgumentTypeError, "item 0 .* numpy.asarray makes it, not list", 0),
        (pixels, [b"abc"], uform.ShapeMismatchError, "item 0 has to be \\[height, width, 3\\], not \\[3\\]", 0),
        (pixels, b"abc", uform.ArgumentTypeError, "pixels: a sequence of arrays is needed, not bytes", None),
        (pixels, "abc", uform.ArgumentTypeError, "pixels: a sequence of .* is needed, not str", None),
        (pixels, None, uform.ArgumentTypeError, "pixels: a sequence of .* is needed, not NoneType", None),
        (samples, sound, uform.ShapeMismatchError, "not \\[640\\]: wrap a single one in a list", None),
        (samples, [sound, np.zeros((9, 2), np.float32)], uform.ShapeMismatchError, "item 1 .* not \\[9, 2\\]", 1),
        (samples, [sound[::2]], uform.UnsupportedLayoutError, "item 0 has to be C-contiguous", 0),
        (samples, [unaligned], uform.UnsupportedLayoutError, "item 0 has to be aligned to 4 bytes", 0),
        (samples, [sound.astype(np.float64)], uform.UnsupportedLayoutError, "has to be of float32, not of 'd'", 0),
        (samples, [sound, sound.astype(np.int16)], uform.UnsupportedLayoutError, "item 1 .* float32, not of 'h'", 1),
        (samples, sound.tolist(), uform.ArgumentTypeError, "item 0 .* numpy.asarray makes it, not float", 0),
        (samples, [sound, np.array([0, np.nan], np.float32)], uform.MalformedError, "item 1: sample 1 is nan", 1),
        (samples, [np.array([np.inf], np.float32)], uform.MalformedError, "item 0: sample 0 is inf", 0),
    ]


@pytest.mark.parametrize("wrong", range(len(wrong_arrays())))
def test_wrong_arrays(media: uform.Model, wrong: int) -> None:
    name, value, kind, message, item = wrong_arrays()[wrong]
    extra = (RATE,) if name == "audio_encode_samples" else ()
    with pytest.raises(kind, match=message) as caught:
        getattr(media, name)(value, *extra, uform.Arena())
    assert type(caught.value) is kind
    assert caught.value.item == item


@pytest.mark.parametrize(
    ("rate", "kind", "message"),
    [
        (0, uform.InvalidArgumentError, "sample_rate: 0 Hz"),
        (-1, uform.InvalidArgumentError, "sample_rate: -1 is negative"),
        (999, uform.InvalidArgumentError, "sample_rate: 999 Hz"),
        (768_001, uform.InvalidArgumentError, "sample_rate: 768001 Hz"),
        (1 << 40, uform.InvalidArgumentError, "sample_rate: 1099511627776 Hz"),
        (16000.0, uform.ArgumentTypeError, "sample_rate: an integer is needed, not float"),
        (None, uform.ArgumentTypeError, "sample_rate: an integer is needed, not NoneType"),
    ],
)
def test_wrong_rates(media: uform.Model, rate: Any, kind: type[uform.Error], message: str) -> None:
    with pytest.raises(kind, match=message):
        media.audio_encode_samples([RECORDINGS[0]], rate, uform.Arena())


@every_verb
def test_other_wrong_arguments(media: uform.Model, verb: Verb, arena: uform.Arena) -> None:
    for options, kind, message in (
        ({"outputs": 8}, uform.UnknownKindError, "outputs: 8"),
        ({"outputs": "states"}, uform.ArgumentTypeError, "outputs: a uform.Outputs is needed"),
        ({"outputs_scalar": 9}, uform.UnknownKindError, "outputs_scalar: 9"),
        (
            {"stats": uform.TextEncodeStats()},
            uform.ArgumentTypeError,
            f"stats: a uform.{verb.stats.__name__} is needed",
        ),
        ({"progress": 5}, uform.ArgumentTypeError, "progress: a callable is needed"),
    ):
        with pytest.raises(kind, match=message):
            verb.on(media, verb.items, arena, **options)
    with pytest.raises(uform.ArgumentTypeError, match="arena: a uform.Arena is needed, not str"):
        verb.on(media, verb.items, "arena")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        getattr(media, verb.name)(verb.items, *verb.extra, arena, uform.Outputs.STATES)


@every_verb
def test_models_that_take_text_alone(headless: uform.Model, executor: uform.Executor, verb: Verb) -> None:
    description = headless.describe()
    assert description.modalities == uform.Modality.TEXT
    for receiver in (headless, headless.on(executor)):
        with pytest.raises(uform.UnsupportedError, match="model"):
            verb.on(receiver, verb.items)
    with pytest.raises(uform.UnsupportedError, match="model"):
        verb.on(headless.deferred(executor), verb.items).wait()


def test_modalities(media: uform.Model) -> None:
    description = media.describe()
    assert list(uform.Modality) == [uform.Modality(1), uform.Modality(2), uform.Modality(4), uform.Modality(8)]
    assert description.modalities == sum(uform.Modality)
    assert isinstance(description.modalities, uform.Modality)
    assert description.trained_modalities == uform.Modality.TEXT | uform.Modality.IMAGE
    assert uform.Modality.AUDIO not in description.trained_modalities


# Broken files


def broken_of(verb: Verb) -> list[tuple[bytes, uform.Status]]:
    """Files that no verb takes: nothing, text, and the half of a file."""
    malformed, other = uform.Status.MALFORMED, uform.Status.UNSUPPORTED_LAYOUT
    half = verb.items[0][: len(verb.items[0]) // 2]
    broken = [(b"", malformed), (b"<!DOCTYPE html><p>404" * 9, other)]
    # What is cut off of a recording is only missing at its end.
    return broken if verb.name == "audio_encode" else [*broken, (half, malformed)]


@every_file_verb
def test_a_broken_file_is_named(media: uform.Model, executor: uform.Executor, verb: Verb) -> None:
    for file, status in broken_of(verb):
        batch = [*verb.items[:2], file, *verb.items[:1], b""]
        for call in (
            lambda batch=batch: verb.on(media, batch),
            lambda batch=batch: verb.on(media.on(executor), batch),
            lambda batch=batch: verb.on(media.deferred(executor), batch).wait(),
        ):
            with pytest.raises(uform.Error, match="files: item 2") as caught:
                call()
            assert caught.value.item == 2
            assert caught.value.status == status


@every_file_verb
def test_broken_files_are_skipped(media: uform.Model, executor: uform.Executor, verb: Verb) -> None:
    good = verb.items[:3]
    expected = copied(verb.on(media, good, outputs=ALL))
    broken = broken_of(verb)
    batch = [broken[0][0], good[0], broken[1][0], good[1], good[2], *(file for file, _ in broken[2:])]
    places = [1, 3, 4]
    skipped = [item for item in range(len(batch)) if item not in places]
    for receiver in (media, media.on(executor), media.deferred(executor)):
        stats = verb.stats()
        encoded = verb.on(receiver, batch, outputs=ALL, skip_malformed=True, stats=stats)
        if isinstance(encoded, uform.Deferred):
            encoded = encoded.wait()
        embeddings, states, vectors, offsets, _ = copied(encoded)
        assert embeddings[places].tobytes() == expected[0].tobytes()
        assert not embeddings[skipped].any()
        assert_same((states, vectors), expected[1:3])
        lengths = np.diff(offsets)
        assert not lengths[skipped].any()
        assert lengths[places].tolist() == np.diff(expected[3]).tolist()
        assert stats.malformed_items == len(skipped)
        assert [entry.item for entry in stats.malformed] == skipped
        assert [entry.status for entry in stats.malformed] == [status for _, status in broken]
        assert all(isinstance(entry, uform.MalformedItem) and entry.message for entry in stats.malformed)
        assert stats.encoded_tokens == len(states)
        assert stats.decoded_bytes == sum(map(len, good))


@every_file_verb
def test_all_files_are_broken(media: uform.Model, verb: Verb) -> None:
    stats = verb.stats()
    embeddings, states, _, offsets, _ = copied(
        verb.on(media, [b"", b"text"], outputs=ALL, skip_malformed=True, stats=stats)
    )
    assert embeddings.shape == (2, SMALL.dimensions)
    assert not embeddings.any()
    assert states.shape == (0, SMALL.hidden)
    assert offsets.tolist() == [0, 0, 0]
    assert len(stats.malformed) == 2
    verb.on(media, verb.items[:1], stats=stats)
    assert stats.malformed == []
    assert stats.malformed_items == 0


@every_file_verb
def test_skipping_needs_stats(media: uform.Model, verb: Verb) -> None:
    with pytest.raises(uform.InvalidArgumentError, match=f"skip_malformed: stats have to be .*{verb.stats.__name__}"):
        verb.on(media, verb.items, skip_malformed=True)
    with pytest.raises(uform.ArgumentTypeError, match="skip_malformed: a bool is needed, not str"):
        verb.on(media, verb.items, skip_malformed="no", stats=verb.stats())


# Limits


@pytest.mark.parametrize(
    ("verb", "limits"),
    [
        ("image_encode", {"pixels": 60 * 40 - 1}),
        ("video_encode", {"pixels": 64 * 48 - 1}),
        ("video_encode", {"seconds": 1}),
        ("audio_encode", {"seconds": 1}),
    ],
    indirect=["verb"],
)
def test_limits(media: uform.Model, verb: Verb, limits: dict[str, int]) -> None:
    """One below what an item has is over the limit; what it has is not."""
    item = verb.items[0] if verb.name != "audio_encode" else wav(speech(2 * RATE))
    with pytest.raises(uform.MalformedError, match="files: item 0: .* over the limit") as caught:
        verb.on(media, [item], limits=uform.MediaLimits(**limits))
    assert caught.value.item == 0
    stats = verb.stats()
    verb.on(media, [item], limits=uform.MediaLimits(**limits), skip_malformed=True, stats=stats)
    assert stats.malformed_items == 1
    expected = np.array(verb.on(media, [item]).embeddings)
    raised = uform.MediaLimits(**{name: value + 1 for name, value in limits.items()})
    for fitting in (raised, uform.MediaLimits(), None):
        assert np.array_equal(np.array(verb.on(media, [item], limits=fitting).embeddings), expected)


@every_file_verb
def test_wrong_limits(media: uform.Model, verb: Verb) -> None:
    for wrong, kind, message in (
        ((1, 2, 3), uform.ArgumentTypeError, "limits: a uform.MediaLimits is needed, not tuple"),
        (uform.MediaLimits(pixels=-1), uform.InvalidArgumentError, "limits.pixels: -1 is negative"),
        (uform.MediaLimits(seconds=1.5), uform.ArgumentTypeError, "limits.seconds: an integer is needed"),  # type: ignore[arg-type]
        (uform.MediaLimits(bytes=1 << 64), uform.InvalidArgumentError, "limits.bytes: 18446744073709551616"),
    ):
        with pytest.raises(kind, match=message):
            verb.on(media, verb.items, limits=wrong)
