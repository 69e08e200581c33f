"""The verb `privatize`: the same bytes by every road, the right law, and nothing drawn for bad input."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato import randomness as entropy
from sfumato.device import privatization as _privatize
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Finished, Mechanism
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.randomness import SecureStream

MECHANISMS: dict[str, Mechanism] = {
    "response": RandomizedResponse(sf.Domain.range(1000), 1),
    "unary": UnaryEncoding(sf.Domain.range(70), 1),
    "unary optimized": UnaryEncoding(sf.Domain.range(64), 1, optimized=True),
    "subset": SubsetSelection(sf.Domain.range(70), 1),
    "hadamard": HadamardResponse(sf.Domain.range(1000), 1),
    "hadamard, blocks": HadamardResponse(sf.Domain.range(1000), 4),
    "hadamard, wide": HadamardResponse(sf.Domain.range(70_000), 1),
    "cyclic": CyclicDesign(sf.Domain.range(1000), 1),
    "table": TableMechanism.from_matrix(sf.Domain.range(9), RandomizedResponse(sf.Domain.range(9), 1).matrix()),
}


@pytest.fixture(params=MECHANISMS, ids=lambda name: name.replace(", ", "-").replace(" ", "-"))
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return MECHANISMS[request.param]


def some_values(mechanism: Mechanism, count: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(5).integers(0, len(mechanism.domain), count)


# -- one truth -----------------------------------------------------------------------------------------------


def test_threads_change_nothing(mechanism: Mechanism) -> None:
    values = some_values(mechanism, 5 * mechanism.layout.chunk_values + 3)
    one, two, seven = (sf.privatize(mechanism, values, sf.InsecureSeeded(7), threads=threads) for threads in (1, 2, 7))
    assert one.tobytes() == two.tobytes() == seven.tobytes()


@pytest.mark.slow
def test_the_kernel_gives_the_scalar_samplers_bytes(mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    count = mechanism.layout.chunk_values + 100 if mechanism.layout.frame_bits > 64 else 3000
    values = some_values(mechanism, count)
    by_kernel = sf.privatize(mechanism, values, sf.InsecureSeeded(11))
    monkeypatch.setattr(_privatize, "_kernel", lambda *_: None)
    by_sampler = sf.privatize(mechanism, values, sf.InsecureSeeded(11))
    assert by_kernel.tobytes() == by_sampler.tobytes()
    assert by_kernel.dtype == by_sampler.dtype == mechanism.report_format.dtype


def test_a_seeded_stream_goes_on_where_it_ended() -> None:
    mechanism = MECHANISMS["response"]
    stream = sf.InsecureSeeded(3)
    first, second = (sf.privatize(mechanism, [5] * 100, stream) for _ in range(2))
    assert not np.array_equal(first, second)
    again = sf.privatize(mechanism, [5] * 100, sf.InsecureSeeded(3))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, sf.privatize(mechanism, [5] * 100, sf.InsecureSeeded(4)))


def test_secure_reports_differ_every_time(mechanism: Mechanism) -> None:
    for count in (60, 40_000 // (len(mechanism.layout) + 1) + 1000):
        values = np.zeros(count, dtype=np.int64)
        reports = {sf.privatize(mechanism, values).tobytes() for _ in range(3)}
        assert len(reports) == 3  # two equal runs: far below 1e-6 for each of these mechanisms


# -- the right law, by the road that people use ----------------------------------------------------------------


def law_is_accepted(observed: Counter[bytes], law: dict[bytes, float], alpha: float) -> bool:
    """Each output's count against its exact binomial, Bonferroni over outputs and both tails."""
    n = observed.total()
    if set(observed) - set(law):
        return False
    limit = alpha / (2 * len(law))
    return all(
        min(stats.binom.cdf(observed[y], n, p), stats.binom.sf(observed[y] - 1, n, p)) > limit for y, p in law.items()
    )


@pytest.mark.parametrize(
    "kind", [RandomizedResponse, UnaryEncoding, SubsetSelection, HadamardResponse], ids=lambda kind: kind.__name__
)
def test_secure_reports_follow_the_exact_law(kind: Any) -> None:
    mechanism = kind(sf.Domain.range(5), 1)
    count = 400_000
    reports = sf.privatize(mechanism, np.full(count, 3))
    unique, counts = np.unique(reports, axis=0, return_counts=True)
    observed = Counter(
        {
            mechanism.report_format.encode(int.from_bytes(row.tobytes(), "little")): int(c)
            for row, c in zip(unique, counts, strict=True)
        }
    )
    law = {mechanism.report_format.encode(y): float(mechanism.probability(y, 3)) for y in mechanism.reports()}
    assert law_is_accepted(observed, law, alpha=1e-6)
    # Power: a law in which the likeliest output is 5% rarer than it should be is rejected.
    top = max(law, key=law.__getitem__)
    wrong = {y: p + (0.05 * law[top] / (len(law) - 1) if y != top else -0.05 * law[top]) for y, p in law.items()}
    assert not law_is_accepted(observed, wrong, alpha=1e-6)


# -- inputs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column", [list, np.array, pa.array, pd.Series, pl.Series], ids=["list", "numpy", "arrow", "pandas", "polars"]
)
def test_every_kind_of_column_gives_the_same_reports(column: Any) -> None:
    domain = sf.Domain(["none", "flu", "hiv"])
    mechanism = RandomizedResponse(domain, 1)
    values = ["flu", "none", "hiv", "flu"] * 10_000
    expected = sf.privatize(mechanism, values, sf.InsecureSeeded(1))
    assert np.array_equal(sf.privatize(mechanism, column(values), sf.InsecureSeeded(1)), expected)


def test_bad_values_are_named_before_anything_is_drawn() -> None:
    class Untouched:
        def reserve(self, chunks: int) -> tuple[bytes, int]:  # noqa: ARG002
            raise AssertionError("nothing may be drawn")

    mechanism = RandomizedResponse(sf.Domain(["none", "flu"]), 1)
    with pytest.raises(InvalidInput, match=r"row 2 .*'cold'"):
        sf.privatize(mechanism, ["none", "flu", "cold"], Untouched())
    with pytest.raises(InvalidInput, match="row 1"):
        sf.privatize(mechanism, ["none", None], Untouched())


def test_one_value_or_a_seed_or_a_policy_is_refused_with_a_hint() -> None:
    domain = sf.Domain(["none", "flu"])
    mechanism = RandomizedResponse(domain, 1)
    for value in ("none", b"none"):
        with pytest.raises(InvalidInput, match=r"be a list or a column of values \(\[value\] for one\)") as refused:
            sf.privatize(mechanism, value)
        assert "none" not in str(refused.value)
    wrong: list[Any] = [1, np.random.default_rng(1), sf.InsecureSeeded]
    for stream in wrong:
        with pytest.raises(
            InvalidInput, match=r"stream must be InsecureSeeded\(seed\), for simulations only.*Leave stream out"
        ):
            sf.privatize(mechanism, ["none"], stream)
    with pytest.raises(InvalidInput, match="the mechanism must be a Mechanism, not a Policy"):
        sf.privatize(sf.Uniform(domain, 1), ["none"])  # type: ignore[arg-type]


def test_nothing_in_nothing_out(mechanism: Mechanism) -> None:
    assert sf.privatize(mechanism, []).shape == (0, *mechanism.report_format.shape)
    assert sf.privatize(mechanism, [], sf.InsecureSeeded(1)).shape == (0, *mechanism.report_format.shape)


def test_out_is_written_in_place_and_checked(mechanism: Mechanism) -> None:
    values = some_values(mechanism, 1000)
    out = np.empty((1000, *mechanism.report_format.shape), mechanism.report_format.dtype)
    assert sf.privatize(mechanism, values, sf.InsecureSeeded(2), out=out) is out
    assert np.array_equal(out, sf.privatize(mechanism, values, sf.InsecureSeeded(2)))
    with pytest.raises(InvalidInput, match="out must be a writable contiguous"):
        sf.privatize(mechanism, values, out=out[:-1])
    with pytest.raises(InvalidInput, match="threads must be at least 1; got 0"):
        sf.privatize(mechanism, some_values(mechanism, 100_000), threads=0)


def test_reports_may_be_written_over_the_values() -> None:
    mechanism = HadamardResponse(sf.Domain.range(1000), 1)
    values = np.arange(200_000) % 1000
    expected = sf.privatize(mechanism, values, sf.InsecureSeeded(2))
    out = values.view(mechanism.report_format.dtype)[: len(values)]
    assert np.array_equal(sf.privatize(mechanism, values, sf.InsecureSeeded(2), out=out), expected)


@pytest.mark.parametrize("count", [10, 300_000])
def test_progress_ends_at_the_total(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_privatize, "_PROGRESS_INTERVAL", 0)
    seen: list[tuple[int, int | None]] = []
    sf.privatize(MECHANISMS["response"], np.zeros(count, int), progress=lambda at: seen.append((at.done, at.total)))
    assert seen[-1] == (count, count)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 2


class Constant(RandomizedResponse):
    """A mechanism of somebody's own: no kernel knows it, so its own sampler must run."""

    def step(self, state: int, draws: Draws) -> Finished:  # noqa: ARG002
        return Finished(4)


def test_a_mechanism_without_a_kernel_runs_its_own_sampler() -> None:
    mechanism = Constant(sf.Domain.range(5), 1)
    assert set(sf.privatize(mechanism, np.zeros(30_000, int)).tolist()) == {4}
    assert set(sf.privatize(mechanism, np.zeros(30_000, int), sf.InsecureSeeded(1)).tolist()) == {4}


@pytest.mark.slow
def test_one_value_at_a_time_needs_no_numba() -> None:
    code = (
        "import sys, sfumato as sf; d = sf.Domain(['a', 'b']); "
        "print(len(sf.privatize(sf.mechanisms.HadamardResponse(d, 1), ['a'])), 'numba' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["1", "False"]


# -- no two workers ever share a word ------------------------------------------------------------------------------


def _reserve_in_child(connection: Any) -> None:
    stream = SecureStream()
    connection.send([stream.reserve(1) for _ in range(50)])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_never_share_a_key(method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    reserved: list[tuple[bytes, int]] = [SecureStream().reserve(1) for _ in range(50)]
    for _ in range(2):
        ours, theirs = context.Pipe()
        process = context.Process(target=_reserve_in_child, args=(theirs,))
        process.start()
        reserved += ours.recv()
        process.join()
    assert len(set(reserved)) == len(reserved) == 150


def test_chunks_of_one_call_never_share_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record every stream that is opened while seven threads work: each is opened by one chunk only."""
    opened: list[tuple[int, int, int]] = []
    keys: set[bytes] = set()
    lock = threading.Lock()
    first_block, keystream = entropy.first_block, entropy.keystream

    def recording_block(chunk: int, stream: int) -> bytes:
        with lock:
            opened.append((chunk, stream, threading.get_ident()))
        return first_block(chunk, stream)

    def recording_key(key: bytes, chunk: int, stream: int) -> Any:
        keys.add(key)
        return keystream(key, chunk, stream)

    monkeypatch.setattr(_privatize, "first_block", recording_block)
    monkeypatch.setattr(_privatize, "keystream", recording_key)
    mechanism = MECHANISMS["hadamard"]
    values = np.zeros(20 * mechanism.layout.chunk_values, int)
    for calls in (1, 2):
        opened.clear()
        sf.privatize(mechanism, values, threads=7)
        assert len(keys) == calls  # one key a call, never an old one
        main = [chunk for chunk, stream, _ in opened if stream == entropy.MAIN]
        assert sorted(main) == list(range(20))
        for chunk in main:
            assert len({thread for opened_chunk, _, thread in opened if opened_chunk == chunk}) == 1


def test_threads_that_share_a_seeded_stream_get_different_chunks() -> None:
    stream = sf.InsecureSeeded(1)
    with ThreadPoolExecutor(8) as pool:
        firsts = list(pool.map(lambda _: stream.reserve(3)[1], range(400)))
    assert sorted(firsts) == list(range(0, 1200, 3))


def test_a_seed_is_an_integer() -> None:
    with pytest.raises(InvalidInput, match="seed must be an integer; got 'x'"):
        sf.InsecureSeeded("x")  # type: ignore[arg-type]
