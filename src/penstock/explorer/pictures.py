"""Draws pictures as SVG by Altair: they follow the page's colours and width, and their texts are text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.ducklake.inspection.files import SizeBucket
from penstock.explorer.pruned_files import PrunedFiles
from penstock.explorer.rendering import Theme
from penstock.explorer.texts import plural, shortened, size

if TYPE_CHECKING:
    import altair as alt

_LABEL, _NARROW_LABEL = 44, 18  # letters
_LETTER = 7.2  # the width of one
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_BAR = 22
# What snapshots do, by the beginnings of the words for it, in the order in which they are drawn.
_KINDS = {
    "created": "created", "altered": "altered", "dropped": "dropped", "inserted": "inserted", "deleted": "deleted",
    "flushed": "maintained", "merged": "maintained", "wrote": "maintained", "compacted": "maintained",
}  # fmt: skip
_OTHER = "other"


@dataclass(frozen=True)
class _Colours:
    text: str
    line: str
    main: str
    soft: str
    kinds: tuple[str, ...]


_LIGHT = _Colours(
    "#33424f", "#d5dde3", "#0b6e8a", "#c9d6dd",
    ("#2f7d4f", "#8a5a00", "#a3324a", "#0b6e8a", "#b0472c", "#6b4fa0", "#5d6b76"),
)  # fmt: skip
_DARK = _Colours(
    "#b9c7d1", "#33434f", "#5cbfdc", "#33505e",
    ("#74c996", "#e0b256", "#f08aa0", "#5cbfdc", "#f2967c", "#b9a0ea", "#9fb0bd"),
)  # fmt: skip


@dataclass(frozen=True)
class Moment:
    """Something that a snapshot did."""

    time: datetime
    kind: str


def kind_of(action: str) -> str:
    """What kind of thing a snapshot did, by the words for it."""
    return _KINDS.get(action.partition(" ")[0], _OTHER)


def partition_sizes(sizes: Sequence[tuple[str, int]], theme: Theme) -> str:
    """A bar a partition, as long as its files are large."""
    return _svg(_bars([_Bar(name, count, size(count)) for name, count in sizes], theme), theme)


def file_sizes(buckets: Sequence[SizeBucket], theme: Theme) -> str:
    """A histogram of the sizes of files."""
    import altair as alt

    data = [{"sizes": f"{size(one.low)} –", "files": one.file_count} for one in buckets]
    bars = (
        alt.Chart(alt.InlineData(values=data), width=theme.width - 90, height=200)
        .mark_bar(color=_colours(theme).main, cornerRadiusEnd=2)
        .encode(
            x=alt.X(
                "sizes:N", sort=None, title="Size of a file, from", axis=alt.Axis(labelAngle=-40, labelOverlap=True)
            ),
            y=alt.Y("files:Q", title="Files", axis=alt.Axis(tickMinStep=1, format="~s", minExtent=45, maxExtent=45)),
        )
    )
    return _svg(bars, theme)


def snapshot_line(moments: Sequence[Moment], theme: Theme) -> str:
    """A line in time for each kind of thing that snapshots do, with a mark for each that did it."""
    import altair as alt

    every = [*dict.fromkeys(_KINDS.values()), _OTHER]
    palette = dict(zip(every, _colours(theme).kinds, strict=True))
    kinds = [kind for kind in every if any(one.kind == kind for one in moments)]
    title, labels = _time_axis([one.time for one in moments])
    data = [{"time": one.time.isoformat(), "kind": one.kind} for one in moments]
    marks = (
        alt.Chart(alt.InlineData(values=data), width=theme.width - 120, height=max(2, len(kinds)) * 30)
        .mark_point(filled=True, size=80, opacity=0.8)
        .encode(
            x=alt.X(
                "time:T", title=title, scale=alt.Scale(type="utc", nice=True),
                axis=alt.Axis(labelOverlap=True, tickCount=4 if theme.is_narrow else 8, format=labels or alt.Undefined),
            ),
            y=alt.Y("kind:N", sort=kinds, title=None, axis=alt.Axis(grid=True, minExtent=75, maxExtent=75)),
            color=alt.Color(
                "kind:N", legend=None, scale=alt.Scale(domain=kinds, range=[palette[kind] for kind in kinds])
            ),
        )
    )  # fmt: skip
    return _svg(marks, theme)


def _time_axis(times: Sequence[datetime]) -> tuple[str, str | None]:
    """The title of an axis of times, and how its labels are written: a span within a day has the day in the title."""
    if not times or max(times) - min(times) > timedelta(days=2):
        return "Time (UTC)", None
    days = sorted({f"{time.astimezone(UTC):%Y-%m-%d}" for time in (min(times), max(times))})
    return f"{' and '.join(days)} (UTC)", "%H:%M:%S"


def pruning(found: PrunedFiles, theme: Theme) -> str:
    """How many files each reason leaves out, and below it which files are read, in the order they were written."""
    import altair as alt

    colours = _colours(theme)
    amounts = [("all files", found.all.files), *((f"by {one.name}", one.amount.files) for one in found.reasons)]
    bars = [_Bar(name, count, plural(count, "file")) for name, count in [*amounts, ("read", found.kept.files)]]
    strips = [{"place": place, "read": strip.kept / strip.files} for place, strip in enumerate(found.strips)]
    gap = 0.1 if len(strips) < theme.width / 8 else 0
    legend = f"All files, oldest first: read ones are {'bright' if theme.dark else 'dark'}"
    line = (
        alt.Chart(alt.InlineData(values=strips), width=theme.width - 20, height=26, title=legend)
        .mark_rect()
        .encode(
            x=alt.X("place:O", axis=None, scale=alt.Scale(paddingInner=gap)),
            color=alt.Color("read:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=[colours.soft, colours.main])),
        )
    )
    return _svg(alt.vconcat(_bars(bars, theme, mute_first=True), line, spacing=18), theme)


@dataclass(frozen=True)
class _Bar:
    name: str
    length: int
    text: str


def _bars(bars: Sequence[_Bar], theme: Theme, *, mute_first: bool = False) -> alt.LayerChart | alt.FacetChart:
    """Bars from left to right, each with its name and its length as a text."""
    import altair as alt

    colours = _colours(theme)
    names = [shortened(bar.name, _NARROW_LABEL if theme.is_narrow else _LABEL) for bar in bars]
    data = [{"place": place, "length": bar.length, "text": bar.text} for place, bar in enumerate(bars)]
    # The reader's letters may be wider than those that the picture is laid out with.
    left = max((len(name) for name in names), default=0) * _LETTER + 14
    width = theme.width - left - 30
    most = max([1, *(bar.length for bar in bars)]) * width / (width - 75)
    labels = json.dumps({str(place): name for place, name in enumerate(names)})
    base = alt.Chart(alt.InlineData(values=data), width=width, height=_BAR * max(1, len(bars))).encode(
        y=alt.Y(
            "place:O", title=None,
            axis=alt.Axis(
                labelExpr=f"({labels})[datum.label]", labelLimit=0, domain=False, ticks=False, minExtent=left,
                maxExtent=left,
            ),
        ),
        x=alt.X("length:Q", axis=None, scale=alt.Scale(domain=[0, most])),
    )  # fmt: skip
    main, soft = alt.value(colours.main), alt.value(colours.soft)
    drawn = base.mark_bar(cornerRadiusEnd=2, height=_BAR - 8)
    drawn = drawn.encode(color=alt.condition("datum.place == 0", soft, main) if mute_first else main)
    written = base.mark_text(align="left", dx=6, color=colours.text, fontSize=12).encode(text="text:N")
    return alt.layer(drawn, written)


def _svg(chart: alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart, theme: Theme) -> str:
    import vl_convert

    colours = _colours(theme)
    styled = (
        chart.configure(background="transparent", font=_FONT, padding=4)
        .configure_view(stroke=None)
        .configure_title(color=colours.text, fontSize=12, fontWeight="normal", anchor="start")
        .configure_axis(
            labelColor=colours.text, titleColor=colours.text, gridColor=colours.line, domainColor=colours.line,
            tickColor=colours.line, labelFontSize=12, titleFontSize=12, titleFontWeight="normal",
        )
    )  # fmt: skip
    svg: str = vl_convert.vegalite_to_svg(styled.to_dict(), allowed_base_urls=[])
    return svg


def _colours(theme: Theme) -> _Colours:
    return _DARK if theme.dark else _LIGHT
