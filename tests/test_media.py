"""Pictures, videos and recordings: what is encoded, and the same bits however it is asked for."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import uform
from tests.clip_files import colours, ffmpeg, tone
from tests.conftest import SMALL, Gate
from tests.front_end import video_patches
from tests.media_files import photo, png, saved
from tests.media_verbs import (
    ALL,
    FILES,
    PICTURES,
    RATE,
    RECORDINGS,
    Verb,
    assert_near,
    assert_same,
    copied,
    every_verb,
    speech,
    wav,
)
from tests.oracle import Oracle
from tests.test_executor import run_python


@pytest.fixture(scope="module")
def oracle(small_checkpoint: str) -> Oracle:
    return Oracle.from_checkpoint(small_checkpoint, dtype=torch.float64)


# What is encoded


def test_videos_agree_with_the_oracle(media: uform.Model, oracle: Oracle, videos: list[bytes]) -> None:
    """At 4 Hz, two frames of each colour: 8 frames, 4 tubelets. A grid of 3 x 4 squares of 8 pixels."""
    assert SMALL.video is not None
    frames = np.zeros((8, 24, 32, 3), np.uint8)
    for frame, colour in enumerate(((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255))):
        frames[2 * frame : 2 * frame + 2] = colour
    patches = torch.from_numpy(video_patches(frames, SMALL.video))
    embedding, expected = oracle.encode_patches("video", patches)
    stats = uform.VideoEncodeStats()
    encoded = media.video_encode(videos, uform.Arena(), outputs=ALL, stats=stats)
    embeddings, states, _, offsets, _ = copied(encoded)
    assert offsets.tolist() == [0, 48, 96, 108]
    assert stats.encoded_frames == 8 + 8 + 2
    for item in range(2):
        assert_near(embeddings[item : item + 1], embedding[None].numpy(), 0.99, 0.15)
        assert_near(states[offsets[item] : offsets[item + 1]], expected.numpy(), 0.99, 0.2)


def test_lossless_files_are_their_pixels(media: uform.Model) -> None:
    expected = copied(media.image_encode_pixels(PICTURES, uform.Arena(), outputs=ALL))
    pngs = [png(picture) for picture in PICTURES]
    webps = [saved(Image.fromarray(picture), "WEBP", lossless=True, exact=True) for picture in PICTURES]
    for files in (pngs, webps):
        assert_same(copied(media.image_encode(files, uform.Arena(), outputs=ALL)), expected)


def test_pictures_are_what_a_viewer_shows(media: uform.Model) -> None:
    """Transparency over white, palettes, 16 bits, EXIF's orientation."""
    picture = photo(48, 32)
    clear = np.zeros((32, 48, 4), np.uint8)
    clear[..., :3] = 255 - picture
    grey = np.full((32, 48), 77, np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6  # Turned by a quarter: shown with the first row at the right.
    turned = {"exif": exif.tobytes(), "lossless": True, "exact": True}
    shown = [
        (saved(Image.fromarray(clear), "PNG"), np.full((32, 48, 3), 255, np.uint8)),
        (saved(Image.fromarray(grey), "PNG"), np.stack([grey] * 3, axis=-1)),
        (saved(Image.fromarray(grey).convert("P"), "PNG"), np.stack([grey] * 3, axis=-1)),
        (saved(Image.fromarray(picture), "WEBP", **turned), np.ascontiguousarray(np.rot90(picture, -1))),
    ]
    found = media.image_encode([file for file, _ in shown], uform.Arena(), outputs=ALL)
    expected = media.image_encode_pixels([pixels for _, pixels in shown], uform.Arena(), outputs=ALL)
    assert_same(copied(found), copied(expected))


def test_files_are_their_samples(media: uform.Model) -> None:
    expected = copied(media.audio_encode_samples(RECORDINGS, RATE, uform.Arena(), outputs=ALL))
    files = [wav(recording) for recording in RECORDINGS]
    assert_same(copied(media.audio_encode(files, uform.Arena(), outputs=ALL)), expected)


def test_channels_are_averaged(media: uform.Model) -> None:
    """Numbers of which the mean is exact."""
    left = np.round(speech(8000, 1) * 1024) / 1024
    right = np.round(speech(8000, 2) * 1024) / 1024
    stereo = media.audio_encode([wav(np.stack([left, right], axis=1))], uform.Arena(), outputs=ALL)
    mono = media.audio_encode_samples([((left + right) / 2).astype(np.float32)], RATE, uform.Arena(), outputs=ALL)
    assert_same(copied(stereo), copied(mono))


def test_rates_hardly_matter(media: uform.Model) -> None:
    """A second of the same tone, from 8 to 96 kHz."""
    arena = uform.Arena()
    rows = []
    for rate in (8000, 11025, 16000, 22050, 44100, 48000, 96000):
        samples = tone(rate, rate).astype(np.float32)
        rows.append(np.array(media.audio_encode_samples([samples], rate, arena).embeddings)[0])
        rows.append(np.array(media.audio_encode([wav(samples, rate)], arena).embeddings)[0])
    assert (np.stack(rows) @ rows[4]).min() > 0.97


def test_codecs_keep_what_is_heard(media: uform.Model, tmp_path: Path) -> None:
    """FLAC of 16 bits is exact; MP3 and Opus are near, and as long: their padding is gone."""
    source = tmp_path / "source.wav"
    soundfile.write(source, np.round(tone(48000, 57600) * 32767).astype(np.int16), 48000, subtype="PCM_16")
    names = ["source.wav", "tone.flac", "tone.mp3", "tone.opus", "tone.webm"]
    for name, codec in zip(names[1:], ("flac", "libmp3lame", "libopus", "libopus"), strict=True):
        ffmpeg("-i", source, "-c:a", codec, "-b:a", "96k", tmp_path / name)
    stats = uform.AudioEncodeStats()
    files = [(tmp_path / name).read_bytes() for name in names]
    encoded = media.audio_encode(files, uform.Arena(), outputs=ALL, stats=stats)
    embeddings, _, _, offsets, _ = copied(encoded)
    assert offsets.tolist() == [0, 30, 60, 90, 120, 150]  # 1.2 s.
    assert stats.encoded_seconds == pytest.approx(5 * 1.2, abs=0.01)
    assert embeddings[0].tobytes() == embeddings[1].tobytes()
    assert (embeddings @ embeddings[0]).min() > 0.9


def test_what_is_empty(media: uform.Model) -> None:
    """A recording without a sample has no token; a batch without an item has no row."""
    silent = np.zeros(0, np.float32)
    for encoded in (
        media.audio_encode_samples([RECORDINGS[3], silent, RECORDINGS[3]], RATE, uform.Arena(), outputs=ALL),
        media.audio_encode([wav(RECORDINGS[3]), wav(silent), wav(RECORDINGS[3])], uform.Arena(), outputs=ALL),
    ):
        embeddings, _, _, offsets, _ = copied(encoded)
        assert offsets.tolist() == [0, 1, 1, 2]
        assert not embeddings[1].any()
        assert np.linalg.norm(embeddings[0]) == pytest.approx(1)
        assert embeddings[0].tobytes() == embeddings[2].tobytes()


@every_verb
def test_no_items(media: uform.Model, verb: Verb) -> None:
    stats = verb.stats()
    batches: list[Any] = [[], ()]
    if verb.name in FILES:
        batches.append((b"", np.zeros(1, np.uint64)))
    for nothing in batches:
        embeddings, states, vectors, offsets, _ = copied(verb.on(media, nothing, outputs=ALL, stats=stats))
        assert embeddings.shape == (0, SMALL.dimensions)
        assert states.shape == (0, SMALL.hidden)
        assert vectors.shape == (0, SMALL.token_width)
        assert offsets.tolist() == [0]
        assert stats.encoded_tokens == stats.malformed_items == stats.decoded_bytes == 0


# The same bits


@every_verb
def test_receivers_agree(media: uform.Model, executor: uform.Executor, verb: Verb) -> None:
    expected = copied(verb.on(media, verb.items, outputs=ALL))
    assert np.isfinite(expected[0]).all()
    assert np.linalg.norm(expected[0], axis=1) == pytest.approx(1, abs=1e-5)
    blocking = verb.on(media.on(executor), verb.items, uform.Arena(executor), outputs=ALL)
    assert_same(copied(blocking), expected)
    call = verb.on(media.deferred(executor), verb.items, uform.Arena(executor), outputs=ALL)
    assert_same(copied(call.wait()), expected)
    assert call.status is uform.Status.SUCCESS


@every_verb
def test_batches_and_threads_do_not_matter(media: uform.Model, verb: Verb) -> None:
    """Alone, in any order, twice, on any number of threads."""
    arena = uform.Arena()
    alone = [copied(verb.on(media, [item], arena, outputs=ALL))[:3] for item in verb.items]
    order = list(range(len(verb.items))) * 2
    random.Random(5).shuffle(order)
    for threads in (1, 2, 3, 5):
        with uform.Executor.for_ram(threads) as executor:
            encoded = verb.on(media.on(executor), [verb.items[item] for item in order], arena, outputs=ALL)
            for place, item in enumerate(order):
                found = [encoded.states[place], encoded.token_vectors[place]]
                row = np.array(encoded.embeddings)[place : place + 1]
                assert_same((row, *map(np.array, found)), alone[item])


@every_verb
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_batch_has_the_same_bits(media: uform.Model, verb: Verb, data: st.DataObject) -> None:
    """Whatever is in it, on any number of threads, by any receiver."""
    order = data.draw(st.lists(st.integers(0, len(verb.items) - 1), min_size=1, max_size=12))
    arena = uform.Arena()
    with uform.Executor.for_ram(data.draw(st.integers(1, 4))) as executor:
        receiver = data.draw(st.sampled_from([media, media.on(executor), media.deferred(executor)]))
        encoded = verb.on(receiver, [verb.items[item] for item in order], arena, outputs=ALL)
        if isinstance(encoded, uform.Deferred):
            encoded = encoded.wait()
    alone = uform.Arena()
    for place, item in enumerate(order):
        expected = verb.on(media, [verb.items[item]], alone, outputs=ALL)
        assert np.array(encoded.embeddings)[place].tobytes() == np.array(expected.embeddings)[0].tobytes()
        assert np.array(encoded.states[place]).tobytes() == np.array(expected.states).tobytes()
        assert np.array(encoded.token_vectors[place]).tobytes() == np.array(expected.token_vectors).tobytes()


@every_verb
def test_calls_at_once(media: uform.Model, verb: Verb) -> None:
    """On executors of their own and on threads of the caller's: with the bits that they have alone, without the GIL."""
    expected = copied(verb.on(media, verb.items, outputs=ALL))
    found: list[tuple[np.ndarray, ...]] = []

    def call(threads: int) -> None:
        with uform.Executor.for_ram(threads) as executor:
            for receiver in (media.on(executor), media):
                found.append(copied(verb.on(receiver, verb.items, outputs=ALL)))

    callers = [threading.Thread(target=call, args=(threads,)) for threads in (1, 2, 1, 2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 8
    for surfaces in found:
        assert_same(surfaces, expected)


@every_verb
def test_the_interpreter_runs_meanwhile(media: uform.Model, executor: uform.Executor, gate: Gate, verb: Verb) -> None:
    """A blocking call leaves the interpreter to the thread that lets it go on."""
    caller = threading.Thread(target=lambda: verb.on(media.on(executor), verb.items, progress=gate))
    caller.start()
    gate.await_entry()
    gate.open()
    caller.join(60)
    assert not caller.is_alive()


@every_verb
def test_surfaces_do_not_matter(media: uform.Model, verb: Verb) -> None:
    expected = copied(verb.on(media, verb.items, outputs=ALL))
    for kept in range(8):
        encoded = verb.on(media, verb.items, outputs=uform.Outputs(kept))
        for bit, surface in enumerate(encoded):
            assert (surface is None) == (not kept & 1 << bit)
            if surface is not None:
                assert np.array(surface).tobytes() == expected[bit].tobytes()


@every_verb
def test_scalars(media: uform.Model, verb: Verb) -> None:
    """BF16 are the upper halves of F32, rounded."""
    wide = np.array(verb.on(media, verb.items).embeddings)
    rows = np.array(verb.on(media, verb.items, outputs_scalar=uform.Scalar.BF16).embeddings)
    narrow = (rows.view("<u2").astype(np.uint32) << 16).view(np.float32)
    assert np.allclose(narrow, wide, rtol=2**-8, atol=0)


# Stats, progress


@every_verb
def test_stats(media: uform.Model, verb: Verb) -> None:
    stats = verb.stats()
    encoded = verb.on(media, verb.items, outputs=ALL, stats=stats)
    assert stats.encoded_tokens == encoded.states.shape[0]
    assert stats.malformed_items == 0
    assert stats.malformed == []
    sizes = [item.nbytes if isinstance(item, np.ndarray) else len(item) for item in verb.items]
    assert stats.decoded_bytes == sum(sizes)
    assert repr(stats).startswith(f"{verb.stats.__name__}(truncated_items=")
    assert f"encoded_tokens={stats.encoded_tokens}, malformed_items=0, decoded_bytes={sum(sizes)}" in repr(stats)
    if isinstance(stats, uform.VideoEncodeStats):
        assert stats.truncated_items == 0
        assert repr(stats).endswith("encoded_frames=18)")
    if isinstance(stats, uform.ImageEncodeStats):
        assert stats.truncated_items == 0
    if isinstance(stats, uform.AudioEncodeStats):
        assert stats.truncated_items == 1  # Of 100,000 samples, 96 tokens of 640 are read.
        assert stats.encoded_seconds == pytest.approx((16000 + 1 + 5000 + 640 + 96 * 640) / RATE)


def test_what_is_too_long_is_its_start(media: uform.Model, tmp_path: Path) -> None:
    """A video of 12 frames at the most, 3 s; a recording of 96 tokens."""
    ffmpeg(*colours(every=1), "-c:v", "libx264", "-pix_fmt", "yuv420p", tmp_path / "long.mp4")
    stats = uform.VideoEncodeStats()
    media.video_encode([(tmp_path / "long.mp4").read_bytes()], uform.Arena(), stats=stats)
    assert stats.truncated_items == 1
    assert stats.encoded_frames == 12
    cut = media.audio_encode_samples([RECORDINGS[4][: 96 * 640]], RATE, uform.Arena(), outputs=ALL)
    whole = media.audio_encode_samples([RECORDINGS[4]], RATE, uform.Arena(), outputs=ALL)
    assert_same(copied(whole), copied(cut))


@every_verb
def test_progress(media: uform.Model, executor: uform.Executor, verb: Verb) -> None:
    expected = copied(verb.on(media, verb.items, outputs=ALL))
    for receiver in (media, media.on(executor), media.deferred(executor)):
        reports: list[tuple[int, int]] = []
        encoded = verb.on(receiver, verb.items, outputs=ALL, progress=lambda *report, to=reports: to.append(report))
        if isinstance(encoded, uform.Deferred):
            encoded = encoded.wait()
        assert_same(copied(encoded), expected)
        assert {total for _, total in reports} == {len(verb.items)}
        assert reports[-1][0] == len(verb.items)
        assert [completed for completed, _ in reports] == sorted(completed for completed, _ in reports)


@every_verb
def test_cancellation(media: uform.Model, executor: uform.Executor, verb: Verb) -> None:
    """Publishes nothing: the stats stay as they were."""

    class Stop(Exception):
        pass

    def fail(completed: int, total: int) -> bool:
        raise Stop

    stats = verb.stats()
    verb.on(media, verb.items[:1], stats=stats)
    before = repr(stats)
    receivers: list[Callable[..., Any]] = [
        lambda **options: verb.on(media, verb.items, **options),
        lambda **options: verb.on(media.on(executor), verb.items, **options),
        lambda **options: verb.on(media.deferred(executor), verb.items, **options).wait(),
    ]
    for call in receivers:
        with pytest.raises(uform.CancelledError):
            call(stats=stats, progress=lambda completed, total: False)
        with pytest.raises(Stop):
            call(stats=stats, progress=fail)
        assert repr(stats) == before


@every_verb
def test_contention(media: uform.Model, executor: uform.Executor, gate: Gate, verb: Verb) -> None:
    arena = uform.Arena()
    pinned = np.asarray(verb.on(media, verb.items, arena).embeddings)
    with pytest.raises(uform.ContendedError):
        verb.on(media, verb.items, arena)
    del pinned
    call = verb.on(media.deferred(executor), verb.items, arena, progress=gate)
    gate.await_entry()
    with pytest.raises(uform.ContendedError):
        verb.on(media.on(executor), verb.items)
    gate.open()
    call.wait()


def test_decoders_load_late() -> None:
    """Neither importing nor encoding text loads them."""
    done = run_python(
        """
        import uform

        model = uform.Model.load_ram(uform.default_checkpoint())
        model.text_encode(["a"], uform.Arena())
        loaded = open("/proc/self/maps").read()
        assert "libuform" in loaded
        for name in ("libuform_images", "libuform_clips", "libavcodec", "libjpeg"):
            assert name not in loaded, name
        """
    )
    assert done.returncode == 0, done.stderr


@every_verb
def test_documentation(verb: Verb) -> None:
    for receiver in (uform.Model, uform.On, uform.DeferredOn):
        documentation = getattr(receiver, verb.name).__doc__
        assert "Raises" in documentation
        assert "stats: a" in documentation
