"""The group of all commands, and how their failures end the process."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

import click

import uform
from uform.cli.choose import choose
from uform.cli.describe import describe
from uform.cli.encode import encode
from uform.cli.search import search

INTERRUPTED = 128 + signal.SIGINT
BROKEN_PIPE = 128 + signal.SIGPIPE


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(uform.__version__, prog_name="uform", message="%(prog)s %(version)s")
def group() -> None:
    """Encodes texts, pictures, videos and recordings: searches, writes embeddings, scores choices.

    Exit status: 0, 1 for a failure, 2 for wrong usage.
    """


for command in (search, encode, choose, describe):
    group.add_command(command)


def run(arguments: Sequence[str]) -> int:
    """Runs the command that the arguments name. Returns the exit status; what failed is one line on stderr."""
    try:
        with group.make_context("uform", list(arguments or ["--help"])) as context:
            status = group.invoke(context)
        return int(status or 0)
    except click.exceptions.Exit as end:
        return end.exit_code
    except BrokenPipeError:
        # Whoever read the output has left, as `head` does. Python would complain when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "uform"
        return _fail(f"{command}: {error.format_message()} (try '{command} --help')", error.exit_code)
    except click.ClickException as error:
        return _fail(f"uform: {error.format_message()}", error.exit_code)
    except uform.Error as error:
        return _fail(f"uform: {error}", 1)
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        return _fail(f"uform: {place}{error.strerror or error}", 1)
    except MemoryError:
        return _fail("uform: out of memory", 1)


def _fail(message: str, status: int) -> int:
    click.echo(" ".join(message.split()), err=True)
    return status
