"""`serve`: the explorer of one lake, until it is stopped."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from penstock.ducklake.catalog.named_lakes.read_catalogs import SessionNeeds
from penstock.ducklake.model.snapshots import Version
from penstock.errors import InvalidError, UnsupportedError
from penstock.explorer.access import TOKEN, Access
from penstock.explorer.lake_source import LakeSource
from penstock.explorer.queries import DuckdbQueries, Limits, Queries


def serve(
    lake: str,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    spark: bool = False,
    open_browser: bool = True,
    token: str | None = None,
    data_path: str | None = None,
    override_data_path: bool | None = None,
    metadata_schema: str | None = None,
    metadata_parameters: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    snapshot_version: Version | None = None,
    snapshot_time: str | datetime | None = None,
    limits: Limits | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Shows a lake in a browser, read-only, until it is interrupted.

    Args:
        lake: The lake's location or name, as `penstock.attach` takes it.
        host: The address to listen on. Others than this machine's own let whoever has the token in, unencrypted.
        port: The port; 0 takes a free one.
        spark: Whether rows are read by Spark and not by DuckDB.
        open_browser: Whether the page is opened in a browser.
        token: What lets in; by default a new one that nobody can guess.
        data_path: As for `penstock.attach`.
        override_data_path: As for `penstock.attach`.
        metadata_schema: As for `penstock.attach`.
        metadata_parameters: As for `penstock.attach`.
        storage_options: As for `penstock.attach`.
        snapshot_version: As for `penstock.attach`: no snapshot is shown that is newer.
        snapshot_time: As for `penstock.attach`.
        limits: What a query may take: seconds, memory, rows.
        say: Is called with the page's address, and with what there is to know about it.

    Raises:
        AttachError: There is no such lake, or it cannot be reached.
        InvalidError: The address cannot be listened on.
        NotFoundError: The lake has no such snapshot.
        UnsupportedError: Something is not installed; or this process has a Spark session that cannot read the lake's
            store.
    """
    given = {
        "data_path": data_path, "override_data_path": override_data_path, "metadata_schema": metadata_schema,
        "metadata_parameters": metadata_parameters, "storage_options": storage_options,
        "snapshot_version": snapshot_version, "snapshot_time": snapshot_time,
    }  # fmt: skip
    source = LakeSource.of(lake, given)
    with source.opened() as view:  # what is wrong with the lake is said before there is a page
        needs = view.session_needs
    if token is not None and not (token and token.isascii() and token.isalnum()):
        raise InvalidError("a token is made of letters and digits, so that it can stand in an address")
    queries = _queries(source, limits or Limits(), needs if spark else None)
    listening = _listen(host, port)
    access = Access(token or secrets.token_hex(24), host, listening.getsockname()[1])
    try:
        _run(source, access, queries, listening, open_browser, say)
    finally:
        listening.close()
        source.close()


def _queries(source: LakeSource, limits: Limits, needs: SessionNeeds | None) -> Queries:
    """What runs queries: Spark, where it is told what it needs for the lake's store; else DuckDB."""
    if needs is None:
        return DuckdbQueries(source, limits)
    from penstock.explorer.spark_queries import SparkQueries
    from penstock.lake_session import session

    return SparkQueries(source, limits, session(**needs))


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port < 2**16:  # what is more than that, the system would cut
        raise InvalidError(f"{host}:{port} cannot be listened on: ports end at 65535; choose another one")
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(64)
    except (OSError, OverflowError) as error:
        raise InvalidError(f"{host}:{port} cannot be listened on: {error}; choose another host or port") from None
    return listening


def _run(
    source: LakeSource,
    access: Access,
    queries: Queries,
    listening: socket.socket,
    open_browser: bool,
    say: Callable[[str], None],
) -> None:
    try:
        import uvicorn

        from penstock.explorer.application import application
    except ImportError as error:
        raise UnsupportedError(f"the explorer needs {error.name}; pip install 'penstock[explorer]'") from None
    # No access log: the first address has the token in it.
    config = uvicorn.Config(
        application(source, access, queries), log_level="warning", access_log=False, server_header=False,
        proxy_headers=False, lifespan="off", ws="none",
    )  # fmt: skip
    server = uvicorn.Server(config)
    address = f"http://{_in_address(access)}:{access.port}/?{TOKEN}={access.token}"
    say(f"{source} is at {address}")
    if not access.is_local:
        say(f"Everybody who reaches {access.host} and has this address can read the lake; nothing is encrypted.")
    say("Press Ctrl+C to stop.")
    sys.stdout.flush()
    if open_browser:
        # The server accepts what has come in meanwhile as soon as it runs: the socket listens already.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    with suppress(KeyboardInterrupt):  # which uvicorn raises again when it has stopped
        server.run(sockets=[listening])


def _in_address(access: Access) -> str:
    name = "127.0.0.1" if access.host in ("0.0.0.0", "") else "[::1]" if access.host == "::" else access.host
    return f"[{name}]" if ":" in name and not name.startswith("[") else name
