"""Lakes that have names, without Spark: what file and environment say of them, and which says it first."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.ducklake.catalog.named_lakes.attach_calls import attach_call
from penstock.ducklake.catalog.named_lakes.config_file import config_file
from penstock.ducklake.catalog.named_lakes.new_lakes import create_lake
from penstock.ducklake.catalog.named_lakes.read_catalogs import read_catalog
from penstock.ducklake.catalog.opening import AttachOptions, open_catalog
from penstock.ducklake.model.attach_parameters import ATTACH_PARAMETERS, MAPPINGS, MOMENTS
from penstock.errors import AttachError
from support.processes import environment

SECRET = "s3cret-Passw0rd"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This folder, in which a file counts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    return tmp_path


def write(text: str, path: str = "penstock.toml") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def called(uri: str = "ducklake:sales", **given: Any) -> tuple[str, Mapping[str, Any]]:
    call = attach_call(uri, given)
    assert SECRET not in repr(call)
    return call.uri, call.arguments


def refused(uri: str = "ducklake:sales", **given: Any) -> str:
    with pytest.raises(AttachError) as error:
        attach_call(uri, given)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None or SECRET not in str(error.value.__cause__)
    return str(error.value)


def test_the_parameters_are_those_of_attach() -> None:
    signature = inspect.signature(inspect.unwrap(penstock.attach))
    assert {*ATTACH_PARAMETERS, *MAPPINGS, *MOMENTS} == signature.parameters.keys() - {"uri", "name", "spark"}
    kinds = {"str | None": str, "bool": bool, "bool | None": bool, "int": int, "int | None": int, "float": float}
    assert {name: kinds[signature.parameters[name].annotation] for name in ATTACH_PARAMETERS} == ATTACH_PARAMETERS


def test_everything_that_attach_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        f"""
        [lakes.sales]
        location = "postgres:host=db.example dbname=sales"
        data_path = "s3://sales/lake/"
        create_if_not_exists = false
        read_only = true
        encrypted = true
        data_inlining_row_limit = 0
        metadata_schema = "Größe"
        automatic_migration = true
        override_data_path = false
        snapshot_time = 1969-12-31T23:59:59.5Z
        max_retry_count = 3
        retry_wait_ms = 5
        retry_backoff = 2
        metadata_parameters = {{ password = "${{PW}}", port = 5432, application_name = "$${{PW}} $x" }}
        [lakes.sales.storage_options]
        aws_access_key_id = "key"
        secret_access_key = "${{PW}}{SECRET}"
        aws_skip_signature = true
        """
    )
    monkeypatch.setenv("PW", f"'{SECRET} ${{HOME}}\\")  # what stands in a variable is not looked into
    uri, arguments = called()
    assert uri == "ducklake:postgres:host=db.example dbname=sales"
    assert arguments.keys() == {*ATTACH_PARAMETERS, *MAPPINGS, "snapshot_time"}
    assert arguments["metadata_parameters"] == {
        "password": f"'{SECRET} ${{HOME}}\\", "port": "5432", "application_name": "${PW} $x",
    }  # fmt: skip
    assert dict(arguments["storage_options"]) == {
        "aws_access_key_id": "key", "aws_secret_access_key": f"'{SECRET} ${{HOME}}\\{SECRET}",
        "aws_skip_signature": "true",
    }  # fmt: skip
    assert arguments["snapshot_time"] == datetime(1969, 12, 31, 23, 59, 59, 500000, UTC)
    assert (arguments["retry_backoff"], arguments["read_only"], arguments["data_inlining_row_limit"]) == (2, True, 0)
    assert arguments["metadata_schema"] == "Größe"


def test_what_is_given_counts_before_the_lake_and_the_lake_before_all() -> None:
    write(
        """
        defaults = { data_inlining_row_limit = 1, max_retry_count = 1, read_only = true }
        [lakes.sales]
        location = "a.ducklake"
        max_retry_count = 2
        snapshot_version = 7
        metadata_parameters = { a = "file", b = "file" }
        storage_options = { aws_access_key_id = "k", aws_secret_access_key = "s", aws_region = "r" }
        """
    )
    assert called()[1]["snapshot_version"] == 7
    given = {
        "max_retry_count": 3, "snapshot_time": "2026-01-01", "read_only": False, "data_path": None,
        "metadata_parameters": {"b": "given"}, "storage_options": {"access_key_id": "K", "secret_access_key": "S"},
    }  # fmt: skip
    arguments = called(**given)[1]
    assert dict(arguments["storage_options"]) == {
        "aws_access_key_id": "K", "aws_secret_access_key": "S", "aws_region": "r",
    }  # fmt: skip
    assert {**arguments, "storage_options": None} == {
        "data_inlining_row_limit": 1, "max_retry_count": 3, "snapshot_time": "2026-01-01", "read_only": False,
        "metadata_parameters": {"a": "file", "b": "given"}, "storage_options": None,
    }  # fmt: skip
    # What holds for all lakes holds for those that have no name too.
    assert called("ducklake:b.ducklake", max_retry_count=5)[1] == {
        "data_inlining_row_limit": 1, "max_retry_count": 5, "read_only": True,
    }  # fmt: skip


def test_the_environment_alone_and_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PENSTOCK_LAKE_STOCK_2": "sqlite:stock.sqlite",
        "PENSTOCK_LAKE_STOCK_2__DATA_PATH": "/data/${PW}/",
        "PENSTOCK_LAKE_STOCK_2__READ_ONLY": "Yes",
        "PENSTOCK_LAKE_STOCK_2__RETRY_BACKOFF": "1.5",
        "PENSTOCK_LAKE_STOCK_2__SNAPSHOT_VERSION": "3",
        "PENSTOCK_LAKE_STOCK_2__METADATA_PARAMETERS__PASSWORD": SECRET,
        "PENSTOCK_LAKE_STOCK_2__STORAGE_OPTIONS__AWS_REGION": "eu",
        "PENSTOCK_DEFAULTS__MAX_RETRY_COUNT": "20",
        "PENSTOCK_LAKE": "Stock-2",
    }.items():
        monkeypatch.setenv(name, value)
    uri, arguments = called("ducklake:")
    assert (uri, arguments) == called("ducklake:Stock-2") == called("ducklake:stock_2")
    assert uri == "ducklake:sqlite:stock.sqlite"
    assert {**arguments, "storage_options": dict(arguments["storage_options"])} == {
        "data_path": "/data/${PW}/", "read_only": True, "retry_backoff": 1.5, "snapshot_version": 3,
        "metadata_parameters": {"password": SECRET}, "storage_options": {"aws_region": "eu"}, "max_retry_count": 20,
    }  # fmt: skip
    write(
        'default = "none"\n[lakes.stock-2]\nlocation = "a.ducklake"\nencrypted = true\n[defaults]\nmax_retry_count = 1'
    )
    uri, arguments = called("ducklake:")
    assert uri == "ducklake:sqlite:stock.sqlite"
    assert (arguments["max_retry_count"], arguments["encrypted"]) == (20, True)


def test_which_file_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert config_file() is None
    write("", "home/penstock/penstock.toml")
    assert config_file() == folder / "home/penstock/penstock.toml"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(folder))
    assert config_file() is None
    write("", ".config/penstock/penstock.toml")
    assert config_file() == folder / ".config/penstock/penstock.toml"
    write("")
    assert config_file() == Path("penstock.toml")
    write("", "other.toml")
    monkeypatch.setenv("PENSTOCK_CONFIG", "other.toml")
    assert config_file() == Path("other.toml")
    monkeypatch.setenv("PENSTOCK_CONFIG", "")
    assert config_file() is None
    monkeypatch.setenv("PENSTOCK_CONFIG", "none.toml")
    assert "'none.toml'" in refused()


def test_paths_are_relative_to_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write('[lakes.sales]\nlocation = "sqlite:a/b.sqlite"\ndata_path = "data"', "etc/penstock.toml")
    write('[lakes.home]\nlocation = "~/x.ducklake"\ndata_path = "s3://b/x"\n[lakes.stock]\nlocation = "./stock"')
    assert called("ducklake:stock") == ("ducklake:duckdb:./stock", {})
    monkeypatch.setenv("HOME", "/home/me")
    assert called("ducklake:home") == ("ducklake:duckdb:/home/me/x.ducklake", {"data_path": "s3://b/x"})
    monkeypatch.setenv("PENSTOCK_CONFIG", "etc/penstock.toml")
    assert called() == (f"ducklake:sqlite:{folder}/etc/a/b.sqlite", {"data_path": f"{folder}/etc/data"})


@pytest.mark.parametrize("as_stored", ["data/", "./data/", "../made/data/", None])
def test_a_lake_with_a_relative_data_path_is_used_from_anywhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, as_stored: str | None
) -> None:
    write('[lakes.sales]\nlocation = "sqlite:b.sqlite"\ndata_path = "data/"', "made/penstock.toml")
    monkeypatch.chdir("made")
    with closing(create_lake("ducklake:sales", {}).database) as database:
        if as_stored is not None:  # as lakes have it that were made with a relative path
            database.execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", [as_stored])
    monkeypatch.setenv("PENSTOCK_CONFIG", str(folder / "made" / "penstock.toml"))
    for place in (folder / "made", folder, Path("/")):
        monkeypatch.chdir(place)
        with read_catalog("ducklake:sales") as lake:
            assert lake.catalog.data_path == f"{folder}/made/data/"
    monkeypatch.chdir(folder)
    with pytest.raises(AttachError, match="keeps its files under"), read_catalog("ducklake:sales", data_path="other"):
        pass


def test_a_relative_data_path_that_is_another_folder(folder: Path) -> None:
    """Where the folder that a lake names is there, another one that is not is a mistake."""
    with closing(create_lake("ducklake:sqlite:b.sqlite", {"data_path": "data"}).database):
        Path("data").mkdir()
    with pytest.raises(AttachError, match="under data/, not /x/data"):
        open_catalog("ducklake:sqlite:b.sqlite", AttachOptions(data_path="/x/data"))


def test_names_and_files() -> None:
    assert "no lake named 'sales'" in refused()
    assert "'ducklake:./sales', or give it an ending, 'ducklake:sales.ducklake'" in refused()
    write('[lakes.sales]\nlocation = "a.ducklake"\n[lakes."Über-1"]\nlocation = "b.ducklake"')
    message = refused("ducklake:🦆\x1b[31m")
    assert "named lakes are sales, Über-1" in message
    assert "\x1b" not in message
    Path("stock").touch()  # a file of this very name
    Path("link").symlink_to("nowhere")
    for uri in (
        "ducklake:stock",
        "ducklake:link",
        "ducklake:./x",
        "ducklake:x.y",
        "ducklake:duckdb:x",
        "ducklake:postgres:",
    ):
        assert called(uri) == (uri, {})
    Path("sales").touch()
    assert called("ducklake:SALES")[0] == "ducklake:duckdb:a.ducklake"
    assert called("ducklake:über_1")[0] == "ducklake:duckdb:b.ducklake"


def test_no_default_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the default lake, and none is chosen" in refused("ducklake:")
    write('default = "nobody"\n[lakes.sales]\nlocation = "a.ducklake"')
    assert refused("ducklake:") == "penstock.toml: default is 'nobody', which is no named lake; named lakes are sales"
    write('default = "sales"\n[lakes.sales]\nlocation = "a.ducklake"')
    assert called("ducklake:")[0] == "ducklake:duckdb:a.ducklake"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f'password = "{SECRET}"', "penstock.toml: [lakes.sales] password is nothing of a lake; there are location, "),
        (f'metadata_parameters = "{SECRET}"', "penstock.toml: [lakes.sales] metadata_parameters is no table"),
        ("metadata_parameters = { a = true }", "[lakes.sales] metadata_parameters.a takes a text in quotes"),
        ("read_only = 1", "penstock.toml: [lakes.sales] read_only takes true or false"),
        (f'read_only = "{SECRET}"', "[lakes.sales] read_only takes true or false"),
        ('read_only = "${PW}"', "[lakes.sales] read_only takes true or false"),
        ('max_retry_count = "${PW}"', "[lakes.sales] max_retry_count takes a whole number"),
        ("max_retry_count = true", "[lakes.sales] max_retry_count takes a whole number"),
        ("max_retry_count = 1.5", "[lakes.sales] max_retry_count takes a whole number"),
        ("retry_backoff = false", "[lakes.sales] retry_backoff takes a number"),
        ("retry_backoff = nan", "[lakes.sales] retry_backoff takes a number from 0"),
        ("retry_backoff = inf", "[lakes.sales] retry_backoff takes a number from 0"),
        ("max_retry_count = -1", "[lakes.sales] max_retry_count takes a number from 0"),
        ("[defaults]\nretry_wait_ms = -5", "[defaults] retry_wait_ms takes a number from 0"),
        ("data_path = 5", "[lakes.sales] data_path takes a text in quotes"),
        ("snapshot_version = 1.0", "[lakes.sales] snapshot_version takes a whole number"),
        ("snapshot_time = 5", "[lakes.sales] snapshot_time takes a time"),
        ('snapshot_time = "2026-01-01"\nsnapshot_version = 1', "[lakes.sales] snapshot_version and snapshot_time say"),
        ('data_path = "${NOT_THERE}"', "data_path needs the variable NOT_THERE, which the environment does not have"),
        (f'storage_options = {{ colour = "{SECRET}" }}', "there is no storage option 'colour'"),
        (f'storage_options = {{ secret_access_key = "{SECRET}" }}', "the storage options lack aws_access_key_id"),
        ("storage_options = { aws_region = 5 }", "aws_region is no text"),
        ("name = 'x'", "[lakes.sales] name is nothing of a lake"),
        ("data_path.x = 'x'", "[lakes.sales] data_path takes a text"),
        ("[defaults]\ndata_path = 'x'", "penstock.toml: [defaults] data_path is nothing that can hold for all lakes"),
        ("[defaults]\nread_only = 'x'", "penstock.toml: [defaults] read_only takes true or false"),
        ("[other]", "penstock.toml has 'other', which nobody looks at; it may have [lakes.NAME]"),
        ("[lakes]\nstock = 5", "penstock.toml"),
        ("[lakes.'a b']", "penstock.toml: 'a b' is no name for a lake"),
        ("[lakes.Sales]", "penstock.toml: sales and Sales are the same name of a lake"),
        ("= 5", "penstock.toml is no TOML: "),
    ],
)  # fmt: skip
def test_what_makes_no_sense(monkeypatch: pytest.MonkeyPatch, line: str, said: str) -> None:
    monkeypatch.setenv("PW", SECRET)
    write(f'[lakes.sales]\nlocation = "postgres:dbname=x password={SECRET}"\n{line}')
    assert said in refused()


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("''", "names no metadata database"),
        ("'stock'", "[lakes.sales] location is a bare word; write the file as ./FILE, or with an ending"),
        ("5", "[lakes.sales] location takes a text in quotes"),
        (f"'https://me:{SECRET}@host/a.ducklake'", "[lakes.sales] location: the address of host holds a name"),
        ("'${NOT_THERE}'", "[lakes.sales] location needs the variable NOT_THERE"),
    ],
)
def test_locations_that_make_no_sense(location: str, said: str) -> None:
    write(f"[lakes.sales]\nlocation = {location}")
    assert said in refused()


def test_what_is_wrong_with_one_lake_matters_to_no_other() -> None:
    write('[lakes.stock]\nlocation = "a.ducklake"\n[lakes.sales]\nlocation = "${NOT_THERE}"\nread_only = 5')
    assert called("ducklake:stock")[0] == "ducklake:duckdb:a.ducklake"
    write("[lakes.sales]\nread_only = true")
    assert "nothing says where the lake sales is" in refused()


def test_variables_that_make_no_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_LAKE_SALES", "a.ducklake")
    monkeypatch.setenv("PENSTOCK_LAKE_SALES__READ_ONLY", SECRET)
    assert refused() == "the variable PENSTOCK_LAKE_SALES__READ_ONLY takes true or false"
    monkeypatch.delenv("PENSTOCK_LAKE_SALES__READ_ONLY")
    monkeypatch.setenv("PENSTOCK_LAKE_SALES__PASSWORD", SECRET)
    assert "the variable PENSTOCK_LAKE_SALES__PASSWORD is nothing of a lake" in refused()


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a = '\x00'", b"a = " + b"[" * 3000])
def test_files_that_cannot_be_read(content: bytes) -> None:
    Path("penstock.toml").write_bytes(content)
    assert refused().startswith("penstock.toml ")


def test_a_file_with_a_byte_order_mark() -> None:
    write("\ufefflakes.sales.location = 'a.ducklake'")
    assert called()[0] == "ducklake:duckdb:a.ducklake"


def test_nothing_of_it_needs_spark() -> None:
    script = """
import sys
from penstock.ducklake.catalog.named_lakes.attach_calls import attach_call
attach_call("ducklake:a.ducklake", {})
assert not {"pyspark", "duckdb"} & sys.modules.keys(), sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", script], env=environment(), check=True)
