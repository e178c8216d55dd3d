"""Every error Penstock raises on purpose. Each message names the thing and the way out."""


class PenstockError(Exception):
    """The base of all errors below."""


class AttachError(PenstockError):
    """The lake cannot be attached: no such lake, wrong version, an unreachable database."""


class CatalogError(PenstockError):
    """The catalog's database failed or refused: a right that is missing, a connection that broke, a full disk.

    The driver's own error is its `__cause__`.
    """


class NotFoundError(PenstockError):
    """A schema, table, view, column, snapshot or file that does not exist (at this snapshot)."""


class UnsupportedError(PenstockError):
    """Something in the lake, or asked for, that this version does not understand."""


class StaleReadError(PenstockError):
    """A DataFrame's snapshot was compacted or expired since `Table.read()` made it; read again."""


class InvalidError(PenstockError):
    """An input that cannot be done: a name that is taken, a value of the wrong type, an illegal change."""


class AlreadyExistsError(InvalidError):
    """A name that is taken by another schema, table, view or macro; a database that has a lake."""


class ConflictError(PenstockError):
    """Another writer changed the same thing since this transaction began; nothing was committed."""
