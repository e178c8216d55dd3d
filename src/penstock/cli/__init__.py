"""The command `penstock`: lakes at a terminal."""

from __future__ import annotations

import signal
import sys

_NEEDED = ("typer", "rich", "prompt_toolkit")


def main() -> None:
    """Runs the command that the program was started with."""
    interrupted = signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is begun yet: Ctrl-C may end it at once
    try:
        from penstock.cli.application import run
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        print(f"penstock: {error.name} is not installed: pip install 'penstock[cli]'", file=sys.stderr)
        sys.exit(1)
    signal.signal(signal.SIGINT, interrupted)
    sys.exit(run())
