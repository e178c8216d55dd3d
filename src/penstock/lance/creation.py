"""New partitioned namespaces."""

from __future__ import annotations

import re

from penstock.errors import InvalidError
from penstock.lance.commit import turn
from penstock.lance.definition import Definition, read_definition
from penstock.lance.manifest import Manifest
from penstock.lance.store import Store
from penstock.lance.writing import new_write_id

_NAME = re.compile(r"[^$/%=.\\\x00-\x1f\x7f ]([^$/%=.\\\x00-\x1f\x7f]*[^$/%=.\\\x00-\x1f\x7f ])?")


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidError(
            f"a namespace cannot be called {name!r}: Lance keeps $ / % = . \\ and control characters for itself, and no"
            " name begins or ends with a blank"
        )


def create_namespace(store: Store, name: str, definition: Definition) -> None:
    """Register the namespace by Lance's own client, which makes the manifest if there is none."""
    from lance_namespace import CreateNamespaceRequest, connect
    from lance_namespace.errors import NamespaceAlreadyExistsError

    options = {f"storage.{key}": value for key, value in store.options.items()}
    settings = {"root": store.root.rstrip("/"), "manifest_enabled": "true", "dir_listing_enabled": "false", **options}
    properties = definition.properties()
    try:
        connect("dir", settings).create_namespace(CreateNamespaceRequest(id=[name], properties=properties))
    except NamespaceAlreadyExistsError:
        raise InvalidError(f"{store.root} has a namespace {name!r} already; open it, or choose another name") from None
    with turn(Manifest(store), name, read_definition(name, properties), new_write_id()) as mine:
        mine.publish([], [], "create")
