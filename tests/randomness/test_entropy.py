"""The source of random bytes: the right keystream, and never the same bytes twice."""

from __future__ import annotations

import multiprocessing
import os
import threading
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato import randomness as entropy
from sfumato.randomness import AUXILIARY, KEY_BYTES, MAIN, SecureSource, fresh_key, keystream, secure


def test_streams_of_one_key_are_disjoint_parts_of_aes_ctr() -> None:
    key = bytes(range(KEY_BYTES))
    for chunk, stream in ((0, MAIN), (0, AUXILIARY), (1, MAIN), (7, AUXILIARY)):
        counter = (chunk * 2**65 + stream * 2**64).to_bytes(16, "big")
        encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # CTR by hand: encrypt the counters
        following = (int.from_bytes(counter, "big") + 1).to_bytes(16, "big")
        expected = encryptor.update(counter + following)
        assert keystream(key, chunk, stream).update(bytes(32)) == expected


def test_streams_that_do_not_exist_are_refused() -> None:
    for chunk, stream in ((-1, MAIN), (2**63, MAIN), (0, 2)):
        with pytest.raises(ValueError, match="stream must be 0 or 1 and chunk from 0 to"):
            keystream(bytes(KEY_BYTES), chunk, stream)


def test_reads_are_fresh_whatever_their_size() -> None:
    source = SecureSource()
    reads = [source.read(size) for size in (16, 32, 5000, 16384, 16384, 100_000, 16) for _ in range(3)]
    assert len(set(reads)) == len(reads)
    assert [len(read) for read in reads[::3]] == [16, 32, 5000, 16384, 16384, 100_000, 16]


def test_a_new_buffer_is_under_a_new_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[bytes] = []

    def counting() -> bytes:
        keys.append(os.urandom(KEY_BYTES))
        return keys[-1]

    monkeypatch.setattr(entropy, "fresh_key", counting)
    source = SecureSource()
    for _ in range(40):
        source.read(1000)
    assert len(keys) == len(set(keys)) == 3  # 16 reads of 1000 bytes fit one buffer


def test_bits_fill_their_width_and_no_more() -> None:
    source = SecureSource()
    for width in (1, 7, 8, 31, 64, 100):
        values = [source.bits(width) for _ in range(200)]
        assert max(values) < 1 << width
        # Each bit is 0 or 1 all 200 times with probability 2^-199: α = 211·2^-199.
        assert all(0 < sum(value >> bit & 1 for value in values) < 200 for bit in range(width))
    assert source.bits(0) == 0


def test_bits_are_uniform() -> None:
    # χ² with 255 degrees of freedom, exact to its tail at n = 256·400; α = 1e-6 is 377 (scipy.stats.chi2.isf).
    source = SecureSource()
    counts = [0] * 256
    for _ in range(256 * 400):
        counts[source.bits(8)] += 1
    assert sum((count - 400) ** 2 / 400 for count in counts) < 377


def _child_reads(connection: Any) -> None:
    connection.send([secure.read(16) for _ in range(20)])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # forking is what this test is about
def test_a_child_process_never_repeats_its_parent(method: str) -> None:
    secure.read(16)  # the parent's buffer is in use before the fork
    context: Any = multiprocessing.get_context(method)
    seen: list[bytes] = []
    for _ in range(2 if method == "spawn" else 5):
        ours, theirs = context.Pipe()
        process = context.Process(target=_child_reads, args=(theirs,))
        process.start()
        seen += ours.recv()
        process.join()
    seen += [secure.read(16) for _ in range(20)]
    assert len(set(seen)) == len(seen)


def test_without_the_fork_rule_the_child_would_repeat_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: with the process check disabled, a forked child sees the parent's bytes."""
    monkeypatch.setattr(entropy, "_generation", 0)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    source = SecureSource()
    source.read(16)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        entropy._generation = 0
        os.write(write, source.read(16))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 16) == source.read(16)


def test_threads_never_share_bytes() -> None:
    source = SecureSource()
    seen: list[list[bytes]] = []

    def reader() -> None:
        seen.append([source.read(16) for _ in range(3000)])

    threads = [threading.Thread(target=reader) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = [read for reads in seen for read in reads]
    assert len(everything) == len(set(everything)) == 8 * 3000


def test_keys_are_fresh() -> None:
    keys = {fresh_key() for _ in range(1000)}
    assert len(keys) == 1000
    assert all(len(key) == KEY_BYTES for key in keys)
