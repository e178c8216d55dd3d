"""Lakes as they are opened: connections by parameters and by the environment, and where files are."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.errors import AttachError
from support.catalogs import Catalog, MySQLCatalog, PostgresCatalog
from support.servers import MariaDBServer

SECRET = "s3cret-Passw0rd"


def _created_by(uri: str, data_path: str, parameters: Mapping[str, str]) -> str:
    """Open a lake, which is made if it is not there; who made it."""
    catalog = open_catalog(uri, AttachOptions(data_path, metadata_parameters=parameters))
    try:
        return str(catalog.database.value('SELECT "value" FROM ducklake_metadata WHERE "key" = \'created_by\''))
    finally:
        catalog.database.close()


def test_postgres_by_parameters_and_by_the_environment(
    postgres_catalog: PostgresCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_catalog.reference() as reference:
        reference.execute("CREATE TABLE t (id INTEGER)")
    given = dict(pair.split("=", 1) for pair in postgres_catalog.target.split())
    data_path = postgres_catalog.data_path
    assert "DuckDB" in _created_by("ducklake:postgres:", data_path, given)
    assert "DuckDB" in _created_by(
        f"ducklake:postgres:host={given['host']}", data_path, {"DBNAME": given["dbname"], "User": given["user"]}
    )
    for name, variable in (("host", "PGHOST"), ("dbname", "PGDATABASE"), ("user", "PGUSER")):
        monkeypatch.setenv(variable, given[name])
    assert "DuckDB" in _created_by("ducklake:postgres:", data_path, {})


def test_mysql_by_parameters(mysql_catalog: MySQLCatalog, mysql_server: MariaDBServer) -> None:
    with mysql_catalog.reference() as reference:
        reference.execute("CREATE TABLE t (id INTEGER)")
    given = {"DB": mysql_catalog.database, "socket": str(mysql_server.socket), "user": "root"}
    assert "DuckDB" in _created_by("ducklake:mysql:", mysql_catalog.data_path, given)
    given.pop("DB")
    with pytest.raises(AttachError, match="names no database"):
        _created_by("ducklake:mysql:", mysql_catalog.data_path, given)
    with pytest.raises(AttachError, match="port 'x'"):
        _created_by("ducklake:mysql:db=a", mysql_catalog.data_path, {"port": "x"})


@pytest.mark.parametrize(
    ("given", "is_relative"),
    [("a/", True), ("./a/", True), ("/a/../b/", False), ("https://h/a%20b/", False), ("s3://b/a/", False)],
)
def test_relative_data_paths(sqlite_catalog: Catalog, given: str, is_relative: bool) -> None:
    lake = open_catalog(sqlite_catalog.uri, AttachOptions(given))
    lake.database.close()
    assert lake.is_relative == is_relative


def test_parameters_that_a_database_does_not_know(catalog: Catalog) -> None:
    with pytest.raises(AttachError, match="nonsense") as caught:
        _created_by(catalog.uri, catalog.data_path, {"nonsense": SECRET})
    assert SECRET not in str(caught.value)
    assert catalog.uri in str(caught.value)
    assert list(catalog.directory.iterdir()) == []


def test_what_is_no_secret_is_told(postgres_catalog: PostgresCatalog) -> None:
    uri = postgres_catalog.uri.replace(f"dbname={postgres_catalog.database}", "")
    with pytest.raises(AttachError, match="no_such_database") as caught:
        _created_by(uri, postgres_catalog.data_path, {"dbname": "no_such_database", "password": SECRET})
    assert SECRET not in str(caught.value)
