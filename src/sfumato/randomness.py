"""The only source of random bytes: AES-CTR keystreams with keys from the operating system.

- Every array of values is privatized with its own key.
- Values that are privatized one at a time use a process-wide source, which has one small buffer per thread. Each buffer
  has its own key, which changes whenever the buffer is refilled. Threads therefore never wait for each other and never
  share bytes.
- Each buffer records the process that created it. A forked child discards the buffers that it inherits.
"""

from __future__ import annotations

import hashlib
import os
import threading
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext
    from numpy.random import Generator

__all__ = [
    "AUXILIARY",
    "KEY_BYTES",
    "MAIN",
    "InsecureSeeded",
    "SecureSource",
    "Stream",
    "WordReader",
    "first_block",
    "fresh_key",
    "insecure_generator",
    "keystream",
    "secure",
]

#: Length of an AES key in bytes.
KEY_BYTES = 16
#: Numbers of the two streams of a chunk (docs/words-to-decisions.md).
MAIN, AUXILIARY = 0, 1

#: Size of the buffer of each thread.

_BUFFER_BYTES = 2**14


def fresh_key() -> bytes:
    """Return a new key from the operating system."""
    return os.urandom(KEY_BYTES)


def keystream(key: bytes, chunk: int, stream: int) -> CipherContext:
    """Return the keystream of the main or auxiliary stream of a chunk; encrypt zeros with it to read it."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CTR(first_block(chunk, stream))).encryptor()


def first_block(chunk: int, stream: int) -> bytes:
    """Return the counter block at which a stream starts; streams are 2^64 blocks apart, so they never overlap."""
    if not 0 <= chunk < 2**63 or stream not in (MAIN, AUXILIARY):
        raise ValueError(f"stream must be {MAIN} or {AUXILIARY} and chunk from 0 to 2^63 - 1; got {stream} and {chunk}")
    return (chunk << 65 | stream << 64).to_bytes(16, "big")


# Number of forks between the first process and this one. It invalidates inherited buffers even if the system
# reuses a process number.
_generation = 0


def _forget_inherited_buffers() -> None:
    """Mark all buffers as inherited; os.fork calls this function in the child."""
    global _generation
    _generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_inherited_buffers)


class SecureSource:
    """Source of uniform random bytes and bits that is safe with threads and after forks."""

    def __init__(self) -> None:
        self._local = threading.local()

    def read(self, count: int) -> bytes:
        """Return ``count`` new random bytes."""
        if count > _BUFFER_BYTES:
            return _encrypted_zeros(count)
        local: Any = self._local
        process = (os.getpid(), _generation)
        if getattr(local, "process", None) != process or local.position + count > _BUFFER_BYTES:
            local.buffer, local.position, local.process = _encrypted_zeros(_BUFFER_BYTES), 0, process
        start = local.position
        local.position = start + count
        taken: bytes = local.buffer[start : start + count]
        return taken

    def bits(self, width: int) -> int:
        """Return a uniform integer of ``width`` bits."""
        return int.from_bytes(self.read((width + 7) // 8), "little") & (1 << width) - 1


def _encrypted_zeros(count: int) -> bytes:
    """Return ``count`` bytes of a keystream with a new key."""
    return keystream(fresh_key(), 0, MAIN).update(bytes(count))


#: Default source of the library.
secure = SecureSource()


# -- streams of a collection of values ---------------------------------------------------------------------


class Stream(Protocol):
    """Source of the keystreams of a collection's chunks."""

    def reserve(self, chunks: int) -> tuple[bytes, int]:
        """Return a key and the number of the first of ``chunks`` chunks that no earlier call returned."""


class SecureStream:
    """Stream with a new key from the operating system for every collection."""

    def reserve(self, chunks: int) -> tuple[bytes, int]:  # noqa: ARG002
        return fresh_key(), 0


class InsecureSeeded:
    """Reproducible source of randomness for simulations and tests; pass it as ``stream=``.

    **Anyone who knows the seed can undo the randomization.** Never use it for the reports of real people. Two objects
    with the same seed give the same reports for the same sequence of calls. Each call continues the random numbers
    where the previous call ended.

    Parameters
    ----------
    seed
        Any integer.

    Raises
    ------
    InvalidInput
        If the seed is not an integer.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.design(sf.Uniform(sf.Domain(["no", "yes"]), "ln 3"), mechanism="rr")
    >>> reports = sf.privatize(mechanism, ["yes"] * 1000, stream=sf.InsecureSeeded(7))
    >>> again = sf.privatize(mechanism, ["yes"] * 1000, stream=sf.InsecureSeeded(7))
    >>> bool((reports == again).all())
    True
    """

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise InvalidInput("InsecureSeeded", "seed", "be an integer", seed)
        self.seed = seed
        self._key = hashlib.sha256(f"sfumato insecure seed {seed}".encode()).digest()[:KEY_BYTES]
        self._next = 0
        self._lock = threading.Lock()

    def reserve(self, chunks: int) -> tuple[bytes, int]:
        """Reserve the next chunks of random bytes; samplers call this method.

        Parameters
        ----------
        chunks
            Number of chunks to reserve.

        Returns
        -------
        tuple of bytes and int
            The cipher key that the seed determines, and the number of the first reserved chunk. No other call
            of this object returns the same chunks.
        """
        with self._lock:
            first = self._next
            self._next += chunks
        return self._key, first

    def __repr__(self) -> str:
        return f"InsecureSeeded({self.seed})"


class WordReader:
    """Reader of one stream of a chunk: frames of the main stream, 64-bit words of the auxiliary stream."""

    def __init__(self, key: bytes, chunk: int, stream: int) -> None:
        self._keystream = keystream(key, chunk, stream)

    def number(self, bits: int) -> int:
        """Return the next ``bits`` bits, a multiple of 8."""
        return int.from_bytes(self._keystream.update(bytes(bits // 8)), "little")

    def word(self, width: int) -> int:
        """Return the lowest ``width`` bits of the next 64-bit word."""
        return self.number(64) & (1 << width) - 1


def insecure_generator(seed: int) -> Generator:
    """Return a NumPy generator for simulated counts and invented data; it is never used for reports."""
    from numpy.random import default_rng

    key, _ = InsecureSeeded(seed).reserve(1)
    return default_rng(int.from_bytes(key, "little"))
