"""Checks that leaves are what the manifest says: readable, with the namespace's columns, and rows that belong there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.lance.format.definition import NamespaceDefinition
from penstock.lance.format.field_ids import field_id
from penstock.lance.format.leaf_columns import has_namespace_columns
from penstock.lance.format.leaves import Leaf
from penstock.lance.reading.leaf_scan import LeafScan
from penstock.lance.reading.misplaced_rows import misplaced_rows

PROBLEM_SCHEMA = "leaf string, problem string, rows bigint, detail string"


class LeafProblem(NamedTuple):
    """Something that is wrong with a leaf, and the way out."""

    leaf: str
    problem: str
    rows: int | None
    detail: str


def leaves_to_align(scan: LeafScan) -> list[Leaf]:
    """The leaves whose columns are not the namespace's, or with rows that do not belong there, or may not."""
    datasets = list(scan.store.each(scan.dataset, scan.leaves))
    present = [(leaf, dataset) for leaf, dataset in zip(scan.leaves, datasets, strict=True) if dataset is not None]
    others = [leaf for leaf, _ in present if not leaf.is_own]
    misplaced = misplaced_rows(scan.only(others)) if others else {}
    return [
        leaf
        for leaf, dataset in present
        if not leaf.checked
        or leaf.object_id in misplaced
        or not has_namespace_columns(scan.definition, dataset.schema, scan.columns_of(leaf, dataset))
    ]


def leaf_problems(scan: LeafScan) -> list[LeafProblem]:
    """All that is wrong with leaves, in their order."""
    checked = list(scan.store.each(lambda leaf: _problems(scan, leaf), scan.leaves))
    found = [problem for problems, _ in checked for problem in problems]
    readable = [leaf for leaf, (_, is_readable) in zip(scan.leaves, checked, strict=True) if is_readable]
    for leaf, rows in sorted(misplaced_rows(scan.only(readable)).items()) if readable else []:
        detail = "their partition values are not the leaf's: align() moves them to their leaves"
        found.append(LeafProblem(leaf, "misplaced rows", rows, detail))
    return sorted(found, key=lambda one: (one.leaf, one.problem))


def _problems(scan: LeafScan, leaf: Leaf) -> tuple[list[LeafProblem], bool]:
    """The problems of a leaf apart from its rows, and whether those can be read."""
    try:
        dataset = scan.dataset(leaf)
        if dataset is None:
            return [], False
        columns = scan.columns_of(leaf, dataset)
    except PenstockError as error:
        return [LeafProblem(leaf.object_id, "unreadable", None, str(error))], False
    found = []
    differences = _column_differences(scan.definition, dataset.schema, columns)
    if differences:
        found.append(
            LeafProblem(leaf.object_id, "columns", None, f"{'; '.join(differences)}: align() gives it the namespace's")
        )
    if leaf.version and dataset.latest_version != leaf.version:
        detail = f"readers see version {leaf.version} of {dataset.latest_version}: adopt() shows the newest"
        found.append(LeafProblem(leaf.object_id, "not adopted", None, detail))
    return found, True


def _column_differences(definition: NamespaceDefinition, leaf: pa.Schema, columns: Mapping[int, str]) -> list[str]:
    """What is different about a leaf's columns, in words."""
    found: list[str] = []
    for item in definition.schema:
        name = columns.get(field_id(item))
        if name is None:
            found.append(f"{item.name} is missing")
        elif leaf.field(name).type != item.type:
            found.append(f"{name} is {leaf.field(name).type}, not {item.type}")
        elif name != item.name:
            found.append(f"{item.name} is called {name}")
    known = {columns.get(field_id(item)) for item in definition.schema}
    return [*found, *(f"{name} is not the namespace's" for name in leaf.names if name not in known)]
