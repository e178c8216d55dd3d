"""Which browser the tests of the pages take: `make browser` is content with the same ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer import test_browser
from support.browser import NAMES, program

MAKEFILE = Path(__file__).parents[2] / "Makefile"


@pytest.mark.parametrize("name", NAMES)
def test_any_of_chromiums_names_will_do(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() is None
    (tmp_path / name).touch(0o755)
    assert program() == str(tmp_path / name)


def test_the_tests_and_make_ask_the_same_list() -> None:
    assert program() == test_browser.CHROMIUM
    [recipe] = [line for line in MAKEFILE.read_text().splitlines() if "support.browser" in line]
    assert "google-chrome" not in MAKEFILE.read_text()
    assert "-m support.browser ||" in recipe
