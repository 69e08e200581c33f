"""How pages present a collection: consent, section, end, background of a map. It does not change."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

__all__ = ["PRESENTATION", "Background", "Presentation", "Shape"]

Words = Annotated[str, Meta(max_length=20_000)]
Heading = Annotated[str, Meta(max_length=200)]


#: A coordinate in ten-thousandths of the width or the height of the map, from its south-west corner.
Coordinate = Annotated[int, Meta(ge=-10_000, le=20_000)]
Ring = Annotated[list[tuple[Coordinate, Coordinate]], Meta(min_length=2, max_length=10_000)]
#: Maximum points of a background, and maximum districts; each takes a row of the estimate of their shares.
_MOST_POINTS, _MOST_DISTRICTS = 20_000, 200


class Shape(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A district, or lines such as a river, on the background of a map."""

    rings: Annotated[list[Ring], Meta(min_length=1, max_length=2000)]
    name: Heading = ""


class Background(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The shapes behind the cells of a map, and the district of each cell."""

    shapes: Annotated[list[Shape], Meta(min_length=1, max_length=1000)]
    #: Index of the shape of each value, or -1; empty if the shapes are not districts.
    districts: list[Annotated[int, Meta(ge=-1, le=999)]] = []

    def __post_init__(self) -> None:
        """Raise ValueError, which the decoder reports, for too many points or an unknown district."""
        if sum(len(ring) for shape in self.shapes for ring in shape.rings) > _MOST_POINTS:
            raise ValueError(f"a background has at most {_MOST_POINTS:,} points; simplify its shapes")
        if any(district >= len(self.shapes) for district in self.districts):
            raise ValueError("districts must be indices of shapes, or -1")
        if len(set(self.districts)) > _MOST_DISTRICTS:
            raise ValueError(f"a map has at most {_MOST_DISTRICTS} districts")


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
    #: Words at the lowest and at the highest number of a scale.
    low_label: Heading = ""
    high_label: Heading = ""
    #: Shapes behind the cells of a map.
    background: Background | None = None


#: Decoder of stored presentations.
PRESENTATION = msgspec.json.Decoder(Presentation)
