"""The contract of every family, by its examples: what the registry says about a mechanism fits together."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato.auditing.interpreter import sampler_law
from sfumato.collecting import decode_batch, encode_batch
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.draws import BitDraws
from sfumato.mechanisms.registry import (
    Family,
    all_families,
    count_law_for,
    estimator_for,
    kernel_for,
    mechanism_classes,
)
from support import ROOT
from support.family_examples import examples_of, folder_of

#: Laws with at most this many entries are written out.
FEW_ENTRIES = 2_000


FAMILIES = {folder_of(family): family for family in all_families()}


def numbered(mechanisms: Iterable[Mechanism]) -> dict[str, Mechanism]:
    return {f"{place}: {mechanism.name}": mechanism for place, mechanism in enumerate(mechanisms)}


SAMPLERS = numbered(made for family in FAMILIES.values() for made in examples_of(family).samplers())
LAWS = numbered(made for family in FAMILIES.values() for made in examples_of(family).laws("1"))
every_sampler = pytest.mark.parametrize("mechanism", SAMPLERS.values(), ids=SAMPLERS)
every_law = pytest.mark.parametrize("mechanism", LAWS.values(), ids=LAWS)


def is_blind(mechanism: Mechanism) -> bool:
    """Whether values cannot be told apart, so that nothing can be estimated."""
    return bool(np.isinf(mechanism.risk(1)))


def some_reports(mechanism: Mechanism, count: int) -> npt.NDArray[Any]:
    values = np.arange(count) % len(mechanism.domain)
    return np.asarray(sf.privatize(mechanism, mechanism.domain.decode(values), stream=sf.InsecureSeeded(1)))


# -- the entry ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_the_entry_is_complete(family: Family) -> None:
    assert len({kind.__module__.rpartition(".")[0] for kind in family.mechanisms}) == 1
    assert {made.name for made in examples_of(family).samplers()} == {kind.name for kind in family.mechanisms}
    assert {made.name for made in examples_of(family).laws("1")} == {kind.name for kind in family.mechanisms}
    assert all(getattr(sf.mechanisms, kind.__name__) is kind for kind in family.mechanisms)


def test_the_browser_runs_those_that_say_so() -> None:
    module = (ROOT / "clients" / "js" / "sfumato.js").read_text(encoding="utf-8")
    tables = re.findall(r"^const (?:PARTS|MECHANISMS) = \{\n(.*?)^\}", module, flags=re.MULTILINE | re.DOTALL)
    assert len(tables) == 2
    runs = {name for table in tables for name in re.findall(r'^\t"?([\w-]+)"?[:,]', table, flags=re.MULTILINE)}
    assert runs == {kind.name for family in FAMILIES.values() if family.in_browser for kind in family.mechanisms}


def test_short_names_are_in_the_order_of_comparison() -> None:
    two, five = sf.Domain.range(2), sf.Domain.range(5)
    pairs = sf.Domain.product(S=[0, 1], U=[0, 1])
    classical = ["rr", "unary", "unary-optimized", "subset", "hadamard", "cyclic"]
    robust = ["secret-rr", "independent", "conditional-rr", "conditional-unary"]
    expected = [
        (sf.Uniform(two, 1), ["binary"]),
        (sf.Uniform(five, 1), []),
        (sf.HighLow(two, [0], 1), ["binary", "high-low-subset", "high-low-hadamard", "uo-rr"]),
        (sf.HighLow(five, [0], 1), ["high-low-subset", "high-low-hadamard", "uo-rr"]),
        (sf.Blocks(five, "aabbb", 1), ["block", "block-rr", "block-subset", "block-hadamard", "block-cyclic"]),
        (sf.Blocks(five, "aabbb", 1, 2), ["nested-cyclic", "composed"]),
        (sf.Blocks(sf.Domain.range(4), "aabb", 1, 2), ["nested-cyclic", "composed"]),
        (sf.Metric(five, "absolute", 1), ["exponential"]),
        (sf.Prior(two, ["1/3", "2/3"], 1), ["prior-binary", "prior-symmetric"]),
        (sf.Prior(two, ["1/3", "2/3"], 1, "lower"), ["prior-binary"]),
        (sf.Prior(five, ["1/5"] * 5, 1), ["prior-rr", "prior-subset", "prior-hadamard", "prior-table"]),
        (sf.Prior(five, ["1/10", "3/10", *["1/5"] * 3], 1), ["prior-rr", "prior-subset", "prior-hadamard"]),
        (sf.Secret(pairs, "S", 1, sf.Anything()), ["secret-rr"]),
        (sf.Secret(pairs, "S", 1, sf.Known([["1/4"] * 2] * 2)), ["secret-rr", "known-rr"]),
        (sf.Secret(pairs, "S", 1, sf.ChiSquare([[30, 20], [20, 30]])), robust),
    ]
    for policy, names in expected:
        with pytest.raises(InvalidInput) as error:
            sf.design(policy, mechanism="nothing")
        offered = re.search(r"be one of optimal, (.*) for this policy", str(error.value))
        assert offered is not None
        assert offered[1].split(", ") == [*classical, *names, "local-hashing"], policy


# -- mechanisms --------------------------------------------------------------------------------------------


@every_sampler
def test_the_spec_is_read_back(mechanism: Mechanism) -> None:
    again = sf.mechanism_from_spec(json.loads(json.dumps(mechanism.spec)))
    assert type(again) is mechanism_classes()[mechanism.name]
    assert again == mechanism


@every_law
def test_the_sampler_follows_the_stated_law(mechanism: Mechanism) -> None:
    encode = mechanism.report_format.encode
    for x in {0, len(mechanism.domain) - 1}:
        stated = {encode(y): mechanism.probability(y, x) for y in mechanism.reports() if mechanism.probability(y, x)}
        assert sampler_law(mechanism, x)[0] == stated
        assert sum(stated.values()) == 1


@every_law
def test_the_format_takes_every_report_and_no_other(mechanism: Mechanism) -> None:
    form = mechanism.report_format
    reports = [form.encode(report) for report in mechanism.reports()]
    assert [form.decode(data) for data in reports] == list(mechanism.reports())
    assert {len(data) for data in reports} == {form.encoded_bytes}
    valid = set(mechanism.reports())
    for report in range(min(1 << form.bits, 4096)):
        row = np.frombuffer(form.encode(report), np.uint8)[None] if form.shape else np.array([report], np.int64)
        if report in valid:
            assert form.validate(row).dtype == form.dtype
        else:
            with pytest.raises(InvalidInput, match="row 0"):
                form.validate(row)


@every_sampler
def test_reports_are_written_and_counted(mechanism: Mechanism) -> None:
    form = mechanism.report_format
    reports = some_reports(mechanism, 50)
    assert (reports.dtype, reports.shape) == (form.dtype, (50, *form.shape))
    assert np.array_equal(decode_batch(mechanism, encode_batch(mechanism, reports)), reports)
    counts = sf.aggregate(mechanism, reports)
    assert len(counts.counts) == form.count_size
    assert counts.counts.sum() <= 50 * form.count_size
    one_by_one = np.zeros(form.count_size, np.int64)
    for row in range(50):
        form.count(reports[row : row + 1], one_by_one)
    assert np.array_equal(one_by_one, counts.counts)
    form.check_counts(50, counts.counts)
    if form.counts_per_report is not None:
        assert counts.counts.sum() == 50 * form.counts_per_report
        with pytest.raises(InvalidInput):
            form.check_counts(51, counts.counts)


@every_law
def test_the_estimator_is_unbiased_for_the_stated_law(mechanism: Mechanism) -> None:
    if is_blind(mechanism) or len(mechanism.domain) * mechanism.outputs > FEW_ENTRIES:
        pytest.skip("nothing is told, or the law is long")
    estimator, form = estimator_for(mechanism), mechanism.report_format
    k = len(mechanism.domain)
    p = np.arange(1, k + 1) / (k * (k + 1) / 2)
    reports, law = list(mechanism.reports()), p @ mechanism.matrix()
    scores = np.empty((len(reports), k))
    for place, report in enumerate(reports):
        counts = np.zeros(form.count_size, np.int64)
        row = np.array([report], form.dtype) if not form.shape else np.frombuffer(form.encode(report), np.uint8)[None]
        form.count(form.validate(row), counts)
        scores[place] = estimator.frequencies(counts.astype(np.float64))
    np.testing.assert_allclose(law @ scores, p, atol=1e-8)
    covariance = (scores.T * law) @ scores - np.outer(p, p)
    scale = np.abs(covariance).max()
    np.testing.assert_allclose(estimator.covariance(p), covariance, atol=1e-7 * scale)
    np.testing.assert_allclose(estimator.variances(p), np.diag(covariance), atol=1e-7 * scale)
    assert mechanism.risk(1, p) == pytest.approx(np.trace(covariance), rel=1e-6)
    low, high = estimator.score_bounds()
    assert (low <= scores.min(axis=0) + 1e-9 * scale).all()
    assert (high >= scores.max(axis=0) - 1e-9 * scale).all()


@every_law
def test_the_law_of_the_counts_has_their_mean(mechanism: Mechanism) -> None:
    law = count_law_for(mechanism)
    if law is None or is_blind(mechanism):
        pytest.skip("no law of the counts is known")
    p = np.full(len(mechanism.domain), 1 / len(mechanism.domain))
    n = 10**8
    counts = law(np.random.default_rng(1), n, p)
    mechanism.report_format.check_counts(n, counts)
    # Seven standard deviations of a binomial count: false rejection below 1e-9, fixed by the seed.
    np.testing.assert_allclose(counts / n, estimator_for(mechanism).expected_counts(p), atol=7 / 2 / np.sqrt(n))


@pytest.mark.slow
@every_sampler
def test_the_kernel_gives_the_reports_of_the_sampler(mechanism: Mechanism) -> None:
    kernel, form = kernel_for(mechanism), mechanism.report_format
    if kernel is None:
        pytest.skip("arrays are sampled value by value")
    generator = random.Random(3)
    for x in (0, len(mechanism.domain) - 1):
        frame = generator.randbytes(mechanism.layout.frame_bits // 8)
        auxiliary = [generator.getrandbits(64) for _ in range(2_000)]
        left = auxiliary[::-1]
        draws = BitDraws(
            lambda width, left=left: left.pop() & (1 << width) - 1,  # type: ignore[misc]
            mechanism.layout_of(x),
            int.from_bytes(frame, "little"),
        )
        report = mechanism.sample(x, draws)
        out = form.empty(1)
        kernel.run(np.array([x]), np.frombuffer(frame, np.uint8), np.array(auxiliary, np.uint64), out)
        assert form.decode(out.tobytes()) == report


@every_law
def test_the_guess_is_that_of_the_law(mechanism: Mechanism) -> None:
    assert mechanism.guess_probability() == Mechanism.guess_probability(mechanism)
    assert isinstance(mechanism.guess_probability(), Fraction)
