"""Defines DuckLake's options: their meaning, their defaults, and the scopes they can be set at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_ANYWHERE = ("global", "schema", "table")
_GLOBAL = ("global",)


@dataclass(frozen=True)
class Option:
    """An option: what it means, its default, and the scopes it can be set at."""

    name: str
    description: str
    default: str | None
    scopes: tuple[str, ...]


OPTIONS = {
    option.name: option
    for option in (
        Option(
            "auto_compact",
            "Whether a table is included when compaction functions are called without a specific table argument",
            "true",
            _ANYWHERE,
        ),
        Option("created_by", "Tool used to write the DuckLake", None, _GLOBAL),
        Option("data_inlining_row_limit", "Maximum amount of rows to inline in a single insert", "10", _ANYWHERE),
        Option("data_path", "Path to data files", None, _GLOBAL),
        Option("delete_older_than", "How old unused files must be to be removed by cleanup functions", None, _GLOBAL),
        Option("encrypted", "Whether or not to encrypt Parquet files written to the data path", "false", _GLOBAL),
        Option("expire_older_than", "How old snapshots must be to be expired by default", None, _GLOBAL),
        Option(
            "hive_file_pattern",
            "If partitioned data should be written in a Hive-style folder structure",
            "true",
            _ANYWHERE,
        ),
        Option("parquet_compression_level", "Compression level for Parquet files", "3", _ANYWHERE),
        Option(
            "parquet_compression",
            "Compression algorithm for Parquet files (uncompressed, snappy, gzip, zstd, brotli, lz4, lz4_raw)",
            "snappy",
            _ANYWHERE,
        ),
        Option("parquet_row_group_size_bytes", "Number of bytes per row group in Parquet files", None, _ANYWHERE),
        Option("parquet_row_group_size", "Number of rows per row group in Parquet files", "122880", _ANYWHERE),
        Option("parquet_version", "Parquet format version (1 or 2)", "1", _ANYWHERE),
        Option(
            "per_thread_output",
            "Whether to create separate output files per thread during parallel insertion",
            "false",
            _ANYWHERE,
        ),
        Option(
            "require_commit_message",
            "If an explicit commit message is required for a snapshot commit.",
            "false",
            _GLOBAL,
        ),
        Option(
            "rewrite_delete_threshold",
            "Minimum fraction of data removed from a file before a rewrite is warranted. From 0 - 1.",
            "0.95",
            _ANYWHERE,
        ),
        Option("sort_on_insert", "Whether to sort data on INSERT according to SET SORTED BY", "true", _ANYWHERE),
        Option(
            "target_file_size", "The target data file size for insertion and compaction operations", "512MB", _ANYWHERE
        ),
        Option("version", "DuckLake format version", None, _GLOBAL),
        Option(
            "write_deletion_vectors",
            "Write Iceberg V3 deletion vectors (puffin) instead of positional delete files (parquet)",
            "false",
            _ANYWHERE,
        ),
    )
}


@dataclass(frozen=True)
class OptionValue:
    """A value that was set: for the whole lake, a schema or a table."""

    name: str
    value: str
    scope: str = "global"
    scope_id: int | None = None


def effective_value(
    name: str,
    values: Iterable[OptionValue],
    schema_id: int | None,
    table_id: int | None,
    attached: Mapping[str, str] | None = None,
) -> str | None:
    """Find the value that holds: the table's, else its schema's, the lake's, the one attached with, or the default."""
    found = {(item.scope, item.scope_id): item.value for item in values if item.name == name}
    for place in (("table", table_id), ("schema", schema_id), ("global", None)):
        if place in found:
            return found[place]
    if attached and name in attached:
        return attached[name]
    return OPTIONS[name].default if name in OPTIONS else None
