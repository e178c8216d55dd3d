"""The documents of the command line and of named lakes: what they show runs, and prints what they say."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as library
from support.catalogs import PostgresCatalog
from support.command_line import penstock
from support.documents import with_penstock

pytestmark = pytest.mark.classic
DOCUMENTS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ penstock (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def blocks(name: str) -> list[tuple[str, str]]:
    return BLOCK.findall((DOCUMENTS / name).read_text())


def plain(text: str) -> str:
    """A text without blanks and lines, and with one word for what is another one each time: times, names, sizes."""
    text = re.sub(r"20\d\d-\d\d-\d\d( \d\d:\d\d:\d\d)?", "TIME", text)
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)
    text = re.sub(r'[\d.]+ k?B|(?<="bytes": )\d+|(?<=,)\d{4}(?=,)', "SIZE", text)
    return " ".join(text.replace("─", "").split())


@pytest.mark.takes(20)
def test_the_command_line(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [pair for kind, text in blocks("command_line.md") if kind == "console" for pair in COMMAND.findall(text)]
    assert len(commands) > 15
    for line, expected in commands:
        answer = penstock(*shlex.split(line))
        assert answer.code == 0, (line, answer.err)
        if expected:
            assert plain(expected) == plain(answer.out), line


def test_named_lakes(
    spark: SparkSession, postgres_catalog: PostgresCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_CONFIG")
    for name in ("SALES_PASSWORD", "SALES_KEY_ID", "SALES_KEY"):
        monkeypatch.setenv(name, "secret")
    with library.attach(postgres_catalog.uri, data_path=postgres_catalog.data_path, spark=spark) as lake:
        lake.create_table("orders", "id BIGINT, region STRING").append([(1, "EU")])
    printed: list[str] = []
    for kind, text in blocks("guides/named_lakes.md"):
        if kind in ("toml", "sh"):
            for word, other in (
                ("ducklake:postgres:host=db.example.org dbname=sales user=etl", postgres_catalog.uri),
                ("s3://sales-lake/files/", postgres_catalog.data_path),
            ):
                assert word in text
                text = text.replace(word, other)
        if kind == "toml":
            Path("penstock.toml").write_text(text)
        elif kind == "sh":  # variables, which are enough without the file
            shell = ["bash", "-c", f"{text}penstock ls sales --json"]
            variables = with_penstock() | {"PENSTOCK_CONFIG": ""}
            ran = subprocess.run(shell, env=variables, capture_output=True, text=True, timeout=120)
            assert '"orders"' in ran.stdout, ran.stderr
        elif kind == "python":
            with redirect_stdout(io.StringIO()) as shown:
                exec(compile(text, "named_lakes.md", "exec"), {})
            printed += shown.getvalue().splitlines()
        elif kind == "text":
            assert text.strip() in printed
    from penstock.sql.registration import lake_named

    attached = lake_named(spark, "sales")
    assert attached is not None
    attached.close()
