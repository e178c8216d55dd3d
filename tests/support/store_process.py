"""The process of a store's server: started, waited for, ended with all that it holds."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

_START_SECONDS = 60


class StoreProcess:
    """A server of objects that checks signatures, and keeps what it has in a directory of its own."""

    def __init__(
        self, command: Sequence[str | Path], endpoint: str, directory: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self._directory = directory
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        deadline = time.monotonic() + _START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                urlopen(endpoint, timeout=5).close()
            except HTTPError:  # it wants a signature
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"{command[0]} did not start")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)
