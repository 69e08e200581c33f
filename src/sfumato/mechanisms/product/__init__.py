"""The family of products: one mechanism per coordinate of a value, side by side."""

from __future__ import annotations

from sfumato.mechanisms.product.estimator import ProductEstimator
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.registry import Family

__all__ = ["PRODUCT", "ProductMechanism"]

PRODUCT = Family(
    mechanisms=(ProductMechanism,),
    estimator=ProductEstimator,
    kernel="sfumato.mechanisms.product.kernel:build",
    in_browser=True,
)
