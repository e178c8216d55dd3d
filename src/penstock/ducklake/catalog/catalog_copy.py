"""Copies a lake's whole catalog from one database to another; its data files stay where they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from penstock.ducklake.catalog.catalog_tables import TABLES, CatalogTable
from penstock.ducklake.catalog.creation import create_file, create_statement, has_lake
from penstock.ducklake.catalog.databases import ConnectOptions, Database, Row, connect
from penstock.ducklake.catalog.databases.server import ServerDatabase
from penstock.ducklake.catalog.indexes import create_indexes
from penstock.ducklake.catalog.inlined_copy import can_hold, copy_inlined, refuse_rows
from penstock.ducklake.catalog.inlined_rows import InlinedTable, all_tables_of_inlined_rows, inlined_delete_name
from penstock.ducklake.catalog.inlined_storage import create_inlined_deletes_sql, create_inlined_table_sql
from penstock.ducklake.catalog.location import Location, parse_location
from penstock.ducklake.catalog.named_lakes.attach_calls import attach_call
from penstock.ducklake.catalog.opening import AttachOptions, Catalog, open_catalog
from penstock.ducklake.catalog.snapshots import latest_snapshot
from penstock.ducklake.model.reserved_names import INLINED_DELETE_COLUMNS
from penstock.ducklake.model.snapshots import Snapshot
from penstock.errors import AlreadyExistsError, AttachError, CatalogError, ConflictError, InvalidError, PenstockError
from penstock.storage.paths import absolute, folder

_ROWS_A_BATCH = 10_000
_METADATA, _REGISTRY = "ducklake_metadata", "ducklake_inlined_data_tables"
_INLINED = "ducklake_inlined_"
_TRIES = 5
_BOUNDS = ("min_value", "max_value")


def copy_catalog(
    source: str,
    target: str,
    *,
    data_path: str | None = None,
    source_metadata_schema: str | None = None,
    source_metadata_parameters: Mapping[str, str] | None = None,
    target_metadata_schema: str | None = None,
    target_metadata_parameters: Mapping[str, str] | None = None,
) -> Snapshot:
    """Copies a lake's catalog to another database: all snapshots, all tables, all rows that it keeps itself.

    The copy is there whole or not at all. The data files stay where they are, and belong to both catalogs from then
    on: let only one of them be written to, or cleaned up, since neither knows which files the other needs.

    Args:
        source: The lake, by location or name as `attach` takes it. It is read in one state, while others may write.
        target: Where the copy goes, as `attach` takes it: a file that is made, or a database that has no lake.
        data_path: Where the copy looks for data files, if they were moved; by default, where the lake does.
        source_metadata_schema: The schema of the source's database that holds the catalog.
        source_metadata_parameters: These add to what the source's location says of the connection.
        target_metadata_schema: The schema of the target's database that shall hold the copy; it is made if need be.
        target_metadata_parameters: These add to what the target's location says of the connection.

    Returns:
        The newest snapshot of the copy.

    Raises:
        AlreadyExistsError: There is a lake at the target, or a part of one.
        AttachError: The source is no lake of this format version, or one of the databases cannot be opened.
        CatalogError: One of the databases failed or refused: a right that is missing, a text that is too long.
        InvalidError: The lake's data path is relative, and its files are not found from here.
        UnsupportedError: Rows that the source keeps cannot be kept in the target's database.
    """
    data_path = data_path or None
    source, schema, parameters = _meant(source, source_metadata_schema, source_metadata_parameters)
    options = AttachOptions(
        data_path, create_if_not_exists=False, read_only=True, metadata_schema=schema,
        metadata_parameters=parameters, override_data_path=data_path is not None,
    )  # fmt: skip
    target, schema, parameters = _meant(target, target_metadata_schema, target_metadata_parameters)
    place = parse_location(target)
    _refuse_itself(parse_location(source), place)
    how = ConnectOptions(False, schema, parameters, create=True)
    origin = _opened(source, options)
    with closing(origin.database), _one_state(origin, data_path) as copy:
        if place.engine in ("duckdb", "sqlite") and not os.path.exists(place.target):
            if not create_file(place, how, copy.fill):
                raise AlreadyExistsError(_taken(place))
        else:
            _fill_database(place, how, copy)
    return copy.newest


def _meant(
    lake: str, schema: str | None, parameters: Mapping[str, str] | None
) -> tuple[str, str | None, Mapping[str, str]]:
    """The location of a lake that may be named, its schema there, and how to connect."""
    call = attach_call(lake, {"metadata_schema": schema, "metadata_parameters": parameters})
    return call.uri, call.arguments.get("metadata_schema"), call.arguments.get("metadata_parameters", {})


def _refuse_itself(source: Location, target: Location) -> None:
    """An error for a DuckDB file as the target of its own copy: a process opens it to read or to write, not to both."""
    if {source.engine, target.engine} != {"duckdb"} or source.is_remote or target.is_remote:
        return
    if os.path.exists(target.target) and os.path.realpath(source.target) == os.path.realpath(target.target):
        raise AlreadyExistsError(f"{target} is the file that shall be copied; name another file")


def _opened(uri: str, options: AttachOptions) -> Catalog:
    try:
        return open_catalog(uri, options)
    except AttachError:
        if parse_location(uri).engine != "duckdb":
            raise
        # A DuckDB file that this process has open already is opened as it was then, or not at all.
        with suppress(AttachError):
            return open_catalog(uri, replace(options, read_only=False))
        raise


def _fill_database(place: Location, how: ConnectOptions, copy: _Copy) -> None:
    with closing(connect(place, how)) as database:
        try:
            copy.fill(database)
        except BaseException:
            with suppress(CatalogError):
                database.drop_made_schema()
            raise


@contextmanager
def _one_state(origin: Catalog, new_data_path: str | None) -> Iterator[_Copy]:
    """What is copied, of one state of the source.

    On servers, tables of inlined rows are dropped under the eyes of a transaction that has not touched them yet: in
    MySQL they are missed without a word.
    """
    source = origin.database
    for more_tries in reversed(range(_TRIES)):
        before = source.tables(_INLINED)
        with source.consistent():
            try:
                copy = _copy_of(origin, new_data_path)
                for name in copy.inlined_names if isinstance(source, ServerDatabase) else ():
                    source.query(f"SELECT 1 FROM {source.identifier(name)} LIMIT 1")  # and now they stay
            except CatalogError:
                if more_tries:
                    continue
                raise
            if source.transactional_ddl or source.tables(_INLINED) == before:
                yield copy
                return
    raise ConflictError(
        f"{source.location} cannot be copied: others make or drop tables of inlined rows all the time; try again"
    )


def _copy_of(origin: Catalog, new_data_path: str | None) -> _Copy:
    source = origin.database
    inlined = all_tables_of_inlined_rows(source)
    _refuse_unknown_shapes(source, {table.name for table in inlined})
    ids = source.query("SELECT DISTINCT table_id FROM ducklake_table ORDER BY 1")
    deletes = source.existing([inlined_delete_name(id) for (id,) in ids])
    data_path = _data_path(origin) if new_data_path is None else folder(absolute(new_data_path))
    return _Copy(source, data_path, latest_snapshot(source), tuple(inlined), tuple(sorted(deletes)))


def _refuse_unknown_shapes(source: Database, known: set[str]) -> None:
    """Rows of which the catalog does not tell the columns would be lost."""
    registered = {name for (name,) in source.query(f"SELECT table_name FROM {_REGISTRY}")}
    for name in sorted(source.existing(registered) - known):
        if source.query(f"SELECT 1 FROM {source.identifier(name)} LIMIT 1"):
            raise AttachError(
                f"{source.location} is damaged: ducklake_schema_versions does not tell the shape of {name}"
            )


def _data_path(origin: Catalog) -> str:
    """The lake's data path. A relative one means another folder to each program that is started elsewhere."""
    given, path = origin.data_path_as_given, origin.data_path
    if not origin.is_relative:
        return given
    if origin.is_elsewhere():
        raise InvalidError(
            f"{origin.database.location} keeps its files under {given}, which is relative to the folder that a program "
            f"is started in, and there is no {path}; copy it from the folder that it is used in, or give data_path"
        )
    return path


@dataclass(frozen=True)
class _Copy:
    """What is copied: a catalog, with the data path that the copy names, and the tables of rows that it keeps."""

    source: Database
    data_path: str
    newest: Snapshot
    inlined: tuple[InlinedTable, ...]
    deletes: tuple[str, ...]

    @property
    def inlined_names(self) -> list[str]:
        """The tables of rows and of deletes that the source keeps itself."""
        return [*(table.name for table in self.inlined), *self.deletes]

    def fill(self, target: Database) -> None:
        """Make the tables of the copy and their rows, all or nothing."""
        target.expect_many_rows()
        for table in self.inlined:
            if not can_hold(target, table):
                refuse_rows(self.source, target, table)
        fitting = [table for table in self.inlined if can_hold(target, table)]
        statements = self._statements(target, fitting)
        if target.transactional_ddl:
            with target.transaction():
                _make_tables(target, statements, [])
                self._copy_rows(target, fitting)
                create_indexes(target)
            return
        with _dropped_on_failure(target) as made, target.turn():
            _make_tables(target, statements, made)
            with target.transaction():
                self._copy_rows(target, fitting)

    def _statements(self, target: Database, fitting: Sequence[InlinedTable]) -> dict[str, str]:
        """What makes each table of the copy, by its name."""
        catalog = {table.name: create_statement(target, table, exact=True) for table in TABLES.values()}
        inlined = {table.name: create_inlined_table_sql(target, table.name, table.columns) for table in fitting}
        return catalog | inlined | {name: create_inlined_deletes_sql(target, name) for name in self.deletes}

    def _copy_rows(self, target: Database, fitting: Sequence[InlinedTable]) -> None:
        left_out = {table.name for table in self.inlined} - {table.name for table in fitting}
        for table in TABLES.values():
            change = self._change(table, target, left_out)
            for rows in self._batches(table.name, table.column_names):
                plain = map(change, self._plain(table, rows))
                target.insert(table.name, table.column_names, [row for row in plain if row is not None])
        for name in self.deletes:
            for rows in self._batches(name, INLINED_DELETE_COLUMNS):
                target.insert(name, INLINED_DELETE_COLUMNS, rows)
        for inlined in fitting:
            copy_inlined(self.source, target, inlined, self.newest.id)

    def _batches(self, table: str, columns: Sequence[str]) -> Iterator[list[Row]]:
        names = ", ".join(map(self.source.identifier, columns))
        return self.source.batches(f"SELECT {names} FROM {self.source.identifier(table)}", _ROWS_A_BATCH)

    def _plain(self, table: CatalogTable, rows: Sequence[Row]) -> Iterator[Row]:
        """Rows with the values that `Database.insert` takes."""
        makers: dict[str, Callable[[Any], Any]] = {"boolean": bool, "timestamptz": self.source.time, "uuid": str}
        columns = [makers.get(column.type) for column in table.columns]
        for row in rows:
            yield tuple(
                value if make is None or value is None else make(value)
                for make, value in zip(columns, row, strict=True)
            )

    def _change(self, table: CatalogTable, target: Database, left_out: set[str]) -> Callable[[Row], Row | None]:
        """What becomes of a row on its way, where it is not the same at the target."""
        if table.name == _METADATA:
            return lambda row: (row[0], self.data_path, *row[2:]) if row[0] == "data_path" and not row[2] else row
        if table.name == _REGISTRY:
            return lambda row: None if row[1] in left_out else row
        bounds = [place for place, name in enumerate(table.column_names) if name in _BOUNDS]
        if bounds and target.engine == "postgres":
            return lambda row: _without_nul(row, bounds)
        return lambda row: row


def _without_nul(row: Row, bounds: Sequence[int]) -> Row:
    """PostgreSQL's text has no NUL: bounds with one are left out, as the extension does there."""
    if not any("\0" in (row[place] or "") for place in bounds):
        return row
    return tuple(None if place in bounds else value for place, value in enumerate(row))


def _make_tables(target: Database, statements: Mapping[str, str], made: list[str]) -> None:
    """Make tables, and list those that are made."""
    if has_lake(target):
        raise AlreadyExistsError(_taken(target.location))
    parts = sorted(target.tables("ducklake_").intersection(statements))
    if parts:
        raise AlreadyExistsError(
            f"{target.location} has no lake, but tables of one, as a program leaves them that was killed: "
            f"{', '.join(parts)}; drop them, or copy to another database or target_metadata_schema"
        )
    for name, statement in statements.items():
        made.append(name)
        try:
            target.execute(statement)
        except CatalogError:
            made.remove(name)
            raise


@contextmanager
def _dropped_on_failure(target: Database) -> Iterator[list[str]]:
    """Where tables are made outside of transactions: those that are listed are dropped if the rest fails."""
    made: list[str] = []
    try:
        yield made
    except BaseException:
        # Somebody who waited for the turn may have made a lake of these tables by now.
        with suppress(PenstockError), target.turn():
            for name in made if not has_lake(target) else ():
                with suppress(CatalogError):
                    target.execute(f"DROP TABLE IF EXISTS {target.identifier(name)}")
        raise


def _taken(location: Location) -> str:
    return (
        f"there is a DuckLake at {location} already, which no copy replaces; "
        "name a file or database without one, or another target_metadata_schema"
    )
