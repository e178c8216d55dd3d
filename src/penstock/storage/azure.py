"""Reaches Azure: what PyArrow, DuckDB and Hadoop are told about a container, from its path and its options.

Each library has spellings of its own. `az://container/path` leaves the account to the options; `abfss://container@account.
dfs.core.windows.net/path` (Hadoop) and `az://account.blob.core.windows.net/container/path` (DuckDB) name it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from pyarrow import fs

from penstock.errors import InvalidError
from penstock.storage.duckdb_sql import duckdb_quoted
from penstock.storage.options import StorageOptions, from_environment, options_for
from penstock.storage.stores import split_path, store_of

if TYPE_CHECKING:
    import duckdb

_DOMAIN = "core.windows.net"
_KEPT = 64
_VARIABLES = {
    "azure_storage_account_name": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"),
    "azure_storage_account_key": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"),
    "azure_storage_sas_token": ("AZURE_STORAGE_SAS_TOKEN",),
    "azure_endpoint": ("AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"),
}


class AzurePlace(NamedTuple):
    """A path on Azure, in its parts; `account` is None where the path does not name it."""

    account: str | None
    domain: str
    container: str
    rest: str


def azure_place(path: str) -> AzurePlace:
    """The parts of a path. Raises InvalidError where it names no container."""
    store, (root, rest) = store_of(path), split_path(path)
    assert store is not None  # or the path would be on this machine
    container, at, host = store.name.rpartition("@")
    if not at:
        container, host = store.name, ""
    elif "@" not in root:  # the account is written first, and the container after it
        rest = rest.partition("/")[2]
    if not container:
        raise InvalidError(f"{path} names no container; write az://container/folder/")
    account, _, domain = host.partition(".")
    return AzurePlace(account or None, domain.partition(".")[2] or _DOMAIN, container, rest)


@dataclass(frozen=True)
class AzureAccess:
    """How to reach a container. Without a key or a token, each library looks for a login where Azure's do."""

    account: str
    domain: str
    container: str
    endpoint: str | None  # with its scheme, without the account; None for Azure itself
    key: str | None = field(default=None, repr=False)
    sas_token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, path: str, options: StorageOptions) -> AzureAccess:
        """By a path and its options. Raises InvalidError where neither names the account, or they name two."""
        place, said = azure_place(path), options.get("azure_storage_account_name")
        account = place.account or said
        if account is None:
            raise InvalidError(
                f"{path} does not name its account; give azure_storage_account_name, or write "
                f"abfss://{place.container}@ACCOUNT.dfs.{_DOMAIN}/{place.rest}"
            )
        if said and said != account:
            raise InvalidError(f"{path} is of the account {account}, and azure_storage_account_name is {said}")
        token = options.get("azure_storage_sas_token")
        return cls(
            account,
            place.domain,
            place.container,
            _server(options.get("azure_endpoint"), account),
            options.get("azure_storage_account_key"),
            token.removeprefix("?") if token else None,
        )

    @property
    def server(self) -> str | None:
        """The endpoint without its scheme."""
        return urlsplit(self.endpoint).netloc if self.endpoint else None

    @property
    def scheme(self) -> str:
        """Whether requests go by TLS, `https`, or not, `http`."""
        return "http" if (self.endpoint or "").startswith("http://") else "https"

    @property
    def dfs_host(self) -> str:
        """The account as Hadoop's settings call it."""
        return f"{self.account}.dfs.{self.domain}"

    @property
    def hadoop_authority(self) -> str:
        """What stands before the first slash in a path of Hadoop's."""
        return f"{self.container}@{self.dfs_host}"


def _server(endpoint: str | None, account: str) -> str | None:
    """An endpoint without the account at its end, which is where a server of one's own has it."""
    if endpoint is None:
        return None
    server, _, last = endpoint.rstrip("/").rpartition("/")
    if last != account or "://" not in server:
        raise InvalidError(
            f"azure_endpoint={endpoint!r} does not end in the account; write http://host:10000/{account}, or leave it "
            "out for Azure itself"
        )
    return server


def azure_access(path: str) -> AzureAccess:
    """How to reach the container of a path, with the options that are used for it."""
    return AzureAccess.of(path, options_for(path))


def in_environment() -> dict[str, str]:
    """The options that this process's environment holds."""
    found = {option: from_environment(names) for option, names in _VARIABLES.items()}
    return {option: value for option, value in found.items() if value}


@lru_cache(maxsize=_KEPT)
def azure_filesystem(access: AzureAccess) -> fs.AzureFileSystem:
    """The file system by which PyArrow reaches an account."""
    return fs.AzureFileSystem(
        account_name=access.account,
        account_key=access.key,
        sas_token=access.sas_token,
        blob_storage_authority=access.server or f".blob.{access.domain}",
        dfs_storage_authority=access.server or f".dfs.{access.domain}",
        blob_storage_scheme=access.scheme,
        dfs_storage_scheme=access.scheme,
    )


def hadoop_path(path: str) -> str:
    """A path on Azure as Hadoop spells it."""
    access, place = azure_access(path), azure_place(path)
    return f"{'abfs' if access.scheme == 'http' else 'abfss'}://{access.hadoop_authority}/{place.rest}"


def duckdb_path(path: str) -> str:
    """A path on Azure as DuckDB spells it; a server of one's own is known by the container alone."""
    access, place = azure_access(path), azure_place(path)
    return f"{_duckdb_root(access)}{place.rest}"


def _duckdb_root(access: AzureAccess) -> str:
    account = "" if access.server else f"{access.account}.blob.{access.domain}/"
    return f"az://{account}{access.container}/"


def add_azure_secret(connection: duckdb.DuckDBPyConnection, access: AzureAccess) -> None:
    """Tell a DuckDB, which has its `azure` loaded, how to reach a container."""
    root = _duckdb_root(access)
    if access.key or access.sas_token:
        said, value = "CONNECTION_STRING ?", _connection_string(access)
    else:
        said, value = "PROVIDER credential_chain, ACCOUNT_NAME ?", access.account
    connection.execute(
        f"CREATE OR REPLACE TEMPORARY SECRET {duckdb_quoted(f'penstock {root}')} (TYPE azure, {said}, SCOPE ?)",
        [value, root],
    )


def _connection_string(access: AzureAccess) -> str:
    blobs = (
        f"{access.endpoint}/{access.account}" if access.endpoint else f"https://{access.account}.blob.{access.domain}"
    )
    login = f"AccountKey={access.key}" if access.key else f"SharedAccessSignature={access.sas_token}"
    return f"DefaultEndpointsProtocol={access.scheme};AccountName={access.account};{login};BlobEndpoint={blobs};"
