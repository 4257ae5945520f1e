"""Loading models from Python: paths, buffers, options, refusals, descriptions."""

from __future__ import annotations

import mmap
import os
import pathlib
import threading

import numpy as np
import pytest

import uform
from tests.conftest import SMALL, Gate

TEXTS = ["a cat on a mat", "a dog in the fog"]


def encode(model: uform.Model) -> np.ndarray:
    return np.array(model.text_encode(TEXTS, uform.Arena()).embeddings)


@pytest.fixture(scope="module")
def data(checkpoint: str) -> bytes:
    return pathlib.Path(checkpoint).read_bytes()


def test_paths(model: uform.Model, checkpoint: str) -> None:
    expected = encode(model)
    for path in (checkpoint, os.fsencode(checkpoint), pathlib.Path(checkpoint)):
        assert np.array_equal(encode(uform.Model.load_ram(path)), expected)


def test_paths_that_are_no_utf8(checkpoint: str, tmp_path: pathlib.Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\xfe.safetensors"
    os.symlink(checkpoint, path)
    uform.Model.load_ram(path)
    uform.Model.load_ram(os.fsdecode(path))
    with pytest.raises(uform.InputOutputError, match="none"):
        uform.Model.load_ram(path + b"none")


def test_buffers(model: uform.Model, checkpoint: str, data: bytes) -> None:
    expected = encode(model)
    with open(checkpoint, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for buffer in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8), mapped):
            assert np.array_equal(encode(uform.Model.load_ram_buffer(buffer)), expected)


def test_a_buffer_is_not_needed_afterwards(model: uform.Model, data: bytes) -> None:
    buffer = bytearray(data)
    loaded = uform.Model.load_ram_buffer(buffer)
    buffer[:] = bytes(len(buffer))
    buffer.append(0)
    assert np.array_equal(encode(loaded), encode(model))


@pytest.mark.parametrize(
    ("path", "kind", "message"),
    [
        ("/nowhere/at/all.safetensors", uform.InputOutputError, "/nowhere/at/all.safetensors"),
        ("/", uform.InputOutputError, "directory"),
        ("", uform.InputOutputError, "path"),
        ("a\0b", uform.InvalidArgumentError, "path: embedded null"),
        (5, uform.ArgumentTypeError, "path: a str, bytes or os.PathLike is needed, not int"),
        (None, uform.ArgumentTypeError, "not NoneType"),
    ],
)
def test_paths_that_are_refused(path: object, kind: type[uform.Error], message: str) -> None:
    with pytest.raises(kind, match=message):
        uform.Model.load_ram(path)  # type: ignore[arg-type]


def test_an_io_error_is_an_os_error() -> None:
    with pytest.raises(OSError, match="No such file") as caught:
        uform.Model.load_ram("/nowhere")
    assert isinstance(caught.value, uform.Error)
    assert caught.value.status is uform.Status.IO


@pytest.mark.parametrize("length", [0, 7, 8, 100, -1])
def test_truncated_checkpoints(data: bytes, tmp_path: pathlib.Path, length: int) -> None:
    path = tmp_path / "truncated.safetensors"
    path.write_bytes(data[:length])
    with pytest.raises(uform.MalformedError):
        uform.Model.load_ram(path)
    with pytest.raises(uform.MalformedError):
        uform.Model.load_ram_buffer(data[:length])


def test_buffers_of_wrong_kinds(data: bytes) -> None:
    with pytest.raises(uform.ArgumentTypeError, match="data: a bytes-like object is needed, not str"):
        uform.Model.load_ram_buffer("data")  # type: ignore[arg-type]
    with pytest.raises(uform.UnsupportedLayoutError, match="contiguous"):
        uform.Model.load_ram_buffer(np.frombuffer(data, np.uint8)[::2])


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"quantization": uform.Scalar.F32}, uform.UnsupportedError),
        ({"quantization": 9}, uform.UnknownKindError),
        ({"quantization": "E4M3"}, uform.ArgumentTypeError),
        ({"cpu_class": 99}, uform.UnknownKindError),
        ({"cpu_class": "SERIAL"}, uform.ArgumentTypeError),
        ({"executor": 2}, uform.ArgumentTypeError),
        ({"progress": "bar"}, uform.ArgumentTypeError),
    ],
    ids=repr,
)
def test_options_that_are_refused(checkpoint: str, options: dict[str, object], kind: type[uform.Error]) -> None:
    with pytest.raises(kind, match=next(iter(options))):
        uform.Model.load_ram(checkpoint, **options)  # type: ignore[arg-type]


def test_description(model: uform.Model, checkpoint: str) -> None:
    description = model.describe()
    assert description.quantization is uform.Scalar.BF16
    assert isinstance(description.cpu_class, uform.CPUClass)
    assert not description.cpu_class_pinned
    assert description.gpu_class is None
    assert description.memory_usage >= 2 * description.parameters
    assert model.describe() == description
    if "UFORM_TEST_CHECKPOINT" not in os.environ:
        assert description.dimensions == SMALL.dimensions
        assert description.context == SMALL.context
        assert description.token_width == SMALL.token_width
        assert description.choice_temperature_groups == SMALL.choice_temperature_groups
        assert (description.depth, description.hidden) == (SMALL.depth, SMALL.hidden)
        assert description.head_dimension == SMALL.head_dimension
    with pytest.raises(AttributeError):
        description.context = 5  # type: ignore[misc]
    assert "BF16" in repr(model)


def test_quantization(model: uform.Model, checkpoint: str) -> None:
    quantized = uform.Model.load_ram(checkpoint, quantization=uform.Scalar.E4M3)
    assert quantized.describe().quantization is uform.Scalar.E4M3
    assert quantized.describe().memory_usage < model.describe().memory_usage
    cosines = (encode(quantized) * encode(model)).sum(axis=1)
    assert (cosines > 0.99).all()
    assert (cosines < 1).any()


def test_progress(checkpoint: str, executor: uform.Executor) -> None:
    for options in ({}, {"executor": executor}):
        reports: list[tuple[int, int]] = []
        uform.Model.load_ram(checkpoint, progress=lambda *report, reports=reports: reports.append(report), **options)
        total = reports[0][1]
        assert reports == [(completed, total) for completed in range(1, total + 1)]


def test_progress_stops_a_load(checkpoint: str, data: bytes) -> None:
    with pytest.raises(uform.CancelledError, match="progress"):
        uform.Model.load_ram(checkpoint, progress=lambda completed, total: False)

    def handler(completed: int, total: int) -> None:
        raise LookupError(completed, total)

    with pytest.raises(LookupError):
        uform.Model.load_ram_buffer(data, progress=handler)

    def late(completed: int, total: int) -> None:
        if completed == total:
            raise LookupError

    with pytest.raises(LookupError):
        uform.Model.load_ram(checkpoint, progress=late)


def test_a_load_on_an_executor(model: uform.Model, checkpoint: str, executor: uform.Executor, gate: Gate) -> None:
    assert np.array_equal(encode(uform.Model.load_ram(checkpoint, executor=executor)), encode(model))
    call = model.deferred(executor).text_encode(TEXTS, uform.Arena(executor), progress=gate)
    gate.await_entry()
    with pytest.raises(uform.ContendedError, match="executor"):
        uform.Model.load_ram(checkpoint, executor=executor)
    gate.open()
    call.wait()


def test_a_handler_of_a_load_that_needs_its_executor(checkpoint: str, executor: uform.Executor) -> None:
    def handler(completed: int, total: int) -> None:
        for use in (executor.close, lambda: executor.drain(uform.Mood.PARKED)):
            with pytest.raises(uform.ContendedError):
                use()

    uform.Model.load_ram(checkpoint, executor=executor, progress=handler)


def test_models_are_shared_between_threads(model: uform.Model) -> None:
    expected = encode(model)
    same: list[bool] = []

    def run() -> None:
        with uform.Executor.for_ram(2) as executor:
            for _ in range(20):
                rows = model.on(executor).text_encode(TEXTS, uform.Arena(executor)).embeddings
                same.append(np.array_equal(np.asarray(rows), expected))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 80


def test_devices_are_refused(checkpoint: str, data: bytes) -> None:
    for load, source in ((uform.Model.load_vram, checkpoint), (uform.Model.load_vram_buffer, data)):
        with pytest.raises(uform.DeviceError, match="no device 0"):
            load(source, devices=[0])  # type: ignore[operator]
        with pytest.raises(uform.UnsupportedError, match="devices"):
            load(source)  # type: ignore[operator]
        with pytest.raises(uform.ArgumentTypeError):
            load(None, [0])  # type: ignore[operator]
        with pytest.raises(uform.UnknownKindError):
            load(source, [0], gpu_class=99)  # type: ignore[operator]


def test_the_default_checkpoint() -> None:
    path = uform.default_checkpoint()
    assert os.path.isabs(path)
    description = uform.Model.load_ram(path).describe()
    assert description.context >= 1024
    assert description.token_width == 64
    assert description.choice_temperature_groups >= 2
