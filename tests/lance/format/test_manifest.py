"""Manifests with more than one row for an object: nothing is lost, and the next write mends them."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_namespace import CreateNamespaceRequest

from support.lance_judges import check_manifest, client
from support.lance_writers import Writer


def test_a_manifest_with_doubles_is_mended_by_the_next_write(tmp_path: Path) -> None:
    writer = Writer.create(tmp_path, "batch")
    writer.append("a", [(1, "US"), (2, None)])
    manifest = lance.dataset(str(tmp_path / "__manifest"))
    spaces = manifest.to_table(filter="object_type = 'namespace'")
    lance.write_dataset(pa.concat_tables([manifest.to_table(), spaces, spaces]), manifest.uri, mode="overwrite")
    with pytest.raises(Exception, match="duplicate object_id"):
        client(tmp_path).create_namespace(CreateNamespaceRequest(id=["refused"]))
    assert writer.ids() == [1, 2]
    writer.append("a", [(3, "US")])
    assert writer.ids() == [1, 2, 3]
    check_manifest(tmp_path)


def test_of_a_doubled_leaf_the_newest_version_is_read(tmp_path: Path) -> None:
    writer = Writer.create(tmp_path)
    uri = str(tmp_path / "__manifest")
    writer.append("first", [(1, "US")])
    old = lance.dataset(uri).to_table()
    writer.append("second", [(2, "US")])
    new = lance.dataset(uri).to_table()
    for rows in ([old, new], [new, old]):
        lance.write_dataset(pa.concat_tables(rows), uri, mode="overwrite")
        assert writer.ids() == [1, 2]
    writer.append("third", [(3, "US")])
    assert writer.ids() == [1, 2, 3]
    check_manifest(tmp_path)
