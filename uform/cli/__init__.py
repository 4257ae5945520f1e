"""The command line: `uform`, or `python -m uform`. It needs the extra `cli`, which brings click and tqdm."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command that `sys.argv` names and exits: 0, 1 for a failure, 2 for wrong usage, 130 after Ctrl-C."""
    try:
        from uform.cli.commands import run
    except ModuleNotFoundError as error:
        if error.name not in ("click", "tqdm"):
            raise
        sys.exit(f"uform: the command line needs {error.name}; install it with: pip install 'uform[cli]'")
    sys.exit(run(sys.argv[1:]))
