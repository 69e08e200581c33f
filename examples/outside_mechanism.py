"""Define a mechanism outside the library and use it from plan to estimate.

The mechanism, cyclic response, is a mixture over a set system. A report is a shift of a difference set. With
probability γ, the sampler draws a shift whose set contains the true value; otherwise it draws any shift. Every two
values share the same number of sets. The error therefore equals that of subset selection with sets of this size, but a
report has log2 k bits instead of k.

docs/how-to/add-a-mechanism.md explains each step.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.collecting import read_reports, write_reports
from sfumato.mechanisms import Candidate, CandidateRequest, Mixture, SetSystem

#: Difference sets by number of values: their differences modulo that number are every other number equally often.
DIFFERENCE_SETS = {7: (1, 2, 4), 13: (0, 1, 3, 9), 21: (3, 6, 7, 12, 14)}


class DifferenceSets(SetSystem):
    """The k shifts of a difference set modulo k."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.elements = DIFFERENCE_SETS[size]

    @property
    def outputs(self) -> int:
        """Number of sets: one per shift."""
        return self.size

    @property
    def density(self) -> Fraction:
        """Share of the sets that contain a value."""
        return Fraction(len(self.elements), self.size)

    def contains(self, report: int, x: int) -> bool:
        """Return whether the set shifted by ``report`` contains the value with index ``x``."""
        return (x - report) % self.size in self.elements


def offer(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Offer cyclic response for domains with a known difference set, at the ε that implies the policy."""
    domain = request.policy.domain
    if len(domain) in DIFFERENCE_SETS:
        yield "cyclic-response", Candidate(partial(CyclicResponse, domain, request.epsilon), "k²", classical=True)


@sf.register(candidates=offer)
class CyclicResponse(Mixture):
    """Report a uniform shift whose set contains the value with probability γ, otherwise any uniform shift."""

    name = "cyclic-response"

    def __init__(self, domain: sf.Domain, epsilon: Any, *, threshold: int | str | None = None) -> None:
        super().__init__(domain, epsilon, DifferenceSets(len(domain)), threshold=threshold)


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
