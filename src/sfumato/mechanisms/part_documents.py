"""Parts of a mechanism in its spec: mechanisms inside the document of another mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.domain import Domain
from sfumato.errors import InvalidInput, UnknownSpec
from sfumato.mechanisms.base import Mechanism

__all__ = ["part_documents", "read_parts"]


def part_documents(parts: Sequence[Mechanism]) -> dict[str, Any]:
    """Return the different parts of a mechanism and the number of each part among them.

    The values of a part are numbered, so labels are not repeated.
    """
    place = {part: number for number, part in enumerate(dict.fromkeys(parts))}
    kinds = [{"mechanism": part.name, "size": len(part.domain), "parameters": part.parameters()} for part in place]
    return {"kinds": kinds, "kind": [place[part] for part in parts]}


def read_parts(
    subject: str, part: str, parameters: Mapping[str, Any], allowed: Mapping[str, type[Mechanism]]
) -> list[Mechanism]:
    """Return the parts of ``part_documents``, of the allowed classes; errors call one of them by the word ``part``."""
    kinds = [_read_part(subject, part, document, allowed) for document in parameters["kinds"]]
    chosen = parameters["kind"]
    if not all(type(number) is int and 0 <= number < len(kinds) for number in chosen):
        raise InvalidInput(subject, "kind", f"be integers in 0 … {len(kinds) - 1}", chosen)
    return [kinds[number] for number in chosen]


def _read_part(subject: str, part: str, document: Any, allowed: Mapping[str, type[Mechanism]]) -> Mechanism:
    """Return one part."""
    keys = {"mechanism", "size", "parameters"}
    if not isinstance(document, dict) or set(document) != keys or not isinstance(document["parameters"], dict):
        raise InvalidInput(subject, f"a {part}", "have the keys mechanism, size and parameters", document)
    name = document["mechanism"]
    kind = allowed.get(name) if isinstance(name, str) else None
    if kind is None:
        raise UnknownSpec(subject, f"the mechanism of a {part}", f"be one of {', '.join(allowed)}", name)
    return kind.from_parameters(Domain.range(document["size"]), dict(document["parameters"]))
