"""Memoized mechanisms: a permanent answer that a device keeps, and a new randomization of it for every report."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, Epsilon, Floats, checked_integer, checked_type, is_number
from sfumato.domain import Domain
from sfumato.errors import Description, InvalidInput, NoAnswer, NoMechanism, UnknownSpec
from sfumato.mechanisms.base import Finished, Mechanism, surrogate_of
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.memoized.forms import Form, ResponseForm
from sfumato.mechanisms.memoized.instantaneous import InstantaneousResponse, TableResponse
from sfumato.mechanisms.memoized.tables import memoized_tables
from sfumato.mechanisms.provenance import is_library_mechanism
from sfumato.mechanisms.registry import class_named, memory_form_for
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import Policy, Uniform, implies, on_pairs, policy_from_dict

__all__ = ["MemoizedMechanism", "check_lifetime", "memoized_variants", "permanent_pair"]

#: Greatest number of changes or waves that a spec may state.
_MOST_CHANGES = 2**31 - 1


class MemoizedMechanism(Mechanism):
    """Mechanism for repeated questions: a permanent answer per value, and a new report about it in every wave.

    A device draws a *permanent answer* once per value and keeps it. Each report is drawn from the permanent answer,
    with new randomness. So two levels hold: one for a single report, and a weaker one for any number of reports about
    an unchanged value, which reveal at most the permanent answer. :func:`design` with ``lifetime=`` builds an instance.

    As a mechanism, it describes one report of a person whose permanent answer is new. Its law is exactly that of
    ``single``, so estimates and errors are those of ``single``.

    Parameters
    ----------
    single
        Mechanism whose law one report has.
    permanent
        Mechanism that draws permanent answers. It must have the class and the sets of ``single``, at levels that are at
        least as large. The sets of subset selection may be smaller than those of ``single``. For tables, ``single``
        must be ``permanent`` mixed with a row that all values share.
    lifetime
        Policy that all reports about one unchanged value obey together. An audit checks it, too.
    max_changes
        Greatest number of further permanent answers that a device draws for one person, because of changed values or of
        the schedule. After that the device keeps answering from its memory. By default there is no limit.
    refresh_every
        Number of waves after which every device draws a new permanent answer, whether or not the value has changed. The
        times of changes are then hidden too. By default, a device draws a new permanent answer for each new value.
    response
        For tables, a channel from permanent answers to reports, as a table whose values are the permanent answers.
        ``single`` must be ``permanent`` times this table. By default, a report is the permanent answer or a blank one.

    Attributes
    ----------
    instantaneous : InstantaneousResponse
        Channel from permanent answers to reports.

    Raises
    ------
    InvalidInput
        If the two mechanisms do not fit together, or a parameter is out of range.

    Notes
    -----
    For a mixture with probability γ of a forced report, let γ_first and γ_lifetime belong to the two levels. A report
    is the permanent answer with probability ρ = γ_first/γ_lifetime, and otherwise uniform. The report is then forced
    with probability ρ·γ_lifetime = γ_first, which is the law of ``single``. The same holds for every part of a
    mechanism for sensitive values or for blocks. In subset selection, the permanent set has the best size for the
    lifetime level, and with probability ρ a report is a uniform set that contains it. The proof is in
    ``docs/proofs/memoized.md``. The method goes back to RAPPOR (Erlingsson, Pihur and Korolova 2014), whose two
    randomizations have other laws.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["none", "flu", "hiv"])
    >>> first, lifetime = sf.Uniform(domain, 1), sf.Uniform(domain, 2)
    >>> mechanism = sf.design(first, lifetime=lifetime, max_changes=2)
    >>> sf.audit(mechanism, first).holds, sf.audit(mechanism.permanent, lifetime).holds
    (True, True)
    >>> mechanism.lifetime_policy(changes=1)
    Uniform(Domain(['none', 'flu', 'hiv']), epsilon='4')
    """

    name = "memoized"

    def __init__(
        self,
        single: Mechanism,
        permanent: Mechanism,
        lifetime: Policy,
        *,
        max_changes: int | None = None,
        refresh_every: int | None = None,
        response: TableMechanism | None = None,
    ) -> None:
        subject = "MemoizedMechanism"
        checked_type(subject, "single", single, Mechanism)
        checked_type(subject, "permanent", permanent, Mechanism)
        checked_type(subject, "lifetime", lifetime, Policy)
        form = memory_form_for(permanent)
        if response is not None:
            checked_type(subject, "response", response, TableMechanism)
            form = ResponseForm(response)
        if form is None or type(single) is not type(permanent):
            must = "be of the same class as permanent: a mixture, a mechanism for sensitive values or blocks, a table"
            hint = "Call sfumato.design(policy, lifetime=...), which finds a suitable mechanism."
            raise InvalidInput(subject, "single", must, single, hint=hint)
        if lifetime.domain != single.domain:
            raise InvalidInput(subject, "lifetime", "have the mechanism's domain", lifetime.domain)
        form.check(single, permanent)
        self.domain = single.domain
        self.single, self.permanent, self.lifetime = single, permanent, lifetime
        limits = {"max_changes": (max_changes, 0), "refresh_every": (refresh_every, 1)}
        self.max_changes, self.refresh_every = (
            None if number is None else checked_integer(subject, parameter, number, least, _MOST_CHANGES)
            for parameter, (number, least) in limits.items()
        )
        self.form: Form[Any] = form
        self._response = response
        if response is None:
            keep, blank = form.keep(single, permanent), form.blank(single, permanent)
            self.instantaneous = InstantaneousResponse(permanent, blank, keep, form)
        else:
            self.instantaneous = TableResponse(permanent, response, form)

    @classmethod
    def for_policies(
        cls,
        single: Mechanism,
        policy: Policy,
        lifetime: Policy,
        *,
        max_changes: int | None = None,
        refresh_every: int | None = None,
    ) -> MemoizedMechanism:
        """Build the memoized form of a mechanism: the same law of one report, with permanent answers.

        Parameters
        ----------
        single
            Mechanism that obeys ``policy``, such as a result of :func:`design`.
        policy
            Policy of one report.
        lifetime
            Policy of all reports about one unchanged value; ``policy`` must imply it.
        max_changes
            Greatest number of further permanent answers of one person.
        refresh_every
            Number of waves after which every device draws a new permanent answer.

        Returns
        -------
        MemoizedMechanism
            A mechanism whose reports obey ``policy``, and whose permanent answers obey ``lifetime``. A mechanism
            without a closed form becomes a table, whose law differs from that of ``single`` by about a millionth.

        Raises
        ------
        InvalidInput
            If ``policy`` does not imply ``lifetime``, because all reports together reveal at least as much as one.
        NoMechanism
            If the mechanism has no closed form and too many outputs for a table.

        Examples
        --------
        >>> import sfumato as sf
        >>> domain = sf.Domain.range(100)
        >>> single = sf.mechanisms.CyclicDesign(domain, 1)
        >>> form = sf.mechanisms.MemoizedMechanism.for_policies(single, sf.Uniform(domain, 1), sf.Uniform(domain, 4))
        >>> form.risk(1000) == single.risk(1000), form.permanent.epsilon
        (True, Epsilon('4'))
        """
        check_lifetime(policy, lifetime)
        pair = permanent_pair(single, policy, lifetime)
        if pair is None:
            raise NoMechanism(
                f"{single.name} over {len(single.domain)} values has no memoized form: it is neither a mixture nor a "
                "table of moderate size. Use randomized response or a cyclic design for this policy."
            )
        return cls(*pair, lifetime, max_changes=max_changes, refresh_every=refresh_every)

    # -- the sampler: the permanent answer, then the report --------------------------------------------------

    def start(self, x: int) -> Hashable:
        return ("permanent", self.permanent.start(x))

    def step(self, state: Any, draws: Draws) -> Hashable | Finished:
        stage, inner = state
        if stage == "permanent":
            following = self.permanent.step(inner, draws)
            if isinstance(following, Finished):
                return ("report", self.instantaneous.start(following.report))
            return ("permanent", following)
        following = self.instantaneous.step(inner, draws)
        return following if isinstance(following, Finished) else ("report", following)

    def draw_permanent(self, x: int, draws: Draws, *, earlier: int | None = None) -> int:
        """Draw a permanent answer of one person; the device must store it before it draws a report.

        Parameters
        ----------
        x
            Index of the value in the domain.
        draws
            The source of random decisions.
        earlier
            A permanent answer that the person gave for another value, or None for the first one.

        Returns
        -------
        int
            The permanent answer.
        """
        state: Any = self.form.start(self.permanent, x, earlier)
        while not isinstance(state, Finished):
            state = self.permanent.step(state, draws)
        return state.report

    def memory_key(self, x: int, earlier: int) -> int:
        """Return the number under which a device stores the permanent answer of a value.

        Parameters
        ----------
        x
            Index of the value in the domain.
        earlier
            A permanent answer of the same person, for this value or another one.

        Returns
        -------
        int
            Values with the same number share one permanent answer.
        """
        return self.form.key(self.permanent, x, earlier)

    def representatives(self) -> Iterable[int]:
        return self.permanent.representatives()

    def audit_surrogate(self) -> MemoizedMechanism | None:
        if self._response is not None:
            return None
        single, permanent = surrogate_of(self.single), surrogate_of(self.permanent)
        if single is None or permanent is None or single.domain != permanent.domain:
            return None
        return type(self)(single, permanent, Uniform(single.domain, INFINITE))

    @property
    def is_of_library(self) -> bool:
        return super().is_of_library and is_library_mechanism(self.single) and is_library_mechanism(self.permanent)

    # -- the law of one report -------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return self.single.outputs

    def reports(self) -> Iterable[int]:
        return self.single.reports()

    def probability(self, report: int, x: int) -> Fraction:
        return self.single.probability(report, x)

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        return self.single.worst_columns(policy)

    def classical_epsilon(self) -> Epsilon | None:
        return self.single.classical_epsilon()

    def guess_probability(self) -> Fraction:
        return self.single.guess_probability()

    # -- repeated reports --------------------------------------------------------------------------------------

    def keep_probability(self, x: int) -> Fraction:
        """Return the probability ρ that a report of a value is its permanent answer because it was not replaced.

        Parameters
        ----------
        x
            Index of the value in the domain.

        Returns
        -------
        Fraction
            The probability ρ. It is the same for all values, except under policies on blocks. It is 0 if a response
            table replaces every answer.
        """
        if not self.instantaneous.odds:
            return Fraction(0)
        return Fraction(*self.instantaneous.odds[self.form.part_of(self.permanent, x)])

    def joint_probability(self, reports: Sequence[int], x: int) -> Fraction:
        """Return the exact probability of several reports about one permanent answer.

        Parameters
        ----------
        reports
            One report per wave, as integers.
        x
            Index of the value, the same in all waves.

        Returns
        -------
        Fraction
            Σ_z P(z|x)·Π_t R(y_t|z) over all permanent answers z, with the law P of the permanent answer and the
            instantaneous response R.

        Examples
        --------
        >>> import sfumato as sf
        >>> domain = sf.Domain(["no", "yes"])
        >>> mechanism = sf.design(sf.Uniform(domain, "ln 3"), lifetime=sf.Uniform(domain, "ln 7"))
        >>> mechanism.joint_probability([0, 0], 0), mechanism.probability(0, 0) ** 2
        (Fraction(11, 18), Fraction(9, 16))
        """
        keep = self.keep_probability(x)
        blank = self.instantaneous.blank
        parted = bool(self.instantaneous.odds)
        rest = [(1 - keep) * blank.probability(report, x) for report in reports] if parted else []
        return self.form.joint_probability(self.permanent, blank, reports, x, keep, rest)

    @property
    def most_answers(self) -> int | None:
        """Greatest number of permanent answers that a device draws for one person, or None if there is no limit.

        It is at most the number of values or, with :class:`LocalHashing`, the number of buckets.
        """
        limit = None if self.max_changes is None else self.max_changes + 1
        if self.refresh_every is not None:
            return limit
        most = self.form.most_answers(self.permanent)
        return most if limit is None else min(limit, most)

    @property
    def capacity(self) -> int | None:
        """Number of answers at which a memory is full although a value may need another one, or None if it never is."""
        limit = None if self.max_changes is None else self.max_changes + 1
        never_full = (
            self.refresh_every is None and limit is not None and limit >= self.form.most_answers(self.permanent)
        )
        return None if never_full else limit

    def answers_for(self, changes: int) -> int:
        """Return the greatest number of permanent answers of a person whose value changes a number of times.

        Parameters
        ----------
        changes
            The number of changes; with ``refresh_every``, the number of times that the schedule drew a new answer.

        Returns
        -------
        int
            ``changes`` + 1, but at most the number of values and at most ``max_changes`` + 1.
        """
        changes = checked_integer("MemoizedMechanism", "changes", changes, 0, _MOST_CHANGES)
        return changes + 1 if self.most_answers is None else min(changes + 1, self.most_answers)

    def lifetime_policy(self, changes: int | None = None) -> Policy:
        """Return the policy that all reports of one person obey together, as a function of the number of changes.

        Parameters
        ----------
        changes
            The number of changes of the value. By default, the greatest number of further permanent answers, which
            ``max_changes`` or the number of values limits.

        Returns
        -------
        Policy
            The lifetime policy, composed with itself once per further permanent answer. It compares people whose
            values change, and return to earlier values, at the same times. With :class:`LocalHashing`, their *buckets*
            must change and return at the same times, which depends on the hash function. With ``refresh_every``, it
            compares all people.

        Raises
        ------
        InvalidInput
            If neither ``changes`` nor ``max_changes`` limits the number of answers on a schedule.
        CannotCompose
            If the lifetime policy does not compose with itself.

        Examples
        --------
        >>> import sfumato as sf
        >>> domain = sf.Domain(["none", "flu", "hiv"])
        >>> policy, lifetime = (sf.HighLow(domain, ["hiv"], epsilon) for epsilon in ("0.5", 1))
        >>> mechanism = sf.design(policy, lifetime=lifetime)
        >>> mechanism.lifetime_policy(changes=1).epsilon
        Epsilon('2')
        """
        answers = self.most_answers if changes is None else self.answers_for(changes)
        if answers is None:
            hint = "Pass changes, or set max_changes when you design the mechanism."
            raise InvalidInput("lifetime_policy", "changes", "be a number on an unlimited schedule", None, hint=hint)
        if on_pairs(self.lifetime) is None:
            # Levels under a prior grow least if one answer is added at a time.
            return functools.reduce(lambda total, each: total.compose(each), [self.lifetime] * answers)
        # Doubling takes few compositions, also if every value of a large domain may have an answer.
        total: Policy | None = None
        power, left = self.lifetime, answers
        while left:
            if left & 1:
                total = power if total is None else total.compose(power)
            left >>= 1
            power = power.compose(power) if left else power
        assert total is not None
        return total

    def effective_values(self, values: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the values about which devices report, which differ from the true ones after the last change.

        A device whose memory is full keeps reporting about the last value that has a permanent answer. On a schedule,
        it reports about the value at the last refresh. The bias of an estimate in a wave is the difference between the
        frequencies of these values and of the true ones.

        Parameters
        ----------
        values
            Indices of the true values, shape (people, waves); wave 0 is the first.

        Returns
        -------
        ndarray
            Indices of the values that the reports are about, of the same shape.

        Raises
        ------
        InvalidInput
            If the values do not have two axes, or are not indices of the domain. Also for local hashing with a small
            ``max_changes``, where the values depend on the hash function of each person.

        Examples
        --------
        >>> import sfumato as sf
        >>> domain = sf.Domain(["none", "flu", "hiv"])
        >>> mechanism = sf.design(sf.Uniform(domain, 1), lifetime=sf.Uniform(domain, 2), max_changes=1)
        >>> mechanism.effective_values([[0, 1, 1, 2, 0]]).tolist()
        [[0, 1, 1, 1, 0]]
        """
        indices = np.asarray(values)
        is_integer = indices.dtype.kind in "iu" or not indices.size
        if indices.ndim != 2 or not (is_integer and np.isin(indices, np.arange(len(self.domain))).all()):
            must = f"have shape (people, waves), with integers from 0 to {len(self.domain) - 1}"
            got = Description(f"shape {indices.shape} and type {indices.dtype}")
            raise InvalidInput("effective_values", "values", must, got)
        true = indices.astype(np.int64)
        most = self.capacity
        result = true.copy()
        if self.refresh_every is not None:
            epochs = np.arange(true.shape[1]) // self.refresh_every
            return true[:, (epochs if most is None else np.minimum(epochs, most - 1)) * self.refresh_every]
        if most is None or most >= true.shape[1]:
            return result
        if self.form.shares_answers:
            must = "have max_changes of at least the number of buckets minus 1, because each person has other buckets"
            raise InvalidInput("effective_values", "the mechanism", must, self.max_changes)
        known = np.full((len(true), most), -1, dtype=np.int64)
        count = np.zeros(len(true), dtype=np.int64)
        for wave in range(true.shape[1]):
            is_known = (known == true[:, wave, None]).any(axis=1)
            added = np.flatnonzero(~is_known & (count < most))
            known[added, count[added]] = true[added, wave]
            count[added] += 1
            is_known[added] = True
            if wave:
                result[:, wave] = np.where(is_known, true[:, wave], result[:, wave - 1])
        return result

    def stale_share(self, waves: int, change_rate: float) -> Floats:
        """Return the expected share of people whose device reports about an earlier value, for each wave.

        The share bounds the bias: no frequency of a wave is wrong by more than the share in expectation. The model
        assumes that each person changes to a value that they never had, independently in every wave. People who return
        to earlier values have a smaller share, because the device knows these values.

        Parameters
        ----------
        waves
            The number of waves.
        change_rate
            Probability that a person's value changes from one wave to the next.

        Returns
        -------
        ndarray
            One share per wave, starting with 0 for the first wave.

        Raises
        ------
        InvalidInput
            If the rate is not between 0 and 1, or the number of waves is negative.

        Examples
        --------
        >>> import sfumato as sf
        >>> domain = sf.Domain.range(50)
        >>> mechanism = sf.design(sf.Uniform(domain, 1), lifetime=sf.Uniform(domain, 2), max_changes=2)
        >>> mechanism.stale_share(5, 0.1).round(4).tolist()
        [0.0, 0.0, 0.0, 0.001, 0.0037]
        """
        count = checked_integer("stale_share", "waves", waves, 0, _MOST_CHANGES)
        if not (is_number(change_rate) and 0 <= change_rate <= 1):
            raise InvalidInput("stale_share", "change_rate", "lie between 0 and 1", change_rate)
        most = self.capacity
        numbers = np.arange(count)
        if self.refresh_every is not None:
            epochs = numbers // self.refresh_every
            first = (epochs if most is None else np.minimum(epochs, most - 1)) * self.refresh_every
            return np.asarray(1 - (1 - change_rate) ** (numbers - first))
        # A memory of m answers is full after m - 1 changes; one more change makes it stale.
        exact = np.zeros(0 if most is None else min(most, count + 1))
        shares = []
        for wave in range(count):
            if wave == 0:
                exact[:1] = 1.0
            else:
                exact = exact * (1 - change_rate) + np.concatenate([[0.0], exact[:-1]]) * change_rate
            shares.append(0.0 if most is None else max(1 - float(exact.sum()), 0.0))
        return np.array(shares)

    # -- the spec ----------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        return {
            "mechanism": self.single.name,
            "single": self.single.parameters(),
            "permanent": self.permanent.parameters(),
            "keep": [[str(numerator), str(denominator)] for numerator, denominator in self.instantaneous.odds],
            "lifetime": self.lifetime.to_dict()["policy"],
            "max_changes": self.max_changes,
            "refresh_every": self.refresh_every,
            **({} if self._response is None else {"response": self._response.parameters()}),
        }

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> MemoizedMechanism:
        settings = dict(parameters)
        name, keep = settings.pop("mechanism"), settings.pop("keep")
        kind = class_named(name)
        if kind is None or kind is cls:
            raise UnknownSpec("MemoizedMechanism", "mechanism", "be the name of a mechanism that can be memoized", name)
        parts = [settings.pop(key) for key in ("single", "permanent")]
        response = settings.pop("response", None)
        for part in (*parts, {} if response is None else response):
            if not isinstance(part, dict):
                raise InvalidInput("MemoizedMechanism", "single, permanent and response", "be JSON objects", part)
        if response is not None:
            answers = Domain.range(max(len(response.get("weights", ())), 1))
            settings["response"] = TableMechanism.from_parameters(answers, dict(response))
        single, permanent = (kind.from_parameters(domain, dict(part)) for part in parts)
        lifetime = policy_from_dict({"domain": domain.to_dict(), "policy": settings.pop("lifetime")})
        mechanism = cls(single, permanent, lifetime, **settings)
        if keep != mechanism.parameters()["keep"]:
            must = f"be {mechanism.parameters()['keep']}, which the two mechanisms determine"
            raise InvalidInput("MemoizedMechanism", "keep", must, keep)
        return mechanism


def permanent_pair(single: Mechanism, policy: Policy, lifetime: Policy) -> tuple[Mechanism, Mechanism] | None:
    """Return mechanisms of one report and of permanent answers, or None if the mechanism has no memoized form."""
    form = memory_form_for(single)
    permanent = None if form is None else form.permanent_for(single, lifetime)
    return memoized_tables(single, policy, lifetime) if permanent is None else (single, permanent)


def memoized_variants(single: Mechanism, lifetime: Policy) -> Iterable[Mechanism]:
    """Return mechanisms at the level of one report that may suit means over many waves better."""
    form = memory_form_for(single)
    return () if form is None else form.variants(single, lifetime)


def check_lifetime(policy: Policy, lifetime: Policy) -> None:
    """Raise InvalidInput if one report may reveal more than the lifetime policy allows."""
    checked_type("design", "lifetime", lifetime, Policy)
    try:
        is_weaker = policy.domain == lifetime.domain and implies(policy, lifetime)
    except NoAnswer:
        return  # the audits of both mechanisms decide
    if not is_weaker:
        must = "be implied by the policy of one report, because all reports reveal at least as much as one"
        hint = "Use the same kind of policy for both, with levels that are at least as large for the lifetime."
        raise InvalidInput("design", "lifetime", must, lifetime, hint=hint)
