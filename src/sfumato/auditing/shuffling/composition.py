"""Central levels of several batches together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato._core import ZERO, Epsilon, EpsilonLike, checked_type, composed_delta, quantity, read_list, rounded_up
from sfumato.auditing.shuffling.deltas import checked_delta, delta_float
from sfumato.auditing.shuffling.result import Amplification
from sfumato.errors import Description, InvalidInput

__all__ = ["BatchComposition", "compose_batches"]


@dataclass(frozen=True, repr=False)
class BatchComposition:
    """Central level of several batches in which one person takes part, from :func:`compose_batches`.

    Parameters
    ----------
    epsilon
        Certified upper bound on the central level ε of all batches and linked reports together.
    delta
        The probability δ of the statement, rounded up if it has too many digits for a float.
    batches
        Number of batches.
    linked
        Level that reports with a known sender add.
    rule
        Rule that gave the bound: ``"basic"`` adds the levels, ``"optimal"`` is the theorem of Kairouz et al. (2015).

    Examples
    --------
    >>> from sfumato.auditing import BatchComposition
    >>> BatchComposition(Epsilon("0.5"), 1e-5, 10, Epsilon(0), "basic")
    <BatchComposition ε ≤ 0.5 at δ = 1e-05, 10 batches, rule basic>
    """

    epsilon: Epsilon
    delta: float
    batches: int
    linked: Epsilon
    rule: str

    def __repr__(self) -> str:
        linked = "" if self.linked == ZERO else f", {rounded_up(self.linked.upper_float(), 5)} of it for linked reports"
        batches = quantity(self.batches, "batch", "batches")
        level = f"ε ≤ {rounded_up(self.epsilon.upper_float(), 5)} at δ = {rounded_up(self.delta, 6)}"
        return f"<BatchComposition {level}, {batches}{linked}, rule {self.rule}>"


def compose_batches(
    batches: Sequence[Amplification], *, delta: Any = None, linked: Sequence[EpsilonLike] = ()
) -> BatchComposition:
    """Return the central level of several batches, in each of which a person sends one independent report.

    The value of the person may differ from batch to batch. Within each batch, an observer does not know which report is
    the person's.

    Parameters
    ----------
    batches
        The levels of the batches, from :func:`amplify`.
    delta
        The probability δ of the result, at least the sum of those of the batches, which is the default. A larger δ
        allows a smaller ε.
    linked
        Levels of further reports whose sender an observer can recognize: the local levels of reports with an identity
        and of resent reports, and the lifetime level of all reports of a memoized mechanism. They are not amplified.

    Returns
    -------
    BatchComposition
        The certified level, by the rule that gives the smaller one.

    Raises
    ------
    InvalidInput
        If δ is smaller than the sum, if the sum is 1 or more, or if a batch holds only for a single report of each
        person.

    Notes
    -----
    The basic rule adds all ε and all δ. It holds for each direction of a pair separately. If all protected pairs are
    protected in both directions, the theorem of Kairouz, Oh and Viswanath (2015, Theorem 3.3) applies to the greatest ε
    and δ of the batches, and is evaluated in interval arithmetic.

    Examples
    --------
    >>> import sfumato as sf
    >>> policy = sf.Uniform(sf.Domain.range(10), 4)
    >>> batch = sf.amplify(sf.mechanisms.RandomizedResponse(policy.domain, 4), policy, 100_000, "1e-8")
    >>> weekly = compose_batches([batch] * 52, delta="1e-6")
    >>> round(float(batch.epsilon) * 52, 2), round(float(weekly.epsilon), 2), weekly.rule
    (7.3, 5.06, 'optimal')
    """
    results = read_list("compose_batches", "batches", "be a list of Amplification", batches)
    levels = read_list("compose_batches", "linked", "be a list of levels", linked)
    for result in results:
        checked_type("compose_batches", "batches", result, Amplification)
        if result.once and len(results) + len(levels) > 1:
            hint = (
                "Its reports share a random choice. Leave the batch out, and pass the level of all reports of a "
                "person, such as the lifetime level of a memoized mechanism, as linked=."
            )
            got = Description("a batch that was computed with once=True")
            raise InvalidInput("compose_batches", "batches", "have independent reports", got, hint=hint)
    extra = sum((Epsilon(level, subject="compose_batches", parameter="linked") for level in levels), ZERO)
    deltas = [result.exact_delta for result in results]
    least = sum(deltas, Fraction(0))
    if least >= 1:
        hint = "Compute the batches with a smaller delta; at δ = 1 no level is promised."
        must = "have probabilities δ whose sum is below 1"
        raise InvalidInput("compose_batches", "batches", must, float(least), hint=hint)
    total = least if delta is None else checked_delta("compose_batches", delta)
    if total < least:
        must = f"be at least {float(least):g}, the sum over the batches"
        raise InvalidInput("compose_batches", "delta", must, float(total))
    basic = sum((result.epsilon for result in results), ZERO)
    best, rule = basic, "basic"
    if len(results) > 1 and all(result.mutual for result in results):
        level, each = max(result.epsilon for result in results), max(deltas)
        count = len(results)
        for saved in range(count // 2, 0, -1):
            candidate = level * (count - 2 * saved)
            if candidate < best and composed_delta(level, each, count, saved) <= total:
                best, rule = candidate, "optimal"
                break
    return BatchComposition(best + extra, delta_float(total), len(results), extra, rule)
