"""The names of a view's columns, which the catalog keeps as a list of quoted names."""

from __future__ import annotations

from penstock.ducklake.model.objects import View


def aliases_of(view: View) -> list[str]:
    """The names that a view gives its columns; fewer than it has, or none, where the query's own stay."""
    names, text = [], view.column_aliases or ""
    while text:
        quoted = text.startswith('"')
        end = 1
        while quoted and (text[end] != '"' or text[end : end + 2] == '""'):
            end += 2 if text[end] == '"' else 1
        end = end + 1 if quoted else (text + ",").index(",")
        names.append(text[1 : end - 1].replace('""', '"') if quoted else text[:end].strip())
        text = text[end:].lstrip(", ")
    return names
