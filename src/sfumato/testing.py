"""The contract that every mechanism must satisfy, as a test suite to inherit, and its parts.

Third-party mechanisms can run the tests of the library:

    from sfumato.testing import MechanismContract

    class TestMine(MechanismContract):
        def make(self, domain, epsilon):
            return MyMechanism(domain, epsilon)

Each case is a small random domain and epsilon from a fixed seed. The branching interpreter reads the exact law of the
sampler on these cases. The tests are therefore deterministic and cannot fail by chance.
"""

from __future__ import annotations

import json
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from sfumato._core import Epsilon
from sfumato.auditing import Certificate, audit, sampler_law, stated_columns
from sfumato.domain import Domain
from sfumato.mechanisms import BitDraws, Decision, Mechanism, RecordedDraws, RecordingDraws, mechanism_from_spec
from sfumato.policy import Policy, Prior, Uniform

__all__ = ["MechanismContract", "ScriptedBits", "check_law", "random_cases", "random_distribution"]


def random_cases(count: int, seed: int, sizes: Sequence[int] = range(2, 9)) -> Iterator[tuple[Domain, Epsilon]]:
    """Yield random small domains and epsilons, on which tests can check a mechanism.

    Parameters
    ----------
    count
        Number of cases.
    seed
        Seed of the generator; the same seed gives the same cases.
    sizes
        Numbers of values from which the size of each domain is drawn.

    Yields
    ------
    tuple of Domain and Epsilon
        A domain ``Domain.range(size)`` and an epsilon. Epsilons range from 0.001 to 16, uniformly in the logarithm;
        every fifth is the logarithm of a rational.

    Examples
    --------
    >>> from sfumato.testing import random_cases
    >>> len(list(random_cases(10, seed=1)))
    10
    """
    generator = random.Random(seed)
    for number in range(count):
        size = generator.choice(list(sizes))
        if number % 5 == 4:
            epsilon = Epsilon(f"ln {generator.randint(9, 80)}/8")
        else:
            epsilon = Epsilon(f"{0.001 * 16000 ** generator.random():.6g}")
        yield Domain.range(size), epsilon


def random_distribution(size: int, generator: random.Random) -> list[Fraction]:
    """Return a random probability distribution in exact fractions; some probabilities may be zero.

    Parameters
    ----------
    size
        Number of values.
    generator
        Generator that draws the weights.

    Returns
    -------
    list of Fraction
        One probability per value, with a sum of exactly one.

    Examples
    --------
    >>> import random
    >>> from sfumato.testing import random_distribution
    >>> sum(random_distribution(5, random.Random(1)))
    Fraction(1, 1)
    """
    weights = [generator.choice([0, 1, 1, 2, 5, 17]) for _ in range(size)]
    weights[generator.randrange(size)] += 1
    return [Fraction(weight, sum(weights)) for weight in weights]


class ScriptedBits:
    """Source of random bits that returns given numbers, for tests that force a rare path of a sampler.

    ``bits(width)`` returns the next number, which must fit in ``width`` bits. A call after the last number raises an
    IndexError.

    Parameters
    ----------
    values
        Numbers to return, in order.

    Examples
    --------
    >>> from sfumato.testing import ScriptedBits
    >>> bits = ScriptedBits([3, 0])
    >>> bits(2), bits.left
    (3, 1)
    """

    def __init__(self, values: Sequence[int]) -> None:
        self._values = list(values)[::-1]

    def __call__(self, width: int) -> int:
        if not self._values:
            raise IndexError("the script has no more bits: add values to ScriptedBits, or check the sampler's draws")
        value = self._values.pop()
        if value >> width:
            raise ValueError(f"the scripted value {value} must fit in {width} bits")
        return value

    @property
    def left(self) -> int:
        """Number of values that have not been returned yet."""
        return len(self._values)


def check_law(mechanism: Mechanism) -> None:
    """Check that a sampler draws each report with exactly the probability that its mechanism states.

    Audits read the sampler, and estimates use the stated probabilities ``mechanism.probability(report, x)``. Both are
    right only if the two agree. The check reads every branch of the sampler for every value, so the domain must be
    small.

    Parameters
    ----------
    mechanism
        The mechanism, over a few values.

    Raises
    ------
    AssertionError
        If a probability differs for some value, or if the probabilities of a value do not sum to one. The message names
        the value.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> from sfumato.testing import check_law
    >>> check_law(RandomizedResponse(Domain(["yes", "no"]), 1))
    """
    for x, label in enumerate(mechanism.domain):
        law, _runs = sampler_law(mechanism, x)
        stated = {
            mechanism.report_format.encode(y): probability
            for y in mechanism.reports()
            if (probability := mechanism.probability(y, x))
        }
        assert sum(law.values()) == 1, f"the probabilities of the reports of {label!r} sum to {sum(law.values())}"
        assert law == stated, f"the sampler does not have the law that the mechanism states for {label!r}"


class MechanismContract(ABC):
    """Base class of test suites for a mechanism: the tests that all mechanisms of the library pass.

    Subclass it in a test module and define :meth:`make`; pytest then collects the inherited tests. They check
    mechanisms over random small domains and epsilons, the *cases*, from a fixed seed. The mechanism must promise ε-LDP;
    override :meth:`policy` for another promise.

    Attributes
    ----------
    tight
        Whether the mechanism uses the whole epsilon, so that an audit slightly below epsilon must fail.
    cases
        Number of cases.
    seed
        Seed of the random cases.
    sizes
        Numbers of values from which the size of each domain is drawn.
    """

    tight = True
    cases = 200  # the mechanisms of the library must pass this number
    seed = 20240229
    sizes: Sequence[int] = range(2, 9)

    @abstractmethod
    def make(self, domain: Domain, epsilon: Epsilon) -> Mechanism:
        """Return the mechanism to test for one case; a subclass must define this method.

        Parameters
        ----------
        domain
            Random domain of the case.
        epsilon
            Random privacy level of the case.

        Returns
        -------
        Mechanism
            The mechanism over this domain at this level.
        """

    def policy(self, domain: Domain, epsilon: Epsilon) -> Policy:
        """Return the policy that the mechanism of one case promises to obey.

        The tests audit the mechanism from :meth:`make` against this policy. Override it if the mechanism promises
        something other than ε-LDP.

        Parameters
        ----------
        domain
            Random domain of the case.
        epsilon
            Random privacy level of the case.

        Returns
        -------
        Policy
            The policy; by default ``Uniform(domain, epsilon)``.
        """
        return Uniform(domain, epsilon)

    def mechanisms(self, count: int | None = None) -> Iterator[tuple[Mechanism, Epsilon]]:
        """Yield the mechanism of each random case.

        Parameters
        ----------
        count
            Number of cases; the default is the attribute ``cases``.

        Yields
        ------
        tuple of Mechanism and Epsilon
            The mechanism from :meth:`make`, and the epsilon of the case.
        """
        for domain, epsilon in random_cases(self.cases if count is None else count, self.seed, self.sizes):
            yield self.make(domain, epsilon), epsilon

    def _each(self, check: Callable[[Mechanism, Epsilon], None], count: int | None = None) -> None:
        """Run a check on each case, and name the case in its errors."""
        for mechanism, epsilon in self.mechanisms(count):
            try:
                check(mechanism, epsilon)
            except AssertionError as error:
                raise AssertionError(f"{mechanism!r} at epsilon {epsilon}: {error}") from error

    def test_the_stated_law_is_the_samplers_law_and_its_rows_sum_to_one(self) -> None:
        self._each(lambda mechanism, _: check_law(mechanism))

    def test_the_audit_passes_at_epsilon_and_fails_just_below_it(self) -> None:
        def check(mechanism: Mechanism, epsilon: Epsilon) -> None:
            certificate = audit(mechanism, self.policy(mechanism.domain, epsilon))
            assert certificate.holds, certificate
            below = epsilon * Fraction(10**9 - 1, 10**9)
            if self.tight:
                assert not audit(mechanism, self.policy(mechanism.domain, below)).holds, (
                    "the audit also holds below epsilon: set tight = False if this is intended"
                )

        self._each(check)

    def test_the_probability_of_a_right_guess_is_that_of_the_law(self) -> None:
        """Check that the closed form equals the sum over all reports."""

        def check(mechanism: Mechanism, _: Epsilon) -> None:
            assert mechanism.guess_probability() == Mechanism.guess_probability(mechanism)

        self._each(check, self.cases // 4)

    def test_the_shortened_audit_agrees_with_the_full_one(self) -> None:
        """Check that the few columns that large audits compare are the worst of all columns."""
        generator = random.Random(self.seed)

        def check(mechanism: Mechanism, epsilon: Epsilon) -> None:
            prior = random_distribution(len(mechanism.domain), generator)
            for policy in (self.policy(mechanism.domain, epsilon), Prior(mechanism.domain, prior, epsilon)):
                full = audit(mechanism, policy).worst
                short = max(
                    (policy.worst(column) for _, column in stated_columns(mechanism, policy)), key=lambda w: w.rank
                )
                assert full.violated == short.violated, (full, short)
                same = full.excess == short.excess  # also if both are infinite
                assert same or abs(full.excess - short.excess) < 1e-12, (full, short)

        self._each(check, 60)

    def test_reports_are_canonical_and_of_constant_length(self) -> None:
        def check(mechanism: Mechanism, _: Epsilon) -> None:
            serialized = [mechanism.report_format.encode(y) for y in mechanism.reports()]
            assert len(set(serialized)) == mechanism.outputs
            assert {len(report) for report in serialized} == {(mechanism.bits + 7) // 8}

        self._each(check, 30)

    def test_the_matrix_is_the_law_in_doubles(self) -> None:
        def check(mechanism: Mechanism, _: Epsilon) -> None:
            matrix = mechanism.matrix()
            assert matrix.shape == (len(mechanism.domain), mechanism.outputs)
            np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
            for column, y in enumerate(mechanism.reports()):
                assert matrix[-1, column] == float(mechanism.probability(y, len(mechanism.domain) - 1))

        self._each(check, 30)

    def test_the_spec_rebuilds_the_same_mechanism(self) -> None:
        def check(mechanism: Mechanism, _: Epsilon) -> None:
            rebuilt = mechanism_from_spec(json.loads(json.dumps(mechanism.spec)))
            assert rebuilt == mechanism
            assert rebuilt.hash == mechanism.hash

        self._each(check, 30)

    def test_the_certificate_survives_its_file(self) -> None:
        mechanism, epsilon = next(self.mechanisms())
        certificate = audit(mechanism, self.policy(mechanism.domain, epsilon))
        assert Certificate.from_json(certificate.to_json()) == certificate

    def test_decisions_fit_their_disjoint_fields(self) -> None:
        def check(mechanism: Mechanism, _: Epsilon) -> None:
            layout = mechanism.layout_of(0)
            assert all(each.fault() is None for each in mechanism.layouts())
            for decision, field in zip(self._decisions(mechanism), map(layout.field, range(len(layout))), strict=False):
                if decision.kind == "bernoulli":
                    assert decision.arguments[1] >= 1 << field.width, "the field is wider than its denominator"
                else:
                    assert decision.arguments[0] <= 1 << field.width, "the field is too narrow for its choices"

        self._each(check, 30)

    def test_recorded_decisions_replay_to_the_same_report(self) -> None:
        def check(mechanism: Mechanism, _: Epsilon) -> None:
            generator = random.Random(self.seed)
            x = generator.randrange(len(mechanism.domain))
            recording = RecordingDraws(_random_draws(mechanism, x, generator))
            report = mechanism.sample(x, recording)
            documents = json.loads(json.dumps([decision.document() for decision in recording.decisions]))
            replay = RecordedDraws(Decision.from_document(document) for document in documents)
            assert mechanism.sample(x, replay) == report
            replay.check_finished()

        self._each(check, 30)

    def _decisions(self, mechanism: Mechanism) -> list[Decision]:
        """Return the decisions of one run of the sampler."""
        recording = RecordingDraws(_random_draws(mechanism, 0, random.Random(self.seed)))
        mechanism.sample(0, recording)
        return recording.decisions


def _random_draws(mechanism: Mechanism, x: int, generator: random.Random) -> BitDraws:
    """Return draws from an insecure generator."""
    layout = mechanism.layout_of(x)
    return BitDraws(generator.getrandbits, layout, generator.getrandbits(layout.frame_bits))
