"""The same files under another roof: a Delta table's, linked into DuckLake and into Iceberg."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as DeltaLake
from pyspark.sql import DataFrame, SparkSession

import penstock
import penstock.delta
from penstock.delta import DeltaTable
from support.catalogs import Catalog
from support.writing import attached, leaving_nothing

_COLUMNS = "id BIGINT, region STRING, day DATE, amount DECIMAL(38,2), tags ARRAY<STRING>"
_ROWS: list[tuple[Any, ...]] = [
    (1, "EU", date(1969, 12, 31), Decimal("-1.50"), ["a", None]),
    (2, "a/b=c %20 'q' 💧", date(1, 1, 1), Decimal("9" * 36 + ".99"), []),
    (3, None, None, None, None),
    (4, "EU", date(9999, 12, 31), Decimal("0.00"), ["$x"]),
]
Rows = Callable[[list[tuple[Any, ...]]], DataFrame]


@pytest.fixture
def rows(spark: SparkSession) -> Rows:
    return lambda values: spark.createDataFrame(values, _COLUMNS).coalesce(1)


def _delta(spark: SparkSession, path: Path, rows: Rows, *, materialized: bool = True) -> DeltaTable:
    """A table with files that are live and files that are not, whose checkpoints forget all transactions."""
    table = penstock.delta.create(
        str(path), _COLUMNS, partitioned_by=["region", "day"], materialize_partition_columns=materialized, spark=spark,
        properties={"delta.setTransactionRetentionDuration": "interval 0 seconds"},
    )  # fmt: skip
    table.append(rows([*_ROWS, (99, "gone", date(2024, 1, 1), None, None)]))
    table.delete("region = 'gone'")
    return table


def _sorted(found: list[Any]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in found)


@pytest.mark.parametrize("partitioned_by", [(), ("bucket(4, id)",), ("region",)])
def test_in_ducklake(
    file_catalog: Catalog, spark: SparkSession, tmp_path: Path, rows: Rows, partitioned_by: tuple[str, ...]
) -> None:
    delta = _delta(spark, tmp_path / "delta", rows)
    before = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.parquet")}
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", _COLUMNS, partitioned_by=list(partitioned_by))
        table.add_delta(delta)
        assert {path.relative_to(tmp_path) for path in tmp_path.rglob("*.parquet")} == before
        assert _sorted(table.read().collect()) == _sorted(_ROWS)
        assert table.explain("region = 'EU' AND day > DATE '2024-01-01'").kept == 1
        with leaving_nothing(file_catalog, lake, "is in main.t already"):
            table.add_delta(delta)
        table.delete("id = 1")
    with file_catalog.reference() as reference:
        assert _sorted(reference.rows("FROM t")) == _sorted(_ROWS[1:])
        assert reference.rows("SELECT id FROM t WHERE region IS NULL") == [(3,)]
        assert reference.rows("SELECT id FROM t WHERE day < DATE '1000-01-01' AND region LIKE '%💧'") == [(2,)]
    assert _sorted(delta.read().collect()) == _sorted(_ROWS)


def test_what_ducklake_cannot_take(file_catalog: Catalog, spark: SparkSession, tmp_path: Path, rows: Rows) -> None:
    delta = _delta(spark, tmp_path / "delta", rows, materialized=False)
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", _COLUMNS)
        with leaving_nothing(file_catalog, lake, r"does not hold its partition columns .* call backfill\(\)"):
            table.add_delta(delta)
        narrow = lake.create_table("narrow", "id BIGINT, region STRING, day DATE")
        with leaving_nothing(file_catalog, lake, "the DuckLake table has no 'amount'"):
            narrow.add_delta(delta)
        wide = lake.create_table("wide", f"{_COLUMNS}, more INT")
        with leaving_nothing(file_catalog, lake, "the Delta table has no 'more'"):
            wide.add_delta(delta)
        delta.enable_materialized_partition_columns()
        delta.backfill()
        table.add_delta(delta)
        assert _sorted(table.read().collect()) == _sorted(_ROWS)


def test_vacuum_asks_before_it_deletes_linked_files(
    file_catalog: Catalog, spark: SparkSession, tmp_path: Path, rows: Rows
) -> None:
    delta = _delta(spark, tmp_path / "delta", rows)
    delta.vacuum(retention=timedelta(0))
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", _COLUMNS)
        table.add_delta(delta)
        delta.delete("id = 1")
        delta.checkpoint()  # which keeps the note
        with pytest.raises(penstock.InvalidError, match=r"linked into ducklake:.* main\.t, .*even_linked=True"):
            delta.vacuum(retention=timedelta(0))
        assert len(delta.vacuum(retention=timedelta(0), dry_run=True)) == 1
        assert _sorted(table.read().collect()) == _sorted(_ROWS)
        table.delete("id = 1")
        assert len(delta.vacuum(retention=timedelta(0), even_linked=True)) == 1
        assert _sorted(table.read().collect()) == _sorted(_ROWS[1:])
    assert _sorted(delta.read().collect()) == _sorted(_ROWS[1:])
    assert DeltaLake(tmp_path / "delta").to_pyarrow_table().num_rows == 3


def _field(name: str, kind: object, number: int) -> dict[str, object]:
    mapped = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return {"name": name, "type": kind, "nullable": True, "metadata": mapped}


def _with_physical_names(path: Path, spark: SparkSession, *, vector: bool = False) -> DeltaTable:
    """A table under column mapping, whose file lacks a column that came later and has one that was dropped."""
    struct = {"type": "struct", "fields": [_field("a", "string", 3)]}
    fields = [_field("id", "long", 1), _field("s", struct, 2), _field("late", "integer", 4), _field("p", "string", 5)]
    arrays = {
        "col-1": [1, 2], "col-2": [{"col-3": "it's"}, None], "col-9": ["dropped"] * 2, "col-5": ["x/y"] * 2,
    }  # fmt: skip
    (path / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table(arrays), path / "file.parquet")
    add: dict[str, object] = {
        "path": "file.parquet", "partitionValues": {"col-5": "x/y"}, "size": (path / "file.parquet").stat().st_size,
        "modificationTime": 0, "dataChange": True, "stats": json.dumps({"numRecords": 2}),
    }  # fmt: skip
    features = ["columnMapping", "deletionVectors"]
    if vector:
        add["deletionVector"] = {
            "storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
            "sizeInBytes": 40, "cardinality": 6,
        }  # fmt: skip
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    metadata = {
        "id": "5a3c8a9e-0000-4000-8000-000000000000", "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": ["p"],
        "configuration": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"},
    }  # fmt: skip
    actions = [{"protocol": protocol}, {"metaData": metadata}, {"add": add}]
    (path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return penstock.delta.open(str(path), spark=spark)


def test_physical_names_and_deletion_vectors(file_catalog: Catalog, spark: SparkSession, tmp_path: Path) -> None:
    """A name mapping tells physical names from logical ones; nothing tells DuckLake of a deletion vector."""
    columns = "p STRING, s STRUCT<a: STRING>, id BIGINT"
    rows = [("x/y", ("it's",), 1, None), ("x/y", None, 2, None)]
    with attached(file_catalog, spark) as lake:
        table = lake.create_table("t", f"{columns}, late INT")
        with leaving_nothing(
            file_catalog, lake, "deletion vectors, which DuckLake does not", penstock.UnsupportedError
        ):
            table.add_delta(_with_physical_names(tmp_path / "thinned", spark, vector=True))
        delta = _with_physical_names(tmp_path / "delta", spark)
        table.add_delta(delta)
        assert [tuple(row) for row in table.read().orderBy("id").collect()] == rows
        assert table.read().where("s.a = 'it\\'s' AND p = 'x/y'").count() == 1
        defaulted = lake.create_table("defaulted", columns)
        defaulted.add_column("late INT DEFAULT 7")
        with leaving_nothing(file_catalog, lake, "lacks column 'late', which is NULL in the Delta table"):
            defaulted.add_delta(delta)
    with file_catalog.reference() as reference:
        assert reference.rows("SELECT p, s.a, id, late FROM t ORDER BY id") == [
            ("x/y", "it's", 1, None), ("x/y", None, 2, None),
        ]  # fmt: skip


@pytest.mark.parametrize("materialized", [True, False])
def test_in_iceberg(spark: SparkSession, tmp_path: Path, rows: Rows, materialized: bool) -> None:
    """Iceberg takes the values of identity partitions from the files: without the columns they are lost."""
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    delta = _delta(spark, tmp_path / "delta", rows, materialized=materialized)
    catalog = catalogs.SqlCatalog("roofs", uri=f"sqlite:///{tmp_path}/roofs.db", warehouse=f"file://{tmp_path}/other")
    catalog.create_namespace("n")
    schema = pa.schema(
        [
            ("id", pa.int64()), ("region", pa.string()), ("day", pa.date32()), ("amount", pa.decimal128(38, 2)),
            ("tags", pa.list_(pa.string())),
        ]
    )  # fmt: skip
    table = catalog.create_table("n.t", schema)
    table.add_files([f"{delta.path}/{row.path}" for row in delta.files().collect()])
    found = _sorted([tuple(row.values()) for row in table.scan().to_arrow().to_pylist()])
    if materialized:
        assert found == _sorted(_ROWS)
    else:
        assert found == _sorted([(row[0], None, None, *row[3:]) for row in _ROWS])
