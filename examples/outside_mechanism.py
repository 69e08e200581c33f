"""Define a mechanism outside the library and use it from plan to estimate.

The mechanism, cyclic response, has only a sampler and a law. A report is a shift of a difference set. With probability
γ, the sampler draws a shift whose set contains the true value; otherwise it draws any shift. Every two values share the
same number of sets. The error therefore equals that of subset selection with sets of this size, but a report has
log2 k bits instead of k.

docs/how-to/add-a-mechanism.md explains each step.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.collecting import read_reports, write_reports
from sfumato.mechanisms import Candidate, CandidateRequest, Draws, Finished, Mechanism

#: Difference sets by number of values: their differences modulo that number are every other number equally often.
DIFFERENCE_SETS = {7: (1, 2, 4), 13: (0, 1, 3, 9), 21: (3, 6, 7, 12, 14)}
#: Denominator of all probabilities.
WHOLE = 2**62


def offer(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Offer cyclic response for domains with a known difference set, at the ε that implies the policy."""
    domain = request.policy.domain
    if len(domain) in DIFFERENCE_SETS:
        yield "cyclic-response", Candidate(partial(CyclicResponse, domain, request.epsilon), "k²", classical=True)


@sf.register(candidates=offer)
class CyclicResponse(Mechanism):
    """Report a uniform shift whose set contains the value with probability γ, otherwise any uniform shift."""

    name = "cyclic-response"

    def __init__(self, domain: sf.Domain, epsilon: Any, *, threshold: int | str | None = None) -> None:
        self.domain = domain
        self.epsilon = sf.Epsilon(epsilon)
        self.members = DIFFERENCE_SETS[len(domain)]
        if threshold is None:
            gain = math.expm1(min(float(self.epsilon), 700.0)) * len(self.members)
            # Slightly below the largest allowed threshold, because floats round; the audit checks it exactly.
            threshold = math.floor(gain / (gain + len(domain)) * (1 - 1e-12) * WHOLE)
        self.threshold = int(threshold)

    def step(self, state: int, draws: Draws) -> Finished:
        """Draw a report; every random choice goes through ``draws``."""
        forced = draws.bernoulli(self.threshold, WHOLE)
        member, shift = draws.below(len(self.members)), draws.below(len(self.domain))
        return Finished((state - self.members[member]) % len(self.domain) if forced else shift)

    @property
    def outputs(self) -> int:
        """Number of different reports: one per shift."""
        return len(self.domain)

    def probability(self, report: int, x: int) -> Fraction:
        """Return the exact probability of a report for the value with index ``x``."""
        gamma = Fraction(self.threshold, WHOLE)
        holds = (x - report) % len(self.domain) in self.members
        return (1 - gamma) / len(self.domain) + (gamma / len(self.members) if holds else 0)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the spec stores with the domain."""
        return {"epsilon": str(self.epsilon), "threshold": str(self.threshold)}

    @classmethod
    def from_parameters(cls, domain: sf.Domain, parameters: dict[str, Any]) -> CyclicResponse:
        """Build the mechanism from its domain and the result of ``parameters``."""
        return cls(domain, **parameters)


def main(people: int = 20_000) -> sf.Estimate:
    """Plan, audit, charge, privatize, store, aggregate and estimate; print each result."""
    days = sf.Domain(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
    policy = sf.Uniform(days, "1/2")
    plan = sf.plan(policy, people)
    print(plan)
    mechanism = sf.design(policy, people, mechanism="cyclic-response")
    certificate = sf.audit(mechanism, policy)
    certificate.raise_if_violated()
    print(certificate)

    ledger = sf.Ledger(budget=policy)
    ledger.charge("days", mechanism, policy)
    print("spent:", ledger.total)

    values = [day for day, count in zip(days, (4, 3, 2, 2, 3, 5, 1), strict=True) for _ in range(count * people // 20)]
    reports = sf.privatize(mechanism, values)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reports.parquet"
        write_reports(mechanism, reports, path)
        counts = sf.aggregate(mechanism, read_reports(mechanism, path))
    estimate = sf.estimate(mechanism, counts)
    print(estimate)
    return estimate


if __name__ == "__main__":
    main()
