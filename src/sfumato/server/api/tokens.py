"""Secrets that the collector shows once and stores as hashes: admin tokens, keys, one-time tokens, tokens with a role.

Each secret has 256 random bits, so a plain SHA-256 hash is as hard to invert as a slow password hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from sfumato.randomness import secure

__all__ = [
    "ADMIN",
    "AUTHOR",
    "KEY",
    "ONE_TIME",
    "OWNER",
    "READER",
    "bearer",
    "fingerprint",
    "new_id",
    "new_token",
    "token_hash",
]

#: Prefixes of the kinds, so that a leaked secret shows its kind.
ADMIN, KEY, ONE_TIME, AUTHOR, OWNER, READER = "sfa_", "sfk_", "sft_", "sfu_", "sfo_", "sfr_"
_BYTES = 32
_ID_BYTES = 10


def new_token(kind: str) -> str:
    """Return a new random secret with the prefix of its kind."""
    return kind + base64.urlsafe_b64encode(secure.read(_BYTES)).decode().rstrip("=")


def new_id() -> str:
    """Return a new random id for a collection: 16 letters and digits."""
    return base64.b32encode(secure.read(_ID_BYTES)).decode().lower()


def token_hash(token: str, wave: int | None = None) -> bytes:
    """Return the hash of a secret, which the store keeps instead of the secret.

    A one-time token allows one report per wave. Only a party with the token can compute which hashes belong together.
    """
    return hashlib.sha256((token if wave is None else f"{token}#{wave}").encode()).digest()


def fingerprint(token_hash: bytes) -> str:
    """Return the first eight hex digits of a stored hash, which identify a secret to administrators."""
    return token_hash.hex()[:8]


def bearer(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the bearer token of a request, or None."""
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None
