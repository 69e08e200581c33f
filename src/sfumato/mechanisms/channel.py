"""Exact channels of small mechanisms, with post-processing, composition and inference.

The three properties of context-aware LDP (Acharya et al. 2020, Props. 1-3) are methods, so that they can be computed
and checked:

- ``then`` preserves every policy;
- ``and_then`` adds two policies;
- ``posterior`` changes the odds of two values by at most what the policy allows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato._core import count_text, dot, exact_fraction, information, quantity
from sfumato.domain import Domain, align, align_table, checked_domain, unaligned_table
from sfumato.errors import Description, InvalidInput, LimitExceeded, shown
from sfumato.policy import UNCONSTRAINED, Policy, TightestConstraint

__all__ = ["Channel", "check_channel_size"]

#: Maximum number of entries of a channel; each entry is a Fraction, so this bounds memory.
_LARGEST_CHANNEL = 10**6


@dataclass(frozen=True, init=False)
class Channel:
    """Exact table of the probability Q(y|x) of every output y for every value x.

    ``rows[x][y]`` is the probability, as a Fraction, that the value with index x produces ``outputs[y]``. Use
    :meth:`Mechanism.channel` to get the channel of a mechanism.

    Parameters
    ----------
    domain
        The values.
    rows
        A row of probabilities per value; each row must sum to exactly one. Numbers may be integers, fractions, strings
        such as ``"1/3"``, or floats, which are read as their shortest decimal. Rows are in domain order, or have labels
        (a DataFrame, a mapping from values to rows) and are aligned by them.
    outputs
        Names of the outputs, one per column; 0, 1, 2, … by default.

    Notes
    -----
    A policy constrains the likelihoods (Q(y|x) for all x) of each output y separately. They form a convex cone, so a
    channel obeys the policy if and only if every column of ``rows`` lies in the cone.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["no", "yes"])
    >>> channel = sf.Channel(domain, [["3/4", "1/4"], ["1/4", "3/4"]])
    >>> channel.obeys(sf.Uniform(domain, "ln 3"))
    True
    >>> channel.posterior(["9/10", "1/10"], 1)
    (Fraction(3, 4), Fraction(1, 4))
    """

    domain: Domain
    outputs: tuple[Any, ...]
    rows: tuple[tuple[Fraction, ...], ...]

    def __init__(
        self, domain: Domain, rows: Sequence[Sequence[Any]], outputs: Sequence[Hashable] | None = None
    ) -> None:
        checked_domain("Channel", domain)
        exact = _stochastic(
            "Channel", align_table(domain, None, rows, "Channel", "rows"), [repr(label) for label in domain]
        )
        width = len(exact[0])
        names = tuple(range(width) if outputs is None else outputs)
        if len(names) != width or len(set(names)) != width:
            raise InvalidInput("Channel", "outputs", f"be {width} different names, one per column", names)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "outputs", names)
        object.__setattr__(self, "rows", exact)

    def column(self, output: Hashable) -> tuple[Fraction, ...]:
        """Return the probability of one output for every value.

        Parameters
        ----------
        output
            One of ``outputs``.

        Returns
        -------
        tuple of Fraction
            The likelihoods Q(output | x) of all values x, in domain order.

        Raises
        ------
        InvalidInput
            If the channel has no such output.
        """
        if output not in self.outputs:
            known = ", ".join(map(repr, self.outputs[:10])) + (", …" if len(self.outputs) > 10 else "")
            raise InvalidInput("Channel", "output", f"be one of its outputs ({known})", output)
        y = self.outputs.index(output)
        return tuple(row[y] for row in self.rows)

    def worst(self, policy: Policy) -> TightestConstraint:
        """Return the constraint of a policy that some output comes closest to violating.

        Parameters
        ----------
        policy
            A policy over the same domain.

        Returns
        -------
        TightestConstraint
            The constraint, and whether the output violates it; computed exactly.

        Raises
        ------
        InvalidInput
            If the policy is over another domain.
        """
        if policy.domain != self.domain:
            raise InvalidInput("Channel", "policy", "be over the same domain", policy.domain)
        constraints = (policy.worst(column) for column in zip(*self.rows, strict=True))
        return max(
            (worst for worst in constraints if worst.names is not None), key=lambda w: w.rank, default=UNCONSTRAINED
        )

    def obeys(self, policy: Policy) -> bool:
        """Return whether the probabilities of every output satisfy all constraints of a policy.

        Parameters
        ----------
        policy
            A policy over the same domain.

        Returns
        -------
        bool
            True if the channel obeys the policy, computed exactly.
        """
        return not self.worst(policy).violated

    def then(self, matrix: Sequence[Sequence[Any]]) -> Channel:
        """Return the channel after post-processing: a random map of its outputs that does not see the value.

        Parameters
        ----------
        matrix
            ``matrix[y][z]`` is the probability that output y is mapped to the new output z. Rows are in the order of
            ``outputs``, and each row must sum to exactly one.

        Returns
        -------
        Channel
            The channel of the new outputs, which are named 0, 1, 2, … by the columns of ``matrix``.

        Raises
        ------
        InvalidInput
            If the matrix has labels, or its rows are not probabilities that sum to one.

        Notes
        -----
        Each new column is a non-negative combination of old columns. A policy is a convex cone of columns, so the new
        channel obeys every policy that this channel obeys (Acharya et al. 2020, Props. 1-3).
        """
        if unaligned_table(matrix, "Channel.then", "matrix") is not matrix:
            hint = "Pass the rows without labels, for example with to_numpy()."
            raise InvalidInput(
                "Channel.then", "matrix", "be rows of numbers in the order of the outputs", matrix, hint=hint
            )
        exact = _stochastic("Channel.then", matrix, [f"output {output!r}" for output in self.outputs])
        columns = list(zip(*exact, strict=True))
        return Channel(self.domain, [[dot(row, column) for column in columns] for row in self.rows])

    def and_then(self, choose: Callable[[Any], Channel]) -> Channel:
        """Return the joint channel of two releases of the same value, of which this channel is the first.

        Parameters
        ----------
        choose
            A function that takes the first output and returns the channel of the second release.

        Returns
        -------
        Channel
            The joint channel; its outputs are pairs (first output, second output).

        Raises
        ------
        InvalidInput
            If a second channel is over another domain.
        LimitExceeded
            If the joint channel has more than 1,000,000 entries.

        Notes
        -----
        The probabilities of the two outputs multiply, so the levels ε of two policies on pairs of values add. See
        ``policy.compose(other)`` for the policy that the joint channel obeys.
        """
        names: list[Hashable] = []
        columns: list[list[Fraction]] = []
        for output, first in zip(self.outputs, zip(*self.rows, strict=True), strict=True):
            following = choose(output)
            if following.domain != self.domain:
                raise InvalidInput(
                    "and_then",
                    f"the channel that choose({output!r}) returns",
                    "be over the same domain",
                    following.domain,
                )
            for after, second in zip(following.outputs, zip(*following.rows, strict=True), strict=True):
                names.append((output, after))
                columns.append([a * b for a, b in zip(first, second, strict=True)])
        check_channel_size(len(self.domain), len(columns), "the joint channel")
        return Channel(self.domain, list(zip(*columns, strict=True)), names)

    def posterior(self, prior: Sequence[Any], output: Hashable) -> tuple[Fraction, ...]:
        """Return the posterior distribution of the value given one output.

        Parameters
        ----------
        prior
            The probability of each value before the output, in domain order or with labels; exactly one in total.
            Numbers are read as in ``rows``.
        output
            One of ``outputs``.

        Returns
        -------
        tuple of Fraction
            An exact probability per value, in domain order.

        Raises
        ------
        InvalidInput
            If the output is unknown or has probability zero under the prior.
        """
        before = self._prior("posterior", prior)
        joint = [p * likelihood for p, likelihood in zip(before, self.column(output), strict=True)]
        total = sum(joint, Fraction(0))
        if total == 0:
            hint = "Give a positive prior to a value that can produce this output."
            raise InvalidInput("posterior", "output", "be possible under the prior", output, hint=hint)
        return tuple(p / total for p in joint)

    def _prior(self, subject: str, probabilities: Any) -> tuple[Fraction, ...]:
        """Return the prior as exact probabilities in domain order."""
        prior = align(self.domain, probabilities, subject, "prior")
        if len(prior) != len(self.domain):
            must = f"have {quantity(len(self.domain), 'entry', 'entries')}, one per value of the domain"
            raise InvalidInput(subject, "prior", must, Description(quantity(len(prior), "entry", "entries")))
        (exact,) = _stochastic(subject, [prior], ["the prior"])
        return exact

    def mutual_information(self, prior: Sequence[Any]) -> float:
        """Return the mutual information I(X;Y) in nats between the value X and the output Y.

        Parameters
        ----------
        prior
            The probability of each value: a sequence in domain order, or a mapping or pandas Series with the values as
            labels. The sum must be exactly one; a float counts as its shortest decimal, and thirds can be written as
            strings, such as ``"1/3"``.

        Returns
        -------
        float
            The mutual information in nats, to double precision.

        Notes
        -----
        A channel that obeys the policy ``Prior(domain, prior, epsilon)`` has I(X;Y) ≤ ε·tanh(ε/2); see
        :meth:`Prior.information_bound`.
        """
        before = self._prior("mutual_information", prior)
        return information(
            (p * t, t / average)
            for column in zip(*self.rows, strict=True)
            for average in [dot(before, column)]
            for p, t in zip(before, column, strict=True)
            if p and t
        )


def check_channel_size(rows: int, columns: int, subject: str) -> None:
    """Raise LimitExceeded if a channel has too many entries to be enumerated."""
    if rows * columns > _LARGEST_CHANNEL:
        raise LimitExceeded(
            f"{subject} has {rows} values and {count_text(columns)} outputs, but a channel may have at most "
            f"{_LARGEST_CHANNEL:,} entries (values times outputs). Select fewer values, or use a mechanism with fewer "
            "outputs."
        )


def _stochastic(subject: str, rows: Sequence[Sequence[Any]], names: Sequence[str]) -> tuple[tuple[Fraction, ...], ...]:
    """Return rows of exact probabilities that each sum to one; errors name row i as ``names[i]``."""
    if len(rows) != len(names):
        raise InvalidInput(subject, "the number of rows", f"be {len(names)}", len(rows))
    if len({len(row) for row in rows}) != 1 or len(rows[0]) == 0:
        lengths = Description(f"rows of lengths {shown([len(row) for row in rows])}")
        raise InvalidInput(subject, "rows", "have the same length, at least 1", lengths)
    exact = []
    for name, row in zip(names, rows, strict=True):
        try:
            values = tuple(exact_fraction(entry) for entry in row)
        except (TypeError, ValueError, ArithmeticError):
            raise InvalidInput(subject, f"the row of {name}", "hold numbers", list(row)) from None
        if min(values) < 0 or sum(values) != 1:
            hint = 'Write thirds and the like as strings, such as "1/3".' if sum(values) != 1 else None
            must = "be probabilities that sum to exactly one"
            raise InvalidInput(subject, f"the row of {name}", must, list(row), hint=hint)
        exact.append(values)
    return tuple(exact)
