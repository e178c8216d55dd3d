"""Makes lakes, by location or name, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from penstock.ducklake.catalog.named_lakes.attach_calls import attach_call
from penstock.ducklake.catalog.named_lakes.read_catalogs import attach_options
from penstock.ducklake.catalog.opening import AttachOptions, Catalog, open_catalog
from penstock.errors import AlreadyExistsError, AttachError
from penstock.storage.options import StorageOptions, options_on_trial
from penstock.storage.used_stores import use_store


@options_on_trial()
def create_lake(uri: str, given: Mapping[str, Any]) -> Catalog:
    """A new lake's catalog, by the arguments of `attach`. Raises AlreadyExistsError where there is a lake."""
    call = attach_call(uri, given)
    options = replace(attach_options(call.arguments), create_if_not_exists=True, read_only=False)
    _refuse_existing(call.uri, options)
    use_store(options.data_path or "", StorageOptions.of(call.arguments.get("storage_options")))
    return open_catalog(call.uri, options)


def _refuse_existing(uri: str, options: AttachOptions) -> None:
    there = AttachOptions(
        create_if_not_exists=False, read_only=True, metadata_schema=options.metadata_schema,
        metadata_parameters=options.metadata_parameters,
    )  # fmt: skip
    with suppress(AttachError):  # what is wrong with the place, the creation tells
        found = open_catalog(uri, there).database
        found.close()
        raise AlreadyExistsError(f"there is a lake at {found.location} already")
