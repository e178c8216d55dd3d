"""Writes what notebooks show: small tables of HTML in the colours of the page, in which every text is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from penstock.texts import one_line

_LINE = "border:0;border-bottom:1px solid rgba(128,128,128,.35)"
_TABLE = "border-collapse:collapse;border:0;margin:.3em 0;color:inherit;background:transparent;font-size:.95em"
_CELL = f"padding:.15em .8em .15em 0;vertical-align:top;color:inherit;background:transparent;{_LINE}"


def if_possible(write: Callable[[], str]) -> str | None:
    """HTML; None where it cannot be had, of what is closed or gone: a notebook shows the plain text then."""
    try:
        return write()
    except Exception:
        return None


def card(title: str, *parts: str) -> str:
    """A thing with its title, and below it parts that are HTML already."""
    return f'<div style="color:inherit"><strong>{_shown(title)}</strong>{"".join(parts)}</div>'


def note(text: str) -> str:
    """A line of text."""
    return f'<div style="opacity:.8">{_shown(text)}</div>'


def facts(pairs: Mapping[str, object]) -> str:
    """What is known of a thing, a line each; nothing of what is None or empty."""
    lines = (
        f"<tr>{_cell('th', name)}{_cell('td', _text(value))}</tr>"
        for name, value in pairs.items()
        if value not in (None, "")
    )
    return f'<table style="{_TABLE}"><tbody>{"".join(lines)}</tbody></table>'


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under headings; numbers are to the right."""
    head = "".join(_cell("th", heading) for heading in headings)
    body = "".join(f"<tr>{''.join(_cell('td', value) for value in row)}</tr>" for row in rows)
    return f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def share(part: float) -> str:
    """A bar for a part of a whole."""
    width = f"{100 * min(1.0, max(0.0, part)):.1f}%"
    outer = "width:16em;height:.6em;border:1px solid rgba(128,128,128,.6);margin:.3em 0"
    inner = f"width:{width};height:100%;background:currentColor;opacity:.55"
    return f'<div style="{outer}" role="img" aria-label="{width}"><div style="{inner}"></div></div>'


def _cell(kind: str, value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    style = f"{_CELL};text-align:{'right' if is_number else 'left'}"
    return f'<{kind} style="{style}">{_shown(value)}</{kind}>'


def _shown(value: object) -> str:
    return "" if value is None else escape(one_line(_text(value)))


def _text(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
