"""Attaches lakes with Spark, for the commands whose work is Spark's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.cli.commands import style
from penstock.cli.delayed_imports import bring_back
from penstock.cli.lakes import moment_of, uri_of
from penstock.cli.reports import note
from penstock.ducklake.catalog.named_lakes.read_catalogs import read_catalog

if TYPE_CHECKING:
    from penstock.lake import Lake

_PROGRESS = "PENSTOCK_PROGRESS"


@contextmanager
def attached(lake: str, *, at: str | None = None, read_only: bool = False) -> Iterator[Lake]:
    """A lake with a Spark session, which has what it needs to read where the lake's files are."""
    uri, given = uri_of(lake), moment_of(at)
    with read_catalog(uri, **given) as found:  # whatever is wrong with it is told before Spark starts
        needs = found.session_needs
    if read_only:
        given["read_only"] = True
    note("starting Spark...", style())
    bring_back()
    import penstock

    spark = penstock.session(**needs)
    with (
        _unlogged(),
        _progress(not style().quiet),
        penstock.attach(uri, create_if_not_exists=False, spark=spark, **given) as opened,
    ):
        yield opened


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keeps a log quiet: PySpark writes the stack of each statement that Spark refuses to standard error."""
    from pyspark.logger import PySparkLogger

    log = PySparkLogger.getLogger("SQLQueryContextLogger")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


@contextmanager
def _progress(shown: bool) -> Iterator[None]:
    """Keeps the progress of long work to itself, where it is not wanted."""
    before = os.environ.get(_PROGRESS)
    if not shown:
        os.environ[_PROGRESS] = "0"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_PROGRESS, None)
        else:
            os.environ[_PROGRESS] = before
