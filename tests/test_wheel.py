"""The wheel and the sdist: what is in them, and that README's example runs where nothing else is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import penstock
from penstock.version import __version__

pytestmark = [pytest.mark.slow, pytest.mark.spark]
ROOT = Path(__file__).parents[1]
PACKAGE = Path(penstock.__file__).parent
# PySpark is distributed as its source, which takes minutes to build; these two come from here.
SPARK = ("pyspark", "py4j")
NOTES = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
PAGES = ("penstock/explorer/templates/", "penstock/explorer/static/")  # which no worker serves
EXAMPLE = re.compile(r"^## Your first table\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What the example leaves is a session, which ships the package.
AFTER = """
from importlib.metadata import distributions
from pathlib import Path
import sys, zipfile
from pyspark import SparkFiles
penstock.ship(spark)
[shipped] = Path(SparkFiles.getRootDirectory()).glob("penstock-*.zip")
print("shipped", *zipfile.ZipFile(shipped).namelist())
print("package", penstock.__file__)
print("installed", *{one.metadata["Name"].lower() for one in distributions()})
"""


def run(*command: str | Path, **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return str(done.stdout)


def build(source: Path, directory: Path, target: str) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-d", directory, "-t", target, cwd=source)
    [built] = directory.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata(wheel: Path) -> Message:
    text = contents(wheel)[f"penstock-{__version__}.dist-info/METADATA"]
    return Parser().parsestr(text.decode())


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    found = contents(wheel)
    own = {str(path.relative_to(PACKAGE.parent)) for path in PACKAGE.rglob("*") if path.is_file()}
    expected = {name for name in own if not name.endswith(".pyc")}
    notes = {f"penstock-{__version__}.dist-info/{name}" for name in NOTES}
    assert set(found) == expected | notes
    assert {"penstock/py.typed", "penstock/spark/java/CatalogFileIndex.java"} <= expected


def test_metadata(wheel: Path) -> None:
    told = metadata(wheel)
    assert told["Version"] == __version__
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Requires-Python"] == ">=3.11"
    assert told["Author"]
    assert "ducklake" in told["Keywords"].split(",")
    assert "Typing :: Typed" in told.get_all("Classifier", [])
    assert told["Description-Content-Type"] == "text/markdown"
    assert set(told.get_all("Provides-Extra", [])) >= {"postgres", "mysql", "s3", "encryption", "lance", "delta"}


def test_wheel_of_the_sdist_is_the_same(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / f"penstock-{__version__}"
    assert {path.name for path in source.iterdir()} >= {"LICENSE", "README.md", "CHANGELOG.md", "src", "tests", "docs"}
    assert not [path for path in source.rglob("*") if path.is_symlink() or path.suffix == ".pyc"]
    assert contents(build(source, tmp_path / "built", "wheel")) == contents(wheel)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """A Python with the wheel and what it asks for."""
    directory = tmp_path_factory.mktemp("bare")
    run(sys.executable, "-m", "venv", "--without-pip", directory / "venv")
    python = directory / "venv" / "bin" / "python"
    spark = directory / "spark"
    spark.mkdir()
    for item in Path(sysconfig.get_path("purelib")).iterdir():
        if item.name.split("-")[0] in SPARK:
            (spark / item.name).symlink_to(item)
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(packages) / "spark.pth").write_text(f"{spark}\n")
    constraints = ROOT / "requirements.lock"
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--constraint", constraints, wheel,
        env=clean(),
    )  # fmt: skip
    return python


def clean() -> dict[str, str]:
    """The environment without what would let a Python find more than it has."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "VIRTUAL"))}


def test_readme_runs_where_only_the_wheel_is(bare: Path, wheel: Path, tmp_path: Path) -> None:
    [example] = EXAMPLE.findall((ROOT / "README.md").read_text())
    program = tmp_path / "example.py"
    program.write_text(example + AFTER)
    said = run(bare, program, cwd=tmp_path, env=clean())
    assert re.search(r"\|\s*EU\|\s*374220\.0\|", said), said
    assert re.search(r"\|\s*US\|\s*374962\.5\|", said), said
    assert (tmp_path / "sales.ducklake").exists()
    told = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line[:1].isalpha()}
    assert told["package"][0].startswith(str(bare.parents[1]))
    package = {name for name in contents(wheel) if name.startswith("penstock/")}
    pages = {name for name in package if name.startswith(PAGES)}
    assert pages
    assert set(told["shipped"]) == package - pages
    asked = {
        re.split(r"[^\w-]", one)[0].lower()
        for one in metadata(wheel).get_all("Requires-Dist", [])
        if "extra" not in one
    }
    assert set(told["installed"]) >= asked | {"penstock"}
    without = subprocess.run([bare.parent / "penstock", "ls"], capture_output=True, text=True, env=clean())
    assert without.returncode != 0
    assert "penstock[cli]" in without.stderr
    assert not set(told["installed"]) & {
        "pytest",
        "hypothesis",
        "hatchling",
        "pylance",
        "deltalake",
        "boto3",
        "psycopg",
    }
