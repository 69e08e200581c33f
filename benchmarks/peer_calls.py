"""Time the calls of another package that correspond to Sfumato's. Runs in an environment with that package only.

    python peer_calls.py PEER VALUES.json

VALUES.json contains epsilon and the values for every k; the result is JSON on standard output. Each package is called
as in its documentation: one value at a time. A run has as many values as fit in a fraction of a second, at most all of
them. Calls that would take too long for five runs are left out.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUNS = 5
RUN_SECONDS = 0.25
LONGEST_VALUE_SECONDS = 1.0
REPORTS_SECONDS = 2.0

#: A function that privatizes a value, and one that estimates all frequencies from reports, or None if there is none.
Calls = tuple[Callable[[int], Any], Callable[[list[Any]], Any] | None]


def pure_ldp(mechanism: str, k: int, epsilon: float) -> Calls | None:
    """Return the calls of pure-ldp, which has clients and servers, and numbers values from one."""
    from pure_ldp.frequency_oracles import direct_encoding, hadamard_response, unary_encoding

    client: Any
    make_server: Callable[[], Any]
    if mechanism == "randomized response":
        client = direct_encoding.DEClient(epsilon, k)
        make_server = lambda: direct_encoding.DEServer(epsilon, k)  # noqa: E731
    elif mechanism.startswith("unary"):
        optimized = "optimized" in mechanism
        client = unary_encoding.UEClient(epsilon, k, use_oue=optimized)
        make_server = lambda: unary_encoding.UEServer(epsilon, k, use_oue=optimized)  # noqa: E731
    elif mechanism == "hadamard":
        hashes = hadamard_response.HadamardResponseServer(epsilon, k).get_hash_funcs()
        client = hadamard_response.HadamardResponseClient(epsilon, k, hash_funcs=hashes)
        make_server = lambda: hadamard_response.HadamardResponseServer(epsilon, k)  # noqa: E731
    else:
        return None

    def estimate(reports: list[Any]) -> Any:
        server = make_server()
        server.aggregate_all(reports)
        server.estimate(1, suppress_warnings=True)  # the first call estimates all values
        return server.estimated_data

    return lambda value: client.privatise(value + 1), estimate


def multi_freq_ldpy(mechanism: str, k: int, epsilon: float) -> Calls | None:
    """Return the calls of multi-freq-ldpy, which has compiled clients for one value."""
    from multi_freq_ldpy.pure_frequency_oracles import GRR, SS, UE

    if mechanism == "randomized response":
        return lambda v: GRR.GRR_Client(v, k, epsilon), lambda reports: GRR.GRR_Aggregator_MI(reports, k, epsilon)
    if mechanism.startswith("unary"):
        best = "optimized" in mechanism
        return lambda v: UE.UE_Client(v, k, epsilon, best), lambda reports: UE.UE_Aggregator_MI(reports, epsilon, best)
    if mechanism == "subset":
        return lambda v: SS.SS_Client(v, k, epsilon), lambda reports: SS.SS_Aggregator_MI(reports, k, epsilon)
    return None


def opendp(mechanism: str, k: int, epsilon: float) -> Calls | None:
    """Return the measurements of OpenDP, which has secure randomness, like Sfumato."""
    import numpy as np
    import opendp.prelude as dp

    dp.enable_features("contrib")
    if mechanism == "randomized response":
        measurement = dp.m.make_randomized_response(list(range(k)), math.exp(epsilon) / (math.exp(epsilon) + k - 1))
        return measurement, None
    if mechanism == "unary":
        flips = 2 / (math.exp(epsilon / 2) + 1)
        one_bit = dp.bitvector_domain(max_weight=1)
        measurement = dp.m.make_randomized_response_bitvec(one_bit, dp.discrete_distance(), flips)

        def privatize(value: int) -> Any:
            bits = np.zeros(k // 8, np.uint8)
            bits[value // 8] = 128 >> value % 8
            return measurement(bits.tobytes())

        return privatize, lambda reports: dp.m.debias_randomized_response_bitvec(reports, flips)
    return None


PEERS = {"pure-ldp": pure_ldp, "multi-freq-ldpy": multi_freq_ldpy, "opendp": opendp}
MECHANISMS = ("randomized response", "unary", "unary, optimized", "subset", "hadamard")


def seconds(job: Callable[[], Any]) -> float:
    """Return the duration of a job."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def timed(calls: Calls, values: list[int], reports_wanted: int) -> dict[str, Any] | None:
    """Return the durations of five runs of each call, with their numbers of values and reports."""
    privatize, estimate = calls
    seconds(lambda: privatize(values[0]))  # compile
    each = seconds(lambda: [privatize(value) for value in values[:3]]) / 3
    if each > LONGEST_VALUE_SECONDS:
        return None
    each = seconds(lambda: [privatize(value) for value in values[: max(3, int(0.02 / each))]]) / max(
        3, int(0.02 / each)
    )
    count = max(1, min(len(values), int(RUN_SECONDS / each)))
    result: dict[str, Any] = {"values": count}
    result["privatize"] = [seconds(lambda: [privatize(value) for value in values[:count]]) for _ in range(RUNS)]
    reports = [privatize(value) for value in values[: max(count, min(reports_wanted, int(REPORTS_SECONDS / each)))]]
    reports = reports[:reports_wanted]
    if estimate is not None:
        run = lambda: estimate(reports)  # noqa: E731
        if seconds(run) <= 3:
            result["reports"] = len(reports)
            result["estimate"] = [seconds(run) for _ in range(RUNS)]
    return result


def main(peer: str, path: str) -> None:
    """Time all calls of a package and print the result as JSON."""
    warnings.simplefilter("ignore")
    case = json.loads(Path(path).read_text(encoding="utf-8"))
    timings_by_case: dict[str, Any] = {}
    for k, values in case["values"].items():
        for mechanism in MECHANISMS:
            calls = PEERS[peer](mechanism, int(k), float(case["epsilon"]))
            timing = None if calls is None else timed(calls, values, case["reports"][mechanism][k])
            if timing is not None:
                timings_by_case[f"{mechanism}/{k}"] = timing
    json.dump(timings_by_case, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
