"""Sends Penstock's own code to a Spark Connect server whose Python lacks it."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from weakref import WeakSet

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock import version

Zip = Callable[[Path, Path], Path]  # a package, and the directory that its zip is made in
_PROBE = "found string"
_ready: WeakSet[SparkSession] = WeakSet()  # sessions whose workers have it
_lock = threading.Lock()


def send_where_missing(spark: SparkSession, zipped: Zip) -> None:
    """Send the package, once a session, if the server's workers lack it or have another version."""
    with _lock:
        if spark not in _ready:
            if _version_there(spark) != version.__version__:
                _send(spark, zipped)
            _ready.add(spark)


def send(spark: SparkSession, zipped: Zip) -> None:
    """Send the package, once a session."""
    with _lock:
        if spark not in _ready:
            _send(spark, zipped)
            _ready.add(spark)


def _send(spark: SparkSession, zipped: Zip) -> None:
    source = Path(version.__file__).parent
    if source.is_dir():  # or it came in a zip itself, as it does to the workers
        with tempfile.TemporaryDirectory(prefix="penstock-") as directory:
            spark.addArtifacts(str(zipped(source, Path(directory))), pyfile=True)


def _version_there(spark: SparkSession) -> str | None:
    """The version that a worker of the server has; None where there is none."""
    [[found]] = spark.range(1, numPartitions=1).mapInArrow(_probe(), _PROBE).collect()
    return str(found) if found else None


def _probe() -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function that travels whole: what it is in may not be there."""

    def probe(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        try:
            from penstock.version import __version__ as found
        except ImportError:
            found = ""
        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"found": [found]})

    return probe
