"""Parses where a lake's metadata lives: the text after `ducklake:`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from penstock.errors import AttachError
from penstock.storage.paths import shown_url, web_url
from penstock.storage.stores import store_kind, store_of

_FILES, _REMOTE, _SERVERS = ("duckdb", "sqlite"), ("http", "s3"), ("postgres", "mysql")
_SUPPORTED = (
    "a catalog is a DuckDB file (ducklake:FILE) or a SQLite file (ducklake:sqlite:FILE), on this machine or behind "
    "https:// or s3://, PostgreSQL (ducklake:postgres:dbname=...) or MySQL (ducklake:mysql:db=...); data_path may be "
    "elsewhere"
)
# What DuckDB takes for the name of an extension, and not for a drive.
_KIND = re.compile(r"(\w{2,}):(?!//)", re.ASCII)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# A value as libpq and the shell quote it: whole, in parts, or by backslashes.
_VALUE = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\])+"""
_NAME = r"\w*(?:password|passwd|secret|token)\w*|pwd|pw|scram_\w+_key"
_SECRET = re.compile(rf"""(?i)(\b(?:{_NAME})['"]?)(\s*=\s*)({_VALUE})""")
_QUOTED_SECRET = re.compile(rf"""(?i)((['"])(?:{_NAME}))(\s*=\s*)((?:(?!\2).)*)(?=\2)""")
_URL_SECRET = re.compile(r"(://[^/@:\s]*:)(\S*)(@)")
# In what is known to be a connection text: up to the next key, and to the last @, whatever blanks are in between.
_WHOLE_SECRET = re.compile(rf"""(?i)(\b(?:{_NAME})['"]?)(\s*=\s*)({_VALUE}(?:\s+(?!['"]?\w+['"]?\s*=)\S+)*)""")
_WHOLE_URL_SECRET = re.compile(r"(?s)(://[^/@:\s]*:)(.*)(@)")
# What comes before a secret, in a text that ends where it begins.
_BEFORE_SECRET = re.compile(rf"""(?is)(?:\b(?:{_NAME})['"]?\s*=\s*['"]?[^\s&]*|://[^/@:\s]*:[^/@]*)\Z""")
_REMEMBERED = 1_000
_SHORT = 3  # a secret of fewer characters is in too many words
_remembered: dict[str, None] = {}


@dataclass(frozen=True)
class Location:
    """A metadata database: its engine and how to reach it. Its text never shows a password."""

    engine: str
    target: str = field(repr=False)
    is_remote: bool = False  # a file that is not on this machine, and can only be read

    def __str__(self) -> str:
        prefix = "" if self.engine == "duckdb" else f"{self.engine}:"
        shown = _redacted_target(self.target) if self.engine in _SERVERS else redact(self.target)
        return f"ducklake:{prefix}{shown_url(shown) if self.is_remote else shown}"

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"

    def without_token(self, text: str) -> str:
        """What a library says, without what follows the question mark of this address."""
        _, mark, token = self.target.partition("?") if self.is_remote else ("", "", "")
        return text.replace(mark + token, "") if token else text


def redact(text: str) -> str:
    """The text with the value of every password in it replaced, and every secret that is remembered."""
    for secret in sorted(_remembered, key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _QUOTED_SECRET.sub(r"\1\3***", text)
    return _URL_SECRET.sub(r"\1***\3", _SECRET.sub(r"\1\2***", text))


def _redacted_target(text: str) -> str:
    """What a server is reached by, without its passwords."""
    return _WHOLE_URL_SECRET.sub(r"\1***\3", _WHOLE_SECRET.sub(r"\1\2***", redact(text)))


def secrets_in(text: str) -> tuple[str, ...]:
    """The passwords that stand in a connection text, bare and as written, and the words of those with blanks."""
    found = [secret for secret in _remembered if secret in text]
    found += [match[3] for kind in (_WHOLE_SECRET, _SECRET) for match in kind.finditer(text)]
    found += [match[2] for kind in (_WHOLE_URL_SECRET, _URL_SECRET) for match in kind.finditer(text)]
    found += [match[4] for match in _QUOTED_SECRET.finditer(text)]
    bare = [re.sub(r"""\\(.)|['"]""", r"\1", value) for value in found]
    words = [word if len(word) >= _SHORT else f'"{word}"' for value in bare for word in value.split()]
    return tuple(form for form in dict.fromkeys([*found, *bare, *words]) if form)


def is_before_secret(text: str) -> bool:
    """Whether what follows a part of a connection text is a password."""
    return _BEFORE_SECRET.search(text) is not None


def remember_secret(secret: str) -> None:
    """Let `redact` hide a password wherever it stands, if what stands before it does not tell how far it goes."""
    if len(secret) < _SHORT or _SECRET.sub(r"\1\2", f"password={secret}") == "password=":
        return
    _remembered[secret] = None
    while len(_remembered) > _REMEMBERED:
        del _remembered[next(iter(_remembered))]


def parse_location(uri: str) -> Location:
    """Parse `ducklake:FILE`, `ducklake:sqlite:FILE`, `ducklake:postgres:LIBPQ` or `ducklake:mysql:KEY=VALUE ...`.

    What a server's location leaves out comes from the connection parameters.
    """
    if not uri.startswith("ducklake:"):
        raise AttachError(f"{_shown(uri)!r} is not a DuckLake location; write ducklake:FILE or ducklake:sqlite:FILE")
    rest = uri.removeprefix("ducklake:")
    engine, separator, target = rest.partition(":")
    for secret in secrets_in(rest) if engine in (*_SERVERS, "postgresql") else ():
        remember_secret(secret)
    if engine in ("postgres", "postgresql") and target.startswith("//"):
        return Location("postgres", rest)
    if separator and engine in _SERVERS:
        return Location(engine, target)
    if not separator or engine not in _FILES:
        engine, target = "duckdb", rest
        _refuse_other_kinds(uri, target)
    if not target:
        raise AttachError(f"{uri!r} names no metadata database; write it after the colon")
    return _placed(uri, engine, target)


def _refuse_other_kinds(uri: str, target: str) -> None:
    """Kinds of catalogs that DuckDB may have an extension for. A file whose name looks like that is still a file."""
    kind = _KIND.match(target)
    if kind and not os.path.exists(target):
        name = "MotherDuck" if kind[1] in ("md", "motherduck") else f"{kind[1]!r}"
        raise AttachError(
            f"{_shown(uri)!r} cannot be attached: {name} is no catalog database that Penstock knows; {_SUPPORTED}. "
            "For a new DuckDB file of this name write ducklake:duckdb: before it"
        )


def _placed(uri: str, engine: str, target: str) -> Location:
    """The location of a file, on this machine or elsewhere."""
    scheme = _SCHEME.match(target)
    if scheme is None or os.path.exists(target):
        return Location(engine, target)
    if scheme[1].lower() == "file":
        return Location(engine, target[scheme.end() :])
    if store_kind(target) in _REMOTE:
        refuse_credentials(target)
        return Location(engine, web_url(target) if store_kind(target) == "http" else target, is_remote=True)
    raise AttachError(
        f"{_shown(uri)!r} cannot be attached: catalogs over {scheme[1]} are not supported; {_SUPPORTED}. "
        "Copy the catalog's file to this machine"
    )


def refuse_credentials(url: str) -> None:
    """Raise an AttachError, which does not show it, where a name or a password stands in an address of the web."""
    store = store_of(url)
    if store is not None and store.kind == "http" and "@" in store.name:
        raise AttachError(
            f"the address of {store.name.rpartition('@')[2]} holds a name or a password before its @, which is not "
            "supported: what is read over http and https is public"
        )


def refuse_secrets(data_path: str) -> None:
    """Raise an AttachError, which shows no secret, where the address of a folder has more in it than the folder."""
    refuse_credentials(data_path)
    if store_kind(data_path) == "http" and "?" in data_path:
        raise AttachError(
            f"the data path {shown_url(data_path)} goes on with a ?, and what follows would stand before the names of "
            "files: tokens are not supported there. A ? in the name of a folder is written %3F"
        )


def _shown(uri: str) -> str:
    """Without passwords, and without tokens that may follow a question mark."""
    return shown_url(redact(uri))
