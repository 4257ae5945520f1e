"""Executors and receivers: threads, pins, contention, closing, handlers, signals, forks."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import uform
from tests.conftest import Gate, supported_cpu_classes

TEXTS = ["a cat on a mat", "a dog in the fog", "", "x"]


def pool_threads() -> set[int]:
    """The threads that executors started, by name: the system lists a thread a while after it was joined."""
    found = set()
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # It ended meanwhile.
            if Path(f"/proc/self/task/{task}/comm").read_text().startswith("uform-"):
                found.add(int(task))
    return found


def await_equal(expected: object, found: Callable[[], object], seconds: float = 30) -> None:
    """Asks until the answer is as expected; a thread shows its name, and disappears, when the system comes to it."""
    deadline = time.monotonic() + seconds
    while found() != expected:
        assert time.monotonic() < deadline, f"{found()} instead of {expected}"
        time.sleep(0.005)


def run_python(code: str, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def encode(receiver: uform.Model | uform.On, texts: object = TEXTS, **options: object) -> np.ndarray:
    return np.array(receiver.text_encode(texts, uform.Arena(), **options).embeddings)  # type: ignore[arg-type]


def test_receivers_give_the_same_bits(model: uform.Model, executor: uform.Executor) -> None:
    expected = encode(model)
    assert np.array_equal(encode(model.on(executor)), expected)
    deferred = model.deferred(executor).text_encode(TEXTS, uform.Arena(executor))
    assert np.array_equal(np.asarray(deferred.wait().embeddings), expected)


@pytest.mark.parametrize("wrong", [None, 3, "executor"])
def test_receivers_of_wrong_types(model: uform.Model, wrong: object) -> None:
    for receive in (model.on, model.deferred):
        with pytest.raises(uform.ArgumentTypeError, match="executor: a uform.Executor is needed"):
            receive(wrong)  # type: ignore[operator]


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="the system does not list threads")
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_are_exactly_as_asked(model: uform.Model, threads: int) -> None:
    texts = ["some text of a few words"] * 500
    before = pool_threads()

    def started() -> int:
        return len(pool_threads() - before)

    executor = uform.Executor.for_ram(threads)
    assert executor.threads == threads
    assert started() == 0
    encode(model.on(executor), texts)
    await_equal(threads - 1, started)  # The caller's thread takes the place of one.
    model.deferred(executor).text_encode(texts, uform.Arena(executor)).wait()
    await_equal(threads, started)
    executor.close()
    await_equal(0, started)


def test_helpers_get_their_cores_back(model: uform.Model, executor: uform.Executor) -> None:
    """They are kept off the caller's core while a call may come, and sleep with all that they were allowed."""

    arena = uform.Arena()
    before = pool_threads()
    for _ in range(20):
        time.sleep(0.002)
        model.on(executor).text_encode(TEXTS, arena)
    helpers = pool_threads() - before
    assert len(helpers) == 1
    allowed = os.sched_getaffinity(0)
    await_equal([allowed], lambda: [os.sched_getaffinity(helper) for helper in helpers])


def test_threads_by_default() -> None:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert 1 <= uform.Executor.for_ram().threads <= usable


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"threads": -1}, uform.InvalidArgumentError, "threads: -1"),
        ({"threads": 1 << 80}, uform.InvalidArgumentError, "threads"),
        ({"threads": 1 << 20}, uform.InvalidArgumentError, "threads"),
        ({"threads": "2"}, uform.ArgumentTypeError, "threads: an integer is needed, not str"),
        ({"threads": 2.0}, uform.ArgumentTypeError, "threads: an integer is needed, not float"),
        ({"memory_domains": []}, uform.InvalidArgumentError, "memory_domains"),
        ({"memory_domains": [1 << 20]}, uform.InvalidArgumentError, "memory_domains"),
        ({"memory_domains": [-1]}, uform.InvalidArgumentError, "memory_domains"),
        ({"memory_domains": 0}, uform.ArgumentTypeError, "memory_domains: a sequence of integers is needed"),
        ({"memory_domains": np.array(0)}, uform.ArgumentTypeError, "memory_domains: .* not a numpy.ndarray without a"),
        ({"memory_domains": ["0"]}, uform.ArgumentTypeError, "memory_domains: an integer is needed, not str"),
        ({"cpu_class": 99}, uform.UnknownKindError, "cpu_class: 99"),
        ({"cpu_class": "SERIAL"}, uform.ArgumentTypeError, "cpu_class"),
    ],
    ids=repr,
)
def test_arguments(options: dict[str, object], kind: type[uform.Error], message: str) -> None:
    with pytest.raises(kind, match=message):
        uform.Executor.for_ram(**options)  # type: ignore[arg-type]


@pytest.mark.skipif(not os.path.isdir("/sys/devices/system/node/node0"), reason="the system has no memory domains")
def test_memory_domains(model: uform.Model) -> None:
    with uform.Executor.for_ram(2, memory_domains=[0]) as executor:
        assert np.array_equal(encode(model.on(executor)), encode(model))


def test_classes_are_pinned(checkpoint: str, model: uform.Model, cpu_class: uform.CPUClass) -> None:
    pinned = uform.Model.load_ram(checkpoint, cpu_class=cpu_class)
    assert pinned.describe().cpu_class is cpu_class
    assert pinned.describe().cpu_class_pinned
    with uform.Executor.for_ram(1, cpu_class=cpu_class) as executor:
        assert executor.cpu_class is cpu_class
        expected = encode(pinned)
        assert np.array_equal(encode(model.on(executor)), expected)
        assert np.array_equal(encode(pinned.on(executor)), expected)


def test_classes_that_differ(checkpoint: str) -> None:
    supported = supported_cpu_classes()
    if len(supported) < 2:
        pytest.skip("this machine has one class")
    pinned = uform.Model.load_ram(checkpoint, cpu_class=supported[0])
    with uform.Executor.for_ram(1, cpu_class=supported[1]) as executor:
        with pytest.raises(uform.ConfigMismatchError, match=supported[1].name):
            encode(pinned.on(executor))
        call = pinned.deferred(executor).text_encode(TEXTS, uform.Arena())
        assert call.status is uform.Status.CONFIG_MISMATCH
        with pytest.raises(uform.ConfigMismatchError):
            call.wait()


def test_classes_that_the_machine_cannot_run(checkpoint: str) -> None:
    for cpu_class in set(uform.CPUClass) - set(supported_cpu_classes()):
        with pytest.raises(uform.UnsupportedError, match=cpu_class.name):
            uform.Executor.for_ram(cpu_class=cpu_class)
        with pytest.raises(uform.UnsupportedError, match=cpu_class.name):
            uform.Model.load_ram(checkpoint, cpu_class=cpu_class)


def test_a_closed_executor_is_an_error(model: uform.Model, checkpoint: str) -> None:
    with uform.Executor.for_ram(2) as executor:
        on, deferred = model.on(executor), model.deferred(executor)
        assert not executor.closed
    assert executor.closed
    assert repr(executor) == "<uform.Executor closed>"
    executor.close()
    uses: list[Callable[[], object]] = [
        lambda: encode(on),
        lambda: deferred.text_encode(TEXTS, uform.Arena()),
        lambda: model.on(executor),
        lambda: model.deferred(executor),
        lambda: uform.Arena(executor),
        lambda: uform.Model.load_ram(checkpoint, executor=executor),
        lambda: executor.threads,
        lambda: executor.cpu_class,
        lambda: executor.busy,
        lambda: executor.drain(uform.Mood.PARKED),
        lambda: executor.__enter__(),
    ]
    for use in uses:
        with pytest.raises(uform.InvalidArgumentError, match="executor: it is closed"):
            use()


def test_closing_waits_for_its_calls(model: uform.Model, gate: Gate) -> None:
    arena = uform.Arena()
    threading.Timer(0.1, gate.open).start()
    with uform.Executor.for_ram(2) as executor:
        call = model.deferred(executor).text_encode(TEXTS, arena, progress=gate)
        gate.await_entry()
    assert gate.opened.is_set()
    assert np.asarray(call.wait().embeddings).shape[0] == len(TEXTS)


def test_an_error_inside_of_the_block_closes_as_well() -> None:
    with pytest.raises(ZeroDivisionError), uform.Executor.for_ram(1) as executor:
        _ = 1 / 0
    assert executor.closed


def test_one_call_at_a_time(model: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    first = model.deferred(executor).text_encode(TEXTS, uform.Arena(executor), progress=gate)
    gate.await_entry()
    assert executor.busy
    with pytest.raises(uform.ContendedError, match="executor: it serves another call"):
        encode(model.on(executor))
    second = model.deferred(executor).text_encode(TEXTS, uform.Arena(executor))
    assert second.status is uform.Status.CONTENDED
    with pytest.raises(uform.ContendedError):
        second.wait()
    encode(model)
    gate.open()
    first.wait()
    assert not executor.busy
    encode(model.on(executor))


def test_draining_waits_until_idle(model: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    call = model.deferred(executor).text_encode(TEXTS, uform.Arena(executor), progress=gate)
    gate.await_entry()
    opened: list[bool] = []

    def drain() -> None:
        executor.drain(uform.Mood.PARKED)
        opened.append(gate.opened.is_set())

    thread = threading.Thread(target=drain)
    thread.start()
    thread.join(0.05)
    assert not opened
    gate.open()
    thread.join()
    assert opened == [True]
    call.wait()


@pytest.mark.parametrize("mood", uform.Mood)
def test_moods(model: uform.Model, executor: uform.Executor, mood: uform.Mood) -> None:
    executor.drain(mood)
    assert np.array_equal(encode(model.on(executor)), encode(model))
    with pytest.raises(uform.UnknownKindError, match="mood: 9 is no mood"):
        executor.drain(9)  # type: ignore[arg-type]
    with pytest.raises(uform.ArgumentTypeError, match="mood"):
        executor.drain("PARKED")  # type: ignore[arg-type]


def test_progress(model: uform.Model, executor: uform.Executor) -> None:
    texts = ["some text of a few words"] * 300
    for receiver in (model, model.on(executor)):
        reports: list[tuple[int, int]] = []
        encode(receiver, texts, progress=lambda *report, reports=reports: reports.append(report))
        completed = [done for done, _ in reports]
        assert completed == sorted(completed)
        assert reports[-1] == (300, 300)
        assert {total for _, total in reports} == {300}


@pytest.mark.parametrize("answer", [None, True, 1, 0, "", np.True_])
def test_other_answers_go_on(model: uform.Model, answer: object) -> None:
    encode(model, progress=lambda completed, total: answer)


@pytest.mark.parametrize("answer", [False, np.False_])
@pytest.mark.parametrize("on_executor", [False, True])
def test_false_stops(model: uform.Model, executor: uform.Executor, answer: object, on_executor: bool) -> None:
    stats, calls = uform.TextEncodeStats(), []

    def handler(completed: int, total: int) -> object:
        calls.append(completed)
        return answer

    receiver = model.on(executor) if on_executor else model
    with pytest.raises(uform.CancelledError, match="progress"):
        encode(receiver, ["text"] * 2000, progress=handler, stats=stats)
    assert len(calls) == 1
    assert stats.encoded_tokens == 0


class Stop(BaseException):
    """Nothing that anyone else catches."""


@pytest.mark.parametrize("kind", [ValueError, Stop, KeyboardInterrupt, StopIteration])
@pytest.mark.parametrize("on_executor", [False, True])
def test_an_exception_of_a_handler_reaches_the_caller(
    model: uform.Model, executor: uform.Executor, kind: type[BaseException], on_executor: bool
) -> None:
    raised = kind("mine")

    def handler(completed: int, total: int) -> None:
        raise raised

    receiver = model.on(executor) if on_executor else model
    with pytest.raises(kind) as caught:
        encode(receiver, ["text"] * 2000, progress=handler)
    assert caught.value is raised
    assert "handler" in [entry.name for entry in caught.traceback]
    encode(receiver)


def test_an_exception_at_the_last_report(model: uform.Model) -> None:
    def handler(completed: int, total: int) -> None:
        if completed == total:
            raise LookupError("late")

    with pytest.raises(LookupError, match="late"):
        encode(model, progress=handler)


def test_handlers_that_call_back(model: uform.Model, executor: uform.Executor) -> None:
    """The executor and the arena are taken: everything that needs them says so, and nothing waits for itself."""
    arena = uform.Arena(executor)
    kinds: list[type[uform.Error]] = []
    uses: list[Callable[[], object]] = [
        lambda: encode(model.on(executor)),
        lambda: model.text_encode(TEXTS, arena),
        lambda: model.deferred(executor).text_encode(TEXTS, uform.Arena(executor)).wait(),
        lambda: executor.drain(uform.Mood.CHILLING),
        lambda: executor.close(),
        lambda: executor.__exit__(None, None, None),
    ]

    def handler(completed: int, total: int) -> None:
        for use in uses:
            with pytest.raises(uform.ContendedError) as caught:
                use()
            kinds.append(caught.type)
        encode(model)  # The thread itself is free for more.

    model.on(executor).text_encode(["one"], arena, progress=handler)
    model.deferred(executor).text_encode(["one"], arena, progress=handler).wait()
    assert len(kinds) >= 2 * len(uses)


def test_calls_release_the_gil(model: uform.Model) -> None:
    texts = ["some text of a few words" * 3] * 1000
    done = threading.Event()
    steps = 0

    def call() -> None:
        encode(model, texts)
        done.set()

    thread = threading.Thread(target=call)
    thread.start()
    while not done.wait(0.001):
        steps += 1
    thread.join()
    assert steps > 3


def test_ctrl_c_stops_a_blocking_call(small_checkpoint: str) -> None:
    code = """
        import os, signal, sys, threading, time
        import uform

        model = uform.Model.load_ram(sys.argv[1])
        stats, texts = uform.TextEncodeStats(), ["some text of a few words" * 4] * 400_000
        receiver = model.on(uform.Executor.for_ram(2)) if sys.argv[2] == "on" else model
        model.text_encode(texts[:1], uform.Arena())
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            receiver.text_encode(texts, uform.Arena(), stats=stats)
        except KeyboardInterrupt:
            print("stopped" if stats.encoded_tokens == 0 else "late")
    """
    for receiver in ("model", "on"):
        done = run_python(code, small_checkpoint, receiver)
        assert done.stdout == "stopped\n", done.stderr


def test_a_forked_child_encodes(model: uform.Model, executor: uform.Executor, gate: Gate) -> None:
    """Whatever the parent's threads were doing: here they serve a call."""
    expected = encode(model)
    arena = uform.Arena(executor)
    call = model.deferred(executor).text_encode(TEXTS, arena, progress=gate)
    gate.await_entry()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        status = 1
        try:
            same = np.array_equal(encode(model.on(executor)), expected)
            same &= np.array_equal(np.array(model.text_encode(TEXTS, arena).embeddings), expected)
            try:
                call.wait()
            except uform.CancelledError:
                status = 0 if same else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    gate.open()
    assert np.array_equal(np.asarray(call.wait().embeddings), expected)


def test_threads_outlived_by_the_interpreter(small_checkpoint: str) -> None:
    """A daemon thread inside of a call, when the interpreter ends."""
    code = """
        import sys, threading
        import uform

        model = uform.Model.load_ram(sys.argv[1])
        entered = threading.Event()
        texts = ["some text of a few words"] * 2000 if sys.argv[2] == "long" else []

        def encode():
            entered.set()
            while True:
                model.text_encode(texts, uform.Arena())

        for _ in range(3):
            threading.Thread(target=encode, daemon=True).start()
        entered.wait()
    """
    for _ in range(3):
        for calls in ("long", "short"):
            done = run_python(code, small_checkpoint, calls)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), calls


def test_representation() -> None:
    with uform.Executor.for_ram(3, cpu_class=uform.CPUClass.SERIAL) as executor:
        assert repr(executor) == "<uform.Executor threads=3 cpu_class=SERIAL>"
    assert repr(uform.Executor.for_ram(1)) == "<uform.Executor threads=1 cpu_class=None>"
