"""Lakes on S3: keys given once reach Spark, PyArrow and DuckDB, and are shown nowhere; the rows are DuckDB's."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.ducklake.maintenance import orphaned_files
from penstock.storage import options
from penstock.storage.options import NONE, StorageOptions, options_for
from penstock.storage.s3 import S3Access, s3_client
from support import effort
from support.catalogs import Catalog
from support.compare import assert_history, assert_same_tables, record
from support.reference import Reference
from support.s3_server import KEY_ID, SECRET, S3Server, add_secret
from support.writing import attached

pytestmark = pytest.mark.s3
COLUMNS = "id BIGINT, p VARCHAR, d DOUBLE"
ROWS = "(1, 'a b/é=%2F?#+&', 'nan'), (2, NULL, -0.0), (3, '', 1.5), (4, '🦆', NULL)"


class Bucket:
    """A bucket, in the DuckDB of the tests and with the options by which Penstock reaches it."""

    def __init__(self, server: S3Server) -> None:
        self.server, self.name, self.options = server, server.bucket(), server.options()
        with Reference() as reference:
            add_secret(reference, server, self.name)

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


@pytest.mark.parametrize(
    ("scheme", "encrypted"),
    [("s3", True), ("s3a", False), *([("s3", False), ("s3a", True)] if effort.is_full() else [])],
)
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
        assert len(table.read().collect()) == 4 + 90 - 3 + 2 - 1
        assert table.changes(1).count() > 0
    assert_same_tables(file_catalog, spark, "t", storage_options=bucket.options)


def test_files_of_another_bucket(
    lake_on_s3: Catalog, spark: SparkSession, bucket: Bucket, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lake's options open it, here and in a table that has them, whichever process added them."""
    other = Bucket(s3)
    with Reference() as reference:
        reference.execute(f"COPY (SELECT i AS id, 'é' AS p FROM range(5) r(i)) TO 's3://{other.name}/x y/1.parquet'")
    with attached(lake_on_s3, spark, storage_options=bucket.options) as lake:
        table = lake.create_table("t", "id BIGINT, p STRING")
        table.add_files(f"s3://{other.name}/x y/*.parquet")
        assert len(table.read().collect()) == 5
        with pytest.raises(penstock.NotFoundError, match="there is no bucket no-such-bucket"):
            table.add_files("s3://no-such-bucket/x.parquet")
    forget_buckets(monkeypatch)
    with attached(lake_on_s3, spark, storage_options=bucket.options) as lake:
        lake.table("t").delete("id = 1")
    forget_buckets(monkeypatch)
    assert_same_tables(lake_on_s3, spark, "t", storage_options=bucket.options)
    forget_buckets(monkeypatch)
    with attached(lake_on_s3, spark, storage_options=bucket.options) as lake:
        assert lake.table("t").rewrite_data_files(delete_threshold=0.0).count() == 1
    assert_same_tables(lake_on_s3, spark, "t", storage_options=bucket.options)


def test_moving_in(lake_on_s3: Catalog, spark: SparkSession, bucket: Bucket, s3: S3Server, tmp_path: Path) -> None:
    """A DuckDB database of this machine, and files of another bucket."""
    other, path = Bucket(s3), tmp_path / "source.duckdb"
    with duckdb.connect(str(path)) as source:
        source.execute("CREATE TABLE t AS SELECT range AS i, 'é' AS s FROM range(100)")
    with Reference() as reference:
        reference.execute(f"COPY (SELECT 1 AS id) TO 's3://{other.name}/x y/p=é/1.parquet'")
    with attached(lake_on_s3, spark, storage_options=bucket.options, data_inlining_row_limit=0) as lake:
        lake.import_duckdb(str(path))
        made = lake.create_table_from_files("made", f"s3://{other.name}/x y/")
        copied = lake.create_table_from_files("copied", f"s3://{other.name}/*/*/*.parquet", copy=True)
        assert made.read().collect() == copied.read().collect() == [(1, "é")]
    assert_same_tables(lake_on_s3, spark, "t", "made", "copied", storage_options=bucket.options)


def forget_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in another process."""
    monkeypatch.setattr(options, "_options", {})


def test_maintenance(lake_on_s3: Catalog, spark: SparkSession, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old files go in one request, orphans are found, and so is what a killed writer had begun to send."""
    with attached(lake_on_s3, spark, storage_options=bucket.options, data_inlining_row_limit=0) as lake:
        lake.create_table("t", "id BIGINT, p STRING")
        for number in range(4):
            lake.table("t").append(spark.range(number, number + 1).selectExpr("id", "'x' AS p"))
        before = bucket.objects()
        lake.table("t").merge_adjacent_files()
        lake.expire_snapshots(keep_last=1)
        assert lake.cleanup_old_files(cleanup_all=True).count() == 4
        assert len(bucket.objects() - before) == 1
        assert not bucket.objects() & {name for name in before if name.endswith(".parquet")}
        own = "a lake/main/t/ducklake-01a1ea9f-d7c2-73ae-956e-c4aeb349fd6e.parquet"
        other = "a lake/main/t/mine.parquet"
        client = s3_client(S3Access.of(bucket.name, StorageOptions.of(bucket.options)))
        for name in (own, other):
            client.put_object(Bucket=bucket.name, Key=name, Body=b"x")
        client.create_multipart_upload(Bucket=bucket.name, Key=own)
        client.create_multipart_upload(Bucket=bucket.name, Key=other)
        assert lake.delete_orphaned_files(cleanup_all=True).count() == 0  # they are young
        monkeypatch.setattr(orphaned_files, "YOUNG", timedelta(hours=-1))
        monkeypatch.setattr(orphaned_files, "YOUNG_UPLOAD", timedelta(hours=-1))
        expected = [f"s3://{bucket.name}/{own}"]
        for dry_run in (True, False):
            found = lake.delete_orphaned_files(cleanup_all=True, dry_run=dry_run).collect()
            assert [row.path for row in found] == expected
        assert own not in bucket.objects()
        assert other in bucket.objects()
        left = client.list_multipart_uploads(Bucket=bucket.name)["Uploads"]
        assert [upload["Key"] for upload in left] == [other]
        assert len(lake.table("t").read().collect()) == 4


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"aws_secret_access_key": "wrong"}, "aws_secret_access_key is wrong"),
        ({"aws_access_key_id": "nobody"}, "aws_access_key_id is wrong"),
        ({"aws_region": "eu-north-1"}, "aws_region is wrong"),
        ({"aws_endpoint_url": "http://127.0.0.1:9"}, "nothing answers: check aws_endpoint_url"),
        ({"aws_access_key_id": ""}, "aws_access_key_id is no text"),
        ({"key": "x"}, "no storage option 'key'"),
    ],
)
def test_wrong_options(
    lake_on_s3: Catalog, spark: SparkSession, bucket: Bucket, wrong: dict[str, str], said: str
) -> None:
    """They are told in seconds, and nothing is made or changed: not the keys of another lake either."""
    with pytest.raises(penstock.InvalidError, match=said) as raised:
        penstock.attach(
            lake_on_s3.uri, data_path=lake_on_s3.data_path, spark=spark, storage_options=bucket.options | wrong
        )
    assert SECRET not in str(raised.value)
    assert not Path(lake_on_s3.target).exists()
    assert options_for(lake_on_s3.data_path) == NONE


def test_a_bucket_that_is_not_there(file_catalog: Catalog, spark: SparkSession, s3: S3Server) -> None:
    file_catalog.data_path = "s3://no-such-bucket/lake/"
    with pytest.raises(penstock.NotFoundError, match="there is no bucket no-such-bucket"):
        penstock.attach(file_catalog.uri, data_path=file_catalog.data_path, spark=spark, storage_options=s3.options())


def test_new_keys(lake_on_s3: Catalog, spark: SparkSession, bucket: Bucket, s3: S3Server) -> None:
    """The newest options of a bucket are used by all of this process, Spark's reader too."""
    with attached(lake_on_s3, spark, storage_options=bucket.options, data_inlining_row_limit=0) as lake:
        lake.create_table("t", "id BIGINT")
        lake.table("t").append(spark.range(3))
        other = s3.user("second")
        with attached(lake_on_s3, spark, storage_options=bucket.options | other) as second:
            rows = second.table("t").read()
            assert len(rows.collect()) == 3
            s3.remove_user("second")
            with pytest.raises(penstock.PenstockError, match=r"valid no more.*make the DataFrame again"):
                rows.where("id > 0").collect()
        with attached(lake_on_s3, spark, storage_options=bucket.options) as third:
            assert len(third.table("t").read().collect()) == len(lake.table("t").read().collect()) == 3


def test_what_others_attach(
    lake_on_s3: Catalog, spark: SparkSession, bucket: Bucket, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who fails, or says nothing of keys, changes none of those that are in use."""
    with attached(lake_on_s3, spark, storage_options=bucket.options, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT")
        poor = bucket.options | s3.user("poor", role="user")
        there = {"data_path": lake_on_s3.data_path, "spark": spark}
        with pytest.raises(penstock.AttachError, match="does not exist"):
            penstock.attach("ducklake:none.ducklake", read_only=True, storage_options=poor, **there)
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
        penstock.attach(f"ducklake:{lake_on_s3.directory}/other.ducklake", **there).close()
        monkeypatch.delenv("AWS_ENDPOINT_URL")
        table.append(spark.range(3))
        assert len(table.read().collect()) == 3


def test_a_bucket_of_the_same_name_elsewhere(lake_on_s3: Catalog, spark: SparkSession, bucket: Bucket) -> None:
    """What is written must not go there."""
    elsewhere = bucket.options | {"aws_endpoint_url": bucket.server.endpoint.replace("127.0.0.1", "localhost")}
    other = f"ducklake:{lake_on_s3.directory}/other.ducklake"
    with attached(lake_on_s3, spark, storage_options=bucket.options, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT")
        penstock.attach(other, data_path=lake_on_s3.data_path, spark=spark, storage_options=elsewhere).close()
        for use in (lambda: table.append(spark.range(3)), table.read):
            with pytest.raises(penstock.InvalidError, match=r"at http://127.*at http://localhost.*attach the lake"):
                use()
    with attached(lake_on_s3, spark, storage_options=bucket.options) as lake:
        lake.table("t").append(spark.range(3))
        assert len(lake.table("t").read().collect()) == 3


def test_an_address_in_the_environment(
    lake_on_s3: Catalog, spark: SparkSession, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the driver's: the workers, which have started before, have another."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket.options.pop("aws_endpoint_url"))
    with attached(lake_on_s3, spark, storage_options=bucket.options, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT")
        table.append(spark.range(3))
        assert len(table.read().collect()) == 3


def test_the_sessions_settings(lake_on_s3: Catalog, spark: SparkSession, bucket: Bucket) -> None:
    """What the options do not say comes from Spark's own settings, and then from the environment."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    settings = {
        f"fs.s3a.bucket.{bucket.name}.access.key": KEY_ID,
        f"fs.s3a.bucket.{bucket.name}.secret.key": SECRET,
        "fs.s3a.endpoint": bucket.server.endpoint,
        "fs.s3a.path.style.access": "true",
    }
    for name, value in settings.items():
        hadoop.set(name, value)
    try:
        with attached(lake_on_s3, spark, data_inlining_row_limit=0) as lake:
            lake.create_table("t", "id BIGINT")
            lake.table("t").append(spark.range(3))
            lake.table("t").delete("id = 1")
            assert sorted(row.id for row in lake.table("t").read().collect()) == [0, 2]
    finally:
        for name in settings:
            hadoop.unset(name)


def test_requests(lake_on_s3: Catalog, spark: SparkSession, bucket: Bucket, s3: S3Server) -> None:
    """A small file is written with one request and read with one; a query lists nothing and asks for no size."""
    with attached(lake_on_s3, spark, storage_options=bucket.options, data_inlining_row_limit=0) as lake:
        table = lake.create_table("t", "id BIGINT, a STRING")
        before = len(s3.requests(bucket.name))
        table.append(spark.range(0, 3000, 1, 3).selectExpr("id", "uuid() AS a"))
        written = s3.requests(bucket.name)[before:]
        files = table.files().count()
        assert [request.split()[0] for request in written] == ["PutObject"] * files
        assert table.read().selectExpr("sum(id)").collect() == [(2999 * 1500,)]
        asked = s3.requests(bucket.name)[before + len(written) :]
        assert [request.split()[0] for request in asked] == ["GetObject"] * files


def test_requests_for_large_files(
    lake_on_s3: Catalog, spark: SparkSession, bucket: Bucket, s3: S3Server, tmp_path: Path
) -> None:
    """Of a file of many row groups, no more is asked than Spark's own reader asks of the same file, and no size."""
    plain = {
        "fs.s3a.access.key": KEY_ID,
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.endpoint": s3.endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.input.stream.type": "classic",
    }
    columns = ["id", *(f"repeat(sha2(string(id * {i}), 256), 3) AS s{i}" for i in range(1, 4)), "id % 7 AS k"]
    with attached(lake_on_s3, spark, storage_options=bucket.options, data_inlining_row_limit=0) as lake:
        lake.set_option("parquet_row_group_size", "5000")
        rows = spark.range(0, 30_000, 1, 1).selectExpr(*columns)
        table = lake.create_table("large", rows.schema)
        table.append(rows)
        (file,) = table.files().collect()
        assert file.data_file_size_bytes > 4 << 20
        local = tmp_path / "large.parquet"
        local.write_bytes((s3.objects / file.data_file.removeprefix("s3://")).read_bytes())
        for wanted in (["*"], ["k", "s2"], ["sum(id)"]):
            before = len(s3.requests(bucket.name))
            ours = table.read().selectExpr(*wanted)
            assert sorted(ours.collect()) == sorted(spark.read.parquet(str(local)).selectExpr(*wanted).collect())
            asked = [request.split()[0] for request in s3.requests(bucket.name)[before:]]
            assert set(asked) == {"GetObject"}
            before = len(s3.requests(bucket.name))
            spark.read.options(**plain).parquet(file.data_file.replace("s3:", "s3a:")).selectExpr(*wanted).collect()
            assert len(asked) < len(s3.requests(bucket.name)[before:])
        before = len(s3.requests(bucket.name))
        assert table.read().count() == 30_000
        assert s3.requests(bucket.name)[before:] == []
