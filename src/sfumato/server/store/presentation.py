"""How the survey page presents a collection: consent, section, end page. It is stored with the metadata."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

__all__ = ["Presentation"]

Words = Annotated[str, Meta(max_length=20_000)]
Heading = Annotated[str, Meta(max_length=200)]


class Presentation(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the survey page presents a collection. It does not change, because people answered what they saw."""

    #: Words that a participant must agree to before the page draws or sends a reply.
    consent: Words = ""
    #: Heading and words of the section that begins with this question.
    heading: Heading = ""
    section: Words = ""
    #: Whether the page offers no way to skip the question.
    required: bool = False
    #: Words of the owner at the end.
    ending: Words = ""
