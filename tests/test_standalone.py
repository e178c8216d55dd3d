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
from support.standalone import StandaloneCluster

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
