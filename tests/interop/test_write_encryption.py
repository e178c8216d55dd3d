"""Encrypted lakes made here: a key a file, which the catalog holds, the extension reads by, and nobody else sees."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from pyspark.sql import SparkSession

from support import s3_server
from support.catalogs import Catalog, DuckDBCatalog
from support.compare import assert_same_tables
from support.processes import environment
from support.reference import METADATA, Reference
from support.s3_server import S3Server
from support.writing import attached, leaving_nothing


@pytest.mark.one_catalog
def test_written_here_and_by_the_extension(catalog: Catalog, spark: SparkSession) -> None:
    rows = spark.range(0, 40, 1, 1).selectExpr(
        "id", "concat('secret ', id) AS t", "CAST(id % 3 AS INT) AS p", "array(id) AS l"
    )
    with attached(catalog, spark, encrypted=True) as lake:
        table = lake.create_table("t", rows.schema, partitioned_by=["p"], sorted_by=["id DESC"])
        table.append(rows, distribution="none")
        table.append(rows.where("id < 3"), distribution="none")  # into the catalog
        other = lake.create_table("other", "id INT, u UINT8, v VARIANT, i INTERVAL")
        lake.set_option("data_inlining_row_limit", 0, table="other")
        other.append(
            spark.sql("SELECT 1, 255S, parse_json('[1]'), named_struct('months', 1, 'days', 2, 'microseconds', 3000L)")
        )
        with leaving_nothing(catalog, lake, "'u' .*-1"):
            other.append(spark.sql("SELECT 1 AS id, -1S AS u"), by_name=True)
        assert table.read().count() == 43
    with catalog.reference() as reference:
        keys = [key for (key,) in reference.rows(f"SELECT encryption_key FROM {METADATA}.ducklake_data_file")]
        assert len(set(keys)) == len(keys) == 4
        assert all(len(base64.b64decode(key)) == 16 for key in keys)
        if catalog.kind != "mysql":
            reference.execute(
                "BEGIN",
                "INSERT INTO t SELECT i, 'theirs', 1, [] FROM range(20) r(i)",
                "DELETE FROM t WHERE id % 4 = 1",
                "UPDATE t SET t = 'changed' WHERE id = 2",
                "COMMIT",
                "CALL ducklake_flush_inlined_data('lk')",
            )
    for file in Path(catalog.data_path).rglob("*.parquet"):
        content = file.read_bytes()
        assert content[:4] == b"PARE"
        assert b"secret" not in content
    assert_same_tables(catalog, spark, "t", "other")


def test_a_lake_stays_as_it_was_made(file_catalog: Catalog, spark: SparkSession) -> None:
    with attached(file_catalog, spark, encrypted=True):
        pass
    with attached(file_catalog, spark) as lake:
        lake.create_table("t", spark.range(30))
    with file_catalog.reference() as reference:
        assert reference.value(f"SELECT count(encryption_key) FROM {METADATA}.ducklake_data_file") > 0


WRITER = """
import json
import sys
from pyspark.errors import PySparkException
import penstock
from support.s3_server import jars
from support.small_sessions import SMALL

uri, data, events = sys.argv[1:4]
options = json.loads(sys.argv[4])
spark = penstock.session(**SMALL, **{
    "spark.jars": ",".join(jars()),
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": events, "spark.eventLog.compress": "false",
    "spark.sql.maxPlanStringLength": "10000000", "spark.sql.debug.maxToStringFields": "10000",
})
spark.sparkContext.setLogLevel("INFO")
with penstock.attach(uri, data_path=data, encrypted=True, storage_options=options, spark=spark) as lake:
    rows = spark.range(0, 40, 1, 2).selectExpr("id", "id % 2 AS p")
    table = lake.create_table("t", "id BIGINT, p BIGINT, u UINT8", partitioned_by=["p"], sorted_by=["id"])
    table.append(rows, by_name=True)
    read = table.read()
    read.explain(extended=True)
    print(read.count(), table, lake, table.explain("id = 3"), lake.options().collect())
    with lake.transaction() as transaction:
        table.append(rows, by_name=True)
        print(transaction, transaction._transaction.staging)
    for bad in ("-1S AS u", "1 / 0 AS id"):
        try:
            table.append(rows.selectExpr("p", bad), by_name=True)
        except (penstock.PenstockError, PySparkException) as error:
            print(repr(error), error)
    for statement in ("SET", "SET -v", "EXPLAIN FORMATTED SELECT 1"):
        print(spark.sql(statement).collect())
    print(spark.sparkContext.getConf().getAll(), read._jdf.queryExecution().toString())
with penstock.attach(uri + "2", data_path=data + "plain/", storage_options=options, spark=spark) as lake:
    table = lake.create_table("t", "id BIGINT")
    table.append(spark.range(2000))
    read = table.read()
    print(read.count(), read._jdf.queryExecution().toString(), lake, lake.options().collect())
    gone = read.where("id > 3")
    print(read.inputFiles())
    gone.cache().count()
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.spark
def test_keys_appear_in_no_log_plan_or_event(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Keys of files and, where there is a server, of S3. A session of its own: its start chooses the event log."""
    catalog = DuckDBCatalog(tmp_path)
    options = {}
    if s3_server.is_installed():
        server: S3Server = request.getfixturevalue("s3")
        catalog.data_path, options = f"s3://{server.bucket()}/", server.options()
    events = tmp_path / "events"
    events.mkdir()
    run = subprocess.run(
        [sys.executable, "-c", WRITER, catalog.uri, catalog.data_path, str(events), json.dumps(options)],
        capture_output=True, check=False, timeout=300, env=environment(),
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    seen = run.stdout + run.stderr + b"".join(file.read_bytes() for file in events.rglob("*") if file.is_file())
    assert b"SparkListenerSQLExecutionStart" in seen
    assert b"DAGScheduler" in seen
    assert catalog.data_path.encode() in seen
    for secret in (options.get("aws_access_key_id"), options.get("aws_secret_access_key")):
        if secret:
            assert secret.encode() not in seen
            assert quote(secret, safe="").encode() not in seen
    with Reference() as reference:
        reference.attach(catalog.uri)
        keys = [key for (key,) in reference.rows(f"SELECT encryption_key FROM {METADATA}.ducklake_data_file")]
    assert len(keys) == 8
    for key in keys:
        octets = base64.b64decode(key)
        for form in (key.encode(), octets, octets.hex().encode(), octets.hex().upper().encode(), repr(octets).encode()):
            assert form not in seen
