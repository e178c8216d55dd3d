"""The errors that Spark's JVM raises in Python; without one, some that nothing raises."""

from __future__ import annotations

try:
    from py4j.protocol import Py4JError, Py4JJavaError
except ImportError:

    class Py4JError(Exception):  # type: ignore[no-redef]
        """Raised by nothing here."""

    class Py4JJavaError(Py4JError):  # type: ignore[no-redef,misc]
        """Raised by nothing here."""


__all__ = ["Py4JError", "Py4JJavaError"]
