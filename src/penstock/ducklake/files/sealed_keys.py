"""Seals the keys of encrypted files on their way to tasks.

What travels as a value of a file, Spark prints into its logs.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Seal:
    """A secret that goes to the tasks inside their code, without which a sealed key says nothing."""

    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def close(self, key: str | None, path: str) -> str | None:
        """Make the key of a file, base64 as the catalog holds it, unreadable."""
        if not key:
            return None
        octets = base64.b64decode(key)
        pad = hashlib.shake_256(self.secret + path.encode()).digest(len(octets))
        return base64.b64encode(bytes(a ^ b for a, b in zip(octets, pad, strict=True))).decode()

    def open(self, sealed: str | None, path: str) -> str | None:
        """Recover the key that was sealed."""
        return self.close(sealed, path)
