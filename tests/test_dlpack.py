"""`__dlpack__`, and which consumers of it, and of the buffer protocol, hold on to an arena for as long as they read."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import uform
from tests.conftest import Gate
from tests.test_executor import run_python

ALL = uform.Outputs.EMBEDDINGS | uform.Outputs.STATES
TEXTS = ["a cat on a mat", "", "a dog"]
CPU = (1, 0)


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# Called through ctypes, it runs without the GIL.
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    """DLManagedTensor."""

    name = b"dltensor"
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    name = b"dltensor_versioned"
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


READ_ONLY, IS_COPIED = 1, 2

name_of = ctypes.pythonapi.PyCapsule_GetName
name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
rename = ctypes.pythonapi.PyCapsule_SetName
rename.argtypes = [ctypes.py_object, ctypes.c_char_p]


def peek(capsule: object) -> Any:
    """What an unconsumed capsule has; it stays unconsumed."""
    kind = {kind.name: kind for kind in (Legacy, Versioned)}[name_of(capsule)]
    address = pointer_of(capsule, kind.name)
    assert address is not None
    return kind.from_address(address)


USED = b"used_dltensor"


def consume(capsule: object) -> Any:
    managed = peek(capsule)
    assert rename(capsule, USED) == 0
    return managed


def delete(managed: Any) -> None:
    managed.deleter(ctypes.addressof(managed))


@pytest.fixture
def encoded(model: uform.Model, arena: uform.Arena) -> uform.EncodedBatch:
    return model.text_encode(TEXTS, arena, outputs=ALL)


def views_of(encoded: uform.EncodedBatch) -> dict[str, Any]:
    assert encoded.states is not None
    return {
        "embeddings": encoded.embeddings,
        "states": encoded.states,
        "rows": encoded.states.rows,
        "item": encoded.states[2],
        "empty": encoded.states[1],
        "offsets": encoded.states.offsets,
    }


VIEWS = ("embeddings", "states", "rows", "item", "empty", "offsets")
FLOATS = VIEWS[:-1]


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("max_version", [(1, 0), (1, 3), (2, 0)])
def test_versioned_capsules(encoded: uform.EncodedBatch, name: str, max_version: tuple[int, int]) -> None:
    view = views_of(encoded)[name]
    capsule = view.__dlpack__(max_version=max_version)
    managed = peek(capsule)
    assert (managed.major, managed.minor) == (1, 0)
    assert managed.flags == (READ_ONLY if name == "offsets" else 0)
    check_tensor(managed.tensor, view)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("max_version", [None, (0, 8)])
def test_legacy_capsules(encoded: uform.EncodedBatch, name: str, max_version: tuple[int, int] | None) -> None:
    view = views_of(encoded)[name]
    capsule = view.__dlpack__(max_version=max_version)
    managed = peek(capsule)
    assert isinstance(managed, Legacy)
    check_tensor(managed.tensor, view)


def check_tensor(tensor: Tensor, view: Any) -> None:
    array = np.asarray(view)
    assert (tensor.device_type, tensor.device_id) == CPU
    assert tuple(tensor.shape[: tensor.ndim]) == view.shape == array.shape
    assert tuple(stride * array.itemsize for stride in tensor.strides[: tensor.ndim]) == array.strides
    assert (tensor.code, tensor.bits, tensor.lanes) == ((1, 64, 1) if array.dtype == np.uint64 else (2, 32, 1))
    assert tensor.byte_offset == 0
    assert tensor.data == (array.ctypes.data if array.size else None)


@pytest.mark.parametrize(
    ("scalar", "kind", "dtype"),
    [
        (uform.Scalar.F32, (2, 32, 1), torch.float32),
        (uform.Scalar.BF16, (4, 16, 1), torch.bfloat16),
        (uform.Scalar.E4M3, (10, 8, 1), torch.float8_e4m3fn),
    ],
)
def test_scalars(model: uform.Model, scalar: uform.Scalar, kind: tuple[int, int, int], dtype: torch.dtype) -> None:
    encoded = model.text_encode(TEXTS, uform.Arena(), outputs=ALL, outputs_scalar=scalar)
    expected = np.array(model.text_encode(TEXTS, uform.Arena()).embeddings)
    for view in (encoded.embeddings, encoded.states):
        assert view is not None
        tensor = peek(capsule := view.__dlpack__(max_version=(1, 0))).tensor
        assert (tensor.code, tensor.bits, tensor.lanes) == kind
        assert tuple(tensor.shape[:2]) == view.shape
        assert tuple(tensor.strides[:2]) == (view.shape[1], 1)
        consumed = torch.from_dlpack(capsule)
        assert consumed.dtype is dtype
    embeddings = torch.from_dlpack(encoded.embeddings)
    tolerance = {torch.float32: 0, torch.bfloat16: 2**-8, torch.float8_e4m3fn: 2**-4}[dtype]
    assert np.allclose(embeddings.float().numpy(), expected, rtol=tolerance, atol=tolerance / 16)


def test_devices(encoded: uform.EncodedBatch, arena: uform.Arena) -> None:
    for view in views_of(encoded).values():
        assert view.__dlpack_device__() == CPU
        view.__dlpack__(dl_device=CPU, max_version=(1, 0))
        for copy in (None, True, False):
            for device in ((1, 1), (2, 0), (13, 0)):
                with pytest.raises(BufferError, match=r"dl_device: the memory is the host's, \(1, 0\)"):
                    view.__dlpack__(dl_device=device, copy=copy, max_version=(1, 0))
    assert arena.pins == 0


def test_wrong_arguments(encoded: uform.EncodedBatch, arena: uform.Arena) -> None:
    view: Any = encoded.embeddings
    for stream in (0, 1, -1):
        with pytest.raises(uform.InvalidArgumentError, match="stream: the memory is the host's"):
            view.__dlpack__(stream=stream)
    for name in ("max_version", "dl_device"):
        for wrong in (1, "1.0", (1,), (1, 0, 0)):
            with pytest.raises(uform.ArgumentTypeError, match=f"{name}: a tuple of two integers is needed"):
                view.__dlpack__(**{name: wrong})
        with pytest.raises(TypeError):
            view.__dlpack__(**{name: ("1", 0)})
    with pytest.raises(TypeError):
        view.__dlpack__(None)
    assert arena.pins == 0


def test_no_copy_shares_the_memory(encoded: uform.EncodedBatch) -> None:
    for copy in (None, False):
        tensor = torch.from_dlpack(encoded.embeddings, copy=copy)
        tensor[0, 0] = 5
        assert np.asarray(encoded.embeddings)[0, 0] == 5
        tensor[0, 0] = 6
        assert np.asarray(encoded.embeddings)[0, 0] == 6


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_copy_pins_nothing(
    model: uform.Model, arena: uform.Arena, name: str, max_version: tuple[int, int] | None
) -> None:
    view = views_of(model.text_encode(TEXTS, arena, outputs=ALL))[name]
    expected = np.array(view)
    capsule = view.__dlpack__(copy=True, max_version=max_version)
    assert arena.pins == 0
    managed = peek(capsule)
    if max_version:
        assert managed.flags == IS_COPIED
    address = managed.tensor.data
    assert (address is None) == (expected.size == 0)
    model.text_encode(["other"] * 9, arena, outputs=ALL)
    tensor = torch.from_dlpack(capsule)
    tensor = tensor.view(torch.int64) if tensor.dtype is torch.uint64 else tensor
    assert address is None or address % 64 == 0
    assert np.array_equal(tensor.numpy(), expected)
    tensor.zero_()
    del capsule, tensor


def test_offsets_are_read_only(encoded: uform.EncodedBatch, arena: uform.Arena) -> None:
    assert encoded.states is not None
    offsets = encoded.states.offsets
    array = np.from_dlpack(offsets)
    assert not array.flags.writeable
    assert array.tolist() == [0, 14, 14, 19]
    with pytest.raises(BufferError, match="offsets are read-only"):
        offsets.__dlpack__()
    with pytest.raises(BufferError, match="offsets are read-only"):
        offsets.__dlpack__(max_version=(0, 8), copy=False)
    del array
    assert arena.pins == 0


def test_overwritten_offsets_never_lead_outside(model: uform.Model, arena: uform.Arena) -> None:
    """torch has no tensors that are read-only."""
    states = model.text_encode(TEXTS, arena, outputs=ALL).states
    assert states is not None
    tensor = torch.from_dlpack(states.offsets)
    assert tensor.dtype is torch.uint64
    tensor = tensor.view(torch.int64)
    for wrong in ([0, 14, 14, 20], [0, -1, 14, 19], [0, 14, 13, 19]):
        tensor[:] = torch.tensor(wrong)
        with pytest.raises(uform.InvalidArgumentError, match="offsets: they were overwritten"):
            list(states)


def test_an_unconsumed_capsule_pins(model: uform.Model, encoded: uform.EncodedBatch, arena: uform.Arena) -> None:
    capsules = [
        encoded.embeddings.__dlpack__(),  # type: ignore[union-attr]
        encoded.embeddings.__dlpack__(max_version=(1, 0)),  # type: ignore[union-attr]
    ]
    while capsules:
        assert arena.pins == len(capsules)
        with pytest.raises(uform.ContendedError, match="arena: pinned by"):
            model.text_encode(["other"], arena)
        capsules.pop()
    model.text_encode(["other"], arena)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_a_consumed_capsule_pins_until_it_is_deleted(
    encoded: uform.EncodedBatch, arena: uform.Arena, max_version: tuple[int, int] | None
) -> None:
    capsule = encoded.embeddings.__dlpack__(max_version=max_version)  # type: ignore[union-attr]
    managed = consume(capsule)
    del capsule
    gc.collect()
    assert arena.pins == 1
    thread = threading.Thread(target=delete, args=(managed,))
    thread.start()
    thread.join()
    assert arena.pins == 0


def test_a_capsule_is_consumed_once(encoded: uform.EncodedBatch, arena: uform.Arena) -> None:
    capsule = encoded.embeddings.__dlpack__()  # type: ignore[union-attr]
    tensor = torch.from_dlpack(capsule)
    with pytest.raises(RuntimeError):
        torch.from_dlpack(capsule)
    del capsule
    assert arena.pins == 1
    del tensor
    assert arena.pins == 0


def test_exports_outlive_everything(model: uform.Model) -> None:
    arena = uform.Arena()
    encoded = model.text_encode(TEXTS, arena, outputs=ALL)
    expected = np.array(encoded.embeddings)
    tensor, managed = torch.from_dlpack(encoded.embeddings), consume(encoded.embeddings.__dlpack__())  # type: ignore[union-attr]
    del arena, encoded
    gc.collect()
    assert np.array_equal(tensor.numpy(), expected)
    del tensor
    assert ctypes.cast(managed.tensor.data, ctypes.POINTER(ctypes.c_float))[0] == expected[0, 0]
    # The last one, and without the GIL.
    delete(managed)


def test_stale_views(model: uform.Model, encoded: uform.EncodedBatch, arena: uform.Arena) -> None:
    views = views_of(encoded)
    model.text_encode(["other"], arena)
    for view in views.values():
        for options in ({}, {"max_version": (1, 0)}, {"copy": True}):
            with pytest.raises(uform.InvalidArgumentError, match="rewound"):
                view.__dlpack__(**{"max_version": (1, 0)} | options)
        with pytest.raises(uform.InvalidArgumentError, match="rewound"):
            view.__dlpack_device__()
        with pytest.raises(uform.InvalidArgumentError, match="rewound"):
            torch.from_dlpack(view)
        with pytest.raises(uform.InvalidArgumentError, match="rewound"):
            np.from_dlpack(view)
    assert arena.pins == 0


def test_views_while_a_call_rewrites_them(
    model: uform.Model, executor: uform.Executor, gate: Gate, encoded: uform.EncodedBatch, arena: uform.Arena
) -> None:
    call = model.deferred(executor).text_encode(TEXTS, arena, progress=gate)
    gate.await_entry()
    for view in (encoded.embeddings, encoded.states):
        assert view is not None
        with pytest.raises(uform.InvalidArgumentError, match="rewound"):
            view.__dlpack__(max_version=(1, 0))
    gate.open()
    call.wait()


CONSUMERS: dict[str, Callable[[Any], Any]] = {
    "memoryview": memoryview,
    "numpy.asarray": np.asarray,
    "numpy.from_dlpack": np.from_dlpack,
    "numpy.frombuffer": lambda view: np.frombuffer(view, np.float32),
    "ctypes": lambda view: (ctypes.c_float * 8).from_buffer(view),
    "torch.from_dlpack": torch.from_dlpack,
    "torch.from_dlpack of a capsule": lambda view: torch.from_dlpack(view.__dlpack__()),
    "torch.as_tensor": torch.as_tensor,
    "torch.asarray": torch.asarray,
    "torch.frombuffer": lambda view: torch.frombuffer(view, dtype=torch.float32),
    "torch.from_numpy": lambda view: torch.from_numpy(np.asarray(view)),
    "torch.as_tensor of NumPy's": lambda view: torch.as_tensor(np.asarray(view)),
}


def numbers(consumed: Any) -> np.ndarray:
    array = consumed.numpy() if isinstance(consumed, torch.Tensor) else np.asarray(consumed)
    return np.array(array, dtype=np.float32).ravel()


@pytest.mark.parametrize("name", ["embeddings", "states", "item"])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_nothing_held_is_rewritten(
    model: uform.Model, encoded: uform.EncodedBatch, arena: uform.Arena, consumer: str, name: str
) -> None:
    """Whoever reads the memory without a copy pins the arena, and lets go of it in the end."""
    consumed = CONSUMERS[consumer](views_of(encoded)[name])
    del encoded
    gc.collect()
    before = numbers(consumed)
    with pytest.raises(uform.ContendedError, match="arena: pinned by 1 exports"):
        model.text_encode(["other"] * 9, arena, outputs=ALL)
    assert np.array_equal(numbers(consumed), before)
    del consumed
    gc.collect()
    assert arena.pins == 0


def test_nothing_that_jax_holds_is_rewritten(small_checkpoint: str) -> None:
    """In a process of its own, since its threads and those who fork do not go together."""
    code = """
        import gc, sys
        import jax, numpy, uform

        model = uform.Model.load_ram(sys.argv[1])
        consumers = {
            "dlpack": jax.dlpack.from_dlpack,
            "numpy.from_dlpack": jax.numpy.from_dlpack,
            "numpy.asarray": jax.numpy.asarray,
            "of NumPy's": lambda view: jax.numpy.asarray(numpy.asarray(view)),
        }
        outputs = uform.Outputs.EMBEDDINGS | uform.Outputs.STATES
        for name, consumer in consumers.items():
            for which in range(3):
                arena = uform.Arena()
                encoded = model.text_encode(["a cat on a mat", "", "a dog"], arena, outputs=outputs)
                consumed = consumer([encoded.embeddings, encoded.states, encoded.states[2]][which])
                del encoded
                before = numpy.array(consumed)
                try:
                    model.text_encode(["other"] * 9, arena, outputs=outputs)
                    print(name, which, "copied" if numpy.array_equal(consumed, before) else "was rewritten")
                except uform.ContendedError:
                    print(name, which, "pinned")
                del consumed
                gc.collect()
                assert arena.pins == 0
        half = model.text_encode(["a cat"], uform.Arena(), outputs_scalar=uform.Scalar.BF16).embeddings
        assert jax.dlpack.from_dlpack(half).dtype == jax.numpy.bfloat16
    """
    done = run_python(code, small_checkpoint)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 12
    # Copied where the memory is not aligned as it wants it.
    assert all(line.endswith((" pinned", " copied")) for line in done.stdout.splitlines()), done.stdout
    assert "dlpack 0 pinned" in done.stdout


DERIVED: dict[str, Callable[[torch.Tensor], Any]] = {
    "slice": lambda tensor: tensor[1:],
    "view": lambda tensor: tensor.view(-1),
    "detach": lambda tensor: tensor.detach(),
    "numpy": lambda tensor: tensor.numpy(),
    "dlpack": lambda tensor: np.from_dlpack(tensor),
    "storage": lambda tensor: tensor.untyped_storage(),
    "parameter": lambda tensor: torch.nn.Parameter(tensor),
    "transposed": lambda tensor: tensor.T,
}


@pytest.mark.parametrize("derived", DERIVED)
def test_what_shares_a_tensors_memory_pins_too(
    model: uform.Model, encoded: uform.EncodedBatch, arena: uform.Arena, derived: str
) -> None:
    kept = DERIVED[derived](torch.from_dlpack(encoded.embeddings))
    gc.collect()
    assert arena.pins == 1
    with pytest.raises(uform.ContendedError):
        model.text_encode(["other"], arena)
    del kept
    gc.collect()
    assert arena.pins == 0


def test_a_released_memoryview_pins_no_longer(encoded: uform.EncodedBatch, arena: uform.Arena) -> None:
    with memoryview(encoded.embeddings) as export:  # type: ignore[arg-type]
        part = export[1:]
        assert arena.pins == 1
        part.release()
        assert arena.pins == 1
    assert arena.pins == 0


def test_many_threads_let_go(model: uform.Model) -> None:
    """Exports go from hand to hand while other threads call: a call succeeds only between them."""
    arena = uform.Arena()
    expected = {text: np.array(model.text_encode([text], uform.Arena()).embeddings) for text in "abcd"}
    wrong = []

    def work(text: str) -> None:
        for _ in range(150):
            try:
                encoded = model.text_encode([text], arena)
                tensor = torch.from_dlpack(encoded.embeddings)
            except (uform.ContendedError, uform.InvalidArgumentError):
                continue
            if not np.array_equal(tensor.numpy(), expected[text]):
                wrong.append(text)
            thread = threading.Thread(target=lambda kept=[tensor]: kept.clear())
            del tensor
            thread.start()
            thread.join()

    threads = [threading.Thread(target=work, args=(text,)) for text in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    gc.collect()
    assert arena.pins == 0


def test_exports_across_a_fork(model: uform.Model, encoded: uform.EncodedBatch, arena: uform.Arena) -> None:
    """The child has them too, and lets go of its own."""
    tensor = torch.from_dlpack(encoded.embeddings)
    expected = tensor.clone()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            same = torch.equal(tensor, expected) and arena.pins == 1
            del tensor
            model.text_encode(["other"], arena)
            status = 0 if same and arena.pins == 0 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert arena.pins == 1
    assert torch.equal(tensor, expected)


def test_exports_at_exit(small_checkpoint: str) -> None:
    """Whatever is left when the interpreter ends, in a cycle, in a daemon's hands, unconsumed: it ends quietly."""
    code = """
        import sys, threading
        import numpy, torch, uform

        model = uform.Model.load_ram(sys.argv[1])
        arenas = [uform.Arena() for _ in range(5)]
        views = [model.text_encode(["a cat"], arena).embeddings for arena in arenas]
        tensor, array = torch.from_dlpack(views[0]), numpy.from_dlpack(views[1])
        capsule = views[2].__dlpack__()
        cycle = [torch.from_dlpack(views[3])]
        cycle.append(cycle)
        sys.modules["held"] = tensor[:]
        entered = threading.Event()

        def export():
            # Not with torch, which aborts when it is caught so, whatever it reads.
            while True:
                numpy.from_dlpack(views[4])
                views[4].__dlpack__(copy=True)
                entered.set()

        threading.Thread(target=export, daemon=True).start()
        entered.wait()
    """
    for _ in range(3):
        done = run_python(code, small_checkpoint)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
