"""Plan, design and audit in a separate process, which is killed when a request takes too long.

The process reads one request per line and writes one response per line. The collector starts it when it is first
needed, and again after it was killed or ended at its memory limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import math
import os
import sys
from fractions import Fraction
from typing import Any

from sfumato._core import canonical_json, finite
from sfumato.auditing import audit, policy_region
from sfumato.collecting import Aggregate
from sfumato.compiler import SEARCH_SECONDS, SEARCHED_VALUES, design, plan
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.estimation import check_estimable
from sfumato.mechanisms import Mechanism, attribute_guesses, keeps_answers, mechanism_from_spec
from sfumato.policy import (
    Blocks,
    PairwisePolicy,
    Policy,
    Secret,
    describe,
    policy_from_dict,
    posterior_bounds,
    strictest,
)
from sfumato.questions import Frequencies, Question, question_from_string
from sfumato.server.http.responses import ApiError
from sfumato.server.http.telemetry import LOG, to_standard_error
from sfumato.server.jobs.comparisons import compared
from sfumato.server.jobs.estimates import cached_estimate, in_words
from sfumato.server.jobs.previews import errors_by_level, simulated_results
from sfumato.server.settings import VARIABLE

__all__ = ["Planner"]

#: Maximum requests that wait for the process.
_MOST_WAITING = 8
#: Maximum bytes of a response; a certificate contains the mechanism and the policy.
_MAX_RESPONSE_BYTES = 2**28
#: Environment that limits OpenBLAS to one thread; it reserves about 40 MB per thread, one per core by default.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
#: Fraction of the time limit for a search; the rest is for rounding, audit and slower machines.
_SEARCH_FRACTION = 0.4
#: Maximum values that a posterior bound lists.
_MOST_NAMED = 20
_PLAN = "planning for this policy"
_SIMPLIFY = "use fewer values, or design the mechanism with `sfumato design` and send its spec"


class Planner:
    """The client of the planner process. It sends one request at a time."""

    def __init__(
        self, seconds: float, most_bytes: int, most_values: int, task: str = _PLAN, hint: str = _SIMPLIFY
    ) -> None:
        self._seconds, self._most_bytes, self._most_values = seconds, most_bytes, most_values
        self._task, self._hint = task, hint
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def ask(self, job: str, **request: Any) -> Any:
        """Return the result of a request; raise ApiError for an invalid policy or mechanism, or at the time limit."""
        if self._waiting >= _MOST_WAITING:
            raise ApiError("overloaded", "too many long computations are waiting; retry later")
        self._waiting += 1
        try:
            async with self._turn:
                response = await self._exchange(job, request)
        finally:
            self._waiting -= 1
        if "error" in response:
            raise ApiError("invalid", response["error"])
        if "fault" in response:
            raise ApiError("internal", response["fault"])
        return response["result"]

    async def _exchange(self, job: str, request: dict[str, Any]) -> Any:
        """Send a request to the process, which is started if needed, and return its response."""
        line = json.dumps({"job": job, "seconds": self._seconds, "most_values": self._most_values, **request}) + "\n"
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "sfumato.server.jobs.planner", str(self._most_bytes)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_MAX_RESPONSE_BYTES,
                # Hide the settings, which contain the password of the store.
                env={name: value for name, value in os.environ.items() if name != VARIABLE} | _ONE_THREAD,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(self._seconds):
                process.stdin.write(line.encode())
                await process.stdin.drain()
                return json.loads(await process.stdout.readline())
        except TimeoutError:
            await self.stop()
            message = f"{self._task} takes longer than {self._seconds:g} seconds; {self._hint}"
            raise ApiError("too-hard", message) from None
        except (OSError, ValueError):  # the process ended without a response, as it does at the memory limit
            await self.stop()
            message = f"{self._task} takes more memory than the collector allows; {self._hint}"
            raise ApiError("too-hard", message) from None
        except BaseException:  # the client disconnected; the next request must not receive this response
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


# -- in the planner process --------------------------------------------------------------------------------


def _policy(request: dict[str, Any]) -> Policy:
    """Return the policy of a request; raise ApiError if it has too many values."""
    policy = policy_from_dict(request["policy"])
    if len(policy.domain) > request["most_values"]:
        size, most = len(policy.domain), request["most_values"]
        message = f"the policy has {size} values, and this collector accepts at most {most}; use a smaller domain"
        raise ApiError("invalid", message)
    return policy


def _question(request: dict[str, Any], policy: Policy) -> Question | None:
    """Return the question of a request, or else the one that its policy states; None for all frequencies."""
    stated = request.get("question")
    if stated is None:
        stated = request["policy"].get("question")
    if stated is None:
        return None
    question = question_from_string("question", stated) if isinstance(stated, str) else Question.from_dict(stated)
    return None if isinstance(question, Frequencies) else question.checked(policy.domain)


def check(request: dict[str, Any]) -> dict[str, Any]:
    """Describe a policy in words and numbers."""
    policy = _policy(request)
    region = None
    if isinstance(policy, PairwisePolicy) and len(policy.domain) > 1:
        x, other = map(policy.domain.label, policy.least[1])
        region = {"x": x, "other": other, "points": policy_region(policy, x, other).vertices.tolist()}
    bounds = [
        {"values": s.values[:_MOST_NAMED], "count": len(s.values), "before": s.before, "after": s.after}
        for s in posterior_bounds(policy, request["before"])
    ]
    return {
        "kind": policy.kind,
        "values": len(policy.domain),
        "hash": policy.hash,
        "asks": describe(policy),
        "least": strictest(policy),
        "region": region,
        "suspicions": bounds,
        "within": _within(policy, Fraction(request["before"])),
        "across": _across(policy, Fraction(request["before"])),
        "policy": policy.to_dict(),
    }


def _within(policy: Policy, before: Fraction) -> float | None:
    """Return the maximum posterior probability of a value if its block is known, or of a value of the secret."""
    odds = before / (1 - before)
    if isinstance(policy, Secret):
        first, second = policy.domain.factors[policy.secret].labels[:2]
        after = policy.posterior_odds_bound(first, second, odds)
    elif isinstance(policy, Blocks):
        several = (members for members in _blocks(policy) if len(members) > 1)
        bounds = (policy.posterior_odds_bound(members[0], members[1], odds) for members in several)
        after = max(bounds, default=float(odds))
    else:
        return None
    return 1.0 if math.isinf(after) else after / (1 + after)


def _across(policy: Policy, before: Fraction) -> float | None:
    """Return the maximum posterior probability of a value against those of other blocks, if the policy limits it."""
    if not isinstance(policy, Blocks) or policy.across.is_infinite:
        return None
    firsts = [members[0] for members in _blocks(policy)]
    odds = before / (1 - before)
    # No way between two blocks is shorter than the level across, so it holds for every pair of them.
    after = max((policy.posterior_odds_bound(firsts[0], other, odds) for other in firsts[1:]), default=float(odds))
    return 1.0 if math.isinf(after) else after / (1 + after)


def _blocks(policy: Blocks) -> list[list[object]]:
    """Return the labels of each block, in domain order."""
    blocks: dict[int, list[object]] = {}
    for label, block in zip(policy.domain.labels, policy.block_of.tolist(), strict=True):
        blocks.setdefault(block, []).append(label)
    return list(blocks.values())


def _guess(exact: Fraction, values: int) -> dict[str, float]:
    """Return the probability of a correct guess with and without a report; below 1 unless it is exactly 1."""
    return {"guess": 1.0 if exact == 1 else min(float(exact), math.nextafter(1.0, 0.0)), "chance": 1 / values}


def _odds(mechanism: Mechanism) -> dict[str, Any]:
    """Return these probabilities for the whole answer, and for the attribute that a report reveals most about."""
    parts = [_guess(*one) for one in attribute_guesses(mechanism)]
    whole = _guess(mechanism.guess_probability(), len(mechanism.domain))
    return {**whole, "part": max(parts, key=_gain) if parts else None}


def _gain(odds: dict[str, float]) -> float:
    """Return the share of the way from a guess without a report to certainty."""
    return (odds["guess"] - odds["chance"]) / (1 - odds["chance"])


def _search_seconds(policy: Policy, request: dict[str, Any]) -> float | None:
    """Return the seconds for a search, so that it ends well before the time limit; None for the default."""
    seconds = _SEARCH_FRACTION * float(request["seconds"])
    return None if len(policy.domain) > SEARCHED_VALUES or seconds >= SEARCH_SECONDS else seconds


def plan_rows(request: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of a plan."""
    policy = _policy(request)
    result = plan(
        policy,
        request["n"],
        target=request["target"],
        question=_question(request, policy),
        truth=request["truth"],
        method=request["method"],
        max_bits=request["max_bits"],
        max_seconds=_search_seconds(policy, request),
        delta=request["delta"],
    )
    fields = ("name", "risk", "tv", "half_l1", "bits", "worst", "bound", "decoding", "classical", "central")
    rows = [
        {field: getattr(row, field) for field in fields}
        | {"standard_error": None if result.question is None else result.standard_error(row)}
        | {"tv_error": None if row.predicted is None else row.predicted.tv_error}
        for row in result.rows
    ]
    return {
        "n": result.n,
        "best": result.best.name,
        "why": result.reason,
        "rows": rows,
        **_odds(result.best.mechanism),
        "one_percent": _people_for(0.01, result.n, result.best.half_l1),
        "warnings": result.warnings,
        "levels": errors_by_level(request, result.n, result.question),
        "preview": simulated_results(request, result),
    }


def _people_for(target: float, n: int, error: float) -> float | None:
    """Return the number of people that reduces ``error``, which n people have, to the target; it falls as 1/√n."""
    people = n * (error / target) ** 2
    return float(math.ceil(people)) if math.isfinite(people) else None


def _memoized(request: dict[str, Any], policy: Policy, question: Question | None) -> Mechanism:
    """Return the mechanism with permanent answers that is designed for the two policies of a request."""
    requested = request["mechanism"]
    if isinstance(requested, dict):
        message = "the spec of a memoized mechanism contains its lifetime policy; leave one of the two out"
        raise ApiError("invalid", message)
    return design(
        policy,
        1 if request["n"] is None else request["n"],
        mechanism=requested,
        question=question,
        max_seconds=_search_seconds(policy, request),
        lifetime=policy_from_dict(request["lifetime"]),
        max_changes=request.get("max_changes"),
        refresh_every=request.get("refresh_every"),
    )


def create(request: dict[str, Any]) -> dict[str, Any]:
    """Return an audited mechanism for a policy: from its spec, by its name, or chosen by the planner."""
    policy = _policy(request)
    question = _question(request, policy)
    requested = request["mechanism"]
    if request.get("lifetime") is not None:
        mechanism, why = _memoized(request, policy, question), "memoized: permanent answers at the lifetime level"
    elif isinstance(requested, dict):
        mechanism, why = mechanism_from_spec(requested), f"{requested.get('mechanism')}, from the request"
    else:
        seconds = (
            _SEARCH_FRACTION * float(request["seconds"]) if requested == "optimal" else _search_seconds(policy, request)
        )
        n = 1 if request["n"] is None else request["n"]
        choice = plan(policy, n, mechanism=requested, question=question, max_seconds=seconds)
        mechanism, why = choice.best.mechanism, choice.reason
    try:
        check_estimable(mechanism, question)
    except InvalidInput as error:
        what = "frequencies" if question is None else "the answers to the question"
        message = f"{what} cannot be estimated from reports of this mechanism: {in_words(error)}"
        raise ApiError("invalid", message) from None
    certificate = audit(mechanism, policy).raise_if_violated()
    if request.get("waves") and not keeps_answers(mechanism):
        raise ApiError("invalid", "waves need a memoized mechanism, which has two levels; state a lifetime policy")
    return {
        "policy": canonical_json(policy.to_dict()),
        "mechanism": canonical_json(mechanism.spec),
        "certificate": certificate.to_json(),
        "question": None if question is None else canonical_json(question.to_dict()),
        "why": why,
        **_odds(mechanism),
    }


def estimated(request: dict[str, Any]) -> str:
    """Return the document of an estimate."""
    mechanism = _cached_mechanism(request["mechanism"])
    return cached_estimate(mechanism, Aggregate.from_json(request["counts"]), request["method"]).decode()


#: The mechanism of the last estimate, because live results are estimated again and again.
_cached_mechanism = functools.lru_cache(maxsize=1)(mechanism_from_spec)

_JOBS = {"check": check, "plan": plan_rows, "create": create, "estimate": estimated, "compare": compared}


def _limit_memory(most_bytes: int) -> None:
    """Limit the memory of this process on Linux; larger allocations then raise MemoryError."""
    with contextlib.suppress(ImportError, ValueError):  # other systems lack the limit, or the present one is lower
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))


def _handle(request: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a request: a result, an error of the request, or an internal error."""
    try:
        return {"result": finite(_JOBS[request["job"]](request))}
    except (SfumatoError, ApiError) as error:
        return {"error": str(error)}
    except RecursionError:
        return {"error": "the policy or the mechanism is nested too deeply; flatten the document"}
    except MemoryError:
        raise  # _run ends the process
    except Exception:
        LOG.exception("internal error in the planner", extra={"fields": {"job": request["job"]}})
        return {"fault": "internal error of the collector; its administrator finds details in the log"}


def _run(most_bytes: int) -> None:
    """Answer requests from standard input until it ends or memory runs out."""
    to_standard_error()
    _limit_memory(most_bytes)
    with contextlib.suppress(MemoryError):  # end the process; the next one starts with free memory
        for line in sys.stdin:
            print(json.dumps(_handle(json.loads(line)), default=str), flush=True)


if __name__ == "__main__":
    _run(int(sys.argv[1]))
