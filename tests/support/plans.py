"""What Spark's own metrics say about a query that has run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame


def files_read(frame: DataFrame) -> dict[str, int]:
    """Run a query; the number of files that each of its scans read, by the name of the scan."""
    jframe: Any = frame._jdf
    jframe.collectToPython()
    counts: dict[str, int] = {}
    for scan in _scans(jframe.queryExecution().executedPlan()):
        name = str(scan.relation().location()).partition(" at snapshot")[0]
        counts[name] = counts.get(name, 0) + scan.metrics().apply("numFiles").value()
    return counts


def _scans(plan: Any) -> Iterator[Any]:
    name = plan.getClass().getSimpleName()
    if name == "FileSourceScanExec":
        yield plan
    elif name == "AdaptiveSparkPlanExec":
        yield from _scans(plan.executedPlan())
    elif name.endswith("QueryStageExec"):
        yield from _scans(plan.plan())
    children = plan.children()
    for position in range(children.size()):
        yield from _scans(children.apply(position))
