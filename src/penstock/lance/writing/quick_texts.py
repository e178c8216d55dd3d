"""Lets Lance compress the texts of small fragments in a quick way, where its own choice takes longer than all the rest.

For texts Lance learns a table of symbols, which takes milliseconds however few they are; LZ4 learns nothing, and makes
a fifth more of them. Only the file says so, not the leaf's schema: a compaction chooses anew.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as kinds

_ENCODING = b"lance-encoding:"  # how Lance's settings in a field's metadata begin
_COMPRESSION = _ENCODING + b"compression"
_MOST_BYTES = 4 * 2**20  # from here on, a table of symbols is worth its time
_TEXTS = (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary)


def with_quick_texts(rows: pa.Table) -> pa.Table:
    """The rows of a file, with short columns of texts or bytes to be compressed by LZ4; not where a user chose."""
    fields = [
        item.with_metadata({**(item.metadata or {}), _COMPRESSION: b"lz4"}) if _is_quick(item, column) else item
        for item, column in zip(rows.schema, rows.columns, strict=True)
    ]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields, metadata=rows.schema.metadata))


def _is_quick(item: pa.Field, column: pa.ChunkedArray) -> bool:
    chosen = any(key.startswith(_ENCODING) for key in item.metadata or {})
    return not chosen and any(belongs(item.type) for belongs in _TEXTS) and column.nbytes < _MOST_BYTES
