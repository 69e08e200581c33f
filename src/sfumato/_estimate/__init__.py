"""The verb ``estimate``: counts become frequencies with honest errors."""

from __future__ import annotations

import numpy as np

from sfumato._aggregate import Aggregate
from sfumato._estimate.decoders import Decoder, HistogramDecoder, InclusionDecoder, decoder_for
from sfumato._estimate.likelihood import Fit, fit_bits, fit_histogram
from sfumato._estimate.result import Estimate, LinearEstimate
from sfumato._estimate.simplex import project_to_simplex
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism

__all__ = ["Estimate", "LinearEstimate", "estimate"]

METHODS = ("unbiased", "simplex", "mle")


def estimate(mechanism: Mechanism, aggregate: Aggregate, method: str = "unbiased") -> Estimate:
    """Estimate how frequent each value is among the people who reported.

    ``unbiased``: right on average, may leave [0, 1]. ``simplex``: the nearest distribution to it. ``mle``: maximum
    likelihood (EM for indices; composite likelihood of the bit counts for bitmaps); at many values with few reports a
    projection is usually closer to the truth. Standard errors and intervals come with all of them.
    """
    if method not in METHODS:
        raise InvalidInput("estimate", "method", f"be one of {', '.join(METHODS)}", method)
    aggregate.check(mechanism)
    if aggregate.n == 0:
        raise InvalidInput("estimate", "the aggregate", "have at least one report", 0)
    decoder = decoder_for(mechanism)
    shares = aggregate.counts / aggregate.n
    unbiased = decoder.frequencies(shares)
    fit: Fit | None = None
    frequencies = unbiased
    if method == "simplex":
        frequencies = project_to_simplex(unbiased)
    elif method == "mle":
        fit = _fit(decoder, shares)
        frequencies = fit.frequencies
    return Estimate(mechanism.domain, aggregate.n, method, frequencies, unbiased, decoder, fit)


def _fit(decoder: Decoder, shares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Fit:
    if isinstance(decoder, HistogramDecoder):
        return fit_histogram(shares, decoder.shares, decoder.pull, decoder.size)
    assert isinstance(decoder, InclusionDecoder)
    return fit_bits(shares, decoder.other, decoder.gap)
