"""The guides' code runs, as it stands there: against real servers, with their addresses for those of the guide."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from penstock.storage.options import StorageOptions
from penstock.storage.s3 import S3Access, s3_client
from support import azure_server
from support.azure_server import AzureServer
from support.documents import Document
from support.processes import environment
from support.reference import Reference
from support.s3_server import KEY_ID, SECRET, S3Server
from support.servers import MariaDBServer, PostgresServer
from support.standalone import StandaloneCluster
from support.web_server import WebServer


class Guide(Document):
    """A document of `docs/guides/`."""

    def __init__(self, name: str, instead: dict[str, str]) -> None:
        super().__init__(f"docs/guides/{name}", instead)


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the guide's files are in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def s3_words(s3: S3Server, bucket: str) -> dict[str, str]:
    return {
        bucket: s3.bucket(),
        "AKIAEXAMPLE": KEY_ID,
        "example-secret": SECRET,
        "https://s3.example.org": s3.endpoint,
    }


@pytest.mark.s3
def test_storage(spark: SparkSession, s3: S3Server, azure: AzureServer, at_home: Path) -> None:
    words = {
        "archive-lake": azure.container(),
        "exampleaccount": azure_server.ACCOUNT,
        "ZXhhbXBsZQ==": azure_server.KEY,
    }
    address = {"https://azure.example.org": azure.endpoint.rpartition("/")[0]}
    Guide("storage.md", s3_words(s3, "sales-lake") | words | address).run()
    assert (at_home / "sales.sqlite").exists()


@pytest.mark.s3
def test_access_control(spark: SparkSession, s3: S3Server, postgres_server: PostgresServer) -> None:
    bucket, database = s3.bucket(), postgres_server.create_database()
    connection = postgres_server.connection_string(database)
    host = connection.split()[1].removeprefix("host=")
    guide = Guide(
        "access_control.md",
        {"company-lake": bucket, "https://s3.example.org": s3.endpoint, "arn:aws:iam::123456789012:user/": ""}
        | {"dbname=catalog host=db.example.org": f"dbname={database} host={host}"},
    )
    roles = ("lake_owner", "lake_writer", "lake_reader")
    for role in roles:
        s3.user(role, secret=f"{role.removeprefix('lake_')}-key", role="user")
    client = s3_client(S3Access.of(bucket, StorageOptions.of(s3.options())))

    def administer(*statements: str) -> None:
        with psycopg.connect(connection, autocommit=True) as administrator:
            for statement in statements:
                administrator.execute(statement)

    try:
        guide.run(sql=administer, json=lambda policy: client.put_bucket_policy(Bucket=bucket, Policy=policy))
    finally:
        administer(*(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}" for role in roles))
    folders = {path.parent.name for path in (s3.objects / bucket).rglob("*.parquet")}
    assert folders == {"orders", "prices", "returns"}


@pytest.mark.slow
def test_backup_and_recovery(
    spark: SparkSession,
    at_home: Path,
    postgres_server: PostgresServer,
    mysql_server: MariaDBServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", f"{postgres_server.programs}{os.pathsep}{os.environ['PATH']}")
    words = {
        f"dbname={name} host=db.example.org user=admin": postgres_server.connection_string(
            postgres_server.create_database()
        )
        for name in ("catalog", "restored", "dumped", "loaded")
    }
    databases = {name: mysql_server.create_database() for name in ("catalog", "restored")}
    words |= {
        f"db={name} host=mysql.example.org user=admin": mysql_server.connection_string(database)
        for name, database in databases.items()
    }
    Guide("backup_and_recovery.md", words).run()
    for database in databases.values():
        mysql_server.drop_database(database)


@pytest.mark.s3
def test_remote_data_path(spark: SparkSession, s3: S3Server, at_home: Path) -> None:
    Guide("remote_data_path.md", s3_words(s3, "sales-lake")).run()


@pytest.mark.s3
def test_moving_a_lake(spark: SparkSession, s3: S3Server, at_home: Path, postgres_server: PostgresServer) -> None:
    server = postgres_server.connection_string(postgres_server.create_database())
    words = {"dbname=catalog host=db.example.org user=admin": server, "new-bucket": s3.bucket()}
    Guide("moving_a_lake.md", s3_words(s3, "old-bucket") | words).run()


class Elsewhere:
    """Runs code in a process of its own, whose Spark is another than that of the tests."""

    def __init__(self, **settings: str) -> None:
        self._settings = settings

    def __call__(self, code: str) -> str:
        settings = {**environment(), **self._settings}
        ran = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


@pytest.fixture
def troubles(s3: S3Server, at_home: Path, postgres_server: PostgresServer) -> Iterator[Guide]:
    server = postgres_server.connection_string(postgres_server.create_database())
    words = {"dbname=catalog host=db.example.org user=": server.removesuffix("postgres"), "user=admin": "user=postgres"}
    yield Guide("troubleshooting.md", {**dict(reversed(words.items())), **s3_words(s3, "sales-lake")})
    with psycopg.connect(server, autocommit=True) as administrator:
        administrator.execute("DROP ROLE IF EXISTS guest")


def own_sessions(directory: Path) -> dict[str, Callable[[str], object]]:
    """What needs another session than that of the tests."""
    bare = directory / "bare"
    venv.create(bare, with_pip=False)
    return {"python no-s3": Elsewhere(), "python other-python": Elsewhere(PYSPARK_PYTHON=str(bare / "bin" / "python"))}


@pytest.mark.s3
def test_troubleshooting(spark: SparkSession, troubles: Guide) -> None:
    troubles.blocks = troubles.blocks[: troubles.position("python no-s3")]
    troubles.run()
    troubles.names["lake"].close()


@pytest.mark.s3
@pytest.mark.slow
def test_troubleshooting_of_sessions(troubles: Guide, tmp_path: Path) -> None:
    troubles.blocks = troubles.blocks[troubles.position("python no-s3") :]
    troubles.run(**own_sessions(tmp_path))


def test_public_lakes(spark: SparkSession, web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it works is what the server gives to all: nothing has to be copied."""
    monkeypatch.chdir(web.folder)
    Guide("public_lakes.md", {"https://lakes.example.org": web.url}).run()
    assert web.asked("GET", "/weather.ducklake")
    assert web.asked("GET", ".parquet")


@pytest.mark.spark
@pytest.mark.slow
def test_clusters(tmp_path: Path) -> None:
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        words = {"spark://master:7077": cluster.master, "/opt/lake/bin/python": str(cluster.python)}
        guide = Guide("clusters.md", words | {"/mnt/shared": str(tmp_path)})
        code = "\n".join(code for language, code in guide.blocks if language == "python")
        variables = {name: value for name, value in environment().items() if name != "PYSPARK_PYTHON"}
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False,
            timeout=300,
        )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    with Reference() as reference:
        reference.attach(f"ducklake:sqlite:{tmp_path}/sales.sqlite")
        found = reference.rows("SELECT region, count(*) FROM orders GROUP BY ALL ORDER BY ALL")
    assert found == [("APAC", 10), ("EU", 495), ("US", 495)]
