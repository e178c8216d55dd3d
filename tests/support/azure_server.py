"""A real server of Azure's blobs for the tests, one that checks signatures: Azurite, by npm, and the JARs for Spark."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from base64 import b64encode
from itertools import count
from pathlib import Path

from penstock.spark.azure_packages import azure_packages
from penstock.spark.hadoop import hadoop_version
from penstock.storage.azure import AzureAccess, azure_filesystem
from penstock.storage.options import StorageOptions
from support.fetching import cache, fetch_jars, fetched_jars
from support.servers import free_port
from support.store_process import StoreProcess

_PACKAGE = "azurite@3.35.0"
ACCOUNT, KEY = "penstocktests", b64encode(b"a key of the tests, of 64 bytes, as Azure has them, no more or...").decode()


def program() -> Path:
    """The server's program, which `make azure` installs."""
    return cache() / "azurite" / "node_modules" / ".bin" / "azurite-blob"


def jars() -> list[str]:
    """What Spark needs to read Azure, which `make azure` fetches; none where it has not been run."""
    return fetched_jars(_jars_folder())


def _jars_folder() -> Path:
    return cache() / f"azure-jars-{hadoop_version()}"


def is_installed() -> bool:
    """Whether `make azure` has been run here."""
    return program().exists() and bool(jars())


class AzureServer:
    """A private server of blobs on a port of the loopback, with one account."""

    def __init__(self) -> None:
        directory, port = Path(tempfile.mkdtemp(prefix="penstock-azure-")), free_port()
        self.endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
        self._numbers = count(1)
        command = [
            program(), "--blobPort", str(port), "--location", directory, "--silent", "--skipApiVersionCheck",
            "--disableTelemetry",
        ]  # fmt: skip
        variables = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}", "PATH": _path()}
        self._process = StoreProcess(command, self.endpoint, directory, variables)

    def container(self) -> str:
        """Make an empty container and return its name."""
        name = f"lake-{next(self._numbers)}"
        access = AzureAccess.of(f"az://{name}/", StorageOptions.of(self.options()))
        azure_filesystem(access).create_dir(name)
        return name

    def options(self, **others: str) -> dict[str, str]:
        """Storage options that reach it."""
        return {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_account_key": KEY,
            "azure_endpoint": self.endpoint,
        } | others

    def connection_string(self) -> str:
        """What DuckDB reaches it by."""
        return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={self.endpoint};"

    def stop(self) -> None:
        self._process.stop()


def _path() -> str:
    node = shutil.which("node")
    assert node is not None  # or it could not have been installed
    return str(Path(node).parent)


def install() -> None:
    """Fetch the server and the JARs, where they are not there yet."""
    if shutil.which("npm") is None and not program().exists():
        print("there is no npm, so the tests of Azure will be skipped", file=sys.stderr)
        return
    if not program().exists():
        folder = cache() / "azurite"
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", _PACKAGE], check=True, cwd=folder)
    if not jars():
        fetch_jars(azure_packages(), _jars_folder())


if __name__ == "__main__":
    install()
