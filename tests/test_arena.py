"""Arenas and the views over them: exports, pins, staleness, formats."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uform
from tests.conftest import Gate

BOTH = uform.Outputs.EMBEDDINGS | uform.Outputs.STATES
TEXTS = ["a cat on a mat", "", "a dog"]


def embeddings_of(encoded: uform.EncodedBatch) -> uform.ArenaBuffer:
    assert encoded.embeddings is not None
    return encoded.embeddings


def states_of(encoded: uform.EncodedBatch) -> uform.RowsTape:
    assert encoded.states is not None
    return encoded.states


def test_an_arena_allocates_when_a_call_writes(model: uform.Model) -> None:
    arena = uform.Arena()
    assert arena.capacity == 0
    assert not arena.busy
    model.text_encode(TEXTS, arena)
    capacity = arena.capacity
    assert capacity >= 3 * 4 * model.describe().dimensions
    for _ in range(10):
        model.text_encode(TEXTS, arena)
    assert arena.capacity == capacity


def test_embeddings(model: uform.Model, arena: uform.Arena) -> None:
    embeddings = embeddings_of(model.text_encode(TEXTS, arena))
    dimensions = model.describe().dimensions
    assert embeddings.shape == (3, dimensions)
    assert embeddings.scalar is uform.Scalar.F32
    assert embeddings.nbytes == 3 * dimensions * 4
    assert len(embeddings) == 3
    array = np.asarray(embeddings)
    assert array.shape == (3, dimensions)
    assert array.dtype == np.float32
    assert array.ctypes.data % 64 == 0
    assert np.linalg.norm(array, axis=1) == pytest.approx([1, 0, 1])


def test_surfaces_are_a_tuple(model: uform.Model, arena: uform.Arena) -> None:
    encoded = model.text_encode(TEXTS, arena, outputs=BOTH)
    embeddings, states, token_vectors = encoded
    assert embeddings is encoded.embeddings
    assert states is encoded.states
    assert token_vectors is None
    assert model.text_encode(TEXTS, arena, outputs=uform.Outputs.STATES).embeddings is None
    assert model.text_encode(TEXTS, arena, outputs=uform.Outputs(0)) == (None, None, None)


def test_rows_tapes(model: uform.Model, arena: uform.Arena) -> None:
    states = states_of(model.text_encode(TEXTS, arena, outputs=uform.Outputs.STATES))
    hidden = model.describe().hidden
    assert len(states) == 3
    assert states.shape == states.rows.shape == (19, hidden)
    assert states.scalar is uform.Scalar.F32
    offsets = np.asarray(states.offsets)
    assert offsets.dtype == np.uint64
    assert offsets.tolist() == [0, 14, 14, 19]
    assert not offsets.flags.writeable
    assert states.offsets.scalar is None
    assert states.offsets.shape == (4,)
    rows = np.asarray(states)
    assert np.shares_memory(rows, np.asarray(states.rows))
    for item in range(3):
        part = np.asarray(states[item])
        assert np.array_equal(part, rows[offsets[item] : offsets[item + 1]])
        assert np.array_equal(part, np.asarray(states[item - 3]))
    assert [view.shape for view in states] == [(14, hidden), (0, hidden), (5, hidden)]
    for index in (3, -4, 1 << 40):
        with pytest.raises(IndexError):
            states[index]
    with pytest.raises(TypeError):
        states["a"]  # type: ignore[index]


@pytest.mark.parametrize("scalar", uform.Scalar)
def test_formats(model: uform.Model, arena: uform.Arena, scalar: uform.Scalar) -> None:
    encoded = model.text_encode(TEXTS, arena, outputs=BOTH, outputs_scalar=scalar)
    for view, columns in (
        (embeddings_of(encoded), model.describe().dimensions),
        (states_of(encoded), model.describe().hidden),
    ):
        assert view.scalar is scalar
        assert view.shape[1] == columns
        export = memoryview(view)  # type: ignore[arg-type]
        if scalar is uform.Scalar.F32:
            assert (export.format, export.itemsize, export.shape) == ("f", 4, view.shape)
        else:
            row_bytes = columns * {uform.Scalar.BF16: 2, uform.Scalar.E4M3: 1}[scalar]
            assert (export.format, export.itemsize, export.shape) == ("B", 1, (view.shape[0], row_bytes))
        assert export.c_contiguous
        assert not export.readonly
        assert export.nbytes == (view.nbytes if isinstance(view, uform.ArenaBuffer) else view.rows.nbytes)


def test_bf16_is_the_rounded_f32(model: uform.Model) -> None:
    exact = np.array(model.text_encode(TEXTS, uform.Arena()).embeddings)
    half = model.text_encode(TEXTS, uform.Arena(), outputs_scalar=uform.Scalar.BF16).embeddings
    widened = (np.asarray(half).view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    assert np.allclose(widened, exact, rtol=2**-8, atol=0)


def test_outputs_may_be_written(model: uform.Model, arena: uform.Arena) -> None:
    embeddings = embeddings_of(model.text_encode(TEXTS, arena))
    np.asarray(embeddings)[:] = 7
    assert (np.asarray(embeddings) == 7).all()


def test_writable_offsets_are_refused(model: uform.Model, arena: uform.Arena) -> None:
    states = states_of(model.text_encode(TEXTS, arena, outputs=uform.Outputs.STATES))
    with pytest.raises(TypeError):
        memoryview(states.offsets)[0] = 1  # type: ignore[arg-type, index]


def test_an_export_pins(model: uform.Model, arena: uform.Arena) -> None:
    encoded = model.text_encode(TEXTS, arena, outputs=BOTH)
    exports = [
        memoryview(embeddings_of(encoded)),  # type: ignore[arg-type]
        np.asarray(states_of(encoded)),
        np.asarray(states_of(encoded).offsets),
        np.asarray(states_of(encoded)[0]),
    ]
    before = np.array(embeddings_of(encoded))
    assert arena.pins == 4
    while exports:
        with pytest.raises(uform.ContendedError, match=f"arena: pinned by {len(exports)} exports"):
            model.text_encode(["other"], arena)
        assert np.array_equal(np.asarray(embeddings_of(encoded)), before)
        exports.pop()
    assert arena.pins == 0
    model.text_encode(["other"], arena)


def test_a_view_alone_pins_nothing(model: uform.Model, arena: uform.Arena) -> None:
    encoded = model.text_encode(TEXTS, arena, outputs=BOTH)
    views = [encoded.embeddings, states_of(encoded).offsets, states_of(encoded)[0]]
    assert arena.pins == 0
    model.text_encode(["other"], arena)
    del views


def test_stale_views_refuse_every_access(model: uform.Model, arena: uform.Arena) -> None:
    encoded = model.text_encode(TEXTS, arena, outputs=BOTH)
    embeddings, states = embeddings_of(encoded), states_of(encoded)
    offsets, item = states.offsets, states[0]
    model.text_encode(["other"], arena)
    accesses = [
        *(lambda view=view: np.asarray(view) for view in (embeddings, states, offsets, item)),
        *(lambda view=view: np.array(view, dtype=np.float64) for view in (embeddings, states, offsets)),
        *(lambda view=view: memoryview(view) for view in (embeddings, states, offsets, item)),
        *(lambda view=view: bytes(view) for view in (embeddings, states)),
        *(lambda view=view: len(view) for view in (embeddings, states, offsets)),
        *(lambda view=view: view.shape for view in (embeddings, states, offsets, item)),
        *(lambda view=view: view.scalar for view in (embeddings, states, offsets)),
        lambda: embeddings.nbytes,
        lambda: states.rows,
        lambda: states.offsets,
        lambda: states[0],
        lambda: states[99],
        lambda: list(states),
    ]
    for access in accesses:
        with pytest.raises(uform.InvalidArgumentError, match="rewound"):
            access()
    assert repr(embeddings) == "<uform.ArenaBuffer stale>"
    assert repr(states) == "<uform.RowsTape stale>"
    assert arena.pins == 0


def test_views_of_a_call_that_failed_are_stale(model: uform.Model, arena: uform.Arena) -> None:
    """It rewound the arena before it failed, and published nothing."""
    embeddings = embeddings_of(model.text_encode(TEXTS, arena))
    with pytest.raises(uform.CancelledError):
        model.text_encode(TEXTS, arena, progress=lambda completed, total: False)
    with pytest.raises(uform.InvalidArgumentError, match="rewound"):
        np.asarray(embeddings)


def test_views_and_exports_outlive_the_arena(model: uform.Model) -> None:
    arena = uform.Arena()
    embeddings = embeddings_of(model.text_encode(TEXTS, arena))
    expected = np.array(embeddings)
    del arena
    gc.collect()
    export = np.asarray(embeddings)
    del embeddings
    gc.collect()
    assert np.array_equal(export, expected)


def test_array_protocol(model: uform.Model, arena: uform.Arena) -> None:
    embeddings = embeddings_of(model.text_encode(TEXTS, arena))
    assert np.shares_memory(embeddings.__array__(), np.asarray(embeddings))
    assert embeddings.__array__(np.float64).dtype == np.float64
    assert embeddings.__array__("float16").dtype == np.float16
    assert not np.shares_memory(embeddings.__array__(copy=True), np.asarray(embeddings))
    assert np.array_equal(embeddings.__array__(None, copy=True), np.asarray(embeddings))


def test_strict_layouts(model: uform.Model, arena: uform.Arena) -> None:
    """Consumers that ask for Fortran's order get it only where both orders are one."""
    embeddings = embeddings_of(model.text_encode(TEXTS, arena))
    assert np.asarray(embeddings, order="F").flags.f_contiguous
    export = memoryview(embeddings)  # type: ignore[arg-type]
    assert not export.f_contiguous
    assert export.strides == (4 * embeddings.shape[1], 4)


def test_one_call_at_a_time(model: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    arena = uform.Arena(executor)
    call = model.deferred(executor).text_encode(TEXTS, arena, progress=gate)
    gate.await_entry()
    assert arena.busy
    with pytest.raises(uform.ContendedError, match="arena: it serves another call"):
        model.text_encode(TEXTS, arena)
    gate.open()
    call.wait()
    assert not arena.busy
    model.text_encode(TEXTS, arena)


def test_dropping_a_busy_arena_waits_for_its_call(model: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    arena = uform.Arena(executor)
    call = model.deferred(executor).text_encode(TEXTS, arena, progress=gate)
    gate.await_entry()
    del arena
    gate.open()
    assert np.asarray(call.wait().embeddings).shape[0] == 3


def test_threads_that_share_an_arena_never_see_each_others_rows(model: uform.Model) -> None:
    """Each thread's views are of its own call, or stale: never of another thread's."""
    arena = uform.Arena()
    expected = [np.array(model.text_encode([text], uform.Arena()).embeddings) for text in "abcd"]
    wrong = []

    def encode(index: int) -> None:
        for _ in range(200):
            try:
                encoded = model.text_encode(["abcd"[index]], arena)
                rows = np.array(encoded.embeddings)
            except (uform.ContendedError, uform.InvalidArgumentError):
                continue
            if not np.array_equal(rows, expected[index]):
                wrong.append(index)

    threads = [threading.Thread(target=encode, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(st.sampled_from(["call", "export", "release", "view"]), max_size=30))
def test_pins_and_generations(model: uform.Model, steps: list[str]) -> None:
    """Any order of calls, exports and releases: a call succeeds only without exports, and ends the views before it."""
    arena = uform.Arena()
    views: list[uform.ArenaBuffer] = []
    exports: list[np.ndarray] = []
    fresh = False
    for step in steps:
        if step == "call":
            if exports:
                with pytest.raises(uform.ContendedError):
                    model.text_encode(["a"], arena)
            else:
                stale = views
                views = [embeddings_of(model.text_encode(["a"], arena))]
                fresh = True
                for view in stale:
                    with pytest.raises(uform.InvalidArgumentError):
                        np.asarray(view)
        elif step == "export" and fresh:
            exports.append(np.asarray(views[-1]))
        elif step == "release" and exports:
            exports.pop()
        elif step == "view" and fresh:
            views.append(views[-1])
        assert arena.pins == len(exports)


def test_arena_arguments() -> None:
    with pytest.raises(uform.ArgumentTypeError, match="executor: a uform.Executor is needed, not int"):
        uform.Arena(3)  # type: ignore[arg-type]
    executor = uform.Executor.for_ram(1)
    executor.close()
    with pytest.raises(uform.InvalidArgumentError, match="executor: it is closed"):
        uform.Arena(executor)
    assert repr(uform.Arena()) == "<uform.Arena capacity=0 pins=0>"
