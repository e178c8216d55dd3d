"""Lakes whose files are on S3, by name: commands need no more than the name, and show no key."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.catalogs import Catalog
from support.command_line import penstock, refused
from support.reference import Reference
from support.s3_server import SECRET, S3Server, add_secret

pytestmark = pytest.mark.s3


def test_a_named_lake_on_s3(
    sqlite_catalog: Catalog, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3.bucket()
    with Reference() as reference:
        add_secret(reference, s3, bucket)
    sqlite_catalog.data_path = f"s3://{bucket}/a lake/"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_CONFIG")
    monkeypatch.setenv("SALES_KEY", s3.options()["aws_secret_access_key"])
    options = "\n".join(
        f'{name} = "{"${SALES_KEY}" if "secret" in name else value}"' for name, value in s3.options().items()
    )
    place = f'location = "{sqlite_catalog.uri}"\ndata_path = "{sqlite_catalog.data_path}"'
    Path("penstock.toml").write_text(f"[lakes.sales]\n{place}\n[lakes.sales.storage_options]\n{options}")
    assert penstock("create", "sales").code == 0
    with sqlite_catalog.build(data_inlining_row_limit=0) as reference:
        reference.execute("CREATE TABLE t (a INTEGER)", "INSERT INTO t VALUES (1)")
    assert penstock("ls", "sales", "--json").json[0]["files"] == 1
    healthy = penstock("doctor", "sales")
    assert healthy.code == 0, healthy
    [file] = penstock("show", "sales", "t", "--files", "--json").json
    (s3.objects / file["path"].removeprefix("s3://")).unlink()
    assert penstock("doctor", "sales").code == 1
    assert penstock("doctor", "sales", "--no-store").code == 0
    monkeypatch.setenv("SALES_KEY", "wrong-" + SECRET)
    told = refused("doctor", "sales")
    assert "aws_secret_access_key is wrong" in told
    assert SECRET not in told
    # Who asks nothing of the store needs no key for it.
    assert penstock("ls", "sales").code == 0
