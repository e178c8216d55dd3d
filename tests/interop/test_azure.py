"""Lakes on Azure, by Azurite: beside DuckDB, in the spellings of paths, and with errors that name what is wrong."""

from __future__ import annotations

import pytest
from duckdb_extensions import import_extension
from pyspark.sql import SparkSession

import penstock
from penstock.storage.azure import AzureAccess, azure_filesystem
from penstock.storage.options import StorageOptions
from support.azure_server import ACCOUNT, KEY, AzureServer
from support.catalogs import Catalog
from support.compare import assert_history, assert_same_tables, record
from support.reference import Reference
from support.writing import attached

COLUMNS = "id BIGINT, p VARCHAR, d DOUBLE"
ROWS = "(1, 'a b/é=%2F?#+&', 'nan'), (2, NULL, -0.0), (3, '', 1.5), (4, '🦆', NULL)"


@pytest.fixture
def container(azure: AzureServer) -> str:
    """An empty container, which the DuckDB of the tests reaches."""
    name = azure.container()
    import_extension("azure")
    with Reference() as reference:
        reference.connection.execute("LOAD azure")
        reference.connection.execute(
            f'CREATE OR REPLACE SECRET "{name}" (TYPE azure, CONNECTION_STRING ?, SCOPE ?)',
            [azure.connection_string(), f"az://{name}/"],
        )
    return name


@pytest.mark.parametrize("encrypted", [False, True])
def test_both_ways(
    file_catalog: Catalog, spark: SparkSession, azure: AzureServer, container: str, encrypted: bool
) -> None:
    file_catalog.data_path = f"az://{container}/a lake/"
    with file_catalog.build(data_inlining_row_limit=0, encrypted=encrypted) as reference:
        reference.execute(
            f"CREATE TABLE t ({COLUMNS})",
            "ALTER TABLE t SET PARTITIONED BY (p)",
            f"INSERT INTO t VALUES {ROWS}",
            "DELETE FROM t WHERE id = 3",
            f"INSERT INTO t VALUES {ROWS}",
        )
        history = record(reference, "t")
    options = azure.options()
    assert_history(file_catalog, spark, history, storage_options=options)
    with attached(file_catalog, spark, storage_options=options, data_inlining_row_limit=0) as lake:
        table = lake.table("t")
        table.append(spark.sql("SELECT id, string(id % 3) AS p, id / 7 AS d FROM range(10, 50)"))
        table.update({"d": "-1"}, "id = 20")
        table.delete("id = 21")
        table.merge_adjacent_files()
        assert len(table.read().collect()) == 3 + 4 + 40 - 1
    assert_same_tables(file_catalog, spark, "t", storage_options=options)


def test_spellings(file_catalog: Catalog, spark: SparkSession, azure: AzureServer, container: str) -> None:
    """Hadoop's spelling names the account; the catalog keeps what the user wrote."""
    file_catalog.data_path = f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net/lake/"
    options = {"account_key": KEY, "azure_endpoint": azure.endpoint}
    with attached(file_catalog, spark, storage_options=options, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT")
        table.append(spark.range(5))
        assert sorted(row.id for row in table.read().collect()) == [0, 1, 2, 3, 4]
        assert table.files().first().data_file.startswith(file_catalog.data_path)
        shown = table.read()._jdf.queryExecution().toString() + repr(spark.sql("SET -v").collect())
        assert KEY not in shown


def test_the_settings_of_the_session(
    file_catalog: Catalog, spark: SparkSession, azure: AzureServer, container: str
) -> None:
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    name = f"fs.azure.account.key.{ACCOUNT}.dfs.core.windows.net"
    hadoop.set(name, KEY)
    try:
        file_catalog.data_path = f"az://{container}/"
        options = {"account_name": ACCOUNT, "azure_endpoint": azure.endpoint}
        with attached(file_catalog, spark, storage_options=options, data_inlining_row_limit=0) as lake:
            lake.create_table("t", "id BIGINT").append(spark.range(3))
            assert len(lake.table("t").read().collect()) == 3
    finally:
        hadoop.unset(name)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"azure_storage_account_key": "d3Jvbmc="}, "azure_storage_account_key or azure_storage_sas_token is wrong"),
        ({"azure_endpoint": "http://127.0.0.1:10000"}, "does not end in the account"),
        ({"aws_region": "x"}, "aws_region is no storage option of az://"),
        ({"azure_storage_sas_token": "?sv=1"}, "give one of them"),
    ],
)
def test_wrong_options(
    file_catalog: Catalog, spark: SparkSession, azure: AzureServer, container: str, others: dict[str, str], said: str
) -> None:
    file_catalog.data_path = f"az://{container}/"
    with (
        pytest.raises(penstock.PenstockError, match=said) as raised,
        attached(file_catalog, spark, storage_options=azure.options(**others)),
    ):
        pass
    assert KEY not in str(raised.value)


def test_no_such_container(file_catalog: Catalog, spark: SparkSession, azure: AzureServer) -> None:
    file_catalog.data_path = "az://nowhere/"
    with (
        pytest.raises(penstock.NotFoundError, match="there is no such container"),
        attached(file_catalog, spark, storage_options=azure.options()),
    ):
        pass
    access = AzureAccess.of("az://nowhere/", StorageOptions.of(azure.options()))
    assert azure_filesystem(access).get_file_info("nowhere").type.name == "NotFound"
