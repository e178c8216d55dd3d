"""Pictures of the tables in docs/benchmarks.md, for the site: python benchmarks/pictures.py

The numbers live in the tables alone. A picture shows seconds, bar beside bar, and says in its description what rows it
is made of, so that a test can tell when a table has changed since. One picture is for light pages and dark ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "benchmarks.md"
IMAGES = ROOT / "docs" / "images"
COLOURS = ("#00897b", "#8d9aa5", "#c58b3b")
# Words, lines of axes and grids are drawn in black or grey: this is what they are on a dark page.
STYLE = """<style>@media (prefers-color-scheme: dark) { text { fill: #d5dae0 !important }
line, path[stroke="#888"], path[stroke="#ddd"] { stroke: #566 !important } }</style>"""


@dataclass(frozen=True)
class Picture:
    """The columns of a table below a heading, each under the name that its bars have."""

    name: str
    heading: str
    columns: dict[str, str]


PICTURES = (
    Picture("benchmarks-reading", "Reading", {"Penstock": "Penstock", "other": "spark.read.parquet"}),
    Picture("benchmarks-writing", "Writing", {"Penstock": "Penstock", "other": "DataFrame.write.parquet"}),
    Picture(
        "benchmarks-peers",
        "Beside Iceberg and Delta",
        {"Penstock": "Penstock", "Iceberg": "Iceberg", "Delta": "Delta (an earlier run)"},
    ),
    Picture("benchmarks-tpch", "TPC-H", {"lake": "Penstock", "files": "spark.read.parquet"}),
    Picture("benchmarks-streams", "Streams", {"Penstock": "Penstock", "other": "Spark's Parquet, delta-spark"}),
    Picture("benchmarks-s3", "S3", {"Penstock": "Penstock", "other": "spark.read.parquet, write.parquet"}),
)


def rows_of(picture: Picture) -> list[dict[str, str | float]]:
    """A row for each bar: what was done, by whom, and in how many seconds."""
    [section] = re.findall(rf"^## {picture.heading}\n(.*?)(?=^## |\Z)", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    titles, _, *lines = next(table for table in _tables(section) if set(picture.columns) <= set(table[0]))
    found: list[dict[str, str | float]] = []
    for line in lines:
        for column, name in picture.columns.items():
            seconds = _seconds(line[titles.index(column)])
            if seconds is not None:
                found.append({"work": line[0], "by": name, "seconds": seconds})
    return found


def _tables(section: str) -> Iterator[list[list[str]]]:
    for table in re.findall(r"(?:^\|.*\|\n)+", section, re.MULTILINE):
        yield [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def _seconds(text: str) -> float | None:
    found = re.match(r"([\d.,]+) (s|ms)\b", text)
    if found is None:
        return None
    return float(found[1].replace(",", "")) / (1000 if found[2] == "ms" else 1)


def described(picture: Picture) -> str:
    """The rows as they stand in the picture's description."""
    return f"<desc>{escape(json.dumps(rows_of(picture), ensure_ascii=False))}</desc>"


def drawn(picture: Picture) -> str:
    """The picture as SVG."""
    import altair as alt
    import vl_convert

    rows = rows_of(picture)
    names = list(picture.columns.values())
    order = list(dict.fromkeys(str(row["work"]) for row in rows))
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("seconds:Q", title="seconds"),
            y=alt.Y("work:N", sort=order, title=None, axis=alt.Axis(labelLimit=420)),
            yOffset=alt.YOffset("by:N", sort=names),
            color=alt.Color(
                "by:N",
                sort=names,
                scale=alt.Scale(domain=names, range=list(COLOURS[: len(picture.columns)])),
                legend=alt.Legend(title=None, orient="top"),
            ),
        )
        .properties(width=460, height=alt.Step(13))
        .configure(background="transparent", padding={"left": 60, "right": 10, "top": 5, "bottom": 5})
        .configure_view(stroke=None)
    )
    svg = vl_convert.vegalite_to_svg(bars.to_json())
    return re.sub(r"(<svg[^>]*>)", lambda opening: opening[1] + described(picture) + STYLE, svg, count=1)


def main() -> None:
    for picture in PICTURES:
        (IMAGES / f"{picture.name}.svg").write_text(drawn(picture))


if __name__ == "__main__":
    main()
