"""Enumerations, errors, stats, descriptions, and what this build refuses."""

from __future__ import annotations

import ctypes
import enum
import pickle

import pytest

import uform

NAMES = {
    "Status": (uform.Status, "uform_status_name"),
    "Scalar": (uform.Scalar, "uform_scalar_name"),
    "Mood": (uform.Mood, "uform_mood_name"),
    "CPUClass": (uform.CPUClass, "uform_cpu_class_name"),
    "GPUClass": (uform.GPUClass, "uform_gpu_class_name"),
}

ERRORS = {
    uform.OutOfMemoryError: (uform.Status.OUT_OF_MEMORY, MemoryError),
    uform.ShapeMismatchError: (uform.Status.SHAPE_MISMATCH, ValueError),
    uform.UnsupportedLayoutError: (uform.Status.UNSUPPORTED_LAYOUT, ValueError),
    uform.UnknownKindError: (uform.Status.UNKNOWN_KIND, ValueError),
    uform.InputOutputError: (uform.Status.IO, OSError),
    uform.DeviceError: (uform.Status.DEVICE, RuntimeError),
    uform.MalformedError: (uform.Status.MALFORMED, ValueError),
    uform.InternalError: (uform.Status.INTERNAL, RuntimeError),
    uform.ConfigMismatchError: (uform.Status.CONFIG_MISMATCH, ValueError),
    uform.ContendedError: (uform.Status.CONTENDED, RuntimeError),
    uform.CancelledError: (uform.Status.CANCELLED, RuntimeError),
    uform.UnsupportedError: (uform.Status.UNSUPPORTED, NotImplementedError),
    uform.InvalidArgumentError: (uform.Status.INVALID_ARGUMENT, ValueError),
}


@pytest.mark.parametrize("name", NAMES)
def test_enumerations_are_the_c_ones(name: str) -> None:
    python_class, function = NAMES[name]
    library = ctypes.CDLL(uform.get_library())
    name_of = getattr(library, function)
    name_of.restype = ctypes.c_char_p
    expected = {text.decode(): number for number in range(-100, 100) if (text := name_of(number))}
    assert {member.name: member.value for member in python_class} == expected
    assert issubclass(python_class, enum.IntEnum)
    assert python_class.__name__ == name
    assert python_class.__module__ == "uform"


def test_members_have_the_numbers_that_never_change() -> None:
    assert uform.Status.SUCCESS == 0
    assert uform.Status.DEFERRED == 1
    assert [member.name for member in uform.Status][2:] == [status.name for status, _ in ERRORS.values()]
    assert [member.value for member in uform.Status][2:] == list(range(-1, -14, -1))
    assert [member.name for member in uform.Scalar] == ["F32", "BF16", "E4M3"]
    assert [member.name for member in uform.Mood] == ["GRINDING", "CHILLING", "PARKED"]
    assert [member.name for member in uform.CPUClass] == [
        "SERIAL",
        "HASWELL",
        "SKYLAKE",
        "GENOA",
        "SAPPHIRE",
        "NEON",
    ]


def test_members_pickle() -> None:
    for member in (uform.Status.IO, uform.Scalar.BF16, uform.Outputs.STATES | uform.Outputs.EMBEDDINGS):
        assert pickle.loads(pickle.dumps(member)) is member


def test_outputs_are_flags() -> None:
    assert issubclass(uform.Outputs, enum.IntFlag)
    assert [member.name for member in uform.Outputs] == ["EMBEDDINGS", "STATES", "TOKEN_VECTORS"]
    assert [member.value for member in uform.Outputs] == [1, 2, 4]


def test_every_failure_has_its_class() -> None:
    failures = [status for status in uform.Status if status < 0]
    assert sorted(status for status, _ in ERRORS.values()) == sorted(failures)


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_errors(kind: type[uform.Error]) -> None:
    status, base = ERRORS[kind]
    assert issubclass(kind, uform.Error)
    assert issubclass(kind, RuntimeError)
    assert issubclass(kind, base)
    error = kind("what and why", item=3)
    assert error.status is status
    assert isinstance(error.status, uform.Status)
    assert error.item == 3
    assert kind("nobody's fault").item is None
    assert str(error) == "what and why"
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert copy.item == 3


def test_wrong_types_are_type_errors_too(model: uform.Model, arena: uform.Arena) -> None:
    with pytest.raises(TypeError, match="arena: a uform.Arena is needed, not NoneType") as caught:
        model.text_encode(["a"], None)  # type: ignore[arg-type]
    assert isinstance(caught.value, uform.InvalidArgumentError)
    assert caught.value.status is uform.Status.INVALID_ARGUMENT


@pytest.mark.parametrize("wrong", ["F32", None, 1.0, [1]])
def test_members_of_wrong_types(model: uform.Model, arena: uform.Arena, wrong: object) -> None:
    with pytest.raises(uform.ArgumentTypeError, match="outputs_scalar: a uform.Scalar is needed"):
        model.text_encode(["a"], arena, outputs_scalar=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 4, -1, 99, 1 << 70])
def test_numbers_that_are_no_member(model: uform.Model, arena: uform.Arena, number: int) -> None:
    with pytest.raises(uform.UnknownKindError, match=f"outputs_scalar: {number} is no scalar"):
        model.text_encode(["a"], arena, outputs_scalar=number)  # type: ignore[arg-type]


def test_numbers_that_are_members_are_taken(model: uform.Model, arena: uform.Arena) -> None:
    encoded = model.text_encode(["a"], arena, outputs=1, outputs_scalar=2)  # type: ignore[arg-type]
    assert encoded.embeddings is not None
    assert encoded.embeddings.scalar is uform.Scalar.BF16


def test_devices() -> None:
    assert uform.gpu_devices() == []
    with pytest.raises(uform.UnsupportedError, match="devices"):
        uform.Executor.for_vram()
    with pytest.raises(uform.DeviceError, match="no device 0") as caught:
        uform.Executor.for_vram([0], scratch_limit=1 << 20, gpu_class=uform.GPUClass.HOPPER)
    assert caught.value.item == 0
    with pytest.raises(uform.UnknownKindError, match="gpu_class: 77"):
        uform.Executor.for_vram([0], gpu_class=77)  # type: ignore[arg-type]
    with pytest.raises(uform.InvalidArgumentError, match="devices: -1"):
        uform.Executor.for_vram([-1])
    with pytest.raises(uform.ArgumentTypeError, match="devices"):
        uform.Executor.for_vram("0")  # type: ignore[arg-type]
    with pytest.raises(uform.ArgumentTypeError, match="scratch_limit"):
        uform.Executor.for_vram(scratch_limit="1")  # type: ignore[arg-type]


def test_pools_are_not_borrowed() -> None:
    with pytest.raises(uform.UnsupportedError, match="pool"):
        uform.Executor.on_pool(object())


def test_stats() -> None:
    stats = uform.TextEncodeStats()
    assert (stats.truncated_items, stats.encoded_tokens) == (0, 0)
    assert repr(stats) == "TextEncodeStats(truncated_items=0, encoded_tokens=0)"
    with pytest.raises(AttributeError):
        stats.encoded_tokens = 3  # type: ignore[misc]


def test_handles_are_made_by_their_functions_alone() -> None:
    for kind in (uform.Executor, uform.Model, uform.On, uform.DeferredOn, uform.Deferred, uform.ArenaBuffer):
        with pytest.raises(TypeError):
            kind()
        with pytest.raises(TypeError):
            type("Derived", (kind,), {})


def test_signatures_can_be_inspected() -> None:
    import inspect

    for receiver in (uform.Model, uform.On, uform.DeferredOn):
        signature = inspect.signature(receiver.text_encode)
        assert list(signature.parameters) == [
            "self",
            "texts",
            "arena",
            "outputs",
            "outputs_scalar",
            "stats",
            "progress",
        ]
        assert signature.parameters["outputs"].default is uform.Outputs.EMBEDDINGS
        assert signature.parameters["outputs_scalar"].default is uform.Scalar.F32
        assert inspect.signature(receiver.text_choose).parameters["temperature_groups"].default is None
    assert inspect.signature(uform.Model.load_ram).parameters["quantization"].default is uform.Scalar.BF16


def test_public_things_have_documentation() -> None:
    for name in uform.__all__:
        assert getattr(uform, name).__doc__, name
    for kind in (uform.Executor, uform.Arena, uform.ArenaBuffer, uform.RowsTape, uform.Model, uform.Deferred):
        for name, attribute in vars(kind).items():
            if not name.startswith("_"):
                assert attribute.__doc__, f"{kind.__name__}.{name}"
