"""The 28 tables of a DuckLake 1.0 catalog."""

from __future__ import annotations

FORMAT_VERSION = "1.0"

TABLES = (
    "ducklake_column",
    "ducklake_column_mapping",
    "ducklake_column_tag",
    "ducklake_data_file",
    "ducklake_delete_file",
    "ducklake_file_column_stats",
    "ducklake_file_partition_value",
    "ducklake_file_variant_stats",
    "ducklake_files_scheduled_for_deletion",
    "ducklake_inlined_data_tables",
    "ducklake_macro",
    "ducklake_macro_impl",
    "ducklake_macro_parameters",
    "ducklake_metadata",
    "ducklake_name_mapping",
    "ducklake_partition_column",
    "ducklake_partition_info",
    "ducklake_schema",
    "ducklake_schema_versions",
    "ducklake_snapshot",
    "ducklake_snapshot_changes",
    "ducklake_sort_expression",
    "ducklake_sort_info",
    "ducklake_table",
    "ducklake_table_column_stats",
    "ducklake_table_stats",
    "ducklake_tag",
    "ducklake_view",
)


def visible(alias: str = "") -> str:
    """SQL that is true for rows that a snapshot shows; it takes the snapshot id twice."""
    prefix = f"{alias}." if alias else ""
    return f"({prefix}begin_snapshot <= ? AND ({prefix}end_snapshot IS NULL OR {prefix}end_snapshot > ?))"
