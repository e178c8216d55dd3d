"""Brings Penstock's few Java classes into the driver's JVM: compiled by the compiler that Spark ships, once a machine.

What was compiled is kept in the user's cache, by the sources and the versions of Spark and Java; no JAR is installed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_COMPLETE = "complete"
_URL_LOADER = "java.net.URLClassLoader"
_loaded: WeakKeyDictionary[Any, dict[tuple[str, ...], Any]] = WeakKeyDictionary()  # by JVM
_lock = threading.Lock()


def java_class(spark: SparkSession, name: str) -> Any:
    """A class of the driver's JVM by its full name.

    Written as `jvm.org.apache...`, the JVM would look for a class `org` in each of Spark's JARs first, then for
    `org.apache`: two milliseconds every time.
    """
    return getattr(spark._jvm, name)


def class_loader(
    spark: SparkSession, package: str, names: tuple[str, ...], services: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """The class loader that finds the classes of a package of sources, compiled if they were not yet.

    `services` are the interfaces that Java looks for implementations of, each with the class that is one.
    """
    gateway: Any = spark.sparkContext._gateway
    with _lock:
        loaded = _loaded.setdefault(gateway, {})
        key = (package, *names)
        if key not in loaded:
            loaded[key] = _with_folder(spark, class_folder(spark, package, names, services))
        return loaded[key]


def class_folder(
    spark: SparkSession, package: str, names: tuple[str, ...], services: Mapping[str, str] = MappingProxyType({})
) -> Path:
    """The folder with the classes of a package of sources, compiled if they were not yet; its name is theirs alone."""
    sources = {name: files(package).joinpath(f"{name}.java").read_text() for name in names}
    return _compiled(spark, sources, services)


def _with_folder(spark: SparkSession, folder: Path) -> Any:
    """The loader of all of Spark's threads, with a folder more.

    A `MutableURLClassLoader` wherever Spark was started by spark-submit, as PySpark does; else a loader of our own.
    """
    url = java_class(spark, "java.io.File")(str(folder)).toURI().toURL()
    context = java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    loader = context
    while loader is not None:
        if loader.getClass().getSimpleName().endswith("URLClassLoader") and loader.getClass().getName() != _URL_LOADER:
            loader.addURL(url)
            return context
        loader = loader.getParent()
    urls = spark.sparkContext._gateway.new_array(java_class(spark, "java.net.URL"), 1)  # type: ignore[union-attr]
    urls[0] = url
    return java_class(spark, _URL_LOADER)(urls, context)


def _compiled(spark: SparkSession, sources: dict[str, str], services: Mapping[str, str]) -> Path:
    """A folder with the classes of sources that refer to each other."""
    java = java_class(spark, "java.lang.System").getProperty("java.specification.version")
    text = "\0".join([spark.version, java, *(part for item in (*sources.items(), *services.items()) for part in item)])
    folder = _cache() / sha256(text.encode()).hexdigest()[:32]
    if (folder / _COMPLETE).exists():
        return folder
    fresh = Path(tempfile.mkdtemp(dir=folder.parent))
    _compile(spark, sources, fresh)
    for service, name in services.items():
        entry = fresh / "META-INF" / "services" / service
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.write_text(f"{name}\n")
    (fresh / _COMPLETE).touch()
    try:
        os.rename(fresh, folder)
    except OSError:  # another process was faster
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _compile(spark: SparkSession, sources: dict[str, str], target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-") as place:
        file_class = java_class(spark, "java.io.File")
        given = spark.sparkContext._gateway.new_array(file_class, len(sources))  # type: ignore[union-attr]
        for number, (name, text) in enumerate(sources.items()):
            source = Path(place, f"{name}.java")
            source.write_text(text)
            given[number] = file_class(str(source))
        compiler = java_class(spark, "org.codehaus.janino.Compiler")()
        loader = java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
        compiler.setIClassLoader(java_class(spark, "org.codehaus.janino.ClassLoaderIClassLoader")(loader))
        compiler.setDestinationDirectory(file_class(str(target)), False)
        compiler.setTargetVersion(8)  # below it, no static method of an interface can be called
        compiler.compile(given)


def _cache() -> Path:
    """The folder of compiled classes; a temporary one where the user has none that can be written."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(home, "penstock", "classes")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.access(folder, os.W_OK | os.X_OK) and folder.stat().st_uid == os.getuid():
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="penstock-classes-"))
