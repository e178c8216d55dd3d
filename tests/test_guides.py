"""The guides' code runs, as it stands there: against real servers, with their addresses for those of the guides."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.s3_server import KEY_ID, SECRET, S3Server
from support.web_server import WebServer

GUIDES = Path(__file__).parent.parent / "docs" / "guides"
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def code_of(guide: str, **instead: str) -> str:
    """The code of a guide, with other words for some of its own, each of which it has."""
    code = "\n".join(CODE.findall((GUIDES / guide).read_text()))
    for word, other in instead.items():
        assert word in code
        code = code.replace(word, other)
    return code


@pytest.mark.s3
def test_storage(spark: SparkSession, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = {"sales-lake": s3.bucket(), "AKIAEXAMPLE": KEY_ID, "example-secret": SECRET}
    code = code_of("storage.md", **words, **{"https://s3.example.org": s3.endpoint})
    names: dict[str, object] = {}
    exec(compile(code, "storage.md", "exec"), names)
    assert os.path.exists("sales.sqlite")


def test_public_lakes(spark: SparkSession, web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it works is what the server gives to all: nothing has to be copied."""
    monkeypatch.chdir(web.folder)
    code = code_of("public_lakes.md", **{"https://lakes.example.org": web.url})
    names: dict[str, object] = {}
    exec(compile(code, "public_lakes.md", "exec"), names)
    assert web.asked("GET", "/weather.ducklake")
    assert web.asked("GET", ".parquet")
