"""Minds what a program writes to: outputs that are closed, full, left by their reader, or of few characters."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from penstock.errors import InvalidError


def prepare_outputs() -> bool:
    """Let standard output and error take any text. Returns whether there is a standard output."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="backslashreplace")  # for people; programs get UTF-8
    if sys.stdout is None:
        print("penstock: standard output is closed; send it to a file, or to /dev/null", file=sys.stderr)
    return sys.stdout is not None


@contextmanager
def written() -> Iterator[None]:
    """Makes the errors of standard output an InvalidError. BrokenPipeError, of a reader that has enough, stays."""
    try:
        yield
    except BrokenPipeError:
        forget_output()
        raise
    except OSError as error:
        forget_output()
        raise InvalidError(f"standard output cannot be written to: {error.strerror or error}") from None


def forget_output() -> None:
    """Let what is still to be written go nowhere, so that the end of the program does not try it once more."""
    with suppress(OSError):  # those of tests have no number
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
