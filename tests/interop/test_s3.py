"""Lakes on S3: keys given once reach Spark, PyArrow and DuckDB, and are shown nowhere; the rows are DuckDB's."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from support.catalogs import Catalog
from support.compare import assert_history, assert_same_tables, record
from support.reference import Reference
from support.s3_server import KEY_ID, SECRET, S3Server
from support.writing import attached

pytestmark = pytest.mark.s3
COLUMNS = "id BIGINT, p VARCHAR, d DOUBLE"
ROWS = "(1, 'a b/é=%2F?#+&', 'nan'), (2, NULL, -0.0), (3, '', 1.5), (4, '🦆', NULL)"


class Bucket:
    """A bucket, in the DuckDB of the tests and with the options by which Penstock reaches it."""

    def __init__(self, server: S3Server) -> None:
        self.server, self.name, self.options = server, server.bucket(), server.options()
        with Reference() as reference:
            for scheme in ("s3", "s3a"):
                reference.connection.execute(
                    f'CREATE OR REPLACE SECRET "{scheme}_{self.name}" (TYPE s3, KEY_ID ?, SECRET ?, ENDPOINT ?,'
                    " REGION 'us-east-1', URL_STYLE 'path', USE_SSL false, SCOPE ?)",
                    [KEY_ID, SECRET, server.endpoint.removeprefix("http://"), f"{scheme}://{self.name}/"],
                )

    def objects(self) -> set[str]:
        root = self.server.objects / self.name
        return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@pytest.fixture
def bucket(s3: S3Server) -> Bucket:
    return Bucket(s3)


@pytest.fixture
def lake_on_s3(file_catalog: Catalog, bucket: Bucket) -> Catalog:
    file_catalog.data_path = f"s3://{bucket.name}/a lake/"
    return file_catalog


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_both_ways(file_catalog: Catalog, spark: SparkSession, bucket: Bucket, scheme: str, encrypted: bool) -> None:
    file_catalog.data_path = f"{scheme}://{bucket.name}/a lake/"
    with file_catalog.build(data_inlining_row_limit=0, encrypted=encrypted) as reference:
        reference.execute(
            f"CREATE TABLE t ({COLUMNS})",
            "ALTER TABLE t SET PARTITIONED BY (p)",
            f"INSERT INTO t VALUES {ROWS}",
            "INSERT INTO t SELECT i, 'many', i FROM range(10, 100) r(i)",
            "DELETE FROM t WHERE id IN (3, 20, 30)",
        )
        history = record(reference, "t")
    assert_history(file_catalog, spark, history, storage_options=bucket.options)
    with attached(file_catalog, spark, storage_options=bucket.options) as lake:
        table = lake.table("t")
        table.append(spark.sql("SELECT 5L AS id, 'x/y' AS p, 2.5D AS d UNION ALL SELECT 6, NULL, double('-inf')"))
        table.delete("id = 50")
        table.update({"d": "d + 1"}, "id BETWEEN 60 AND 62")
        table.rewrite_data_files(delete_threshold=0.0)
        table.merge_adjacent_files()
        assert table.read().count() == 4 + 90 - 3 + 2 - 1
        assert table.changes(1).count() > 0
    assert_same_tables(file_catalog, spark, "t", storage_options=bucket.options)
