"""The browser for the tests of the explorer's pages: one of Chromium's names, wherever it was installed from."""

from __future__ import annotations

import shutil
import sys

# Debian's own, others' packages of it, and Google's.
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def program() -> str | None:
    """The first that is on the path."""
    return next(filter(None, map(shutil.which, NAMES)), None)


if __name__ == "__main__":
    sys.exit(program() is None)
