"""Lakes that are published: made by DuckDB in a folder whose files a web server gives to all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.catalogs import Catalog, DuckDBCatalog, SQLiteCatalog
from support.reference import Reference
from support.web_server import WebServer

KINDS: dict[str, type[Catalog]] = {"duckdb": DuckDBCatalog, "sqlite": SQLiteCatalog}


class PublishedCatalog(Catalog):
    """A lake in a web server's folder; its catalog says that the data is at the server, as DuckDB's guide has it."""

    def __init__(self, server: WebServer, kind: str = "duckdb") -> None:
        super().__init__(server.folder)
        self._server = server
        self.inside = KINDS[kind](server.folder)  # where it is made
        self.data_path = f"{server.url}/data/"

    @property
    def file(self) -> Path:
        return Path(self.inside.target)

    @property
    def uri(self) -> str:
        return f"ducklake:{self._server.url}/{self.file.name}"

    @contextmanager
    def build(self, *, timezone: str = "UTC", **parameters: object) -> Iterator[Reference]:
        with Reference() as reference:
            reference.attach(self.inside.uri, data_path=self.data_path, **parameters)
        with self.inside.build(timezone=timezone, override_data_path=True, **parameters) as reference:
            yield reference

    @contextmanager
    def reference(self, *, timezone: str = "UTC", **parameters: object) -> Iterator[Reference]:
        """The extension attached to what is published; of SQLite, it has to be told."""
        engine = "sqlite:" if isinstance(self.inside, SQLiteCatalog) else ""
        with Reference(timezone=timezone) as reference:
            yield reference.attach(f"ducklake:{engine}{self.uri.removeprefix('ducklake:')}", **parameters)
