"""The only source of random bytes: AES-CTR keystreams under keys from the operating system.

Arrays of values are privatized under a key of their own. A process-wide source serves values one at a time: it keeps
one small buffer per thread, each under a key of its own that is replaced with the buffer, so threads never wait for
and never share each other's bytes. A buffer remembers the process it was made in: a forked child discards what it
inherits.
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

KEY_BYTES = 16
#: The two streams of a chunk (docs/words-to-decisions.md).
MAIN, AUXILIARY = 0, 1

_BUFFER_BYTES = 2**14


def fresh_key() -> bytes:
    """A new key from the operating system."""
    return os.urandom(KEY_BYTES)


def keystream(key: bytes, chunk: int, stream: int) -> CipherContext:
    """The keystream of one chunk's main or auxiliary stream: encrypt zeros with it to read it."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.CTR(first_block(chunk, stream))).encryptor()


def first_block(chunk: int, stream: int) -> bytes:
    """The counter block at which a stream begins; streams are 2^64 blocks apart, so they never meet."""
    if not 0 <= chunk < 2**63 or stream not in (MAIN, AUXILIARY):
        raise ValueError(f"no stream {stream} of chunk {chunk}")
    return (chunk << 65 | stream << 64).to_bytes(16, "big")


# os.fork runs this in the child, so that even a reused process number cannot revive an inherited buffer.
_generation = 0


def _forget_inherited_buffers() -> None:
    global _generation
    _generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_inherited_buffers)


class SecureSource:
    """Uniform bytes and bits, safe to use from any thread and after any fork."""

    def __init__(self) -> None:
        self._local = threading.local()

    def read(self, count: int) -> bytes:
        """``count`` fresh random bytes."""
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
        """A uniform integer of ``width`` bits."""
        return int.from_bytes(self.read((width + 7) // 8), "little") & (1 << width) - 1


def _encrypted_zeros(count: int) -> bytes:
    return keystream(fresh_key(), 0, MAIN).update(bytes(count))


#: The source that the library uses wherever none is given.
secure = SecureSource()


# -- the streams of a whole collection of values -----------------------------------------------------------


class Stream(Protocol):
    """Where the streams of a collection's chunks come from."""

    def reserve(self, chunks: int) -> tuple[bytes, int]:
        """A key and the number of the first of ``chunks`` chunks, none of which was given out before."""


class SecureStream:
    """A new key from the operating system for every collection."""

    def reserve(self, chunks: int) -> tuple[bytes, int]:  # noqa: ARG002
        return fresh_key(), 0


class InsecureSeeded:
    """Reproducible draws for simulations and tests. **Whoever knows the seed can undo the randomization.**

    The same seed gives the same reports to the same sequence of calls; each call goes on where the last one ended.
    """

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise InvalidInput("InsecureSeeded", "seed", "be an integer", seed)
        self.seed = seed
        self._key = hashlib.sha256(f"sfumato insecure seed {seed}".encode()).digest()[:KEY_BYTES]
        self._next = 0
        self._lock = threading.Lock()

    def reserve(self, chunks: int) -> tuple[bytes, int]:
        """The key of the seed, and the number of the first of ``chunks`` chunks that were not given out before."""
        with self._lock:
            first = self._next
            self._next += chunks
        return self._key, first

    def __repr__(self) -> str:
        return f"InsecureSeeded({self.seed})"


class WordReader:
    """Reads one stream of a chunk: frames from the main stream, 64-bit words from the auxiliary one."""

    def __init__(self, key: bytes, chunk: int, stream: int) -> None:
        self._keystream = keystream(key, chunk, stream)

    def number(self, bits: int) -> int:
        """The next ``bits`` bits, a multiple of 8."""
        return int.from_bytes(self._keystream.update(bytes(bits // 8)), "little")

    def word(self, width: int) -> int:
        """The lowest ``width`` bits of the next 64-bit word."""
        return self.number(64) & (1 << width) - 1


def insecure_generator(seed: int) -> Generator:
    """Return numpy's generator for simulations of counts and invented data. It never makes a report."""
    from numpy.random import default_rng

    key, _ = InsecureSeeded(seed).reserve(1)
    return default_rng(int.from_bytes(key, "little"))
