"""A real S3 server for the tests, one that checks signatures: versitygw, built once by Go, and the JARs for Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

from penstock.spark.hadoop import hadoop_version
from support.fetching import cache, fetch_jars, fetched_jars
from support.reference import Reference
from support.servers import free_port
from support.store_process import StoreProcess

_MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
KEY_ID, SECRET = "penstock-tests", "a/secret+of=the tests"


def program() -> Path:
    """The server's program, which `make s3` builds."""
    return cache() / "bin" / "versitygw"


def jars() -> list[str]:
    """What Spark needs to read S3, which `make s3` fetches; none where it has not been run."""
    return fetched_jars(_jars_folder())


def _jars_folder() -> Path:
    """The folder of the JARs for the installed PySpark's Hadoop."""
    return cache() / f"s3-jars-{hadoop_version()}"


def is_installed() -> bool:
    """Whether `make s3` has been run here."""
    return program().exists() and bool(jars())


class S3Server:
    """A private S3 server on a port of the loopback; its objects are files in a directory."""

    def __init__(self) -> None:
        directory = Path(tempfile.mkdtemp(prefix="penstock-s3-"))
        self.objects, self.log = directory / "objects", directory / "access.log"
        self.objects.mkdir()
        users = directory / "users"
        users.mkdir()
        self.endpoint = f"http://127.0.0.1:{free_port()}"
        self._numbers = count(1)
        command = [
            program(), "--port", self.endpoint.removeprefix("http://"), "--access", KEY_ID, "--secret", SECRET,
            "--access-log", self.log, "--iam-dir", users, "--quiet", "posix", self.objects,
        ]  # fmt: skip
        self._process = StoreProcess(command, self.endpoint, directory)

    def bucket(self) -> str:
        """Make an empty bucket and return its name."""
        name = f"lake-{next(self._numbers)}"
        (self.objects / name).mkdir()
        return name

    def options(self, **others: str) -> dict[str, str]:
        """Storage options that reach it."""
        return {
            "aws_access_key_id": KEY_ID,
            "aws_secret_access_key": SECRET,
            "aws_endpoint_url": self.endpoint,
            "aws_region": "us-east-1",
        } | others

    def requests(self, bucket: str) -> list[str]:
        """What was asked of a bucket, in order: `GetObject a/b.parquet`."""
        lines = [line for line in self.log.read_text().splitlines() if f" /{bucket}/" in line or f" {bucket} " in line]
        return [found[1] for line in lines if (found := re.search(r" s3_(\w+ .*?)(?: /|$)", line))]

    def user(self, name: str, *, secret: str | None = None, role: str = "admin") -> dict[str, str]:
        """Make a user, by default one that may do everything, and return its key as options."""
        secret = secret or f"the secret of {name}"
        self._admin("create-user", "--access", name, "--secret", secret, "--role", role)
        return {"aws_access_key_id": name, "aws_secret_access_key": secret}

    def remove_user(self, name: str) -> None:
        self._admin("delete-user", "--access", name)

    def _admin(self, *arguments: str) -> None:
        subprocess.run(
            [program(), "admin", "--access", KEY_ID, "--secret", SECRET, "--endpoint-url", self.endpoint, *arguments],
            check=True, capture_output=True, timeout=30,
        )  # fmt: skip

    def stop(self) -> None:
        self._process.stop()


def add_secret(reference: Reference, server: S3Server, bucket: str) -> None:
    """Tell the DuckDB of the tests how to reach a bucket."""
    for scheme in ("s3", "s3a"):
        reference.connection.execute(
            f'CREATE OR REPLACE SECRET "{scheme}_{bucket}" (TYPE s3, KEY_ID ?, SECRET ?, ENDPOINT ?,'
            " REGION 'us-east-1', URL_STYLE 'path', USE_SSL false, SCOPE ?)",
            [KEY_ID, SECRET, server.endpoint.removeprefix("http://"), f"{scheme}://{bucket}/"],
        )


def install() -> None:
    """Build the server and fetch the JARs, where they are not there yet."""
    if shutil.which("go") is None and not program().exists():
        print("there is no Go, so the tests of S3 will be skipped", file=sys.stderr)
        return
    if not program().exists():
        subprocess.run(["go", "install", _MODULE], check=True, env={**os.environ, "GOBIN": str(program().parent)})
    if not jars():
        from penstock import s3_packages

        fetch_jars(s3_packages(), _jars_folder())


if __name__ == "__main__":
    install()
