"""Brings Java classes of ours to every executor: in a JAR that is made when they are first needed."""

from __future__ import annotations

import threading
import zipfile
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from penstock.spark.java_classes import class_folder, class_loader

_JAVA = "penstock.spark.java"
_ISOLATION = "spark.sql.artifact.isolation.enabled"
_added: WeakKeyDictionary[Any, dict[tuple[str, ...], Path]] = WeakKeyDictionary()
_added_to_sessions: WeakKeyDictionary[SparkSession, set[Path]] = WeakKeyDictionary()
_lock = threading.Lock()


def add_to_executors(spark: SparkSession, *names: str) -> None:
    """Let the driver and the executors of a session find classes by their names, from now on; once a context.

    `names` are sources of `spark/java/` that refer to no others. A task that starts later finds them by the loader of
    its thread, which Hadoop's configuration uses.
    """
    context = spark.sparkContext
    with _lock:
        added = _added.setdefault(context, {})
        if names not in added:
            class_loader(spark, _JAVA, names)
            jar = _packed(class_folder(spark, _JAVA, names), Path(str(context._temp_dir)))
            context._jsc.sc().addJar(str(jar))
            added[names] = jar
        if is_isolated(spark):
            _add_to_session(spark, added[names])


def is_isolated(spark: SparkSession) -> bool:
    """Whether each session sees its own JARs alone: rows of one may be read by another, by a view."""
    return bool(spark.conf.get(_ISOLATION, None) == "true")


def _add_to_session(spark: SparkSession, jar: Path) -> None:
    """Add a JAR to a session whose tasks see none but its own."""
    added = _added_to_sessions.setdefault(spark, set())
    if jar not in added:
        spark.sql(f"ADD JAR '{jar}'")
        added.add(jar)


def _packed(folder: Path, target: Path) -> Path:
    """The classes of a folder as a JAR; executors know it by its name, which is that of these classes alone."""
    jar = target / f"penstock-{folder.name}.jar"
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted(folder.rglob("*.class")):
            made.write(path, path.relative_to(folder).as_posix())
    return jar
