"""Secrets that the collector shows once and stores as hashes: admin tokens, keys of collections, one-time tokens.

Each secret has 256 random bits, so a plain SHA-256 hash is as hard to invert as a slow password hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from sfumato.randomness import secure

__all__ = ["ADMIN", "KEY", "ONE_TIME", "bearer", "fingerprint", "new_id", "new_token", "token_hash"]

#: Prefixes of the three kinds, so that a leaked secret shows its kind.
ADMIN, KEY, ONE_TIME = "sfa_", "sfk_", "sft_"
_BYTES = 32
_ID_BYTES = 10


def new_token(kind: str) -> str:
    """Return a new random secret with the prefix of its kind."""
    return kind + base64.urlsafe_b64encode(secure.read(_BYTES)).decode().rstrip("=")


def new_id() -> str:
    """Return a new random id for a collection: 16 letters and digits."""
    return base64.b32encode(secure.read(_ID_BYTES)).decode().lower()


def token_hash(token: str) -> bytes:
    """Return the hash of a secret, which the store keeps instead of the secret."""
    return hashlib.sha256(token.encode()).digest()


def fingerprint(token_hash: bytes) -> str:
    """Return the first eight hex digits of a stored hash, which identify a secret to administrators."""
    return token_hash.hex()[:8]


def bearer(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the bearer token of a request, or None."""
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None
