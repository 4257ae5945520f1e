"""`text_encode` against the oracle, in every CPU class of the machine, and the promises that the library makes."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import uform
from tests.oracle import Configuration, Oracle

ALL = uform.Outputs.EMBEDDINGS | uform.Outputs.STATES | uform.Outputs.TOKEN_VECTORS

CONFIGURATIONS = {
    "narrow": Configuration(
        depth=2, hidden=64, head_dimension=32, width=192, dimensions=40, context=96, token_width=24,
        choice_temperature_groups=2,
    ),
    "wide": Configuration(
        depth=3, hidden=192, head_dimension=64, width=512, dimensions=100, context=600, token_width=64,
        choice_temperature_groups=3,
    ),
    "local": Configuration(
        depth=4, hidden=128, head_dimension=64, width=384, dimensions=64, context=700, token_width=32,
        choice_temperature_groups=1, local_window=37, global_every=2,
    ),
}  # fmt: skip


def supported_classes() -> list[uform.CPUClass]:
    """Classes that a model can be pinned to here."""
    data = Oracle.random(CONFIGURATIONS["narrow"], seed=0).to_bytes()
    found = []
    for cpu_class in uform.CPUClass:
        try:
            uform.Model.load_ram_buffer(data, cpu_class=cpu_class)
        except uform.UnsupportedError:
            continue
        found.append(cpu_class)
    return found


CLASSES = supported_classes()
# tests/test_sapphire.py runs this file over an emulator, which is slow.
IS_EMULATED = "UFORM_ASSUME_CPU_CLASS" in os.environ


class Case:
    """A random model beside its oracle."""

    def __init__(self, name: str, folder: str) -> None:
        self.configuration = CONFIGURATIONS[name]
        self.path = f"{folder}/{name}.safetensors"
        Oracle.random(self.configuration, seed=7).save(self.path)
        self.texts = texts_up_to(self.configuration.context)
        self.expected: dict[bool, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def oracle(self, e4m3: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Embeddings, states and token vectors of `texts` in float64, computed once."""
        if e4m3 not in self.expected:
            oracle = Oracle.from_checkpoint(self.path, dtype=torch.float64, e4m3=e4m3)
            embeddings, states, vectors = oracle.encode_texts(self.texts)
            self.expected[e4m3] = (embeddings.numpy(), torch.cat(states).numpy(), torch.cat(vectors).numpy())
        return self.expected[e4m3]

    def model(self, **options: object) -> uform.Model:
        return uform.Model.load_ram(self.path, **options)


@pytest.fixture(scope="module", params=list(CONFIGURATIONS))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(request.param, str(tmp_path_factory.mktemp("models")))


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case("wide", str(tmp_path_factory.mktemp("models")))


def texts_up_to(context: int) -> list[bytes]:
    """Lengths around what kernels split by: rows of a product, panels, blocks of keys, and the context."""
    random.seed(context)
    lengths = [1, 2, 3, 5, 12, 13, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 200, 257, 300, 511, 600]
    return [random.randbytes(length) for length in lengths if length <= context] + [random.randbytes(context)]


def cosines(rows: np.ndarray, expected: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float64)
    return (rows * expected).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(expected, axis=1)


def encode(receiver, texts, **options) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Embeddings, states, token vectors and offsets, copied."""
    encoded = receiver.text_encode(texts, uform.Arena(), outputs=ALL, **options)
    return (
        np.array(encoded.embeddings),
        np.array(encoded.states),
        np.array(encoded.token_vectors),
        np.array(encoded.states.offsets),
    )


@pytest.mark.parametrize("cpu_class", CLASSES, ids=lambda cpu_class: cpu_class.name)
@pytest.mark.parametrize("quantization", [uform.Scalar.BF16, uform.Scalar.E4M3], ids=lambda scalar: scalar.name)
def test_every_class_agrees_with_the_oracle(case: Case, cpu_class: uform.CPUClass, quantization: uform.Scalar) -> None:
    texts = case.texts
    model = case.model(cpu_class=cpu_class, quantization=quantization)
    assert model.describe().cpu_class == cpu_class
    embeddings, states, token_vectors, offsets = encode(model, texts)
    assert offsets.tolist() == np.cumsum([0, *map(len, texts)]).tolist()

    # Against the oracle on the same (quantized) weights: rounding of activations alone.
    of_embeddings, of_states, of_vectors = case.oracle(e4m3=quantization == uform.Scalar.E4M3)
    expected = {
        "embeddings": (embeddings, of_embeddings, 0.01),
        "states": (states, of_states, 0.06),
        "token_vectors": (token_vectors, of_vectors, 0.02),
    }
    for name, (rows, reference, tolerance) in expected.items():
        assert cosines(rows, reference).min() >= 0.9999, name
        assert np.abs(rows - reference).max() <= tolerance, name
    assert np.allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)
    assert np.allclose(np.linalg.norm(token_vectors, axis=1), 1, atol=1e-5)

    if quantization == uform.Scalar.E4M3:
        # Against the weights as stored: what quantization costs on top. Fewer terms a sum average out less of it.
        assert cosines(embeddings, case.oracle()[0]).min() >= (0.999 if case.configuration.hidden > 64 else 0.998)


def test_f32_classes_are_close_to_exact(case: Case) -> None:
    for cpu_class in CLASSES:
        if cpu_class in (uform.CPUClass.SERIAL, uform.CPUClass.HASWELL, uform.CPUClass.SKYLAKE):
            embeddings = encode(case.model(cpu_class=cpu_class), case.texts)[0]
            assert np.abs(embeddings - case.oracle()[0]).max() <= 2e-3, cpu_class.name


@pytest.mark.parametrize("cpu_class", CLASSES, ids=lambda cpu_class: cpu_class.name)
def test_gains_without_a_bound(cpu_class: uform.CPUClass, tmp_path: Path) -> None:
    """Scores of hundreds, whose powers would be infinite: their maxima are subtracted, which small gains never need."""
    oracle = Oracle.random(CONFIGURATIONS["local"], seed=3)
    with torch.no_grad():
        for block in oracle.blocks:
            block.attention.query_norm.mul_(60)
    oracle.save(path := tmp_path / "sharp.safetensors")
    texts = texts_up_to(300)
    states = encode(uform.Model.load_ram(path, cpu_class=cpu_class), texts)[1]
    expected = torch.cat(Oracle.from_checkpoint(path, dtype=torch.float64).encode_texts(texts)[1]).numpy()
    close = cosines(states, expected)
    # Where two keys have nearly the same score, the rounding of keys decides for one of them.
    assert np.median(close) >= 0.999
    assert close.min() >= 0.7


@pytest.mark.parametrize("cpu_class", CLASSES, ids=lambda cpu_class: cpu_class.name)
def test_the_same_item_gives_the_same_bits(wide: Case, cpu_class: uform.CPUClass) -> None:
    """257 texts alone, together, shuffled, on any number of threads, blocking or deferred."""
    random.seed(3)
    lengths = [random.choice([1, 2, 7, 30, 31, 33, 64, 90, 150, 260]) for _ in range(256)] + [600]
    teams: tuple[int | None, ...] = (None, 1, 2, 3, 5)
    if cpu_class == uform.CPUClass.SERIAL:
        lengths = [*lengths[:24], 200]
    if IS_EMULATED:
        lengths, teams = [1, 17, 33, 64], (None, 2)
    texts = [random.randbytes(length) for length in lengths]
    model = wide.model(cpu_class=cpu_class)
    alone = [encode(model, [text]) for text in texts]

    order = list(range(len(texts)))
    random.shuffle(order)
    for threads in teams:
        receiver = model if threads is None else model.on(uform.Executor.for_ram(threads))
        embeddings, states, vectors, offsets = encode(receiver, [texts[index] for index in order])
        for place, index in enumerate(order):
            rows = slice(offsets[place], offsets[place + 1])
            assert np.array_equal(embeddings[place], alone[index][0][0]), (threads, index)
            assert np.array_equal(states[rows], alone[index][1]), (threads, index)
            assert np.array_equal(vectors[rows], alone[index][2]), (threads, index)

    executor, arena = uform.Executor.for_ram(2), uform.Arena()
    deferred = model.deferred(executor).text_encode(texts, arena).wait()
    assert np.array_equal(np.asarray(deferred.embeddings), np.concatenate([one[0] for one in alone]))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.binary(max_size=120), max_size=12), threads=st.sampled_from([1, 2, 4]))
def test_batches_are_their_items(wide: Case, texts: list[bytes], threads: int) -> None:
    model = shared_model(wide)
    embeddings, states, vectors, offsets = encode(model.on(shared_executor(threads)), texts)
    assert embeddings.shape == (len(texts), wide.configuration.dimensions)
    assert offsets.tolist() == np.cumsum([0, *map(len, texts)]).tolist()
    assert np.isfinite(embeddings).all()
    assert np.isfinite(states).all()
    for index, text in enumerate(texts):
        one = encode(model, [text])
        assert np.array_equal(embeddings[index], one[0][0])
        assert np.array_equal(states[offsets[index] : offsets[index + 1]], one[1])
        assert np.array_equal(vectors[offsets[index] : offsets[index + 1]], one[2])


MODELS: dict[str, uform.Model] = {}
EXECUTORS: dict[int, uform.Executor] = {}


def shared_model(case: Case) -> uform.Model:
    return MODELS.setdefault(case.path, case.model())


def shared_executor(threads: int) -> uform.Executor:
    if threads not in EXECUTORS:
        EXECUTORS[threads] = uform.Executor.for_ram(threads)
    return EXECUTORS[threads]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=8))
def test_sequences_and_tapes_give_the_same(wide: Case, texts: list[str]) -> None:
    model = shared_model(wide)
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.uint64)
    expected = encode(model, texts)[0]
    assert np.array_equal(encode(model, encoded)[0], expected)
    assert np.array_equal(encode(model, [bytearray(text) for text in encoded])[0], expected)
    assert np.array_equal(encode(model, (b"".join(encoded), offsets))[0], expected)
    assert np.array_equal(encode(model, (np.frombuffer(b"".join(encoded), np.uint8), offsets))[0], expected)


def test_outputs_choose_surfaces(wide: Case) -> None:
    model = shared_model(wide)
    for outputs in map(uform.Outputs, range(1, 8)):
        encoded = model.text_encode(["a", "bc"], uform.Arena(), outputs=outputs)
        embeddings, states, token_vectors = encoded
        assert (embeddings is not None) == bool(outputs & uform.Outputs.EMBEDDINGS)
        assert (states is not None) == bool(outputs & uform.Outputs.STATES)
        assert (token_vectors is not None) == bool(outputs & uform.Outputs.TOKEN_VECTORS)
    assert model.text_encode(["a"], uform.Arena())[1:] == (None, None)


def test_outputs_scalars(wide: Case) -> None:
    """BF16 and E4M3 outputs are the F32 ones, rounded to nearest even, as raw bytes."""
    model, texts = shared_model(wide), ["a", "", "some longer text"]
    exact = model.text_encode(texts, uform.Arena(), outputs=ALL)
    for scalar, dtype in ((uform.Scalar.BF16, torch.bfloat16), (uform.Scalar.E4M3, torch.float8_e4m3fn)):
        rounded = model.text_encode(texts, uform.Arena(), outputs=ALL, outputs_scalar=scalar)
        for surface, reference in zip(rounded, exact, strict=True):
            rows = np.asarray(surface)
            expected = torch.from_numpy(np.array(reference)).to(dtype)
            assert rows.dtype == np.uint8
            assert memoryview(surface).format == "B"
            assert rows.shape == (expected.shape[0], expected.shape[1] * expected.element_size())
            assert rows.tobytes() == expected.view(torch.uint8).numpy().tobytes()
        if scalar == uform.Scalar.BF16:
            assert np.array_equal(np.asarray(rounded.states.offsets), np.asarray(exact.states.offsets))


def test_empty_items_and_batches(wide: Case) -> None:
    model, configuration = shared_model(wide), wide.configuration
    stats = uform.TextEncodeStats()
    embeddings, states, vectors, offsets = encode(model, ["", "a", "", "\n", ""], stats=stats)
    assert offsets.tolist() == [0, 0, 1, 1, 2, 2]
    assert not embeddings[[0, 2, 4]].any()
    assert np.allclose(np.linalg.norm(embeddings[[1, 3]], axis=1), 1, atol=1e-5)
    assert (stats.truncated_items, stats.encoded_tokens) == (0, 2)

    for receiver in (model, model.on(shared_executor(2))):
        embeddings, states, vectors, offsets = encode(receiver, [])
        assert embeddings.shape == (0, configuration.dimensions)
        assert states.shape == (0, configuration.hidden)
        assert vectors.shape == (0, configuration.token_width)
        assert offsets.tolist() == [0]
        embeddings, states, vectors, offsets = encode(receiver, [""] * 3)
        assert embeddings.shape == (3, configuration.dimensions)
        assert not embeddings.any()
        assert offsets.tolist() == [0, 0, 0, 0]


def test_truncation_is_counted_and_exact(wide: Case) -> None:
    model, context = shared_model(wide), wide.configuration.context
    text = random.Random(1).randbytes(context + 1)
    stats = uform.TextEncodeStats()
    embeddings, _, _, offsets = encode(model, [text, text[:context], b"x"], stats=stats)
    assert (stats.truncated_items, stats.encoded_tokens) == (1, 2 * context + 1)
    assert offsets.tolist() == [0, context, 2 * context, 2 * context + 1]
    assert np.array_equal(embeddings[0], embeddings[1])


@pytest.mark.parametrize("quantization", [uform.Scalar.BF16, uform.Scalar.E4M3], ids=lambda scalar: scalar.name)
@pytest.mark.parametrize("cpu_class", CLASSES, ids=lambda cpu_class: cpu_class.name)
def test_all_one_byte_texts(case: Case, cpu_class: uform.CPUClass, quantization: uform.Scalar) -> None:
    model = case.model(cpu_class=cpu_class, quantization=quantization)
    embeddings = encode(model, [bytes([byte]) for byte in range(256)])[0]
    assert np.isfinite(embeddings).all()
    assert np.allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)
    assert len(np.unique(embeddings, axis=0)) == 256


def test_bytes_are_bytes(wide: Case) -> None:
    """NUL and invalid UTF-8 are tokens like others; a string is its UTF-8."""
    model = shared_model(wide)
    embeddings = encode(model, [b"\x00", b"\xff\xfe", b"\xc3\x28", "é", "é".encode(), "😀", "😀".encode()])[0]
    assert np.isfinite(embeddings).all()
    assert np.array_equal(embeddings[3], embeddings[4])
    assert np.array_equal(embeddings[5], embeddings[6])


def test_a_text_against_itself_scores_its_tokens(wide: Case) -> None:
    _, _, vectors, offsets = encode(shared_model(wide), ["late interaction", "x"])
    for begin, end in zip(offsets[:-1].astype(int), offsets[1:].astype(int), strict=True):
        similarities = vectors[begin:end] @ vectors[begin:end].T
        assert np.isclose(similarities.max(1).sum(), end - begin, atol=1e-3)


def test_progress_counts_items(wide: Case) -> None:
    model = shared_model(wide)
    texts = [b"some text of a few bytes" * 8] * 100 + [b""] * 7
    for receiver in (model, model.on(shared_executor(2))):
        seen: list[tuple[int, int]] = []
        receiver.text_encode(texts, uform.Arena(), progress=lambda done, total, seen=seen: seen.append((done, total)))
        assert seen[-1] == (107, 107)
        assert {total for _, total in seen} == {107}
        assert seen == sorted(seen)
        assert len(seen) > 1
    seen = []
    model.text_encode(["", ""], uform.Arena(), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 2)]


def test_progress_stops_a_call(wide: Case) -> None:
    model, texts = shared_model(wide), [b"some text of a few bytes" * 8] * 200
    stats = uform.TextEncodeStats()
    for receiver in (model, model.on(shared_executor(2))):
        arena = uform.Arena()
        with pytest.raises(uform.CancelledError) as caught:
            receiver.text_encode(texts, arena, stats=stats, progress=lambda completed, total: completed < 10)
        assert caught.value.status == uform.Status.CANCELLED
        assert (stats.truncated_items, stats.encoded_tokens) == (0, 0)
        # The arena and the executor serve the next call.
        assert len(receiver.text_encode(["next"], arena).embeddings) == 1

        class Stop(Exception):
            pass

        def stop(completed: int, total: int, error: type[Exception] = Stop) -> None:
            raise error(completed)

        with pytest.raises(Stop):
            receiver.text_encode(texts, arena, progress=stop)
        assert len(receiver.text_encode(["next"], arena).embeddings) == 1


def test_models_without_heads(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = str(tmp_path_factory.mktemp("models") / "bare.safetensors")
    Oracle.random(
        Configuration(depth=1, hidden=64, head_dimension=32, width=192, dimensions=8, context=16), seed=1
    ).save(path)
    model = uform.Model.load_ram(path)
    assert (model.describe().token_width, model.describe().choice_temperature_groups) == (0, 0)
    assert model.text_encode(["a"], uform.Arena()).embeddings.shape == (1, 8)
    with pytest.raises(uform.UnsupportedError, match="token"):
        model.text_encode(["a"], uform.Arena(), outputs=uform.Outputs.TOKEN_VECTORS)
    with pytest.raises(uform.UnsupportedError, match="byte decoder"):
        model.text_choose(["a"], ["yn"], uform.Arena())
