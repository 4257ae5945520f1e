"""What the tests share. `UFORM_TEST_CHECKPOINT` names the checkpoint to run on; else a small random one is made."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

import uform
from tests.command_line import cli  # noqa: F401  A fixture.
from tests.media_verbs import media, verb, videos  # noqa: F401  Fixtures.
from tests.oracle import Audio, Configuration, Image, Oracle, Video

# A run in the background of a script ignores Ctrl-C, and so would all that it starts: tests send it to their processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SMALL = Configuration(
    depth=2,
    hidden=64,
    head_dimension=32,
    width=Configuration.width_for(64),
    dimensions=40,
    context=96,
    token_width=24,
    choice_temperature_groups=2,
    trained=["text", "image"],
    image=Image(patch_side=8, max_patches=24),
    video=Video(patch_side=8, max_patches=12, frames=2, max_frames=12, frame_rate=4.0),
    audio=Audio(frames_per_token=4),
)


class Gate:
    """A progress handler that keeps its call on the way until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()
        self.reports: list[tuple[int, int]] = []

    def __call__(self, completed: int, total: int) -> bool:
        self.reports.append((completed, total))
        self.entered.set()
        return self.opened.wait(60)

    def await_entry(self) -> None:
        assert self.entered.wait(60)

    def open(self) -> None:
        self.opened.set()


@pytest.fixture(scope="session")
def small_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    """For tests that need a call of a known duration."""
    path = tmp_path_factory.mktemp("checkpoint") / "small.safetensors"
    Oracle.random(SMALL, seed=11).save(path)
    return str(path)


@pytest.fixture(scope="session")
def checkpoint(small_checkpoint: str) -> str:
    given = os.environ.get("UFORM_TEST_CHECKPOINT")
    return os.path.abspath(given) if given else small_checkpoint


@pytest.fixture(scope="session")
def headless(tmp_path_factory: pytest.TempPathFactory) -> uform.Model:
    """A model without a token head and a byte decoder."""
    path = tmp_path_factory.mktemp("checkpoint") / "headless.safetensors"
    configuration = Configuration(
        depth=1, hidden=32, head_dimension=32, width=128, dimensions=16, context=32, token_width=0
    )
    Oracle.random(configuration, seed=12).save(path)
    return uform.Model.load_ram(path)


@pytest.fixture(scope="session")
def model(checkpoint: str) -> uform.Model:
    return uform.Model.load_ram(checkpoint)


@pytest.fixture
def executor() -> Iterator[uform.Executor]:
    with uform.Executor.for_ram(2) as executor:
        yield executor


@pytest.fixture
def arena() -> uform.Arena:
    return uform.Arena()


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open()


def supported_cpu_classes() -> list[uform.CPUClass]:
    supported = []
    for cpu_class in uform.CPUClass:
        try:
            uform.Executor.for_ram(1, cpu_class=cpu_class).close()
        except uform.UnsupportedError:
            continue
        supported.append(cpu_class)
    return supported


@pytest.fixture(params=supported_cpu_classes(), ids=lambda cpu_class: cpu_class.name)
def cpu_class(request: pytest.FixtureRequest) -> uform.CPUClass:
    cpu_class = request.param
    assert isinstance(cpu_class, uform.CPUClass)
    return cpu_class
