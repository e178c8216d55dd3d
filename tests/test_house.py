"""The rules of the house that a program can check: which way imports point, and how large a module is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import penstock

SOURCE = Path(penstock.__file__).parent
FORMATS = ("ducklake", "lance", "delta")
# A package may import those before it, and itself.
SHARED = ("version", "errors", "texts", "markup", "schema", "predicates", "partitioning", "storage", "spark")
ROOMS = {
    "ducklake": (
        "model", "files", "catalog", "transaction", "inspection", "attachment", "reading", "writing", "changing",
        "maintenance", "moving", "streaming",
    ),
    "lance": ("format", "commits", "reading", "writing", "namespace_maintenance", "namespace"),
    "delta": ("format", "log", "reading", "writing", "table"),
}  # fmt: skip
# Ways in, which only the public face knows of.
DOORS = ("sql", "explorer", "cli")
FACE = ("attaching", "format_lakes", "lake", "lake_session")
PURE = ("version", "errors", "texts", "markup", "schema", "predicates", "partitioning")
SPARKLESS = ("model", "files", "catalog", "transaction", "inspection")  # rooms of ducklake, which start no JVM
ENGINES = ("pyspark", "py4j", "duckdb", "sqlite3", "psycopg", "pymysql", "lance", "deltalake")
MOST_LINES = 450


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in SOURCE.rglob("*.py")}


def imported(path: Path) -> Iterator[str]:
    """The modules that a module imports, wherever in it, and for its types too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


IMPORTS = {name: set(imported(path)) for name, path in MODULES.items()}


def inside(name: str) -> tuple[str, ...]:
    """The parts of a module's name below `penstock`."""
    return tuple(name.split(".")[1:])


def ours(name: str) -> list[str]:
    return sorted(other for other in IMPORTS[name] if other in MODULES and other != "penstock")


def test_shared_packages_import_only_those_below_them() -> None:
    wrong = [
        (name, other)
        for name in MODULES
        if inside(name)[:1] and inside(name)[0] in SHARED
        for other in ours(name)
        if inside(other)[0] not in SHARED[: SHARED.index(inside(name)[0]) + 1]
    ]
    assert wrong == []


def test_formats_do_not_import_each_other() -> None:
    wrong = [
        (name, other)
        for name in MODULES
        if inside(name)[:1] and inside(name)[0] in FORMATS
        for other in ours(name)
        if inside(other)[0] in FORMATS and inside(other)[0] != inside(name)[0]
    ]
    assert wrong == []


def test_only_the_public_face_knows_the_doors() -> None:
    wrong = [
        (name, other)
        for name in MODULES
        if inside(name)[:1] and inside(name)[0] not in (*DOORS, *FACE)
        for other in ours(name)
        if inside(other)[0] in (*DOORS, *FACE)
    ]
    assert wrong == []
    assert not [
        (name, other)
        for name in MODULES
        if inside(name)[:1] == ("sql",)
        for other in ours(name)
        if inside(other)[0] in ("lance", "delta", *FACE)
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_the_rooms_of_a_format_import_only_those_below_them(format: str) -> None:
    rooms = ROOMS[format]
    wrong = [
        (name, other)
        for name in MODULES
        if inside(name)[:1] == (format,) and len(inside(name)) > 1 and inside(name)[1] in rooms
        for other in ours(name)
        if inside(other)[0] == format
        and (len(inside(other)) < 2 or inside(other)[1] not in rooms[: rooms.index(inside(name)[1]) + 1])
    ]
    assert wrong == []


def test_pure_packages_import_no_engine() -> None:
    wrong = [
        (name, other)
        for name in MODULES
        if inside(name)[:1] and inside(name)[0] in PURE
        for other in IMPORTS[name]
        if other.split(".")[0] in ENGINES
    ]
    assert wrong == []


def needed(name: str) -> set[str]:
    """All that is imported where a module is: what it imports, what that does, and so on."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for other in IMPORTS.get(waiting.pop(), set()) - found - {"penstock"}:
            found.add(other)
            waiting.append(other)
    return found


@pytest.mark.parametrize("room", SPARKLESS)
def test_what_reads_the_catalog_needs_no_spark(room: str) -> None:
    modules = [name for name in MODULES if inside(name)[:2] == ("ducklake", room)]
    assert modules
    wrong = [(name, other) for name in modules for other in needed(name) if other.split(".")[0] in ("pyspark", "py4j")]
    assert wrong == []


def test_no_import_goes_in_a_circle() -> None:
    graph = {name: set(ours(name)) for name in MODULES if name != "penstock"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"these modules import each other: {' -> '.join(error.args[1])}")


def test_a_module_is_read_in_one_sitting() -> None:
    long = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert {name: lines for name, lines in long.items() if lines > MOST_LINES} == {}
