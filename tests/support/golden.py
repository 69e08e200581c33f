"""The golden corpus: what the mechanisms of the library do, recorded, and compared with what they do now.

``tests/golden`` has one file per name of a spec and one for plans. A recorded law is a digest by report number, and a
digest of the sorted columns that a renumbering of the reports does not change. Other numbers are recorded to ten
digits. ``tests/golden/changes.toml`` lists deliberate differences with their reasons.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import json
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import sfumato as sf
from sfumato.errors import PolicyViolated, SfumatoError
from sfumato.mechanisms.base import Mechanism
from support import ROOT
from support.golden_cases import CASES
from support.golden_grid import GRID, audited_policies

__all__ = [
    "FIELDS",
    "FOLDER",
    "Change",
    "changes",
    "compared",
    "listed",
    "measured_case",
    "measured_plan",
    "record",
    "recorded",
]

FOLDER = ROOT / "tests" / "golden"
#: Maximum number of entries of a law that is written out, and of values whose intervals are computed.
_MOST_ENTRIES, _MOST_VALUES = 60_000, 100
#: Maximum number of entries of a law that is compared with twelve policies, and of values of an audited mechanism.
_MOST_AUDITED, _MOST_AUDITED_VALUES = 6_000, 10_000
#: Maximum number of values over which a mean is estimated.
_MOST_ESTIMATED = 20_000
#: Number of seeded reports, and of people in estimates from counts that follow the law.
_REPORTS, _PEOPLE = 10_000, 20_000
#: Number of people and probability of central levels, and maximum number of values for which they are computed.
_BATCH, _DELTA, _MOST_AMPLIFIED = 1_000, "1e-6", 4
#: Relative difference at which recorded numbers count as changed; likelihood estimates are iterative.
_TOLERANCE, _ITERATIVE = 1e-7, 1e-4
#: Difference of a number that counts as rounding next to numbers of order one.
_ZERO = 1e-12


def _number(value: Any, digits: int = 10) -> Any:
    """Return a number as it is recorded: at most ten digits; infinite and undefined ones are strings."""
    value = float(value)
    return float(f"{value:.{digits}g}") if math.isfinite(value) else str(value)


def _numbers(array: Any, digits: int = 10) -> Any:
    """Return numbers as they are recorded: all of a few, otherwise their sums and some of them."""
    flat = np.asarray(array, dtype=np.float64).ravel()
    if len(flat) > 16:
        flat = np.array([flat.sum(), (flat**2).sum(), *flat[[0, 1, len(flat) // 2, -1]]])
    return [_number(value, digits) for value in flat]


def _digest(lines: Iterable[str]) -> str:
    """Return the first half of the SHA-256 of lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


def _or_error(compute: Callable[[], Any]) -> Any:
    """Return a result, or the name of the library's error."""
    try:
        return compute()
    except SfumatoError as error:
        return type(error).__name__


@dataclass
class _Case:
    """One mechanism with what several fields need."""

    mechanism: Mechanism

    @functools.cached_property
    def size(self) -> int:
        return len(self.mechanism.domain)

    @functools.cached_property
    def skewed(self) -> list[Fraction]:
        """A distribution with weights 1, 2, 3, …"""
        total = self.size * (self.size + 1) // 2
        return [Fraction(x + 1, total) for x in range(self.size)]

    @functools.cached_property
    def law(self) -> list[tuple[int, tuple[Fraction, ...]]] | None:
        """The reports with their likelihoods, if the law has few entries."""
        if self.size * self.mechanism.outputs > _MOST_ENTRIES:
            return None
        channel = self.mechanism.channel()
        return list(zip(map(int, channel.outputs), zip(*channel.rows, strict=True), strict=True))

    @functools.cached_property
    def seeded(self) -> npt.NDArray[Any]:
        """Reports about all values in turn, from an insecure seeded stream."""
        values = self.mechanism.domain.decode(np.arange(_REPORTS) % self.size)
        return np.asarray(sf.privatize(self.mechanism, values, stream=sf.InsecureSeeded(20)))

    def aggregate(self) -> sf.Aggregate:
        """Return fixed counts: near the law of the skewed distribution, moved by an amount that each column fixes.

        Reports with equal columns have equal counts, so the counts follow a renumbering. A long law has no such counts;
        its reports are the seeded ones.
        """
        if self.law is None:
            return sf.aggregate(self.mechanism, self.seeded)
        reports: list[int] = []
        for report, column in self.law:
            moved = Fraction(int(_digest(map(str, column))[:8], 16), 2**32) + Fraction(1, 2)
            mean = sum((p * likelihood for p, likelihood in zip(self.skewed, column, strict=True)), Fraction(0))
            reports += [report] * math.floor(_PEOPLE * mean * moved)
        form = self.mechanism.report_format
        if not form.shape:
            return sf.aggregate(self.mechanism, np.array(reports, dtype=form.dtype))
        data = b"".join(form.encode(report) for report in reports)
        return sf.aggregate(self.mechanism, np.frombuffer(data, np.uint8).reshape(len(reports), *form.shape))


# -- the fields of a case ----------------------------------------------------------------------------------


def _report(case: _Case) -> Any:
    form, outputs = case.mechanism.report_format, case.mechanism.outputs
    return {"bits": form.bits, "encoding": form.encoding, "outputs": outputs if outputs < 2**53 else f"{outputs:.10e}"}


def _law(case: _Case) -> Any:
    if case.law is None:
        return None
    columns = [",".join(map(str, column)) for _, column in case.law]
    first, column = case.law[0]
    return {
        "by_report": _digest(f"{report}:{text}" for (report, _), text in zip(case.law, columns, strict=True)),
        "sorted": _digest(sorted(columns)),
        "columns": len(columns),
        "distinct": len(set(columns)),
        "first": [first, *_numbers([float(likelihood) for likelihood in column])],
    }


def _risks(case: _Case) -> Any:
    mechanism, skewed = case.mechanism, [float(p) for p in case.skewed]
    guess = _number(mechanism.guess_probability()) if case.law is not None else None
    values = (mechanism.risk(1), mechanism.worst_risk(1), mechanism.risk(1, skewed))
    return {"uniform_worst_skewed": [_number(value) for value in values], "guess": guess}


def _audits(case: _Case) -> Any:
    """Return for every policy whether it holds, and the exact excess of the tightest rule.

    The certificate of one policy is recorded in words, with its verdict, its numbers and its evidence. The other
    policies are compared with the columns of the law, which takes less time than reading the sampler for each of them.
    """
    if case.size > _MOST_AUDITED_VALUES:
        return None
    policies = audited_policies(case.mechanism.domain)
    results: dict[str, Any] = {"certificate": _or_error(lambda: _certificate(case.mechanism, policies["uniform 1"]))}
    if case.law is not None and len(case.law) * case.size <= _MOST_AUDITED:
        columns = {tuple(column) for _, column in case.law if any(column)}
        for name, policy in policies.items():
            worst = max((policy.worst(column) for column in columns), key=lambda rule: rule.rank)
            results[name] = [not worst.violated, _number(worst.excess, 12)]
    return results


def _certificate(mechanism: Mechanism, policy: sf.Policy) -> Any:
    certificate = sf.audit(mechanism, policy)
    return [certificate.holds, _number(certificate.worst.excess, 12), certificate.coverage, str(certificate)]


def _seeded(case: _Case) -> Any:
    if case.size > 1 and case.mechanism.report_format.shape:
        first = [bytes(row).hex()[:16] for row in case.seeded[:8]]
    else:
        first = [str(report) for report in case.seeded[:8]]
    data = np.ascontiguousarray(case.seeded).astype(case.seeded.dtype.newbyteorder("<")).tobytes()
    return {"digest": hashlib.sha256(data).hexdigest()[:32], "first": " ".join(first)}


def _estimates(case: _Case) -> Any:
    if case.size > _MOST_ESTIMATED:
        return None
    counts = case.aggregate()
    result: dict[str, Any] = {"n": int(counts.n), "counts": _digest(map(str, sorted(counts.counts.tolist())))}
    result["linear"] = _or_error(lambda: _linear(case, counts))
    if case.size <= _MOST_VALUES:
        result["unbiased"] = _or_error(lambda: _unbiased(case, counts))
        for method, digits in (("simplex", 10), ("mle", 5)):
            frequencies = functools.partial(_frequencies, case, counts, method, digits)
            result[method] = _or_error(frequencies)
    return result


def _unbiased(case: _Case, counts: sf.Aggregate) -> Any:
    estimate = sf.estimate(case.mechanism, counts)
    low, high = estimate.interval(0.95)
    parts = {"frequencies": estimate.frequencies, "covariance": estimate.covariance, "low": low, "high": high}
    return {name: _numbers(part) for name, part in parts.items()}


def _frequencies(case: _Case, counts: sf.Aggregate, method: str, digits: int) -> Any:
    return _numbers(sf.estimate(case.mechanism, counts, method).frequencies, digits)


def _linear(case: _Case, counts: sf.Aggregate) -> Any:
    """Return the estimate of a mean over positions, with its error and interval."""
    answer = sf.estimate(case.mechanism, counts).linear(np.arange(case.size, dtype=np.float64))
    return _numbers([answer.value, answer.standard_error, *answer.interval(0.95)])


def _central(case: _Case) -> Any:
    """Return the central level under the first of some policies that the mechanism obeys."""
    if case.size > _MOST_AMPLIFIED:
        return None
    for name, policy in audited_policies(case.mechanism.domain).items():
        if name.startswith(("uniform", "high-low", "blocks")):
            try:
                return [name, *_amplified(case.mechanism, policy)]
            except PolicyViolated:
                continue
            except SfumatoError as error:
                return [name, type(error).__name__]
    return None


def _amplified(mechanism: Mechanism, policy: sf.Policy) -> Any:
    result = sf.amplify(mechanism, policy, _BATCH, _DELTA, once=True)
    return [_number(result.epsilon), _number(result.lower)]


FIELDS: dict[str, Callable[[_Case], Any]] = {
    "report": _report,
    "law": _law,
    "risks": _risks,
    "audits": _audits,
    "seeded": _seeded,
    "estimates": _estimates,
    "central": _central,
}


def measured_case(key: str, fields: Iterable[str] = tuple(FIELDS)) -> dict[str, Any]:
    """Return what a mechanism does now."""
    case = _Case(CASES[key]())
    return {field: FIELDS[field](case) for field in fields}


# -- plans -------------------------------------------------------------------------------------------------


def measured_plan(key: str) -> dict[str, Any]:
    """Return the recommendations for a policy now, for the mean and the worst case, with and without a limit on bits.

    Nothing is searched, because a search depends on time. A row is a name, its value, its risk and its bits.
    """
    results: dict[str, Any] = {}
    for utility in ("estimation", "worst-estimation"):
        for limit in ("short", None):
            results[f"{utility}, {'short' if limit else 'any'}"] = _or_error(
                functools.partial(_plan, key, utility, limit)
            )
    return results


def _plan(key: str, utility: str, limit: Any) -> Any:
    result = sf.plan(GRID[key](), 1, utility=utility, max_bits=limit, max_seconds=0)
    rows = {row.name: [_number(row.value or math.nan), _number(row.risk), row.bits] for row in result.rows}
    return {"best": [result.best.name, *rows[result.best.name]], "rows": rows if limit is None else sorted(rows)}


# -- records -----------------------------------------------------------------------------------------------


def record(name: str, entries: Mapping[str, Any]) -> None:
    """Write the entries of one file."""
    lines = ",\n".join(
        f"{json.dumps(key)}: " + json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
        for key, entry in entries.items()
    )
    (FOLDER / f"{name}.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")


@functools.cache
def recorded(name: str) -> dict[str, Any]:
    """Return the entries of one file."""
    entries: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return entries


@dataclass(frozen=True)
class Change:
    """A difference between the record and the present: where, and both values."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.path}: {_shown(self.before)} -> {_shown(self.after)}{self._relative()}"

    def _relative(self) -> str:
        if isinstance(self.before, float) and isinstance(self.after, (int, float)) and self.before:
            return f" ({self.after / self.before - 1:+.2%})"
        return ""


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}…"


def compared(path: str, before: Any, after: Any, scale: float = 0.0) -> Iterator[Change]:
    """Yield the differences of two entries; numbers differ if they do so by more than rounding.

    A list of numbers has one scale, so that a number near zero may change by the rounding of its neighbours.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*before, *(key for key in after if key not in before)]:
            yield from compared(f"{path}.{key}", before.get(key), after.get(key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        scale = max([abs(x) for x in before if _is_number(x)], default=0.0)
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from compared(f"{path}[{place}]", old, new, scale)
    elif _is_number(before) and _is_number(after):
        tolerance = _ITERATIVE if ".mle" in path else _TOLERANCE
        if abs(before - after) > max(tolerance * max(abs(before), scale), _ZERO):
            yield Change(path, before, after)
    elif before != after:
        yield Change(path, before, after)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@functools.cache
def changes() -> tuple[tuple[str, str], ...]:
    """Return the listed differences: a pattern of paths, and the reason."""
    document = tomllib.loads((FOLDER / "changes.toml").read_text(encoding="utf-8"))
    return tuple((entry["where"], entry["reason"]) for entry in document.get("change", []))


def listed(change: Change, known: Sequence[tuple[str, str]] | None = None) -> str | None:
    """Return the reason that is listed for a difference, or None."""
    entries = changes() if known is None else known
    return next((reason for where, reason in entries if fnmatch.fnmatchcase(change.path, where)), None)
