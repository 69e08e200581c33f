"""The only source of random bytes: AES-CTR keystreams under keys from the operating system.

A process-wide source serves values one at a time. It keeps one small buffer per thread, each under a key of its
own that is replaced with the buffer, so threads never wait for and never share each other's bytes. A buffer
remembers the process it was made in: a forked child discards what it inherits.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

__all__ = ["AUXILIARY", "KEY_BYTES", "MAIN", "SecureSource", "fresh_key", "keystream", "secure"]

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

    if not 0 <= chunk < 2**63 or stream not in (MAIN, AUXILIARY):
        raise ValueError(f"no stream {stream} of chunk {chunk}")
    first_block = chunk << 65 | stream << 64
    return Cipher(algorithms.AES(key), modes.CTR(first_block.to_bytes(16, "big"))).encryptor()


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
