"""Policies as documents: read and write TOML and JSON files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato._core import check_keys, check_kind, did_you_mean, read_flag, read_items, read_label
from sfumato.domain import TEXT_KEYS, At, Domain, read_entries, relative_path, text_format
from sfumato.errors import Description, InvalidInput, UnknownSpec, file_error
from sfumato.policy.base import Policy
from sfumato.policy.blocks import Blocks
from sfumato.policy.chi_square import ChiSquare
from sfumato.policy.distributions import Anything, AtLeast, Distributions, Known
from sfumato.policy.graph import Graph
from sfumato.policy.high_low import HighLow
from sfumato.policy.metric import Metric
from sfumato.policy.pairwise import Pairwise
from sfumato.policy.per_value import PerValue
from sfumato.policy.prior import Prior
from sfumato.policy.product import Product
from sfumato.policy.secret import Secret
from sfumato.policy.uniform import Uniform

__all__ = ["load_policy", "policy_from_dict", "save_policy"]

#: For each kind: its class, its required keys and its optional keys.
_KINDS: dict[str, tuple[Callable[..., Policy], Sequence[str], Sequence[str]]] = {
    "uniform": (Uniform, ("epsilon",), ()),
    "high-low": (HighLow, ("sensitive", "epsilon"), ()),
    "blocks": (Blocks, ("blocks", "epsilon"), ("across",)),
    "metric": (Metric, ("distance", "epsilon"), ()),
    "pairwise": (Pairwise, ("matrix",), ()),
    "per-value": (PerValue, ("epsilons",), ("rule",)),
    "graph": (Graph, ("edges",), ("epsilon",)),
    "prior": (Prior, ("prior", "epsilon"), ("side",)),
    "product": (Product, ("attributes",), ()),
    "secret": (Secret, ("secret", "epsilon", "distributions"), ()),
}


def policy_from_dict(document: Mapping[str, Any], base: Path | None = None) -> Policy:
    """Build a policy from a dict, such as the content of a policy file.

    Parameters
    ----------
    document
        A mapping with the keys ``"domain"`` and ``"policy"``, as :meth:`Policy.to_dict` returns it. Its entry
        ``"question"``, which is optional, is not part of the policy; :func:`load_question` reads it.
    base
        Folder of the files that the domain or the blocks name with the key ``"file"``. If it is None, documents that
        name files are rejected.

    Returns
    -------
    Policy
        The policy.

    Raises
    ------
    InvalidInput
        If a key is missing, unknown or has a wrong value.
    UnknownSpec
        If the kind of policy or of distributions is unknown.

    Examples
    --------
    >>> document = {"domain": {"values": ["no", "yes"]}, "policy": {"kind": "uniform", "epsilon": "ln 3"}}
    >>> policy_from_dict(document)
    Uniform(Domain(['no', 'yes']), epsilon='ln 3')
    """
    if isinstance(document, Mapping):
        check_kind("a policy document", "a policy", document)
    check_keys(
        "a policy document",
        "the document",
        document,
        required=("domain", "policy"),
        optional=("question",),
        form="a table of keys and values",
    )
    if not isinstance(document["policy"], Mapping):
        raise InvalidInput("a policy document", "policy", "be a table of keys and values", document["policy"])
    return _read(document["policy"], Domain.from_dict(document["domain"], base=base), base)


def _read(document: Mapping[str, Any], domain: Domain, base: Path | None) -> Policy:
    """Return the policy over a domain that the table ``[policy]`` of a document describes."""
    parameters = dict(document)
    kind = parameters.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UnknownSpec("[policy]", "kind", f"be one of {', '.join(_KINDS)}{did_you_mean(kind, _KINDS)}", kind)
    build, required, optional = _KINDS[kind]
    check_keys(f"[policy] of kind {kind}", "the document", parameters, required=required, optional=optional)
    if kind == "product":
        return Product(_attributes(parameters["attributes"], domain, base))
    if kind == "secret":
        parameters["distributions"] = _distributions(parameters["distributions"])
    # Labels that are tuples (cells of a grid, members of a product) are arrays in a document.
    if kind == "high-low":
        parameters["sensitive"] = _sensitive(parameters["sensitive"], domain)
    if kind == "blocks":
        parameters["blocks"] = _blocks(parameters["blocks"], domain, base)
    if kind == "graph" and isinstance(parameters["edges"], list):
        parameters["edges"] = [
            [*map(read_label, edge[:2]), *edge[2:]] if isinstance(edge, list) else edge for edge in parameters["edges"]
        ]
    return build(domain, **parameters)


def _attributes(document: Any, domain: Domain, base: Path | None) -> dict[str, Any]:
    """Return the policies of the attributes of a domain, in its order."""
    subject, factors = "[policy] of kind product", domain.factors
    if domain.kind != "product":
        hint = "Write the attributes into [domain.product]."
        raise InvalidInput(subject, "domain", "be a product of attributes", domain, hint=hint)
    check_keys(subject, "attributes", document, required=list(factors), form="a table of policies by attribute")
    for name, of_attribute in document.items():
        if not isinstance(of_attribute, Mapping):
            raise InvalidInput(subject, f"attributes[{name!r}]", "be a table of keys and values", of_attribute)
    return {name: _read(document[name], factor, base) for name, factor in factors.items()}


def _sensitive(document: Any, domain: Domain) -> Any:
    """Return sensitive values from a document: a list of values, flags by value, or bounds of numbers."""
    if isinstance(document, list):
        return [read_label(value) for value in document]
    # A mapping from values to flags may have a value of this name.
    if not isinstance(document, Mapping) or not any(key in document and key not in domain for key in _BOUNDS):
        return document
    subject = "[policy] of kind high-low"
    check_keys(subject, "sensitive", document, optional=[*_BOUNDS, "missing"])
    bounds = {key: document[key] for key in _BOUNDS if key in document}
    if len(bounds) > 1:
        raise InvalidInput(subject, "sensitive", "have one of the keys 'above', 'below' and 'between'", document)
    ((key, bound),) = bounds.items()
    if key == "between":
        values = domain.between(*read_items(subject, "sensitive['between']", bound, 2))
    else:
        values = domain.above(bound) if key == "above" else domain.below(bound)
    if not read_flag(subject, "sensitive['missing']", document.get("missing", False)):
        return values
    if domain.missing is None:
        raise InvalidInput(subject, "sensitive['missing']", "be false, because the domain has no missing value", True)
    return (*values, domain.missing)


#: Keys that select sensitive numbers.
_BOUNDS = ("above", "below", "between")


def _blocks(document: Any, domain: Domain, base: Path | None) -> Any:
    """Return blocks from a document: lists of values, block labels, bounds of numbers, or the name of a CSV file."""
    if isinstance(document, list):
        return [[read_label(value) for value in block] if isinstance(block, list) else block for block in document]
    # A mapping from values to block labels may have the value "bounds" or "file".
    if isinstance(document, Mapping) and set(document) == {"bounds"} and "bounds" not in domain:
        return domain.split(read_items("[policy] of kind blocks", "blocks['bounds']", document["bounds"]))
    if isinstance(document, Mapping) and isinstance(document.get("file"), str) and "file" not in domain:
        keys = check_keys(
            "[policy] of kind blocks", "blocks", document, required=["file"], optional=["column", "value", *TEXT_KEYS]
        )
        path = relative_path(keys["file"], base, At("[policy] of kind blocks", "blocks['file']"))
        return read_entries(domain, path, keys.get("column"), keys.get("value"), text_format(keys))
    return document


def _distributions(document: Any) -> Distributions:
    """Return the set of distributions that a document describes."""
    if isinstance(document, Mapping) and set(document) == {"known"}:
        return Known(document["known"])
    if isinstance(document, Mapping) and set(document) == {"at-least"}:
        return AtLeast(document["at-least"])
    if isinstance(document, Mapping) and document == {"anything": True}:
        return Anything()
    if isinstance(document, Mapping) and set(document) == {"chi-square"}:
        parameters = document["chi-square"]
        check_keys("[policy]", "distributions", parameters, required=("counts",), optional=("alpha",))
        return ChiSquare(**parameters)
    forms = (
        "{known = [[...], ...]}, {at-least = [[...], ...]}, {chi-square = {counts = [[...], ...], alpha = ...}} "
        "or {anything = true}"
    )
    raise UnknownSpec("[policy]", "distributions", f"be {forms}", document)


def load_policy(path: str | Path) -> Policy:
    """Read a policy from a TOML or JSON file.

    Parameters
    ----------
    path
        A JSON file if the name ends in ``.json``, otherwise a TOML file. Label files and CSV files that the policy
        names are relative to its folder.

    Returns
    -------
    Policy
        The policy in the file.

    Raises
    ------
    InvalidInput
        If the file cannot be read or does not contain a valid policy. A missing file raises :class:`MissingFile`, which
        is also a :class:`FileNotFoundError`.

    Examples
    --------
    >>> import tempfile
    >>> from sfumato import Domain, Uniform
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_policy(Uniform(Domain(["no", "yes"]), 1), f"{folder}/policy.toml")
    ...     load_policy(f"{folder}/policy.toml")
    Uniform(Domain(['no', 'yes']), epsilon='1')
    """
    path = Path(path)
    try:
        content = path.read_text(encoding="utf-8-sig")
        document = json.loads(content) if path.suffix == ".json" else tomllib.loads(content)
    except OSError as error:
        must = "be a readable policy document"
        raise file_error(error, str(path), "the file", must, hint="Check the path of the policy file.") from error
    except (ValueError, RecursionError) as error:
        hint = f"Write the policy as {'JSON' if path.suffix == '.json' else 'TOML'} in UTF-8."
        got = Description(f"the syntax error: {error}")
        raise InvalidInput(str(path), "the file", "be a readable policy document", got, hint=hint) from None
    return policy_from_dict(document, base=path.parent)


def save_policy(policy: Policy, path: str | Path) -> None:
    """Write a policy to a TOML or JSON file, which :func:`load_policy` reads.

    Parameters
    ----------
    policy
        The policy.
    path
        A JSON file if the name ends in ``.json``, otherwise a TOML file. An existing file is overwritten.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sfumato import Domain, Uniform
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_policy(Uniform(Domain(["no", "yes"]), 1), f"{folder}/policy.toml")
    ...     print(pathlib.Path(folder, "policy.toml").read_text().splitlines()[-2:])
    ['kind = "uniform"', 'epsilon = "1"']
    """
    path = Path(path)
    document = policy.to_dict()
    if path.suffix == ".json":
        content = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    else:
        import tomli_w

        content = tomli_w.dumps(document)
    path.write_text(content, encoding="utf-8")
