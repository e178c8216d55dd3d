"""What the site of the documents needs beyond MkDocs: diagrams as pictures, and two documents from above `docs/`."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from typing import Any

import mmdr
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
ABOVE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
_numbers = count()


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Let fences of `mermaid` be drawn here: the theme would fetch a script for them from elsewhere."""
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", [])
    fences.append({"name": "mermaid", "class": "diagram", "format": diagram})
    return config


def diagram(source: str, *_: Any, **__: Any) -> str:
    """The drawing itself: an element of the page, under an id of its own, and no smaller than can be read."""
    drawn = mmdr.render(source, "merman").svg().replace("merman", f"diagram-{next(_numbers)}")
    drawn = re.sub(r"max-width:(\d+)px", lambda size: f"{size[0]};min-width:{int(size[1]) * 2 // 3}px", drawn, count=1)
    return f'<div class="diagram">{drawn}</div>'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take in the documents that lie beside the code, with their links as seen from `docs/`."""
    for name, page in ABOVE.items():
        text = (ROOT / name).read_text()
        files.append(File.generated(config, page, content=re.sub(r"\]\(docs/", "](", text)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead links to those documents to their pages, and leave what a fence says to the tests to them."""
    markdown = re.sub(r"^```(\w+) [\w-]+$", r"```\1", markdown, flags=re.MULTILINE)
    for name, page in ABOVE.items():
        markdown = markdown.replace(f"](../{name}", f"]({page}")
    return markdown
