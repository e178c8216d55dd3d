"""Lists the 28 tables of a DuckLake 1.0 catalog with their columns, and the indexes that Penstock adds to them."""

from __future__ import annotations

from dataclasses import dataclass

FORMAT_VERSION = "1.0"
# What is known of a data file besides its row.
FILE_DETAILS = ("ducklake_file_column_stats", "ducklake_file_variant_stats", "ducklake_file_partition_value")


@dataclass(frozen=True)
class CatalogColumn:
    """A column of a catalog table; `type` is bigint, varchar, boolean, timestamptz or uuid."""

    name: str
    type: str
    constraint: str = ""


@dataclass(frozen=True)
class CatalogTable:
    """A catalog table, its columns in the order in which the extension makes them."""

    name: str
    columns: tuple[CatalogColumn, ...]

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of its columns, in their order."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class CatalogIndex:
    """An index of Penstock's on a catalog table. DuckLake itself has none but its primary keys."""

    name: str
    table: str
    columns: tuple[str, ...]


def _table(name: str, columns: str) -> CatalogTable:
    parts = (column.split(maxsplit=2) for column in columns.split(","))
    return CatalogTable(name, tuple(CatalogColumn(*part) for part in parts))


TABLES = {
    table.name: table
    for table in (
        _table("ducklake_metadata", "key varchar not null, value varchar not null, scope varchar, scope_id bigint"),
        _table(
            "ducklake_snapshot",
            """snapshot_id bigint primary key, snapshot_time timestamptz, schema_version bigint,
            next_catalog_id bigint, next_file_id bigint""",
        ),
        _table(
            "ducklake_snapshot_changes",
            """snapshot_id bigint primary key, changes_made varchar, author varchar, commit_message varchar,
            commit_extra_info varchar""",
        ),
        _table(
            "ducklake_schema",
            """schema_id bigint primary key, schema_uuid uuid, begin_snapshot bigint, end_snapshot bigint,
            schema_name varchar, path varchar, path_is_relative boolean""",
        ),
        _table(
            "ducklake_table",
            """table_id bigint, table_uuid uuid, begin_snapshot bigint, end_snapshot bigint, schema_id bigint,
            table_name varchar, path varchar, path_is_relative boolean""",
        ),
        _table(
            "ducklake_view",
            """view_id bigint, view_uuid uuid, begin_snapshot bigint, end_snapshot bigint, schema_id bigint,
            view_name varchar, dialect varchar, sql varchar, column_aliases varchar""",
        ),
        _table(
            "ducklake_tag", "object_id bigint, begin_snapshot bigint, end_snapshot bigint, key varchar, value varchar"
        ),
        _table(
            "ducklake_column_tag",
            """table_id bigint, column_id bigint, begin_snapshot bigint, end_snapshot bigint, key varchar,
            value varchar""",
        ),
        _table(
            "ducklake_data_file",
            """data_file_id bigint primary key, table_id bigint, begin_snapshot bigint, end_snapshot bigint,
            file_order bigint, path varchar, path_is_relative boolean, file_format varchar, record_count bigint,
            file_size_bytes bigint, footer_size bigint, row_id_start bigint, partition_id bigint,
            encryption_key varchar, mapping_id bigint, partial_max bigint""",
        ),
        _table(
            "ducklake_file_column_stats",
            """data_file_id bigint, table_id bigint, column_id bigint, column_size_bytes bigint, value_count bigint,
            null_count bigint, min_value varchar, max_value varchar, contains_nan boolean, extra_stats varchar""",
        ),
        _table(
            "ducklake_file_variant_stats",
            """data_file_id bigint, table_id bigint, column_id bigint, variant_path varchar, shredded_type varchar,
            column_size_bytes bigint, value_count bigint, null_count bigint, min_value varchar, max_value varchar,
            contains_nan boolean, extra_stats varchar""",
        ),
        _table(
            "ducklake_delete_file",
            """delete_file_id bigint primary key, table_id bigint, begin_snapshot bigint, end_snapshot bigint,
            data_file_id bigint, path varchar, path_is_relative boolean, format varchar, delete_count bigint,
            file_size_bytes bigint, footer_size bigint, encryption_key varchar, partial_max bigint""",
        ),
        _table(
            "ducklake_column",
            """column_id bigint, begin_snapshot bigint, end_snapshot bigint, table_id bigint, column_order bigint,
            column_name varchar, column_type varchar, initial_default varchar, default_value varchar,
            nulls_allowed boolean, parent_column bigint, default_value_type varchar, default_value_dialect varchar""",
        ),
        _table(
            "ducklake_table_stats", "table_id bigint, record_count bigint, next_row_id bigint, file_size_bytes bigint"
        ),
        _table(
            "ducklake_table_column_stats",
            """table_id bigint, column_id bigint, contains_null boolean, contains_nan boolean, min_value varchar,
            max_value varchar, extra_stats varchar""",
        ),
        _table(
            "ducklake_partition_info",
            "partition_id bigint, table_id bigint, begin_snapshot bigint, end_snapshot bigint",
        ),
        _table(
            "ducklake_partition_column",
            "partition_id bigint, table_id bigint, partition_key_index bigint, column_id bigint, transform varchar",
        ),
        _table(
            "ducklake_file_partition_value",
            "data_file_id bigint, table_id bigint, partition_key_index bigint, partition_value varchar",
        ),
        _table(
            "ducklake_files_scheduled_for_deletion",
            "data_file_id bigint, path varchar, path_is_relative boolean, schedule_start timestamptz",
        ),
        _table("ducklake_inlined_data_tables", "table_id bigint, table_name varchar, schema_version bigint"),
        _table("ducklake_column_mapping", "mapping_id bigint, table_id bigint, type varchar"),
        _table(
            "ducklake_name_mapping",
            """mapping_id bigint, column_id bigint, source_name varchar, target_field_id bigint, parent_column bigint,
            is_partition boolean""",
        ),
        _table("ducklake_schema_versions", "begin_snapshot bigint, schema_version bigint, table_id bigint"),
        _table(
            "ducklake_macro",
            "schema_id bigint, macro_id bigint, macro_name varchar, begin_snapshot bigint, end_snapshot bigint",
        ),
        _table("ducklake_macro_impl", "macro_id bigint, impl_id bigint, dialect varchar, sql varchar, type varchar"),
        _table(
            "ducklake_macro_parameters",
            """macro_id bigint, impl_id bigint, column_id bigint, parameter_name varchar, parameter_type varchar,
            default_value varchar, default_value_type varchar""",
        ),
        _table("ducklake_sort_info", "sort_id bigint, table_id bigint, begin_snapshot bigint, end_snapshot bigint"),
        _table(
            "ducklake_sort_expression",
            """sort_id bigint, table_id bigint, sort_key_index bigint, expression varchar, dialect varchar,
            sort_direction varchar, null_order varchar""",
        ),
    )
}

# Numbers only: PostgreSQL refuses a row whose indexed text is long, and MySQL indexes no whole text. New files have the
# greatest ids, so that their rows come to the end of an index that has a table's files in order.
INDEXES = tuple(
    CatalogIndex(f"penstock_{name}", f"ducklake_{table}", tuple(columns.split(", ")))
    for name, table, columns in (
        ("files_by_begin", "data_file", "table_id, begin_snapshot, end_snapshot, file_size_bytes"),
        ("files_by_end", "data_file", "end_snapshot"),
        ("deletes_by_file", "delete_file", "table_id, data_file_id"),
        ("deletes_by_end", "delete_file", "end_snapshot"),
        ("statistics_by_file", "file_column_stats", "table_id, data_file_id, column_id"),
        ("variants_by_file", "file_variant_stats", "table_id, data_file_id"),
        ("partitions_by_file", "file_partition_value", "table_id, data_file_id, partition_key_index"),
        ("scheduled_by_file", "files_scheduled_for_deletion", "data_file_id"),
        ("columns_by_table", "column", "table_id"),
    )
)
