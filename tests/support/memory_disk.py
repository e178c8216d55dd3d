"""Puts what the tests write on a disk in memory, where there is room: most of what they wait for is a disk's fsync."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_DISK = Path("/dev/shm")
_ROOM = 8 * 2**30
_MEMORY = 12 * 2**30


def use_memory_disk() -> None:
    """Let temporary files be made there, by this process and those that it starts."""
    if "TMPDIR" not in os.environ and _has_room():
        os.environ["TMPDIR"] = os.environ["SPARK_LOCAL_DIRS"] = str(_DISK)
        tempfile.tempdir = None  # asked again when it is next needed


def _has_room() -> bool:
    if not os.access(_DISK, os.W_OK):
        return False
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return shutil.disk_usage(_DISK).free >= _ROOM and _available_memory(available) >= _MEMORY


def _available_memory(free: int) -> int:
    """With what the kernel keeps of files and would give back."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return free
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), free)
