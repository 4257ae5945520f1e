"""uform_torch: tensors over an arena's memory, and arenas over torch's."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import uform
import uform_torch
from tests.conftest import Gate
from tests.test_executor import run_python
from uform_torch import TensorArena, to_tensor

ALL = uform.Outputs.EMBEDDINGS | uform.Outputs.STATES
TEXTS = ["a cat on a mat", "", "a dog"]
DTYPES = {
    uform.Scalar.F32: torch.float32,
    uform.Scalar.BF16: torch.bfloat16,
    uform.Scalar.E4M3: torch.float8_e4m3fn,
}


@pytest.fixture(params=[uform.Arena, TensorArena])
def any_arena(request: pytest.FixtureRequest) -> uform.Arena:
    arena = request.param()
    assert isinstance(arena, uform.Arena)
    return arena


def views_of(encoded: uform.EncodedBatch) -> list[Any]:
    assert encoded.states is not None
    states = encoded.states
    return [encoded.embeddings, states, states.rows, *states, states.offsets]


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("scalar", DTYPES)
def test_tensors_are_the_views(model: uform.Model, any_arena: uform.Arena, scalar: uform.Scalar) -> None:
    encoded = model.text_encode(TEXTS, any_arena, outputs=ALL, outputs_scalar=scalar)
    for view in views_of(encoded):
        tensor = to_tensor(view)
        array = np.asarray(view)
        assert tensor.dtype is (torch.int64 if view.scalar is None else DTYPES[scalar])
        assert tensor.shape == view.shape
        assert tensor.is_contiguous()
        assert tensor.device.type == "cpu"
        assert not tensor.requires_grad
        assert bits(tensor) == array.tobytes()
        assert tensor.numel() == 0 or tensor.data_ptr() == array.ctypes.data
    assert encoded.states is not None
    assert to_tensor(encoded.states.offsets).tolist() == [0, 14, 14, 19]


def test_choices(model: uform.Model, any_arena: uform.Arena) -> None:
    probabilities = model.text_choose(["a? ", "b? "], ["yn", "ABC"], any_arena)
    tensor = to_tensor(probabilities)
    assert tensor.shape == (5,)
    assert torch.equal(tensor, torch.from_numpy(np.array(probabilities)))
    assert to_tensor(probabilities[1]).sum().item() == pytest.approx(1)


def test_no_texts_and_no_outputs(model: uform.Model, any_arena: uform.Arena) -> None:
    encoded = model.text_encode([], any_arena, outputs=ALL)
    assert encoded.states is not None
    assert to_tensor(encoded.embeddings).shape == (0, model.describe().dimensions)  # type: ignore[arg-type]
    assert to_tensor(encoded.states).shape == (0, model.describe().hidden)
    assert to_tensor(encoded.states.offsets).tolist() == [0]
    assert model.text_encode(TEXTS, any_arena, outputs=uform.Outputs(0)).embeddings is None


def test_stale_views(model: uform.Model, any_arena: uform.Arena) -> None:
    views = views_of(model.text_encode(TEXTS, any_arena, outputs=ALL))
    model.text_encode(["other"], any_arena)
    for view in views:
        with pytest.raises(uform.InvalidArgumentError, match="rewound"):
            to_tensor(view)
        with pytest.raises(uform.InvalidArgumentError, match="rewound"):
            _ = view.block


@pytest.mark.parametrize("wrong", [None, 3, np.zeros(3)])
def test_other_objects(wrong: object) -> None:
    with pytest.raises(uform.ArgumentTypeError, match="view: an ArenaBuffer or a RowsTape is needed, not"):
        to_tensor(wrong)  # type: ignore[arg-type]


def test_a_tensor_over_an_arena_pins_it(model: uform.Model, arena: uform.Arena) -> None:
    encoded = model.text_encode(TEXTS, arena, outputs=ALL)
    for view in views_of(encoded):
        tensor = to_tensor(view)
        assert arena.pins == 1
        with pytest.raises(uform.ContendedError, match="arena: pinned by 1 exports"):
            model.text_encode(["other"], arena)
        part = tensor[:1]
        del tensor
        assert arena.pins == 1
        del part
        assert arena.pins == 0


# --- TensorArena ---


def test_tensors_of_torch_never_change(model: uform.Model) -> None:
    arena = TensorArena()
    kept, copies = [], []
    for texts in (TEXTS, ["other"], ["a"] * 9, [], TEXTS):
        for view in views_of(model.text_encode(texts, arena, outputs=ALL)):
            kept.append(to_tensor(view))
            copies.append(kept[-1].clone())
        assert arena.pins == 0
    del arena
    gc.collect()
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(kept, copies, strict=True))


def test_tensors_of_torch_are_ordinary(model: uform.Model) -> None:
    arena = TensorArena()
    encoded = model.text_encode(TEXTS, arena, outputs=ALL)
    embeddings, states = to_tensor(encoded.embeddings), to_tensor(encoded.states)  # type: ignore[arg-type]
    assert embeddings.untyped_storage().data_ptr() == states.untyped_storage().data_ptr()
    assert embeddings._base is None
    # Of their own: changing one is no change of the other.
    version = embeddings._version
    states.mul_(2)
    assert embeddings._version == version
    head = torch.nn.Linear(embeddings.shape[1], 2)
    head(embeddings).sum().backward()
    assert head.weight.grad is not None
    embeddings.requires_grad_().square().sum().backward()
    assert torch.equal(embeddings.grad, 2 * embeddings.detach())  # type: ignore[arg-type]
    shared = states.clone().share_memory_()
    assert shared.is_shared()
    assert states.share_memory_().is_shared()


def test_modes_of_torch(model: uform.Model) -> None:
    """A call and its tensors may be in different ones."""
    arena = TensorArena()
    with torch.inference_mode():
        encoded = model.text_encode(TEXTS, arena)
        inside = to_tensor(encoded.embeddings)  # type: ignore[arg-type]
    outside = to_tensor(encoded.embeddings)  # type: ignore[arg-type]
    assert inside.is_inference()
    assert not outside.is_inference()
    assert torch.equal(inside, outside)
    with torch.device("meta"):
        encoded = model.text_encode(TEXTS, arena)
        assert to_tensor(encoded.embeddings).device.type == "cpu"  # type: ignore[arg-type]
        assert to_tensor(model.text_encode(TEXTS, uform.Arena()).embeddings).device.type == "cpu"  # type: ignore[arg-type]
    with torch.no_grad():
        assert torch.equal(to_tensor(encoded.embeddings), outside)  # type: ignore[arg-type]


def test_blocks_go_back_with_their_last_tensor(model: uform.Model) -> None:
    arena = TensorArena()
    encoded = model.text_encode(TEXTS, arena, outputs=ALL)
    assert encoded.embeddings is not None
    place = encoded.embeddings.block
    assert place is not None
    block = weakref.ref(place[0])
    tensor = to_tensor(encoded.embeddings)
    del place, encoded
    gc.collect()
    assert block() is not None
    model.text_encode(TEXTS, arena)
    assert block() is None
    assert torch.isfinite(tensor).all()


def test_arrays_over_torchs_memory_pin(model: uform.Model) -> None:
    arena = TensorArena()
    array = np.asarray(model.text_encode(TEXTS, arena).embeddings)
    with pytest.raises(uform.ContendedError):
        model.text_encode(TEXTS, arena)
    del array
    model.text_encode(TEXTS, arena)


def test_exports_outlive_a_tensor_arena(model: uform.Model) -> None:
    """The last export gives the block back, on whatever thread."""
    arena = TensorArena()
    array = np.asarray(model.text_encode(TEXTS, arena).embeddings)
    expected = array.copy()
    kept = [array]
    del arena, array
    gc.collect()
    assert np.array_equal(kept[0], expected)
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()


def test_deferred_calls_allocate_on_their_threads(model: uform.Model, executor: uform.Executor) -> None:
    arenas = [TensorArena() for _ in range(4)]
    expected = to_tensor(model.text_encode(TEXTS, arenas[0]).embeddings)  # type: ignore[arg-type]
    for arena in arenas * 5:
        call = model.deferred(executor).text_encode(TEXTS, arena)
        assert torch.equal(to_tensor(call.wait().embeddings), expected)  # type: ignore[arg-type]


def test_a_deferred_call_that_runs_keeps_former_tensors(
    model: uform.Model, executor: uform.Executor, gate: Gate
) -> None:
    arena = TensorArena()
    tensor = to_tensor(model.text_encode(TEXTS, arena).embeddings)  # type: ignore[arg-type]
    copy = tensor.clone()
    call = model.deferred(executor).text_encode(["other"] * 3, arena, progress=gate)
    gate.await_entry()
    assert torch.equal(tensor, copy)
    gate.open()
    other = to_tensor(call.wait().embeddings)  # type: ignore[arg-type]
    assert torch.equal(tensor, copy)
    assert not torch.equal(tensor, other)


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch drives a device here: the test beside has it")
def test_pinned_memory_needs_a_device() -> None:
    with pytest.raises(RuntimeError):
        TensorArena(pin_memory=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch drives no device here")
def test_pinned_memory(model: uform.Model) -> None:
    arena = TensorArena(pin_memory=True)
    assert arena.pin_memory
    expected = to_tensor(model.text_encode(TEXTS, TensorArena(), outputs=ALL).states)  # type: ignore[arg-type]
    on_device = []
    for _ in range(50):
        states = to_tensor(model.text_encode(TEXTS, arena, outputs=ALL).states)  # type: ignore[arg-type]
        assert states.is_pinned()
        # Freed while the copy is on its way: the allocator must not give the block to the next call before it is done.
        torch.cuda._sleep(1_000_000)
        on_device.append(states.to("cuda", non_blocking=True))
        del states
        model.text_encode(["other"] * 3, arena, outputs=ALL)
    torch.cuda.synchronize()
    assert all(torch.equal(tensor.cpu(), expected) for tensor in on_device)


def test_representation(model: uform.Model) -> None:
    arena = TensorArena()
    assert repr(arena) == "<uform_torch.TensorArena capacity=0 pin_memory=False>"
    assert uform_torch.TensorArena is TensorArena


# --- Arenas over any callable ---


def test_a_callable_makes_the_blocks(model: uform.Model) -> None:
    sizes = []

    def allocate(size: int) -> np.ndarray:
        sizes.append(size)
        return aligned(size + 64)

    arena = uform.Arena(allocate=allocate)
    expected = np.array(model.text_encode(TEXTS, uform.Arena()).embeddings)
    for _ in range(3):
        encoded = model.text_encode(TEXTS, arena, outputs=ALL)
        assert np.array_equal(np.asarray(encoded.embeddings), expected)
        for view in views_of(encoded):
            block, offset = view.block
            assert isinstance(block, np.ndarray)
            assert block.nbytes == sizes[-1] + 64
            array = np.asarray(view)
            assert array.size == 0 or block.ctypes.data + offset == array.ctypes.data
            del array
    assert len(sizes) == 3
    assert arena.capacity == sizes[-1]
    assert all(size > 0 and size % 64 == 0 for size in sizes)
    assert uform.Arena().capacity == 0
    assert model.text_encode(TEXTS, uform.Arena()).embeddings.block is None  # type: ignore[union-attr]


def aligned(size: int) -> np.ndarray:
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size]


def test_the_same_memory_again(model: uform.Model) -> None:
    """Allowed: it is then as an arena's own."""
    memory = aligned(1 << 20)
    arena = uform.Arena(allocate=lambda size: memory)
    expected = np.array(model.text_encode(TEXTS, uform.Arena()).embeddings)
    for _ in range(3):
        assert np.array_equal(np.array(model.text_encode(TEXTS, arena).embeddings), expected)


def test_what_the_callable_raises_is_the_cause(model: uform.Model, executor: uform.Executor) -> None:
    fault = RuntimeError("no more")

    def allocate(size: int) -> np.ndarray:
        raise fault

    arena = uform.Arena(allocate=allocate)
    call = model.deferred(executor).text_encode(TEXTS, arena)
    for attempt in (
        call.wait,
        call.wait,
        lambda: model.text_encode(TEXTS, arena),
        lambda: model.on(executor).text_encode(TEXTS, arena),
    ):
        with pytest.raises(uform.OutOfMemoryError, match="arena: no memory for") as raised:
            attempt()
        assert raised.value.__cause__ is fault
        assert fault.__traceback__ is not None
        assert not arena.busy


def test_an_arena_recovers(model: uform.Model) -> None:
    faults = [MemoryError(), None, MemoryError(), None]

    def allocate(size: int) -> np.ndarray:
        fault = faults.pop(0)
        if fault:
            raise fault
        return aligned(size)

    arena = uform.Arena(allocate=allocate)
    for _ in range(2):
        with pytest.raises(uform.OutOfMemoryError):
            model.text_encode(TEXTS, arena)
        assert arena.capacity == 0
        model.text_encode(TEXTS, arena)
        assert arena.capacity > 0


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda size: None, uform.ArgumentTypeError, "allocate: a writable buffer is needed, not NoneType"),
        (lambda size: 7, uform.ArgumentTypeError, "allocate: a writable buffer is needed, not int"),
        (lambda size: bytes(size), uform.UnsupportedLayoutError, "allocate: a writable, C-contiguous buffer"),
        (lambda size: aligned(2 * size)[::2], uform.UnsupportedLayoutError, "allocate: a writable, C-contiguous"),
        (lambda size: aligned(size - 1), uform.InvalidArgumentError, "allocate: a buffer of .* bytes is needed, not"),
        (lambda size: aligned(size + 64)[4:], uform.InvalidArgumentError, "arena: .* not aligned to 64 bytes"),
    ],
)
def test_blocks_that_do_not_do(model: uform.Model, answer: Any, error: type[uform.Error], message: str) -> None:
    arena = uform.Arena(allocate=answer)
    for _ in range(2):
        with pytest.raises(error, match=message):
            model.text_encode(TEXTS, arena)


def test_what_ends_a_program_ends_it(model: uform.Model) -> None:
    def allocate(size: int) -> np.ndarray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.text_encode(TEXTS, uform.Arena(allocate=allocate))


def test_arguments() -> None:
    with pytest.raises(uform.ArgumentTypeError, match="allocate: a callable is needed, not int"):
        uform.Arena(allocate=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        uform.Arena(None, aligned)  # type: ignore[misc]


def test_the_callable_may_not_wait_for_calls(model: uform.Model, executor: uform.Executor) -> None:
    caught = []

    def allocate(size: int) -> np.ndarray:
        for wait in (executor.close, lambda: executor.drain(uform.Mood.PARKED)):
            try:
                wait()
            except uform.ContendedError as error:
                caught.append(str(error))
        try:
            model.text_encode(TEXTS, arena)
        except uform.ContendedError as error:
            caught.append(str(error))
        # With other memory, it may.
        model.text_encode(TEXTS, uform.Arena())
        return aligned(size)

    arena = uform.Arena(allocate=allocate)
    model.on(executor).text_encode(TEXTS, arena)
    model.deferred(executor).text_encode(TEXTS, arena).wait()
    assert len(caught) == 6
    assert caught[2] == "arena: it serves another call"


def test_cycles_through_the_callable_are_collected(model: uform.Model) -> None:
    class Owner:
        def __init__(self) -> None:
            self.arena = uform.Arena(allocate=self.allocate)

        def allocate(self, size: int) -> np.ndarray:
            return aligned(size)

    owner = Owner()
    encoded = model.text_encode(TEXTS, owner.arena)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is not None  # The views need the arena.
    assert np.isfinite(np.asarray(encoded.embeddings)).all()
    del encoded
    gc.collect()
    assert gone() is None


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(st.sampled_from(["call", "tensor", "export", "release", "drop"]), max_size=30))
def test_any_order_of_calls_tensors_and_exports(model: uform.Model, steps: list[str]) -> None:
    """Only arrays pin; tensors keep their numbers whatever happens."""
    arena = TensorArena()
    exports: list[np.ndarray] = []
    tensors: list[tuple[torch.Tensor, torch.Tensor]] = []
    view = None
    for number, step in enumerate(steps):
        if step == "call" and exports:
            with pytest.raises(uform.ContendedError):
                model.text_encode([f"text {number}"], arena)
        elif step == "call":
            view = model.text_encode([f"text {number}"], arena).embeddings
        elif step == "tensor" and view is not None:
            tensor = to_tensor(view)
            tensors.append((tensor, tensor.clone()))
        elif step == "export" and view is not None:
            exports.append(np.asarray(view))
        elif step == "release" and exports:
            exports.pop()
        elif step == "drop" and tensors:
            tensors.pop(number % len(tensors))
        assert arena.pins == len(exports)
        assert all(torch.equal(tensor, copy) for tensor, copy in tensors)


def test_threads_that_share_a_tensor_arena(model: uform.Model) -> None:
    arena = TensorArena()
    expected = {text: to_tensor(model.text_encode([text], TensorArena()).embeddings) for text in "abcd"}  # type: ignore[arg-type]
    wrong = []

    def work(text: str) -> None:
        for _ in range(200):
            try:
                tensor = to_tensor(model.text_encode([text], arena).embeddings)  # type: ignore[arg-type]
            except (uform.ContendedError, uform.InvalidArgumentError):
                continue
            if not torch.equal(tensor, expected[text]):
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(text,)) for text in expected]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_child(model: uform.Model) -> None:
    arena = TensorArena()
    tensor = to_tensor(model.text_encode(TEXTS, arena).embeddings)  # type: ignore[arg-type]
    expected = tensor.clone()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            again = to_tensor(model.text_encode(TEXTS, arena).embeddings)  # type: ignore[arg-type]
            status = 0 if torch.equal(tensor, expected) and torch.equal(again, expected) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert torch.equal(tensor, expected)
    model.text_encode(["other"], arena)
    assert torch.equal(tensor, expected)


def test_a_child_forked_in_the_middle_of_a_call(model: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    arena = TensorArena()
    tensor = to_tensor(model.text_encode(TEXTS, arena).embeddings)  # type: ignore[arg-type]
    expected = tensor.clone()
    call = model.deferred(executor).text_encode(TEXTS, arena, progress=gate)
    gate.await_entry()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for _ in range(2):
                again = to_tensor(model.text_encode(TEXTS, arena).embeddings)  # type: ignore[arg-type]
                same = torch.equal(again, expected) and torch.equal(tensor, expected)
            status = 0 if same else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    gate.open()
    assert torch.equal(to_tensor(call.wait().embeddings), expected)  # type: ignore[arg-type]


def test_at_exit(small_checkpoint: str) -> None:
    """Calls in flight, on daemons and on an executor, and tensors and exports that nobody lets go of."""
    code = """
        import sys, threading
        import numpy, torch, uform, uform_torch

        model = uform.Model.load_ram(sys.argv[1])
        arena, pinned = uform_torch.TensorArena(), uform_torch.TensorArena()
        held = uform_torch.to_tensor(model.text_encode(["a cat"], arena).embeddings)
        array = numpy.asarray(model.text_encode(["a cat"], pinned).embeddings)
        cycle = [uform_torch.to_tensor(model.text_encode(["a dog"], uform.Arena()).embeddings)]
        cycle.append(cycle)
        sys.modules["held"] = (held[:], array, pinned)
        entered = threading.Event()

        def encode():
            own = uform.Arena(allocate=lambda size: numpy.zeros(size + 64, numpy.uint8)[:])
            while True:
                try:
                    model.text_encode(["some text of a few words"] * 5, own)
                except uform.InvalidArgumentError:
                    pass  # NumPy aligns to 16.
                entered.set()

        for _ in range(3):
            threading.Thread(target=encode, daemon=True).start()
        entered.wait()
        executor = uform.Executor.for_ram(2)
        call = model.deferred(executor).text_encode(["some text of a few words"] * 3000, arena)
    """
    for _ in range(3):
        done = run_python(code, small_checkpoint)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
