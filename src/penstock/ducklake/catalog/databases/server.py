"""Defines what databases on a server share: a connection that can break, and users who may not do everything."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from penstock.ducklake.catalog.databases.base import ConnectOptions, Database
from penstock.ducklake.catalog.location import Location, redact, secrets_in
from penstock.errors import AttachError, CatalogError

_Answer = TypeVar("_Answer")
_DROP_SECONDS = 1
_SECRET_PARAMETERS = ("password", "passwd", "pw", "sslpassword", "oauth_client_secret")


class ServerDatabase(Database):
    """A database behind a connection: one that broke is opened again, unless something hangs on it."""

    def __init__(self, location: Location, options: ConnectOptions) -> None:
        super().__init__(location)
        self.options = replace(options, parameters={k.lower(): str(v) for k, v in options.parameters.items()})
        self._locks = 0  # that the connection itself holds, and that are lost with it
        self._creates = False  # as far as is known
        self._connect(create=options.create)

    @abstractmethod
    def _connect(self, *, create: bool) -> None:
        """Open the connection, or raise an `AttachError`. With `create`, a missing schema is made."""

    @property
    def can_create_tables(self) -> bool:
        # A right that was missing may be granted at any moment; one that is taken away is an error of the statement.
        self._creates = self._creates or self._may_create()
        return self._creates

    @abstractmethod
    def _may_create(self) -> bool:
        """Whether this user may make tables."""

    @abstractmethod
    def _is_denied(self, error: Exception) -> bool:
        """Whether the user lacks a right."""

    @abstractmethod
    def _needed_right(self, error: Exception) -> str:
        """Who may not do what, and the statement that allows it."""

    @abstractmethod
    def _set_lock_wait(self, seconds: int | None) -> None:
        """How long a statement may wait for others; None for as long as usual."""

    def drop_table(self, table: str) -> None:
        # Somebody's open transaction may have read it, and go on for hours: nobody shall wait for that.
        with self._hurried(_DROP_SECONDS):
            super().drop_table(table)

    @contextmanager
    def _hurried(self, seconds: int) -> Iterator[None]:
        """Statements inside wait for others no longer than this."""
        with self._opened():
            with self._explained():
                self._set_lock_wait(seconds)
            try:
                yield
            finally:
                with suppress(*self.errors):  # of a connection that broke; the next one is as usual
                    self._set_lock_wait(None)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """While the connection holds a lock, no other can take its place."""
        self._locks += 1
        try:
            yield
        finally:
            self._locks -= 1

    def _asked(self, ask: Callable[[], _Answer]) -> _Answer:
        """Also where the connection broke since it was used: between transactions another one is as good."""
        try:
            return ask()
        except self.errors as error:
            if self._in_transaction or self._locks or not self._is_broken(error):
                raise self._failure(error) from error
            self._reopen(error)
        return super()._asked(ask)

    def _abandon(self) -> None:
        with suppress(*self.errors, OSError):
            self._close()

    def _end_unfinished(self) -> None:
        # The server rolls back what a closed connection leaves; the next question opens another one.
        self._abandon()
        self._unfinished = False

    def _reopen(self, error: Exception) -> None:
        self._abandon()
        try:
            self._connect(create=False)
        except AttachError as refusal:
            raise CatalogError(f"the connection broke, and a new one cannot be had: {refusal}") from error

    def _failure(self, error: Exception) -> CatalogError:
        if self._is_broken(error):
            within = " inside a transaction, of which nothing was committed" if self._in_transaction else ""
            return CatalogError(
                f"the connection to {self.location} broke{within} ({self.product} says {self._said(error)!r}); "
                "do it again: a new connection is opened for it"
            )
        if self._is_denied(error):
            return CatalogError(f"{self.location}: {self._needed_right(error)} ({self._said(error)})")
        return super()._failure(error)

    def _said(self, error: Exception) -> str:
        return self._without_secrets(super()._said(error)) or "nothing more"

    def _without_secrets(self, text: str) -> str:
        given = [value for key, value in self.options.parameters.items() if key in _SECRET_PARAMETERS and value]
        for secret in (*secrets_in(self.location.target), *given):
            text = text.replace(secret, "***")
        return redact(text)

    def _unreachable(self, error: Exception) -> AttachError:
        return AttachError(
            f"{self.location} cannot be reached: {self.product} says {self._without_secrets(str(error).strip())!r}; "
            "check host, port, user and database"
        )

    @property
    def _rights(self) -> str:
        """The rights on tables that reading takes, or writing."""
        return "SELECT" if self.options.read_only else "SELECT, INSERT, UPDATE, DELETE"
