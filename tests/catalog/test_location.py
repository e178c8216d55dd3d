from __future__ import annotations

import pytest

from penstock.catalog.location import parse_location
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
        ("ducklake:mysql:db=lake", "mysql", "db=lake"),
    ],
)
def test_locations(uri: str, engine: str, target: str) -> None:
    location = parse_location(uri)
    assert (location.engine, location.target) == (engine, target)


@pytest.mark.parametrize(
    "uri",
    [
        "ducklake:postgres:dbname=lake password=hunter2",
        "ducklake:postgres:dbname=lake password='hunter2 and \\' more'",
        "ducklake:postgresql://user:hunter2@host/lake",
        "ducklake:mysql:db=lake PASSWD = hunter2",
        "ducklake:mysql:pw=hunter2 db=lake",
    ],
)
def test_passwords_are_not_shown(uri: str) -> None:
    location = parse_location(uri)
    assert "hunter2" not in f"{location} {location!r}"
    assert "***" in str(location)


@pytest.mark.parametrize("uri", ["a.ducklake", "ducklake:", "ducklake:sqlite:", "postgres:password=hunter2"])
def test_what_is_not_a_location_is_an_error(uri: str) -> None:
    with pytest.raises(AttachError) as error:
        parse_location(uri)
    assert "hunter2" not in str(error.value)
