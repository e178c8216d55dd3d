"""The site of the documents: every document is in its navigation, it needs nothing from elsewhere, and the pictures of
the benchmarks are of the tables as they are.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from support.documents import BLOCK, ROOT, Document

DOCS = ROOT / "docs"
API = DOCS / "api"
MADE = {"contributing.md", "changelog.md"}  # of documents above `docs/`
ELSEWHERE = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*(?:src|href)=["']?(?:https?:)?//[^"' >]+""")
CALL = re.compile(r"python (benchmarks/\w+\.py)(.*)")


class _Loader(yaml.SafeLoader):
    """Reads MkDocs' settings, passing over the names of Python functions in them."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def pages(navigation: Any) -> Iterator[str]:
    match navigation:
        case str():
            yield navigation
        case dict():
            for below in navigation.values():
                yield from pages(below)
        case list():
            for below in navigation:
                yield from pages(below)


def test_every_document_is_in_the_navigation() -> None:
    named = list(pages(yaml.load((ROOT / "mkdocs.yml").read_text(), _Loader)["nav"]))
    assert len(named) == len(set(named))
    assert {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - set(named) == set()


@pytest.mark.parametrize("package", ["penstock", "penstock.delta", "penstock.lance", "penstock.explorer"])
def test_every_public_name_is_in_the_reference(package: str) -> None:
    referred = set(re.findall(r"^::: ([\w.]+)", "\n".join(path.read_text() for path in API.glob("*.md")), re.MULTILINE))
    public = {f"{package}.{name}" for name in import_module(package).__all__ if not name.startswith("__")}
    errors = {f"penstock.{name}" for name in vars(import_module("penstock.errors"))}
    assert "penstock.errors" in referred
    assert public - errors - referred == set()


@cache
def pictures() -> ModuleType:
    found = spec_from_file_location("benchmark_pictures", ROOT / "benchmarks" / "pictures.py")
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


def test_pictures_are_of_the_tables_as_they_are() -> None:
    for picture in pictures().PICTURES:
        drawn = (pictures().IMAGES / f"{picture.name}.svg").read_text()
        assert pictures().described(picture) in drawn, "run benchmarks/pictures.py"


def test_comparison_is_of_the_benchmarks() -> None:
    picture = next(one for one in pictures().PICTURES if one.name == "benchmarks-peers")
    seconds = {(row["work"], row["by"]): row["seconds"] for row in pictures().rows_of(picture)}
    ours, iceberg, delta = picture.columns.values()
    text = (DOCS / "comparison.md").read_text()
    for works in (
        ("append", "append by month (84 partitions)"),
        ("delete 1%", "update 1%", "merge 1%"),
        ("Q1", "Q6"),
        ("20 appends of 5 rows",),
    ):
        told = re.findall(r"^\| [^|]*\| ([\d., ]+) \| ([\d., ]+) \|$", text, re.MULTILINE)
        ratios = [
            ", ".join(f"{seconds[work, ours] / seconds[work, by]:.2f}" for work in works) for by in (iceberg, delta)
        ]
        assert any(near(ratios[0], of_iceberg) and near(ratios[1], of_delta) for of_iceberg, of_delta in told), ratios


def near(one: str, other: str) -> bool:
    """Whether numbers are the same but for how they were rounded."""
    pairs = list(zip(one.split(", "), other.split(", "), strict=False))
    return one.count(",") == other.count(",") and all(abs(float(a) - float(b)) < 0.02 for a, b in pairs)


def test_commands_of_the_benchmarks_have_their_options() -> None:
    commands = [
        found for language, code in BLOCK.findall((DOCS / "benchmarks.md").read_text()) if language == "sh"
        for found in CALL.findall(code)
    ]  # fmt: skip
    assert len(commands) > 10
    for program, options in commands:
        text = "".join((ROOT / name).read_text() for name in (program, "benchmarks/lakes.py", "benchmarks/runs.py"))
        names = re.findall(r"--([a-z]+)", options)  # given as text, or to `arguments` as parameters
        assert [name for name in names if not re.search(rf'"--{name}"|\b{name}=|"{name}":', text)] == [], program


def document(path: Path, *blocks: tuple[str, str]) -> Document:
    path.write_text("\n".join(f"```{language}\n{code}\n```\n" for language, code in blocks))
    return Document(str(path))


def test_code_of_documents_says_what_stands_there(tmp_path: Path) -> None:
    program, session = (
        ("python", "x = 40 + 2\nprint('it is', x)\nprint('and', [x])"),
        ("console", "$ echo a  b\na b\n$ true"),
    )
    for right in ("it is 42", "and\n[42]", "it is 42\nand [42]", "it ... [42]", "a b"):
        document(tmp_path / "right.md", program, session, ("text", right), ("sh", "no program")).run()
    for wrong in (("text", "it is 43"), ("text", "it is"), ("console", "$ false"), ("console", "$ echo a\nb")):
        with pytest.raises(AssertionError):
            document(tmp_path / "wrong.md", program, wrong).run()
    with pytest.raises(AssertionError, match="nothing runs python elsewhere"):
        document(tmp_path / "wrong.md", ("python elsewhere", "1")).run()
    with pytest.raises(ZeroDivisionError):
        document(tmp_path / "wrong.md", ("python", "1 / 0")).run()


def test_something_from_elsewhere_is_found() -> None:
    assert ELSEWHERE.search('<script src="https://unpkg.com/mermaid.js">')
    assert ELSEWHERE.search('<link rel="stylesheet" href="//fonts.example.com/css">')
    assert not ELSEWHERE.search('<a href="https://ducklake.select"><img src="images/lake.svg">')


@pytest.mark.slow
def test_site_is_whole_and_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", tmp_path / "site"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    texts = {path.name: path.read_text() for path in (tmp_path / "site").rglob("*.html")}
    assert [name for name, text in texts.items() if ELSEWHERE.search(text)] == []
    assert "<svg" in texts["architecture.html"]
    assert "```" not in re.sub(r"<(code|pre)\b.*?</\1>", "", "".join(texts.values()), flags=re.DOTALL)
