"""Sends Penstock's own code to the workers of a cluster, which need not have it installed."""

from __future__ import annotations

import threading
import zipfile
from pathlib import Path
from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession

from penstock import version
from penstock.spark.connect import artifacts
from penstock.spark.connect.sessions import is_connect

_shipped: WeakSet[Any] = WeakSet()
_lock = threading.Lock()


def ship(spark: SparkSession) -> None:
    """Sends Penstock to the workers of a session's cluster, once; what it depends on, their Python has to have.

    Writing does it by itself where the workers are other machines: call it to have it done before.

    Args:
        spark: The session.
    """
    if is_connect(spark):
        artifacts.send(spark, _zipped)
        return
    context = spark.sparkContext
    with _lock:
        source = Path(version.__file__).parent
        if context not in _shipped and source.is_dir():  # or it came in a zip itself
            context.addPyFile(str(_zipped(source, Path(str(context._temp_dir)))))
            _shipped.add(context)


def ship_where_needed(spark: SparkSession) -> None:
    """Ship to workers that are not on this machine."""
    if is_connect(spark):
        artifacts.send_where_missing(spark, _zipped)
    elif not is_on_this_machine(str(spark.sparkContext.master)):
        ship(spark)


def is_on_this_machine(master: str) -> bool:
    """Whether workers run where this program does, and with its Python."""
    return master.startswith("local")


def _zipped(source: Path, directory: Path) -> Path:
    """The package as a zip: PySpark puts those in the path of its workers, and says nothing of wheels."""
    target = directory / f"penstock-{version.__version__}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted(source.rglob("*")):
            if path.suffix in (".py", ".typed", ".java"):
                made.write(path, str(Path(source.name) / path.relative_to(source)))
    return target
