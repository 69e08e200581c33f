"""The error for mechanisms whose reports do not distinguish all values."""

from __future__ import annotations

from sfumato.errors import InvalidInput

__all__ = ["NotIdentifiable"]


class NotIdentifiable(InvalidInput):
    """Error raised if reports do not determine the requested frequencies, so that they have no unbiased estimate.

    At ε = 0, for example, every value has the same output distribution. In general, the frequencies of all values are
    determined if the rows of the matrix Q(y|x) of output probabilities are linearly independent. Otherwise some sums
    Σ_x w_x·frequency_x may still be determined: those whose weights w are combinations of the columns of Q. Callers
    catch this error; only estimators and estimates construct it.

    Parameters
    ----------
    must
        The requirement that the mechanism does not meet, as the words after "must".
    got
        The mechanism, or a description of it.
    hint
        What to do next, as a full sentence.
    """

    def __init__(self, must: str, got: object, *, hint: str = "Use a mechanism with a larger epsilon.") -> None:
        super().__init__("estimate", "the mechanism", must, got, hint=hint)
