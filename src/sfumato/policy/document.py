"""Policies as documents: TOML and JSON files that round-trip, with every misspelt key named."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato._core import check_keys, did_you_mean, read_label
from sfumato.domain import Domain
from sfumato.errors import InvalidInput, UnknownSpec, file_error
from sfumato.policy.base import Policy
from sfumato.policy.blocks import Blocks
from sfumato.policy.chi_square import ChiSquare
from sfumato.policy.distributions import Anything, AtLeast, Distributions, Known
from sfumato.policy.high_low import HighLow
from sfumato.policy.metric import Metric
from sfumato.policy.pairwise import Pairwise
from sfumato.policy.prior import Prior
from sfumato.policy.secret import Secret
from sfumato.policy.uniform import Uniform

__all__ = ["load_policy", "policy_from_dict", "save_policy"]

#: For each kind: how to build it, the keys it needs, the keys it may have.
_KINDS: dict[str, tuple[Callable[..., Policy], Sequence[str], Sequence[str]]] = {
    "uniform": (Uniform, ("epsilon",), ()),
    "high-low": (HighLow, ("sensitive", "epsilon"), ()),
    "blocks": (Blocks, ("blocks", "epsilon"), ("across",)),
    "metric": (Metric, ("distance", "epsilon"), ()),
    "pairwise": (Pairwise, ("matrix",), ()),
    "prior": (Prior, ("prior", "epsilon"), ("side",)),
    "secret": (Secret, ("secret", "epsilon", "distributions"), ()),
}


def policy_from_dict(document: Mapping[str, Any], base: Path | None = None) -> Policy:
    """Build the policy that a document describes; ``base`` is the folder of files it names."""
    check_keys(
        "a policy document",
        "the document",
        document,
        required=("domain", "policy"),
        form="a table of keys and values",
    )
    if not isinstance(document["policy"], Mapping):
        raise InvalidInput("a policy document", "policy", "be a table of keys and values", document["policy"])
    stated = dict(document["policy"])
    kind = stated.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UnknownSpec("[policy]", "kind", f"be one of {', '.join(_KINDS)}{did_you_mean(kind, _KINDS)}", kind)
    build, required, optional = _KINDS[kind]
    check_keys(f"[policy] of kind {kind}", "the document", stated, required=required, optional=optional)
    domain = Domain.from_dict(document["domain"], base=base)
    if kind == "secret":
        stated["distributions"] = _distributions(stated["distributions"])
    # Labels that are tuples (cells of a grid, members of a product) are arrays in a document.
    if kind == "high-low" and isinstance(stated["sensitive"], list):
        stated["sensitive"] = [read_label(value) for value in stated["sensitive"]]
    if kind == "blocks" and isinstance(stated["blocks"], list):
        stated["blocks"] = [
            [read_label(value) for value in block] if isinstance(block, list) else block for block in stated["blocks"]
        ]
    return build(domain, **stated)


def _distributions(document: Any) -> Distributions:
    if isinstance(document, Mapping) and set(document) == {"known"}:
        return Known(document["known"])
    if isinstance(document, Mapping) and set(document) == {"at-least"}:
        return AtLeast(document["at-least"])
    if isinstance(document, Mapping) and document == {"anything": True}:
        return Anything()
    if isinstance(document, Mapping) and set(document) == {"chi-square"}:
        stated = document["chi-square"]
        check_keys("[policy]", "distributions", stated, required=("counts",), optional=("alpha",))
        return ChiSquare(**stated)
    forms = (
        "{known = [[...], ...]}, {at-least = [[...], ...]}, {chi-square = {counts = [[...], ...], alpha = ...}} "
        "or {anything = true}"
    )
    raise UnknownSpec("[policy]", "distributions", f"be {forms}", document)


def load_policy(path: str | Path) -> Policy:
    """Read a policy file: TOML, or JSON where the name ends in .json."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise file_error(error, str(path), "the file", "be a readable policy document", str(error)) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(str(path), "the file", "be a readable policy document", str(error)) from None
    return policy_from_dict(document, base=path.parent)


def save_policy(policy: Policy, path: str | Path) -> None:
    """Write a policy file: TOML, or JSON where the name ends in .json."""
    path = Path(path)
    document = policy.to_dict()
    if path.suffix == ".json":
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    else:
        import tomli_w

        text = tomli_w.dumps(document)
    path.write_text(text, encoding="utf-8")
