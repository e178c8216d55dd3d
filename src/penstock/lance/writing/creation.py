"""Creates partitioned namespaces."""

from __future__ import annotations

import re
from contextlib import suppress

from penstock.errors import InvalidError
from penstock.lance.commits.namespace_commit import begin_commit
from penstock.lance.commits.writer_lease import new_writer_id
from penstock.lance.format.dataset_store import DatasetStore
from penstock.lance.format.definition import ENABLED, NamespaceDefinition, read_definition
from penstock.lance.format.manifest import MANIFEST, Manifest
from penstock.lance.format.object_ids import join_object_id, object_id_parts

_NAME = re.compile(r"[^$/%=.\\\x00-\x1f\x7f ]([^$/%=.\\\x00-\x1f\x7f]*[^$/%=.\\\x00-\x1f\x7f ])?")


def check_namespace_name(name: str) -> None:
    """Raise InvalidError for a name, or a path of names with `$` between them, that Lance cannot keep."""
    if not all(map(_NAME.fullmatch, object_id_parts(name))):
        raise InvalidError(
            f"a namespace cannot be called {name!r}: Lance keeps $ / % = . \\ and control characters for itself, and no"
            " name begins or ends with a blank"
        )


def create_namespace(store: DatasetStore, name: str, definition: NamespaceDefinition) -> None:
    """Register the namespace and those around it by Lance's own client, which makes the manifest if there is none."""
    from lance_namespace import CreateNamespaceRequest, connect
    from lance_namespace.errors import NamespaceAlreadyExistsError

    options = {f"storage.{key}": value for key, value in store.options.items()}
    settings = {"root": store.root.rstrip("/"), "manifest_enabled": "true", "dir_listing_enabled": "false", **options}
    properties = definition.properties()
    client = connect("dir", settings)
    path = object_id_parts(name)
    _check_place(store, path)
    for depth in range(1, len(path)):
        with suppress(NamespaceAlreadyExistsError):
            client.create_namespace(CreateNamespaceRequest(id=path[:depth]))
    try:
        client.create_namespace(CreateNamespaceRequest(id=path, properties=properties))
    except NamespaceAlreadyExistsError:
        raise InvalidError(f"{store.root} has a namespace {name!r} already; open it, or choose another name") from None
    with begin_commit(Manifest(store), name, read_definition(name, properties), new_writer_id()) as commit:
        commit.publish([], [], "create")


def _check_place(store: DatasetStore, path: list[str]) -> None:
    """Raise InvalidError for a place inside of a table or of another partitioned namespace."""
    if len(path) == 1:
        return
    state = Manifest(store).state() if store.find(MANIFEST) is not None else None
    for depth in range(1, len(path)):
        around = state.entry(join_object_id(path[:depth])) if state else None
        if around is not None and (around.kind != "namespace" or around.properties.get(ENABLED) == "true"):
            raise InvalidError(
                f"{join_object_id(path)!r} would be inside of {around.object_id!r}, which is a table or a partitioned"
                " namespace; choose another place"
            )
