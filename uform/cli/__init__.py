"""The command line: `uform`, or `python -m uform`. It needs the extra `cli`, which brings click and tqdm."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command that `sys.argv` names and exits: 0, 1 for a failure, 2 for wrong usage, 130 after Ctrl-C."""
    try:
        from uform.cli.commands import run
    except ModuleNotFoundError as error:
        if error.name not in ("click", "tqdm"):
            raise
        sys.exit(f"uform: the command line needs {error.name}; install it with: pip install 'uform[cli]'")
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    sys.exit(run(sys.argv[1:]))


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Ends the process the way an exception does, so that files that are half written are removed."""
    sys.exit(128 + number)
