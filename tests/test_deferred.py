"""Deferred calls: polling, waiting, awaiting, dropping, what they keep alive, and the interpreter's end."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import uform
from tests.conftest import Gate
from tests.test_executor import run_python

TEXTS = ["a cat on a mat", "a dog in the fog", "", "x"]


@pytest.fixture
def expected(model: uform.Model) -> np.ndarray:
    return np.array(model.text_encode(TEXTS, uform.Arena()).embeddings)


def submit(
    model: uform.Model,
    executor: uform.Executor,
    progress: Callable[[int, int], object] | None = None,
    texts: object = TEXTS,
) -> uform.Deferred[uform.EncodedBatch]:
    return model.deferred(executor).text_encode(texts, uform.Arena(executor), progress=progress)  # type: ignore[arg-type]


def test_status_polls(model: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    call = submit(model, executor, gate)
    gate.await_entry()
    assert call.status is uform.Status.DEFERRED
    assert repr(call) == "<uform.Deferred DEFERRED>"
    gate.open()
    call.wait()
    assert call.status is uform.Status.SUCCESS
    assert repr(call) == "<uform.Deferred SUCCESS>"


def test_waiting_gives_the_same_result(model: uform.Model, executor: uform.Executor, expected: np.ndarray) -> None:
    call = submit(model, executor)
    result = call.wait()
    assert call.wait() is result
    assert np.array_equal(np.asarray(result.embeddings), expected)


def test_many_threads_wait(model: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    call = submit(model, executor, gate)
    results: list[uform.EncodedBatch] = []
    threads = [threading.Thread(target=lambda: results.append(call.wait())) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.open()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(result is results[0] for result in results)


def test_choices_are_deferred_too(model: uform.Model, executor: uform.Executor) -> None:
    if not model.describe().choice_temperature_groups:
        pytest.skip("the checkpoint has no byte decoder")
    call = model.deferred(executor).text_choose(["a", "b"], ["yn", "ABC"], uform.Arena(executor))
    blocking = model.text_choose(["a", "b"], ["yn", "ABC"], uform.Arena())
    assert np.array_equal(np.asarray(call.wait()), np.asarray(blocking))


def test_awaiting(model: uform.Model, executor: uform.Executor, expected: np.ndarray) -> None:
    async def main() -> None:
        call = submit(model, executor)
        first = await call
        assert np.array_equal(np.asarray(first.embeddings), expected)
        assert await call is first
        assert all(result is first for result in await asyncio.gather(*(wait(call) for _ in range(20))))

    async def wait(call: uform.Deferred[uform.EncodedBatch]) -> uform.EncodedBatch:
        return await call

    asyncio.run(main())


def test_the_loop_runs_while_a_call_is_awaited(model: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    async def main() -> uform.EncodedBatch:
        call = submit(model, executor, gate)

        async def open_soon() -> None:
            await asyncio.to_thread(gate.await_entry)
            for _ in range(10):
                await asyncio.sleep(0)
            gate.open()

        opening = asyncio.create_task(open_soon())
        result = await call
        await opening
        return result

    assert asyncio.run(main()).embeddings is not None


def test_awaits_that_are_cancelled(
    model: uform.Model, executor: uform.Executor, gate: Gate, expected: np.ndarray
) -> None:
    async def main() -> None:
        call = submit(model, executor, gate)

        async def wait() -> uform.EncodedBatch:
            return await call

        task = asyncio.create_task(wait())
        await asyncio.to_thread(gate.await_entry)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(wait(), 0.01)
        assert call.status is uform.Status.DEFERRED
        gate.open()
        assert np.array_equal(np.asarray((await call).embeddings), expected)

    asyncio.run(main())


def test_awaiting_without_a_loop(model: uform.Model, executor: uform.Executor) -> None:
    call = submit(model, executor)
    with pytest.raises(RuntimeError, match="no running event loop"):
        call.__await__()
    call.wait()


@pytest.mark.parametrize("kind", [ValueError, KeyError, StopIteration])
def test_an_exception_of_a_handler_reaches_everyone(
    model: uform.Model, executor: uform.Executor, kind: type[Exception]
) -> None:
    raised = kind("mine")

    def handler(completed: int, total: int) -> None:
        raise raised

    call = submit(model, executor, handler)
    lengths = set()
    for _ in range(3):
        with pytest.raises(kind) as caught:
            call.wait()
        assert caught.value is raised
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert "handler" in [frame.name for frame in frames]
        lengths.add(len(frames))
    assert len(lengths) == 1, "the traceback does not grow"
    assert call.status is uform.Status.CANCELLED

    async def main() -> None:
        await call

    # No exception of this kind passes through a coroutine: PEP 479.
    with pytest.raises(RuntimeError if kind is StopIteration else kind):
        asyncio.run(main())


def test_stopping(model: uform.Model, executor: uform.Executor) -> None:
    call = submit(model, executor, lambda completed, total: False, ["text"] * 2000)
    for _ in range(2):
        with pytest.raises(uform.CancelledError, match="progress"):
            call.wait()
    with pytest.raises(uform.CancelledError):
        asyncio.run(wait_in_a_coroutine(call))


async def wait_in_a_coroutine(call: uform.Deferred[uform.EncodedBatch]) -> uform.EncodedBatch:
    return await call


def test_what_the_binding_refuses_raises_at_the_call(model: uform.Model, executor: uform.Executor) -> None:
    receiver = model.deferred(executor)
    with pytest.raises(uform.ArgumentTypeError):
        receiver.text_encode([5], uform.Arena())  # type: ignore[list-item]
    with pytest.raises(uform.MalformedError):
        receiver.text_encode(["\ud800"], uform.Arena())
    with pytest.raises(uform.UnknownKindError):
        receiver.text_encode(["a"], uform.Arena(), outputs_scalar=9)  # type: ignore[arg-type]


def test_what_the_library_refuses_raises_from_waiting(
    model: uform.Model, headless: uform.Model, executor: uform.Executor, arena: uform.Arena
) -> None:
    kept = np.asarray(model.text_encode(["kept"], arena).embeddings)
    broken = (b"abcd", np.array([0, 3, 2], np.uint64))
    refused: list[tuple[uform.Deferred[uform.EncodedBatch], type[uform.Error], int | None]] = [
        (model.deferred(executor).text_encode(broken, uform.Arena()), uform.InvalidArgumentError, 1),
        (model.deferred(executor).text_encode(["a"], arena), uform.ContendedError, None),
        (
            headless.deferred(executor).text_encode(["a"], uform.Arena(), outputs=uform.Outputs.TOKEN_VECTORS),
            uform.UnsupportedError,
            None,
        ),
    ]
    for call, kind, item in refused:
        assert call.status is kind.status
        for _ in range(2):
            with pytest.raises(kind) as caught:
                call.wait()
            assert caught.value.item == item
        with pytest.raises(kind):
            asyncio.run(wait_in_a_coroutine(call))
    assert kept.shape == (1, model.describe().dimensions)


def test_stats_are_there_once_it_is_final(model: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    stats = uform.TextEncodeStats()
    call = model.deferred(executor).text_encode(["a" * 7], uform.Arena(), stats=stats, progress=gate)
    gate.await_entry()
    assert stats.encoded_tokens == 0
    gate.open()
    while call.status is uform.Status.DEFERRED:
        pass
    assert stats.encoded_tokens == 7


def test_inputs_are_kept_until_it_is_final(
    model: uform.Model, executor: uform.Executor, gate: Gate, expected: np.ndarray
) -> None:
    data = bytearray("".join(TEXTS).encode())
    offsets = np.cumsum([0, *map(len, TEXTS)]).astype(np.uint64)
    gone = weakref.ref(offsets)
    call = submit(model, executor, gate, (data, offsets))
    del offsets
    gate.await_entry()
    gc.collect()
    assert gone() is not None
    with pytest.raises(BufferError):
        data.append(0)
    gate.open()
    assert np.array_equal(np.asarray(call.wait().embeddings), expected)
    data.append(0)
    assert gone() is None


def test_inputs_are_let_go_by_polling(model: uform.Model, executor: uform.Executor) -> None:
    data = bytearray(b"abc")
    call = submit(model, executor, None, (data, np.array([0, 3], np.uint64)))
    while call.status is uform.Status.DEFERRED:
        pass
    data.append(0)


def test_receiver_arena_and_model_are_kept(checkpoint: str, gate: Gate, expected: np.ndarray) -> None:
    call = submit(uform.Model.load_ram(checkpoint), uform.Executor.for_ram(2), gate)
    gate.await_entry()
    gc.collect()
    gate.open()
    assert np.array_equal(np.asarray(call.wait().embeddings), expected)


def test_dropping_waits(model: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    data = bytearray(b"abc")
    call = submit(model, executor, gate, (data, np.array([0, 3], np.uint64)))
    gate.await_entry()
    threading.Timer(0.05, gate.open).start()
    del call
    assert gate.opened.is_set()
    assert not executor.busy
    data.append(0)


def test_dropping_without_looking_at_the_handlers_exception(
    model: uform.Model, executor: uform.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda report: unraisable.append(report.exc_value))

    def handler(completed: int, total: int) -> None:
        raise ValueError("unseen")

    call = submit(model, executor, handler)
    while call.status is uform.Status.DEFERRED:
        pass
    del call
    assert [str(value) for value in unraisable] == ["unseen"]
    call = submit(model, executor, handler)
    with pytest.raises(ValueError, match="unseen"):
        call.wait()
    del call
    assert len(unraisable) == 1


def test_cycles_are_collected(model: uform.Model, executor: uform.Executor) -> None:
    class Holder:
        call: uform.Deferred[uform.EncodedBatch] | None = None

        def handler(self, completed: int, total: int) -> None:
            pass

    for wait in (False, True):
        holder = Holder()
        holder.call = submit(model, executor, holder.handler)
        if wait:
            holder.call.wait()
        gone = weakref.ref(holder)
        del holder
        gc.collect()
        assert gone() is None


def test_a_handler_that_waits_for_its_own_call(model: uform.Model, executor: uform.Executor) -> None:
    calls: list[uform.Deferred[uform.EncodedBatch]] = []
    submitted = threading.Event()

    def handler(completed: int, total: int) -> None:
        assert submitted.wait(60)
        assert calls[0].status is uform.Status.DEFERRED
        calls[0].wait()

    calls.append(submit(model, executor, handler))
    submitted.set()
    with pytest.raises(uform.ContendedError, match="wait"):
        calls[0].wait()


def test_a_handler_that_drops_its_own_call(model: uform.Model, executor: uform.Executor) -> None:
    calls: list[uform.Deferred[uform.EncodedBatch]] = []
    submitted, dropped = threading.Event(), threading.Event()

    def handler(completed: int, total: int) -> None:
        assert submitted.wait(60)
        calls.clear()
        dropped.set()

    calls.append(submit(model, executor, handler))
    submitted.set()
    assert dropped.wait(60)
    executor.drain(uform.Mood.CHILLING)
    gone = weakref.ref(handler)
    del handler
    while gone() is not None:  # Until the main thread gets to it.
        pass


def test_types_can_be_written() -> None:
    assert str(uform.Deferred[uform.EncodedBatch]).endswith("Deferred[uform.encode.EncodedBatch]")


@pytest.mark.parametrize("handler", ["None", "slow", "failing"])
@pytest.mark.parametrize("held", ["call", "(call, call.status)", "None"])
def test_the_interpreter_ends_in_flight(small_checkpoint: str, handler: str, held: str) -> None:
    code = f"""
        import sys, time
        import uform

        model = uform.Model.load_ram(sys.argv[1])
        executor = uform.Executor.for_ram(2)
        reports = 0

        def slow(completed, total):
            global reports
            reports += 1
            time.sleep(0.002)

        def failing(completed, total):
            slow(completed, total)
            if reports > 3:
                raise ValueError

        texts = ["some text of a few words"] * 30_000
        call = model.deferred(executor).text_encode(texts, uform.Arena(executor), progress={handler})
        sys.held = {held}
        while {handler} and not reports:
            time.sleep(0.001)
        if sys.held is None:
            sys.held = []
            sys.held.append((sys.held, call))  # A cycle that outlives the module.
        print("end")
    """
    done = run_python(code, small_checkpoint)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    if handler != "failing":
        assert done.stderr == ""


def test_the_interpreter_ends_while_it_is_awaited(small_checkpoint: str) -> None:
    code = """
        import asyncio, sys, time
        import uform

        async def main():
            model = uform.Model.load_ram(sys.argv[1])
            executor = uform.Executor.for_ram(2)
            texts = ["some text of a few words"] * 20_000
            call = model.deferred(executor).text_encode(texts, uform.Arena(executor), progress=lambda *report: None)

            async def wait():
                await call

            task = asyncio.ensure_future(wait())
            await asyncio.sleep(0.01)

        asyncio.run(main())
        print("end")
    """
    done = run_python(code, small_checkpoint)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
