"""Brings errors that Python raises while Spark plans a query through the JVM to the caller, as themselves.

Spark asks for files through a callback. What that raises would reach the caller as a `Py4JJavaError`, in pages of Java.
So it is noted here under a number, Java throws a `PlanningException` with that number, and where PySpark makes Python
errors of Java's, the one of that number is raised.
Errors about a Python of the workers that lacks something get a note.
"""

from __future__ import annotations

import itertools
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from pyspark.errors import PythonException

from penstock.errors import PenstockError
from penstock.spark.workers import other_python
from penstock.storage.options import known_stores
from penstock.storage.stores import plain_scheme, store_of

FAILED = "\x01"  # an answer that begins with it is an error
_CLASSES = ("penstock.PlanningException", "penstock.sql.LakeException")
_UNKNOWN_DELETES = "penstock.UnreadableDeletes"
_DENIED = "java.nio.file.AccessDeniedException"
_NO_LONGER_VALID = re.compile("InvalidAccessKeyId|ExpiredToken|InvalidToken|SignatureDoesNotMatch|TokenRefreshRequired")
_NUMBER = re.compile(r" \[(\d+)\]$")
_MOST_NOTED = 256  # some never come back: those of a query in a thread of the JVM's own
_DEEPEST_CAUSE = 32
_numbers = itertools.count(1)
_noted: OrderedDict[int, Exception] = OrderedDict()


def note_error(error: Exception) -> str:
    """Keep an error for the caller, and return the message to throw in its place."""
    number = next(_numbers)
    _noted[number] = error
    while len(_noted) > _MOST_NOTED:
        _noted.popitem(last=False)
    return f"{type(error).__name__}: {error} [{number}]"


def _original(java_error: Any) -> Exception | None:
    """The noted error that a Java exception, or one of its causes, stands for."""
    for cause in _causes(java_error):
        if cause.getClass().getName() in _CLASSES:
            found = _NUMBER.search(cause.getMessage())
            return _noted.get(int(found[1])) if found else None
    return None


def _causes(java_error: Any) -> Iterator[Any]:
    for _ in range(_DEEPEST_CAUSE):
        if java_error is None:
            return
        yield java_error
        java_error = java_error.getCause()


@cache
def raise_as_themselves() -> None:
    """Let PySpark raise what was noted in the place of what it makes of Java's errors, from now on."""
    from pyspark.errors.exceptions import captured

    # PySpark has no place to register a conversion; it looks this name up whenever the JVM has thrown.
    convert: Any = captured.convert_exception
    captured.convert_exception = partial(_converted, convert)  # type: ignore[assignment]


def _converted(convert: Callable[[Any], Exception], java_error: Any) -> Exception:
    known = _original(java_error) or _refused_read(java_error) or _unknown_deletes(java_error)
    if known is not None:
        return known
    converted = convert(java_error)
    note = other_python(str(converted)) if isinstance(converted, PythonException) else None
    if note is not None:  # it may be of a job of the user's own, so it stays what it is
        converted.add_note(note)
    return converted


def _refused_read(java_error: Any) -> PenstockError | None:
    """What Spark's reader met in a bucket that Penstock has a key for, where that key may not read there."""
    for cause in _causes(java_error):
        if cause.getClass().getName() == _DENIED:
            path, _, said = str(cause.getMessage()).partition(": ")
            if store_of(path) in known_stores():
                return PenstockError(f"{plain_scheme(path)} may not be read with this key: {_why_denied(said)}")
    return None


def _unknown_deletes(java_error: Any) -> PenstockError | None:
    """What a task met that could not read which rows of a file are deleted."""
    for cause in _causes(java_error):
        if cause.getClass().getName() == _UNKNOWN_DELETES:
            return PenstockError(
                f"{cause.getMessage()}; bring the file back, or read a version before these deletes. If old files were "
                "cleaned up since this DataFrame was made, call read() again"
            )
    return None


def _why_denied(said: str) -> str:
    if _NO_LONGER_VALID.search(said):
        return (
            "it has expired, or is valid no more. Attach with a new one, and make the DataFrame again: one keeps the "
            "key that it was made with"
        )
    if "NoAuthWithAWSException" in said:
        return "there is none; give one in storage_options, or let the machines that read find one"
    return "it needs s3:GetObject there"
