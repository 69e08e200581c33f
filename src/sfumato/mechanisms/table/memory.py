"""How tables divide into a permanent answer and a report about it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato._core import Floats
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.memoized.forms import KEEP_BITS, Form, Odds
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import Policy

__all__ = ["TABLE"]


class _TableForm(Form[TableMechanism]):
    """Tables: a row of one report is ρ times the row of the permanent answer, plus a row that all values share."""

    def permanent_for(self, single: TableMechanism, lifetime: Policy) -> TableMechanism | None:  # noqa: ARG002
        return None  # both tables are rounded together; see ``memoized/tables.py``

    def check(self, single: TableMechanism, permanent: TableMechanism) -> None:
        both = (type(single), type(permanent)) == (TableMechanism, TableMechanism)
        if not both or single.domain != permanent.domain or single.weights.shape != permanent.weights.shape:
            must = "be a table with the values and the outputs of the table of one report"
            raise InvalidInput("MemoizedMechanism", "the permanent mechanism", must, permanent)
        blank = self.blank(single, permanent)
        ratio = Fraction(*self.keep(single, permanent)[0])
        mixed = (1 - ratio) * blank.weights.astype(object) + ratio * permanent.weights.astype(object)
        if not np.array_equal(mixed, single.weights.astype(object)):
            must = "be the permanent table mixed with a row that all values share"
            raise InvalidInput("MemoizedMechanism", "the table of one report", must, single)

    def keep(self, single: TableMechanism, permanent: TableMechanism) -> tuple[Odds, ...]:
        # Rows of the permanent table differ by 1/ρ times as much as those of one report.
        difference = permanent.weights - permanent.weights[:1]
        places = np.argwhere(difference)
        if len(places) == 0:
            return ((1, 1),)
        x, y = places[0].tolist()
        ratio = Fraction(int(single.weights[x, y]) - int(single.weights[0, y]), int(difference[x, y]))
        if not 0 <= ratio <= 1 or (1 << KEEP_BITS) % ratio.denominator:
            must = f"be a multiple of 2^-{KEEP_BITS} between 0 and 1"
            raise InvalidInput("MemoizedMechanism", "the probability of the permanent answer", must, Description(ratio))
        return ((int(ratio * (1 << KEEP_BITS)), 1 << KEEP_BITS),)

    def shared_moments(self, single: TableMechanism, permanent: TableMechanism, u: Floats) -> Floats:
        keep = float(Fraction(*self.keep(single, permanent)[0]))
        scores = np.array([single.estimator.output_scores(unit) for unit in np.eye(len(u))])
        blank = self.blank(single, permanent).matrix()[0]
        means = keep * scores + (1 - keep) * (scores @ blank)[:, None]
        return np.asarray(means**2 @ (u @ permanent.matrix()))

    def blank(self, single: TableMechanism, permanent: TableMechanism) -> TableMechanism:
        numerator, denominator = self.keep(single, permanent)[0]
        row = permanent.weights[0].astype(object)
        if numerator < denominator:
            row = (denominator * single.weights[0].astype(object) - numerator * row) / Fraction(denominator - numerator)
        weights = [int(weight) for weight in row]
        if (
            any(weight != exact or weight < 0 for weight, exact in zip(weights, row, strict=True))
            or sum(weights) != TOTAL
        ):
            must = "be the permanent table mixed with a row that all values share"
            raise InvalidInput("MemoizedMechanism", "the table of one report", must, single)
        return TableMechanism(permanent.domain, [weights] * len(permanent.domain))


TABLE = _TableForm()
