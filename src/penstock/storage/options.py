"""Holds the keys and endpoints of stores, which users give once, in the names that deltalake and Polars have for them.

They belong to a bucket: all that this process and its workers do there is done with the newest that were given. No text
that this module makes shows a value.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from penstock.errors import InvalidError
from penstock.storage.stores import Store, store_of

# Each name of an option with its other names, those of S3 without `aws_`, which may stand before each.
_S3_NAMES = {
    "aws_access_key_id": ("access_key_id",),
    "aws_secret_access_key": ("secret_access_key",),
    "aws_session_token": ("session_token", "token"),
    "aws_region": ("region", "default_region"),
    "aws_endpoint_url": ("endpoint_url", "endpoint", "endpoint_url_s3"),
    "aws_virtual_hosted_style_request": ("virtual_hosted_style_request",),
    "aws_allow_http": ("allow_http",),
    "aws_skip_signature": ("skip_signature",),
}
_AZURE_NAMES = {
    "azure_storage_account_name": ("account_name", "azure_account_name"),
    "azure_storage_account_key": ("account_key", "azure_account_key", "azure_storage_access_key", "access_key"),
    "azure_storage_sas_token": ("sas_token", "sas_key", "azure_storage_sas_key"),
    "azure_endpoint": ("azure_storage_endpoint",),
}
_OF_KIND = {"s3": _S3_NAMES, "azure": _AZURE_NAMES}
_YES_OR_NO = ("aws_virtual_hosted_style_request", "aws_allow_http", "aws_skip_signature")
_KEY = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_skip_signature")
_ADDRESS = ("aws_endpoint_url", "aws_virtual_hosted_style_request", "aws_allow_http")
_AZURE_LOGIN = ("azure_storage_account_key", "azure_storage_sas_token")
_NAMES = {other: name for name, others in _S3_NAMES.items() for other in (name, *others, *(f"aws_{o}" for o in others))}
_NAMES |= {other: name for name, others in _AZURE_NAMES.items() for other in (name, *others)}


@dataclass(frozen=True)
class StorageOptions(Mapping[str, str]):
    """Options of a store, by the longest of their names."""

    _pairs: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, given: Mapping[str, object] | None) -> StorageOptions:
        """The options that a user gives. Raises InvalidError, which shows no value, where they make no sense."""
        found: dict[str, str] = {}
        for key, value in (given or {}).items():
            name = _NAMES.get(key.lower()) if isinstance(key, str) else None
            if name is None:
                known = ", ".join((*_S3_NAMES, *_AZURE_NAMES))
                raise InvalidError(f"there is no storage option {key!r}; there are {known}")
            if name in found:
                raise InvalidError(f"the storage option {name} is given twice")
            found[name] = _text(name, value)
        return cls(tuple(sorted(found.items())))._checked()

    @classmethod
    def known_in(cls, given: Mapping[str, object] | None) -> StorageOptions:
        """Those of a user's options that this module knows; others are for another library."""
        return cls.of({key: value for key, value in (given or {}).items() if str(key).lower() in _NAMES})

    def check_kind(self, kind: str, path: str) -> None:
        """Raise InvalidError where an option is not one of a kind of store."""
        for name in self:
            if name not in _OF_KIND.get(kind, ()):
                known = ", ".join(_OF_KIND.get(kind, ())) or "none, as Hadoop's and PyArrow's own settings are used"
                raise InvalidError(f"{name} is no storage option of {path}; there are {known}")

    def _checked(self) -> StorageOptions:
        if ("aws_access_key_id" in self) != ("aws_secret_access_key" in self):
            missing = "aws_secret_access_key" if "aws_access_key_id" in self else "aws_access_key_id"
            raise InvalidError(f"the storage options lack {missing}: a key has an id and a secret")
        if "aws_session_token" in self and "aws_access_key_id" not in self:
            raise InvalidError("the storage options have aws_session_token, but not the key that it belongs to")
        if all(name in self for name in _AZURE_LOGIN):
            raise InvalidError(f"the storage options have {' and '.join(_AZURE_LOGIN)}; give one of them")
        endpoint = self.get("aws_endpoint_url", "")
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise InvalidError(f"aws_endpoint_url={endpoint!r} is no address: begin it with https:// or http://")
        if urlsplit(endpoint).path.strip("/"):
            raise InvalidError(
                f"aws_endpoint_url={endpoint!r} goes on after the host; give the address of the server alone"
            )
        if endpoint.startswith("http://") and self.get("aws_allow_http") == "false":
            raise InvalidError(f"aws_endpoint_url={endpoint!r} is not encrypted, and aws_allow_http is false")
        if endpoint.startswith("http://") and "aws_allow_http" not in self:
            return StorageOptions(tuple(sorted({**self, "aws_allow_http": "true"}.items())))
        return self

    def over(self, others: Mapping[str, str]) -> StorageOptions:
        """These options, and others where these say nothing. Neither a key nor an address is mixed of two."""
        taken = [group for group in (_KEY, _ADDRESS, _AZURE_LOGIN) if any(name in self for name in group)]
        more = {name: value for name, value in others.items() if not any(name in group for group in taken)}
        return StorageOptions(tuple(sorted({**more, **self}.items())))._checked()

    def is_yes(self, name: str) -> bool:
        """Whether an option of yes or no is given and is yes."""
        return self.get(name) == "true"

    def __getitem__(self, name: str) -> str:
        return dict(self._pairs)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __hash__(self) -> int:
        return hash(self._pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageOptions) and self._pairs == other._pairs

    def __repr__(self) -> str:
        return f"StorageOptions({', '.join(self)})"


def _text(name: str, value: object) -> str:
    if name in _YES_OR_NO:
        text = str(value).lower()
        if text not in ("true", "false"):
            raise InvalidError(f"the storage option {name} is true or false")
        return text
    if not isinstance(value, str) or not value:
        raise InvalidError(f"the storage option {name} is no text, or an empty one")
    return value


def from_environment(names: tuple[str, ...]) -> str | None:
    """The first of these variables of this process's environment that says anything."""
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


NONE = StorageOptions()
_options: dict[Store, StorageOptions] = {}
_lock = threading.Lock()
_thread = threading.local()


def use_options(path: str, options: StorageOptions) -> None:
    """Use options for all of a path's bucket, from now on."""
    store = store_of(path)
    if store is not None:
        with _lock:
            _on_trial().setdefault(store, _options.get(store))
            _options[store] = options


def _on_trial() -> dict[Store, StorageOptions | None]:
    """What buckets had before this thread's trial."""
    former: dict[Store, StorageOptions | None] = getattr(_thread, "former", {})
    return former


@contextmanager
def options_on_trial() -> Iterator[None]:
    """Give buckets back the options that they had, where what this thread wants with new ones fails."""
    _thread.former = {}
    try:
        yield
    except BaseException:
        with _lock:
            for store, former in _on_trial().items():
                if former is None:
                    _options.pop(store, None)
                else:
                    _options[store] = former
        raise
    finally:
        del _thread.former


def options_for(path: str) -> StorageOptions:
    """The options of a path's bucket."""
    store = store_of(path)
    return _options.get(store, NONE) if store is not None else NONE


def known_stores() -> dict[Store, StorageOptions]:
    """All buckets that were used, with their options: what a worker has to know."""
    with _lock:
        return dict(_options)


def receive_stores(stores: Mapping[Store, StorageOptions]) -> None:
    """Use, in a worker, the options that the driver knows."""
    with _lock:
        _options.update(stores)
