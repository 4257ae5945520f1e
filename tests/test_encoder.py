"""`Encoder`: the verbs' bits as tensors, as a module, in other processes, and under torch's compilers."""

from __future__ import annotations

import copy
import io
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import uform
from tests import media_files
from tests.conftest import SMALL
from tests.media_verbs import RATE, speech, wav
from tests.oracle import Oracle
from uform_torch import AudioFile, Encoded, Encoder, ImageFile, Samples, TapeBatch, VideoFile, collate

ALL = uform.Outputs.EMBEDDINGS | uform.Outputs.STATES | uform.Outputs.TOKEN_VECTORS
TEXTS = ["", "a", "naïve café", "a cat on a mat" * 9, "日本語"]
SURFACES = [uform.Outputs(bits) for bits in range(1, 8)]


@pytest.fixture(scope="module")
def encoder(small_checkpoint: str) -> Encoder:
    return Encoder(small_checkpoint, outputs=ALL)


def expected_of(model: uform.Model, texts: Any = TEXTS, **options: Any) -> tuple[np.ndarray, ...]:
    encoded = model.text_encode(texts, uform.Arena(), outputs=ALL, **options)
    assert encoded.embeddings is not None
    assert encoded.states is not None
    return tuple(map(np.array, (encoded.embeddings, encoded.states, encoded.states.offsets, encoded.token_vectors)))


def assert_bits(encoded: Any, expected: Any) -> None:
    for found, wanted in zip(encoded, expected, strict=True):
        torch.testing.assert_close(found, torch.as_tensor(wanted).to(found.dtype), rtol=0, atol=0)


class Head(torch.nn.Module):
    """A module around an encoder."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.linear = torch.nn.Linear(encoder.dimensions, 3)

    def forward(self, batch: TapeBatch) -> tuple[torch.Tensor, ...]:
        encoded = self.encoder(batch)
        rest = [part.sum() for part in encoded[1:] if part is not None]
        return self.linear(encoded.embeddings), *rest


class EncodedItems(Dataset[torch.Tensor]):
    """Encodes in the worker."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def __len__(self) -> int:
        return len(TEXTS)

    def __getitem__(self, index: int) -> torch.Tensor:
        embeddings = self.encoder.encode_text([TEXTS[index]]).embeddings
        assert embeddings is not None
        return embeddings[0]


# Outputs.


@pytest.mark.parametrize("executor", [None, 2])
def test_the_bits_of_the_verbs(small_checkpoint: str, executor: int | None) -> None:
    encoder = Encoder(small_checkpoint, outputs=ALL, executor=executor)
    expected = expected_of(encoder.model)
    batch = collate(TEXTS)
    for encoded in (
        encoder(batch),
        encoder(TEXTS),
        encoder.encode_text(TEXTS),
        encoder.encode_text(batch),
        encoder.encode_text(batch.tape()),
        encoder.encode_text((batch.data, batch.offsets)),
        encoder.encode_text([text.encode() for text in TEXTS]),
    ):
        assert isinstance(encoded, Encoded)
        assert_bits(encoded, expected)


@pytest.mark.parametrize("outputs", SURFACES, ids=lambda outputs: f"{outputs:b}")
def test_outputs_left_out_are_none(small_checkpoint: str, outputs: uform.Outputs) -> None:
    encoder = Encoder(small_checkpoint, outputs=outputs)
    encoded = encoder(TEXTS)
    has_rows = bool(outputs & (uform.Outputs.STATES | uform.Outputs.TOKEN_VECTORS))
    kept = [flag in outputs for flag in (uform.Outputs.EMBEDDINGS, uform.Outputs.STATES)]
    kept += [has_rows, uform.Outputs.TOKEN_VECTORS in outputs]
    assert [part is not None for part in encoded] == kept
    for part, wanted in zip(encoded, expected_of(encoder.model), strict=True):
        assert part is None or (part.numpy() == wanted).all()


def test_outputs_never_go_stale(encoder: Encoder) -> None:
    first = encoder(TEXTS)
    before = [part.clone() for part in first if part is not None]
    for _ in range(3):
        encoder(TEXTS[::-1])
    assert_bits(first, before)


def test_an_empty_batch(encoder: Encoder) -> None:
    encoded = encoder.encode_text([])
    assert encoded.embeddings is not None
    assert encoded.offsets is not None
    assert encoded.embeddings.shape == (0, encoder.dimensions)
    assert encoded.offsets.tolist() == [0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_dtypes(small_checkpoint: str, dtype: torch.dtype) -> None:
    encoder = Encoder(small_checkpoint, outputs=ALL, dtype=dtype)
    expected = expected_of(encoder.model)
    encoded = encoder(TEXTS)
    assert encoder.dtype is dtype
    assert encoded.offsets is not None
    assert encoded.offsets.dtype is torch.int64
    for part, wanted in zip(encoded, expected, strict=True):
        assert part is not None
        assert part.dtype is (torch.int64 if part is encoded.offsets else dtype)
        torch.testing.assert_close(part.double(), torch.tensor(wanted.astype(np.float64)), rtol=0.01, atol=1e-3)
    assert Encoder(small_checkpoint).to(dtype)(TEXTS).embeddings.dtype is dtype
    assert Encoder(small_checkpoint).to("meta")(TEXTS).embeddings.device.type == "meta"


def test_dimensions_are_cut_and_scaled(small_checkpoint: str) -> None:
    whole = torch.tensor(expected_of(uform.Model.load_ram(small_checkpoint))[0])
    encoder = Encoder(small_checkpoint, dimensions=7)
    assert encoder.dimensions == 7
    embeddings = encoder(TEXTS).embeddings
    torch.testing.assert_close(embeddings, torch.nn.functional.normalize(whole[:, :7]))
    assert (embeddings[0] == 0).all()  # Of the empty text, still.
    for index, text in enumerate(TEXTS):  # The same item, the same bits.
        assert torch.equal(encoder([text]).embeddings[0], embeddings[index])
    assert Encoder(small_checkpoint, dimensions=7, dtype=torch.bfloat16)(TEXTS).embeddings.dtype is torch.bfloat16
    for wrong in (0, -1, SMALL.dimensions + 1):
        with pytest.raises(uform.InvalidArgumentError, match=f"dimensions: the model has {SMALL.dimensions}"):
            Encoder(small_checkpoint, dimensions=wrong)


def test_media(small_checkpoint: str, media: uform.Model, videos: list[bytes], tmp_path: Path) -> None:
    encoder, arena = Encoder(small_checkpoint), uform.Arena()
    pictures = [media_files.photo(20, 16), media_files.photo(9, 31)]
    files = [media_files.saved(media_files.Image.fromarray(picture), "PNG") for picture in pictures]
    (tmp_path / "photo").write_bytes(files[0])
    expected = np.array(media.image_encode(files, arena).embeddings)
    for images in (
        files,
        [tmp_path / "photo", files[1]],
        collate([ImageFile(file) for file in files]),
        pictures,
        list(map(torch.tensor, pictures)),
        collate(pictures),
    ):
        assert_bits([encoder.encode_image(images).embeddings], [expected])
    assert_bits([encoder(pictures).embeddings], [expected])
    expected = np.array(media.video_encode(videos, arena).embeddings)
    assert_bits([encoder.encode_video(videos).embeddings], [expected])
    assert_bits([encoder([VideoFile(video) for video in videos]).embeddings], [expected])
    sounds = [speech(4000), speech(900, seed=1)]
    expected = np.array(media.audio_encode_samples(sounds, RATE, arena).embeddings)
    assert_bits([encoder.encode_audio(sounds, RATE).embeddings], [expected])
    assert_bits([encoder.encode_audio([Samples(sound, RATE) for sound in sounds]).embeddings], [expected])
    recordings = [wav(sound) for sound in sounds]
    expected = np.array(media.audio_encode(recordings, arena).embeddings)
    assert_bits([encoder.encode_audio(recordings).embeddings], [expected])
    assert_bits([encoder(collate([AudioFile(file) for file in recordings])).embeddings], [expected])


def test_nothing_is_cut_or_skipped_without_a_word(small_checkpoint: str) -> None:
    encoder, stats = Encoder(small_checkpoint), uform.TextEncodeStats()
    texts = ["a" * SMALL.context, "a" * (SMALL.context + 1)]
    for given in (texts, collate(texts)):
        embeddings = encoder.encode_text(given, stats=stats).embeddings
        assert (stats.truncated_items, stats.encoded_tokens) == (1, 2 * SMALL.context)
        assert embeddings is not None
        assert torch.equal(embeddings[0], embeddings[1])
    good = media_files.saved(media_files.Image.fromarray(media_files.photo(9, 9)), "PNG")
    image_stats = uform.ImageEncodeStats()
    embeddings = encoder.encode_image([good, good[:50]], skip_malformed=True, stats=image_stats).embeddings
    assert [malformed.item for malformed in image_stats.malformed] == [1]
    assert embeddings is not None
    assert (embeddings[1] == 0).all()
    assert embeddings[0].any()
    with pytest.raises(uform.MalformedError) as raised:
        encoder.encode_image([good, good[:50]])
    assert raised.value.item == 1
    encoder.encode_image([media_files.photo(9, 9)], skip_malformed=True)
    sound_stats = uform.AudioEncodeStats()
    encoder.encode_audio([speech(4000)], RATE, stats=sound_stats)
    assert sound_stats.encoded_seconds == pytest.approx(4000 / RATE)


# Refusals.


def test_refusals(small_checkpoint: str, headless: uform.Model, encoder: Encoder) -> None:
    with pytest.raises(uform.UnsupportedError, match="no token head"):
        Encoder(headless, outputs=ALL)
    for outputs in (uform.Outputs(0), 1):
        with pytest.raises(uform.InvalidArgumentError, match="outputs: at least one"):
            Encoder(small_checkpoint, outputs=outputs)  # type: ignore[arg-type]
    with pytest.raises(uform.InvalidArgumentError, match="dtype: a floating-point type"):
        Encoder(small_checkpoint, dtype=torch.int8)
    for dtype in ("bfloat16", np.float32):
        with pytest.raises(uform.ArgumentTypeError, match=r"dtype: a torch\.dtype is needed"):
            Encoder(small_checkpoint, dtype=dtype)  # type: ignore[arg-type]
    with pytest.raises(uform.ArgumentTypeError, match="checkpoint: a path, .* not bytes"):
        Encoder(small_checkpoint.encode())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="executor: "):
        Encoder(small_checkpoint, executor="all")  # type: ignore[arg-type]
    with pytest.raises(uform.InvalidArgumentError, match="quantization, cpu_class"):
        Encoder(headless, quantization=uform.Scalar.E4M3)
    with pytest.raises(uform.InputOutputError):
        Encoder(small_checkpoint + " missing")
    with pytest.raises(uform.ArgumentTypeError, match="it holds TEXT, not IMAGE"):
        encoder.encode_image(collate(TEXTS))
    with pytest.raises(uform.ArgumentTypeError, match="not a single str"):
        encoder("a text")
    for encode in (encoder.encode_image, encoder.encode_video, encoder.encode_audio):
        for single in ("a.jpg", Path("a.jpg"), b"bytes"):
            with pytest.raises(uform.ArgumentTypeError, match=r"not a single \w+: wrap it in a list"):
                encode(single)  # type: ignore[operator]
    with pytest.raises(uform.ArgumentTypeError, match=r"item 0 is Tensor of \(3, 9, 8\), torch.float32, but pixels"):
        encoder.encode_image([torch.zeros(3, 9, 8)])
    with pytest.raises(uform.ArgumentTypeError, match="items of one modality"):
        encoder([1, 2])
    with pytest.raises(uform.InvalidArgumentError, match="sample_rate: the batch has its own"):
        encoder.encode_audio(collate([Samples(speech(9), RATE)]), RATE)
    with pytest.raises(uform.InvalidArgumentError, match="item 0 ends at 4, past the 3 bytes"):
        encoder(TapeBatch(torch.zeros(3, dtype=torch.uint8), torch.tensor([0, 4])))


def test_no_gradients(small_checkpoint: str) -> None:
    encoder = Encoder(small_checkpoint)
    head = Head(encoder).train()
    assert head.training
    assert not encoder.training
    assert not encoder.train().training
    assert list(encoder.parameters()) == []
    with pytest.raises(uform.UnsupportedError, match="computes no gradients"):
        encoder.requires_grad_()
    assert encoder.requires_grad_(False) is encoder
    assert not encoder(TEXTS).embeddings.requires_grad
    head(collate(TEXTS))[0].sum().backward()  # Through the head, up to the encoder.
    assert head.linear.weight.grad is not None
    with torch.inference_mode():
        assert encoder(TEXTS).embeddings.is_inference()
    with torch.no_grad():
        encoder(TEXTS)


# As a module: state, copies, processes, threads.


def test_state_dict_round_trip(small_checkpoint: str, tmp_path: Path) -> None:
    other_path = tmp_path / "other.safetensors"
    Oracle.random(SMALL, seed=99).save(other_path)
    module = Head(Encoder(small_checkpoint, outputs=ALL))
    stream = io.BytesIO()
    torch.save(module.state_dict(), stream)
    stream.seek(0)
    other = Head(Encoder(other_path, outputs=ALL, executor=1))
    key = other.encoder.key
    assert not torch.equal(other.encoder(TEXTS).embeddings, module.encoder(TEXTS).embeddings)
    other.load_state_dict(torch.load(stream, weights_only=True))
    assert_bits(other.encoder(TEXTS), module.encoder(TEXTS))
    assert other.encoder.key != key
    assert torch.equal(other.state_dict()["encoder._extra_state"], module.state_dict()["encoder._extra_state"])
    before = other.encoder(TEXTS)
    broken = module.state_dict() | {"encoder._extra_state": torch.zeros(64, dtype=torch.uint8)}
    with pytest.raises(uform.MalformedError):
        other.load_state_dict(broken)
    assert_bits(other.encoder(TEXTS), before)


def test_a_checkpoint_that_changed_is_not_saved_as_what_it_was(small_checkpoint: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(Path(small_checkpoint).read_bytes())
    encoder = Encoder(path)
    path.write_bytes(b"something else")
    with pytest.raises(uform.InputOutputError, match="changed since it was loaded"):
        encoder.state_dict()
    path.unlink()
    with pytest.raises(uform.InputOutputError, match="the checkpoint cannot be read"):
        pickle.dumps(encoder)
    encoder(TEXTS)


def test_copies(small_checkpoint: str) -> None:
    with uform.Executor.for_ram(1) as executor:
        encoder = Encoder(small_checkpoint, outputs=ALL, executor=executor, dimensions=9)
        for other in (copy.deepcopy(encoder), copy.copy(encoder), pickle.loads(pickle.dumps(encoder))):
            assert_bits(other(TEXTS), encoder(TEXTS))
            assert (other.outputs, other.dimensions, other.executor.threads) == (ALL, 9, 1)
        assert copy.deepcopy(encoder).model is encoder.model


def test_copies_of_an_encoder_over_a_model(small_checkpoint: str, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(Path(small_checkpoint).read_bytes())
    model = uform.Model.load_ram(path, quantization=uform.Scalar.E4M3, cpu_class=uform.CPUClass.SERIAL)
    encoder = Encoder(model, outputs=ALL)
    for other in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert_bits(other(TEXTS), encoder(TEXTS))
        assert other.describe() == encoder.describe()
    assert bytes(encoder.state_dict()["_extra_state"].numpy()) == path.read_bytes()
    with path.open("ab") as file:
        file.write(b" ")
    with pytest.raises(uform.InputOutputError, match="changed since it was loaded"):
        pickle.dumps(Encoder(model))
    from_bytes = Encoder(uform.Model.load_ram_buffer(Path(small_checkpoint).read_bytes()))
    assert torch.equal(copy.deepcopy(from_bytes)(TEXTS).embeddings, from_bytes(TEXTS).embeddings)
    for use in (pickle.dumps, Encoder.state_dict):
        with pytest.raises(uform.UnsupportedError, match="loaded from a buffer, whose bytes are not kept"):
            use(from_bytes)


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_encoding_in_workers(small_checkpoint: str, context: str) -> None:
    encoder = Encoder(small_checkpoint, executor=2)
    expected = encoder(TEXTS).embeddings  # The executor was used before the workers are made.
    loader = DataLoader(
        EncodedItems(encoder), batch_size=2, num_workers=2, multiprocessing_context=context, timeout=120
    )
    torch.testing.assert_close(torch.cat(list(loader)), expected, rtol=0, atol=0)


def test_a_fork_while_a_thread_encodes(small_checkpoint: str) -> None:
    encoder = Encoder(small_checkpoint, executor=1)
    process, lock = encoder._engine._turn
    assert process == os.getpid()
    with lock:  # As a thread of the parent would hold it.
        child = multiprocessing.get_context("fork").Process(target=encoder, args=(TEXTS,))
        child.start()
        child.join(60)
    assert child.exitcode == 0


def test_threads_wait_for_each_other(small_checkpoint: str) -> None:
    encoder = Encoder(small_checkpoint, executor=2, outputs=ALL)
    expected, wrong = expected_of(encoder.model), []

    def encode() -> None:
        try:
            for _ in range(20):
                assert_bits(encoder(TEXTS), expected)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=encode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# torch's compilers.


OPERATORS = ["text", "image files", "pixels", "videos", "audio files", "samples"]


@pytest.fixture(params=OPERATORS)
def batch(request: pytest.FixtureRequest, videos: list[bytes]) -> TapeBatch:
    pictures = [media_files.photo(20, 16), media_files.photo(9, 31)]
    items: dict[str, list[Any]] = {
        "text": ["a cat on a mat", "a dog"],
        "image files": [ImageFile(media_files.saved(media_files.Image.fromarray(it), "PNG")) for it in pictures],
        "pixels": pictures,
        "videos": [VideoFile(video) for video in videos[:2]],
        "audio files": [AudioFile(wav(speech(900))), AudioFile(wav(speech(1200)))],
        "samples": [Samples(speech(900), RATE), Samples(speech(1200), RATE)],
    }
    made = collate(items[request.param])
    assert isinstance(made, TapeBatch)
    return made


@pytest.mark.parametrize("outputs", [uform.Outputs.EMBEDDINGS, ALL, uform.Outputs.STATES], ids=str)
def test_operators_pass_opcheck(small_checkpoint: str, batch: TapeBatch, outputs: uform.Outputs) -> None:
    encoder = Encoder(small_checkpoint)
    more = [part for part in (batch.shapes, batch.sample_rate) if part is not None]
    operator = getattr(torch.ops.uform, batch.verb).default
    found = torch.library.opcheck(operator, (batch.data, batch.offsets, *more, encoder.key, int(outputs), 1))
    assert set(found.values()) == {"SUCCESS"}


@pytest.mark.parametrize("outputs", [uform.Outputs.EMBEDDINGS, ALL], ids=str)
def test_compile_of_a_module_around_it(small_checkpoint: str, batch: TapeBatch, outputs: uform.Outputs) -> None:
    torch.compiler.reset()
    module = Head(Encoder(small_checkpoint, outputs=outputs, dimensions=8))
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for part in (batch, batch[:1]):
        torch.testing.assert_close(compiled(part), module(part))


def test_compile_with_inductor(small_checkpoint: str) -> None:
    module = Head(Encoder(small_checkpoint, outputs=ALL, dtype=torch.bfloat16)).bfloat16()
    compiled = torch.compile(module, fullgraph=True)
    for texts in (TEXTS, TEXTS[:2]):
        torch.testing.assert_close(compiled(collate(texts)), module(collate(texts)))


@pytest.mark.parametrize("strict", [False, True])
def test_export(small_checkpoint: str, batch: TapeBatch, strict: bool) -> None:
    module = Head(Encoder(small_checkpoint, outputs=ALL))
    dynamic = [{0: torch.export.Dim.DYNAMIC}, {0: torch.export.Dim.DYNAMIC}]
    dynamic.append(None if batch.shapes is None else {0: torch.export.Dim.DYNAMIC})  # type: ignore[arg-type]
    program = torch.export.export(module, (batch,), dynamic_shapes=(dynamic,), strict=strict)
    torch.testing.assert_close(program.module()(batch), module(batch))
    both = collate(TEXTS) if batch.modality is uform.Modality.TEXT else batch[1:]
    assert isinstance(both, TapeBatch)
    if len(both) > 1:
        torch.testing.assert_close(program.module()(both), module(both))


def test_an_exported_program_runs_in_another_process(small_checkpoint: str, tmp_path: Path) -> None:
    module = Head(Encoder(small_checkpoint))
    batch = collate(["a cat", "a dog"])
    torch.export.save(torch.export.export(module, (batch,)), tmp_path / "program.pt2")
    torch.save(module(batch)[0], tmp_path / "expected.pt")
    script = """
import sys, torch, uform, uform_torch
program = torch.export.load(sys.argv[1] + "/program.pt2").module()
batch = uform_torch.collate(["a cat", "a dog"])
try:
    program(batch)
except uform.InvalidArgumentError as error:
    assert "make it from the same checkpoint" in str(error)
else:
    raise AssertionError("there is no encoder yet")
encoder = uform_torch.Encoder(sys.argv[2])
torch.testing.assert_close(program(batch)[0], torch.load(sys.argv[1] + "/expected.pt"))
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path), small_checkpoint], check=True)
