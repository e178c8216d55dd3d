"""What the documents name is there: files, folders, Python names, and the targets of links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import penstock

SOURCE = Path(penstock.__file__).parent
ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
# The documents of the code itself name modules by their path below `src/penstock`.
ROOTS = (ROOT, SOURCE)
USERS_OWN = ("penstock.toml", "penstock/penstock.toml")  # files that are in no repository
FILE = re.compile(r"(?<![\w/.:*-])((?:[\w.-]+/)*[\w-]+\.(?:py|java|md|toml|lock))\b")
FOLDER = re.compile(r"`((?:[\w.-]+/)+)`")
NAME = re.compile(r"(?<![\w/.-])penstock(?:\.[A-Za-z_]\w*)+")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
WORD = re.compile(r"[A-Za-z_]\w*")
SOURCES = [path.read_text() for path in SOURCE.rglob("*") if path.suffix in (".py", ".java")]
SUPPORT = [path.read_text() for path in ROOT.glob("tests/support/*.py")]


def missing_files(text: str) -> Iterator[str]:
    for name in FILE.findall(LINK.sub("]", text)):
        if name not in USERS_OWN and not any((root / name).is_file() for root in ROOTS):
            yield name


def missing_folders(text: str) -> Iterator[str]:
    """Folders of the project; others are a user's own."""
    for name in FOLDER.findall(text):
        ours = [root for root in ROOTS if (root / name.split("/")[0]).is_dir()]
        if ours and not any((root / name).is_dir() for root in ours):
            yield name


def is_known(name: str) -> bool:
    """Whether it is a Python name, or a key that the source writes somewhere."""
    found: Any = penstock
    path = "penstock"
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        if hasattr(found, part):
            found = getattr(found, part)
            continue
        try:
            found = import_module(path)
        except ImportError:
            return any(f'"{name}"' in source for source in SOURCES)
    return True


def anchors(document: Path) -> set[str]:
    """The names by which GitHub links to a document's headings."""
    headings = HEADING.findall(FENCE.sub("", document.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(document: Path, text: str) -> Iterator[str]:
    for link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if "://" not in link and (not target.exists() or (anchor and anchor not in anchors(target))):
            yield link


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_names_is_there(document: Path) -> None:
    text = document.read_text()
    unknown = [name for name in NAME.findall(text) if not is_known(name)]
    wrong = [*missing_files(text), *missing_folders(text), *unknown, *broken_links(document, FENCE.sub("", text))]
    assert wrong == []


def unknown_words(text: str) -> set[str]:
    """Words in spans of code, but for paths, that are nowhere in the source, nor in what tests share."""
    spans = (span for span in SPAN.findall(FENCE.sub("", text)) if "/" not in span and not FILE.search(span))
    return {word for span in spans for word in WORD.findall(span)} - {
        word for source in (*SOURCES, *SUPPORT) for word in WORD.findall(source)
    }


def test_the_architecture_calls_things_by_their_names() -> None:
    assert unknown_words((ROOT / "docs" / "architecture.md").read_text()) == set()


def test_what_is_not_there_is_found() -> None:
    readme = ROOT / "README.md"
    assert list(missing_files("see `ducklake/lake.py`, docs/reading.md and `ducklake/detach.py`")) == [
        "ducklake/detach.py"
    ]
    assert list(missing_folders("`ducklake/catalog/`, `tests/nowhere/` and your `data/`")) == ["tests/nowhere/"]
    assert is_known("penstock.ducklake.lake.DuckLake")
    assert is_known("penstock.lance.create")
    assert not is_known("penstock.ducklake.attach.detach")
    assert not is_known("penstock.oracle")
    links = "[a](docs/reading.md#pruning) [b](docs/reading.md#cooking) [c](docs/none.md) [d](https://lance.org)"
    assert list(broken_links(readme, links)) == ["docs/reading.md#cooking", "docs/none.md"]
    assert unknown_words("`FileScope.groups` and `FileScope.puddles()`") == {"puddles"}
