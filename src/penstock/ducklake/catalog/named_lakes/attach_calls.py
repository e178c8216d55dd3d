"""Completes calls of `attach`: with what the configuration says of a lake, and of all lakes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from penstock.ducklake.catalog.named_lakes.configuration import SCHEME, configuration, is_name
from penstock.ducklake.model.attach_parameters import MOMENTS
from penstock.errors import AttachError
from penstock.storage.options import StorageOptions

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class AttachCall:
    """A location, and the arguments that `attach` takes for it."""

    uri: str = field(repr=False)
    arguments: Mapping[str, Any] = field(repr=False)


def attach_call(uri: str, given: Mapping[str, Any]) -> AttachCall:
    """The call that is meant. Raises AttachError for a name that no lake has, and where the configuration is wrong."""
    known = configuration()
    rest = uri.removeprefix(SCHEME) if uri.startswith(SCHEME) else None
    name = known.default_name() if rest == "" else rest
    if name is None or not is_name(name):
        return AttachCall(uri, {**known.defaults(), **_said(given)})
    if name in known:
        lake = known.lake(name)
        return AttachCall(lake.uri, _over(_said(given), lake.arguments))
    if os.path.lexists(name):
        return AttachCall(uri, {**known.defaults(), **_said(given)})
    raise AttachError(
        f"there is no lake named {name!r}: {known.told}. For a file of this name write {f'{SCHEME}./{name}'!r}, or "
        f"give it an ending, {f'{SCHEME}{name}.ducklake'!r}"
    )


def configured(attach: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Lets a function whose first parameter is a location take names, and what the configuration says."""

    @wraps(attach)
    def completed(uri: str, **given: Any) -> _Result:
        call = attach_call(uri, given)
        return cast(Callable[..., _Result], attach)(call.uri, **call.arguments)

    return cast(Callable[_Parameters, _Result], completed)


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that say something; None is what one gives who has nothing to say."""
    return {name: value for name, value in given.items() if value is not None}


def _over(given: Mapping[str, Any], lake: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that are given, and where they say nothing, a lake's own."""
    own = dict(lake)
    if any(moment in given for moment in MOMENTS):
        own = {name: value for name, value in own.items() if name not in MOMENTS}
    both = {**own, **given}
    if "metadata_parameters" in own and "metadata_parameters" in given:
        both["metadata_parameters"] = {**own["metadata_parameters"], **given["metadata_parameters"]}
    if "storage_options" in own and "storage_options" in given:
        both["storage_options"] = StorageOptions.of(given["storage_options"]).over(own["storage_options"])
    return both
