"""The best mechanisms for symmetric policies, for thousands of values.

A permutation of the values that leaves the policy and the distribution unchanged turns a mechanism into another one
with the same error. Since tr J⁻¹ is convex, the average over all such permutations is not worse (``estimation`` has the
notation). This average is a mixture of *orbits*: the rays that the permutations make of one ray. A few numbers identify
an orbit, so 10,000 values take little more work than ten.

* ``kinds``: exchangeable values, and what an orbit reveals about them.
* ``patterns``: all extreme rays of a policy on pairs of values, up to permutations.
* ``prior_rays``: all extreme rays of a prior policy, up to permutations.
* ``family`` and ``families``: the orbits of a policy, and which ones to start from.
* ``pricing``: the most valuable orbit at given prices, by branch and bound.
* ``search``: the best mixture of orbits, and a bound on every mechanism.
"""

from __future__ import annotations

from sfumato.compiler.solvers.orbits.search import (
    Orbit,
    OrbitDesign,
    best_orbits,
    orbit_information,
)

__all__ = ["Orbit", "OrbitDesign", "best_orbits", "orbit_information"]
