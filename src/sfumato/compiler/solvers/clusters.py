"""A bound on the best design for many values: drop the rules between clusters of values.

Without rules between clusters, a report may reveal the cluster, and each cluster is a separate problem. Cluster j with
the total probability w_j has w_j of the reports, and tr J⁻¹ = Σ w_j·tr J_j⁻¹. Fewer rules allow more mechanisms, so the
least value of this sum is a bound under all rules. It is close if rules between clusters matter little, as for a metric
whose epsilon per step is not small. If there are no rules between clusters at all, nothing is lost (``components``).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, import_late
from sfumato.compiler.solvers.deadline import Deadline, OutOfTime
from sfumato.compiler.solvers.slice import Slice
from sfumato.errors import NoAnswer

__all__ = ["components", "trace_of_clusters"]

#: Maximum number of values of a cluster; the bound for one cluster then takes about a second.
_LARGEST_CLUSTER = 49
#: Epsilon that stands for an infinite one in the clustering.
_FAR = 1e3


def trace_of_clusters(
    slice_: Slice,
    least_trace: Callable[[Slice, Deadline], float],
    deadline: Deadline,
    cluster_of: npt.NDArray[np.int64] | None = None,
) -> float:
    """Return a lower bound on tr J⁻¹ of every design under a pairwise policy.

    Parameters
    ----------
    slice_
        The slice of the policy.
    least_trace
        Function that returns a lower bound for the slice of one cluster.
    deadline
        Time by which to end; the bound of a cluster that is not reached is its trace without any noise.
    cluster_of
        The cluster of each value; clusters of values with small epsilons by default.
    """
    if slice_.epsilons is None:
        return slice_.least_trace
    if cluster_of is None:
        cluster_of = _clusters(slice_.epsilons)
    count = int(cluster_of.max()) + 1
    if count == 1:
        return slice_.least_trace
    total = 0.0
    for number in range(count):
        # Without rules between clusters, a value that does not occur may have no limit. Leaving it out lowers tr J⁻¹.
        members = np.flatnonzero((cluster_of == number) & (slice_.prior > 0))
        weight, end = float(slice_.prior[members].sum()), deadline.part(1 / (count - number))
        if not weight:
            continue
        part = slice_.among(members)
        trace = part.least_trace
        if not part.is_constant and len(members) > 1 and not end.passed:
            with suppress(OutOfTime, NoAnswer):
                trace = least_trace(part, end)
        total += weight * (trace + slice_.squared_mean(members))
    return total


def components(slice_: Slice) -> npt.NDArray[np.int64]:
    """Return the component of each value; there are no rules between components, so their bound loses nothing."""
    if slice_.epsilons is None:
        return np.zeros(slice_.size, dtype=np.int64)
    labels = import_late("scipy.sparse.csgraph").connected_components(np.isfinite(slice_.epsilons), directed=False)[1]
    return np.asarray(labels, dtype=np.int64)


def _clusters(epsilons: Floats) -> npt.NDArray[np.int64]:
    """Return the cluster of each value: the largest clusters of average linkage that are not too large."""
    hierarchy, distance = import_late("scipy.cluster.hierarchy"), import_late("scipy.spatial.distance")
    apart = np.minimum(np.minimum(epsilons, epsilons.T), _FAR)
    np.fill_diagonal(apart, 0.0)
    tree = hierarchy.linkage(distance.squareform(apart, checks=False), "average")
    size = len(epsilons)
    members: list[list[int]] = [[x] for x in range(size)]
    whole: list[list[int]] = []
    merged = np.zeros(2 * size - 1, dtype=bool)
    for number, (first, second) in enumerate(tree[:, :2].astype(int).tolist()):
        members.append(members[first] + members[second])
        if len(members[size + number]) > _LARGEST_CLUSTER:
            whole += [members[part] for part in (first, second) if not merged[part]]
            merged[size + number] = True  # its parts are clusters already
    if not merged[-1]:
        whole = [members[-1]]
    cluster_of = np.zeros(size, dtype=np.int64)
    for number, some in enumerate(whole):
        cluster_of[some] = number
    return cluster_of
