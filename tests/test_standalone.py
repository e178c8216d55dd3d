"""A standalone cluster whose workers have no Penstock: it is sent to them, and every verb runs there; S3 too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support import s3_server
from support.catalogs import DuckDBCatalog
from support.processes import environment
from support.reference import Reference
from support.s3_server import S3Server
from support.standalone import StandaloneCluster, bare_python

DRIVER = """
import json, sys
import penstock
from support.s3_server import jars

master, uri, data, options = sys.argv[1:]
spark = penstock.session(master, **{
    "spark.executor.memory": "512m", "spark.cores.max": "2",
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.jars": ",".join(jars()),
    "spark.driver.memory": "1g",
})
with penstock.attach(uri, data_path=data, storage_options=json.loads(options), spark=spark, name="lk") as lake:
    table = lake.create_table("t", "id BIGINT, p STRING, u UINT8", partitioned_by=["p"])
    assert table.read().count() == 0
    assert table.read().collect() == []
    rows = "id", "concat('p', id % 3) AS p", "CAST(id % 250 AS SMALLINT) AS u"
    table.append(spark.range(0, 1000, 1, 4).selectExpr(*rows))
    table.append(spark.range(1000, 1500, 1, 2).selectExpr(*rows))
    table.delete("id % 10 = 0")
    table.update({"p": "'changed'"}, "id BETWEEN 11 AND 13")
    spark.sql("MERGE INTO lk.t USING (SELECT id + 1490 AS id FROM range(20)) s ON t.id = s.id"
              " WHEN MATCHED THEN UPDATE SET p = 'merged' WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 'new')")
    assert table.changes(1).where("change_type = 'delete'").count() > 100
    table.rewrite_data_files(delete_threshold=0.0)
    table.merge_adjacent_files()
    lake.checkpoint()
    print("rows", table.read().count(), table.read().selectExpr("sum(id * u)").first()[0])
spark.stop()
"""

# Of two lakes that DuckDB made, the second is encrypted: its rows are read by Python in the workers.
LACKING = """
import sys, traceback
import penstock

master, plain, encrypted = sys.argv[1:]
spark = penstock.session(master, **{
    "spark.executor.memory": "512m", "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
})
spark.sparkContext.setLogLevel("OFF")
with penstock.attach(plain, spark=spark) as lake:
    table, before = lake.table("t"), lake.current_snapshot()
    print("READ", table.read().count(), table.read().selectExpr("sum(id)").first()[0], lake.table("e").read().count())
    for statement in (
        lambda: table.append(spark.range(10)),
        lambda: table.update({"id": "id + 1"}, "id = 5"),
        table.rewrite_data_files,
    ):
        try:
            statement()
        except penstock.PenstockError as error:
            print("LACKS", error)
    assert lake.current_snapshot() == before
with penstock.attach(encrypted, spark=spark) as lake:
    try:
        lake.table("t").read().count()
    except Exception as error:
        print("LACKS", traceback.format_exception(error)[-1])
"""


@pytest.mark.spark
@pytest.mark.slow
def test_workers_without_pyarrow(tmp_path: Path) -> None:
    """Plain reads need no Python there; whatever does says what is missing, in one line."""
    lakes = {encrypted: f"ducklake:{tmp_path}/{encrypted}.ducklake" for encrypted in (False, True)}
    for encrypted, uri in lakes.items():
        with Reference() as reference:
            data_path = f"{tmp_path}/{encrypted}/"
            reference.attach(uri, data_path=data_path, encrypted=encrypted, data_inlining_row_limit=0)
            reference.execute(
                "CREATE TABLE t AS SELECT range AS id FROM range(1000)",
                "DELETE FROM t WHERE id % 100 <> 5",
                "CREATE TABLE e (id BIGINT)",
            )
    files = set(tmp_path.rglob("*.parquet"))
    lacking = bare_python(tmp_path, "pyarrow")
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        run = subprocess.run(
            [sys.executable, "-c", LACKING, cluster.master, *lakes.values()],
            capture_output=True, text=True, check=False, timeout=300,
            env=environment() | {"PYSPARK_PYTHON": str(lacking)},
        )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    read, *lacks = [line for line in run.stdout.splitlines() if line.startswith(("READ", "LACKS"))]
    assert read == f"READ 10 {sum(range(5, 1000, 100))} 0"
    assert len(lacks) == 4
    for line in lacks:
        assert f"workers run {lacking}, which has no module 'pyarrow'" in line
        assert "PYSPARK_PYTHON" in line
    assert set(tmp_path.rglob("*.parquet")) == files


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("place", ["disk", "s3"])
def test_every_verb(tmp_path: Path, request: pytest.FixtureRequest, place: str) -> None:
    catalog, options = DuckDBCatalog(tmp_path), {}
    if place == "s3":
        server: S3Server = request.getfixturevalue("s3")
        bucket = server.bucket()
        catalog.data_path, options = f"s3://{bucket}/lake/", server.options()
    with StandaloneCluster(tmp_path) as cluster:
        run = subprocess.run(
            [sys.executable, "-c", DRIVER, cluster.master, catalog.uri, catalog.data_path,
             json.dumps(options)],
            capture_output=True, text=True, check=False, timeout=400,
            env=environment() | {"PYSPARK_PYTHON": str(cluster.python)},
        )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    said = run.stdout.split()
    with Reference() as reference:
        if place == "s3":
            s3_server.add_secret(reference, server, bucket)
        reference.attach(catalog.uri)
        expected = reference.rows("SELECT count(*), sum(id * u) FROM t")[0]
        assert reference.value("SELECT count(*) FROM t WHERE p IN ('merged', 'new', 'changed')") == 21 + 2
    assert [int(one) for one in said[1:]] == [int(one) for one in expected]
