"""Lists how a lake can be attached, for those who say it in texts: options of the format, files, variables."""

from __future__ import annotations

from penstock.errors import InvalidError

ParameterType = type[str] | type[bool] | type[int] | type[float]

# The parameters of `penstock.attach` with one plain value each, and what that is.
ATTACH_PARAMETERS: dict[str, ParameterType] = {
    "data_path": str, "read_only": bool, "encrypted": bool, "data_inlining_row_limit": int, "metadata_schema": str,
    "automatic_migration": bool, "override_data_path": bool, "create_if_not_exists": bool, "max_retry_count": int,
    "retry_wait_ms": int, "retry_backoff": float,
}  # fmt: skip
RETRIES = ("max_retry_count", "retry_wait_ms", "retry_backoff")  # numbers from 0
# Those that hold more than one value, by their own names.
MAPPINGS = ("metadata_parameters", "storage_options")
# Those that say at which snapshot: one of them at most.
MOMENTS = ("snapshot_version", "snapshot_time")
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


def flag(name: str, text: str | None, otherwise: bool) -> bool:
    """What an option says that is true or false."""
    if text is None:
        return otherwise
    if text.strip().lower() not in (*_TRUE, *_FALSE):
        raise InvalidError(f"the option {name} cannot be {text!r}; it is true or false")
    return text.strip().lower() in _TRUE


def argument(name: str, text: str) -> object:
    """The value of a parameter with one plain value, from its text."""
    kind = ATTACH_PARAMETERS[name]
    if kind is bool:
        return flag(name, text, False)
    try:
        return kind(text)
    except ValueError:
        raise InvalidError(f"the option {name} cannot be {text!r}; it takes a number") from None
