from __future__ import annotations

from pathlib import Path

import pytest

from penstock.ducklake.catalog.location import Location, parse_location, redact, secrets_in
from penstock.errors import AttachError


@pytest.mark.parametrize(
    ("uri", "engine", "target"),
    [
        ("ducklake:a.ducklake", "duckdb", "a.ducklake"),
        ("ducklake:duckdb:a.ducklake", "duckdb", "a.ducklake"),
        ("ducklake:/x/a:b.ducklake", "duckdb", "/x/a:b.ducklake"),
        ("ducklake:sqlite:m.sqlite", "sqlite", "m.sqlite"),
        ("ducklake:postgres:dbname=lake host=h", "postgres", "dbname=lake host=h"),
        ("ducklake:postgresql://u@h/lake", "postgres", "postgresql://u@h/lake"),
        ("ducklake:postgres://u@h/lake", "postgres", "postgres://u@h/lake"),
        ("ducklake:mysql:db=lake", "mysql", "db=lake"),
        ("ducklake:postgres:", "postgres", ""),
        ("ducklake:mysql:", "mysql", ""),
        ("ducklake:file:///x/a.ducklake", "duckdb", "/x/a.ducklake"),
        ("ducklake:C:/x/a.ducklake", "duckdb", "C:/x/a.ducklake"),
        ("ducklake:2026-11-16 12:30.ducklake", "duckdb", "2026-11-16 12:30.ducklake"),
        ("ducklake:duckdb:oracle:a", "duckdb", "oracle:a"),
    ],
)
def test_locations(uri: str, engine: str, target: str) -> None:
    location = parse_location(uri)
    assert (location.engine, location.target) == (engine, target)


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("ducklake:gs://bucket/a.ducklake", "gs"),
        ("ducklake:az://container/a.ducklake", "az"),
        ("ducklake:abfss://container@host/a.ducklake", "abfss"),
        ("ducklake:hdfs://host/a.ducklake", "hdfs"),
        ("ducklake:sqlite:gs://bucket/a.sqlite", "gs"),
        ("ducklake:duckdb:gcs://bucket/a.ducklake", "gcs"),
        ("ducklake:md:lake?motherduck_token=hunter2", "MotherDuck"),
        ("ducklake:oracle:user/lake", "oracle"),
    ],
)
def test_places_that_are_no_local_files(uri: str, named: str) -> None:
    with pytest.raises(AttachError, match=rf"{named}.*ducklake:postgres:.*data_path") as error:
        parse_location(uri)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("uri", "engine", "target"),
    [
        ("ducklake:https://host/public.ducklake", "duckdb", "https://host/public.ducklake"),
        ("ducklake:duckdb:HTTP://host:80/A é%20b", "duckdb", "http://host:80/A%20%C3%A9%20b"),
        ("ducklake:sqlite:https://host/a.sqlite", "sqlite", "https://host/a.sqlite"),
        ("ducklake:s3://bucket/a.ducklake", "duckdb", "s3://bucket/a.ducklake"),
        ("ducklake:sqlite:s3a://bucket/a.sqlite", "sqlite", "s3a://bucket/a.sqlite"),
    ],
)
def test_files_elsewhere(uri: str, engine: str, target: str) -> None:
    assert parse_location(uri) == Location(engine, target, is_remote=True)


def test_what_follows_a_question_mark_is_not_shown() -> None:
    location = parse_location("ducklake:http://host/public.ducklake?key=hunter2")
    assert location.target.endswith("?key=hunter2")
    assert str(location) == "ducklake:http://host/public.ducklake"
    assert "hunter2" not in repr(location)


@pytest.mark.parametrize("user", ["me:hunter2", "hunter2", "a:b:hunter2@c"])
def test_a_password_in_an_address(user: str) -> None:
    with pytest.raises(AttachError, match="the address of host:80 holds a name or a password") as error:
        parse_location(f"ducklake:https://{user}@host:80/public.ducklake")
    assert "hunter2" not in str(error.value)


def test_a_file_that_looks_like_another_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "oracle:a").touch()
    (tmp_path / "s3:" / "bucket").mkdir(parents=True)
    (tmp_path / "s3:" / "bucket" / "a.ducklake").touch()
    for target in ("oracle:a", "s3://bucket/a.ducklake"):
        assert parse_location(f"ducklake:{target}") == Location("duckdb", target)


@pytest.mark.parametrize(
    "uri",
    [
        "ducklake:postgres:dbname=lake password=hunter2",
        "ducklake:postgres:dbname=lake password='hunter2 and \\' more'",
        "ducklake:postgresql://user:hunter2@host/lake",
        "ducklake:mysql:db=lake PASSWD = hunter2",
        "ducklake:mysql:pw=hunter2 db=lake",
        'ducklake:mysql:password="my hunter2" db=lake',
        "ducklake:mysql:password=my\\ hunter2 db=lake",
        "ducklake:mysql:'password=my hunter2' db=lake",
        'ducklake:mysql:password=abc"def hunter2" db=lake',
        "ducklake:mysql:'pw'=hunter2 db=lake",
        "ducklake:postgres:oauth_client_secret=hunter2 scram_client_key=hunter2",
        "ducklake:postgresql://user:p@hunter2@host/lake",
        "ducklake:postgresql://user:p hunter2@host/lake",
        "ducklake:postgresql://host/lake?password=a hunter2",
        "ducklake:postgres:password=a hunter2 hunter2 dbname=lake",
        "ducklake:mysql:db=lake password=my hunter2",
    ],
)
def test_passwords_are_not_shown(uri: str) -> None:
    location = parse_location(uri)
    assert "hunter2" not in f"{location} {location!r}"
    assert "***" in str(location)
    assert "hunter2" not in redact(f"no such place: {uri} (nor {location.target!r})")


def test_what_is_no_password_is_shown() -> None:
    location = parse_location("ducklake:postgres:password=my hunter2 dbname=lake host=h")
    assert str(location) == "ducklake:postgres:password=*** dbname=lake host=h"
    told = 'missing "=" after "hunter2" of my hunter2'
    for secret in secrets_in(location.target):
        told = told.replace(secret, "***")
    assert "hunter2" not in told
    assert redact("the table my is on the host h") == "the table my is on the host h"


@pytest.mark.parametrize("uri", ["a.ducklake", "ducklake:", "ducklake:sqlite:", "postgres:password=hunter2"])
def test_what_is_not_a_location_is_an_error(uri: str) -> None:
    with pytest.raises(AttachError) as error:
        parse_location(uri)
    assert "hunter2" not in str(error.value)
