"""Storage options: their names, what makes no sense, and that no text shows a value."""

from __future__ import annotations

import pickle

import pytest

from penstock.errors import InvalidError
from penstock.storage import options
from penstock.storage.options import NONE, StorageOptions
from penstock.storage.s3 import S3Access
from penstock.storage.stores import Store

KEY = {"aws_access_key_id": "AKIA", "aws_secret_access_key": "hush"}


@pytest.mark.parametrize(
    "given",
    [
        {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "hush"},
        {"access_key_id": "AKIA", "secret_access_key": "hush"},
        {"aws_access_key_id": "AKIA", "SECRET_ACCESS_KEY": "hush"},
    ],
)
def test_names(given: dict[str, object]) -> None:
    assert dict(StorageOptions.of(given)) == KEY


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"aws_key": "hush"}, "no storage option 'aws_key'; there are aws_access_key_id"),
        ({1: "hush"}, "no storage option 1"),
        ({"region": "a", "aws_region": "b"}, "aws_region is given twice"),
        ({"aws_access_key_id": "hush"}, "lack aws_secret_access_key"),
        ({"aws_secret_access_key": "hush"}, "lack aws_access_key_id"),
        ({"aws_session_token": "hush"}, "not the key that it belongs to"),
        ({"aws_region": ""}, "aws_region is no text"),
        ({"aws_region": None}, "aws_region is no text"),
        ({"aws_endpoint_url": "localhost:9000"}, "begin it with https"),
        ({"aws_endpoint_url": "https://h/storage/v1/s3"}, "goes on after the host"),
        ({"aws_endpoint_url": "http://h", "aws_allow_http": False}, "aws_allow_http is false"),
        ({"aws_skip_signature": "maybe"}, "aws_skip_signature is true or false"),
    ],
)
def test_what_makes_no_sense(given: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidError, match=said) as raised:
        StorageOptions.of(given)
    assert "hush" not in str(raised.value)


def test_no_text_shows_a_value() -> None:
    made = StorageOptions.of({**KEY, "aws_session_token": "token", "aws_endpoint_url": "http://h:1"})
    access = S3Access.of("b", made)
    for text in (repr(made), str(made), repr(access), str(access), f"{made} {access}"):
        assert not [secret for secret in ("AKIA", "hush", "token'") if secret in text]
    assert pickle.loads(pickle.dumps(made)) == made
    assert hash(made) == hash(StorageOptions.of(dict(made)))


def test_what_is_missing_comes_from_the_session() -> None:
    session = {"aws_access_key_id": "S", "aws_secret_access_key": "S2", "aws_session_token": "S3", "aws_region": "r"}
    assert dict(NONE.over(session)) == session
    assert dict(StorageOptions.of(KEY).over(session)) == {**KEY, "aws_region": "r"}  # no token of another key
    anonymous = StorageOptions.of({"aws_skip_signature": True}).over(session)
    assert dict(anonymous) == {"aws_skip_signature": "true", "aws_region": "r"}


def test_the_environment_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    access = S3Access.of("b", NONE)
    assert (access.region, access.endpoint, access.virtual_hosted, access.key_id) == (None, None, True, None)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://h:1")
    access = S3Access.of("b", NONE)
    assert (access.region, access.host, access.virtual_hosted, access.is_encrypted) == (
        "us-east-1",
        "h:1",
        False,
        False,
    )
    access = S3Access.of("b", StorageOptions.of({"endpoint": "https://x", "virtual_hosted_style_request": "true"}))
    assert (access.host, access.virtual_hosted, access.is_encrypted) == ("x", True, True)


def test_options_belong_to_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_options", {})
    made = StorageOptions.of(KEY)
    options.use_options("s3a://one/x", made)
    options.use_options("/tmp/x", made)
    assert options.options_for("s3://one/other/y") == options.options_for("s3n://one") == made
    assert options.options_for("s3://two/x") == options.options_for("/tmp/x") == NONE
    assert options.known_stores() == {Store("s3", "one"): made}


def test_what_fails_changes_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    used, other = StorageOptions.of(KEY), StorageOptions.of({"aws_region": "r"})
    monkeypatch.setattr(options, "_options", {Store("s3", "one"): used})

    @options.options_on_trial()
    def failing() -> None:
        for path in ("s3://one/x", "s3://two/x", "s3://one/x"):
            options.use_options(path, other)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert options.known_stores() == {Store("s3", "one"): used}
    with options.options_on_trial():
        options.use_options("s3://one/x", other)
    assert options.known_stores() == {Store("s3", "one"): other}
