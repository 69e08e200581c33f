"""Domains: the finite, ordered, labelled set of values that an input or an output may take.

    Domain(["a", "b", "c"])                                            labels of one type
    Domain.range(1000)                                                 the ints 0..999, not stored one by one
    Domain.range(17, 91)                                               the ints 17..90; others are clipped
    Domain.numbers(0, 200_000, bins=40)                                real numbers, put into bins
    Domain.grid(8, 9)                                                  the cells of a board with 8 rows
    Domain.grid(8, 9, latitude=(s, n), longitude=(w, e))               the cells of a map
    Domain.product(S=["yes", "no"], U=Domain.range(12))                tuples; the last factor varies fastest

The index of a label is its position in that order. ``encode`` converts columns of values to indices. It rejects every
value that does not belong to a label and names its row; it never guesses or drops a value.

``align`` and ``align_table`` reorder inputs with one entry per value by their labels, if they have labels.
"""

from sfumato.domain.distribution import Frequencies, checked_distribution
from sfumato.domain.domain import Domain, checked_domain
from sfumato.domain.labelled import (
    align,
    align_table,
    frame_rows,
    has_labels,
    labels_domain,
    read_mapping,
    read_numbers,
    unaligned_table,
)
from sfumato.domain.scalars import Label, is_missing

__all__ = [
    "Domain",
    "Frequencies",
    "Label",
    "align",
    "align_table",
    "checked_distribution",
    "checked_domain",
    "frame_rows",
    "has_labels",
    "is_missing",
    "labels_domain",
    "read_mapping",
    "read_numbers",
    "unaligned_table",
]


# Used by other packages of Sfumato; not part of the public interface.
from sfumato.domain.columns import (
    Coded as Coded,
    Numbers as Numbers,
    arrow_column as arrow_column,
    is_arrow as is_arrow,
    library as library,
    read_column as read_column,
)
from sfumato.domain.encoding import (
    drop_marked as drop_marked,
    encode_rows as encode_rows,
    filled_domain as filled_domain,
    marked_domain as marked_domain,
)
from sfumato.domain.entries import (
    cell_reader as cell_reader,
    decimal_array as decimal_array,
    read_entries as read_entries,
    reads_decimals as reads_decimals,
)
from sfumato.domain.label_files import (
    TEXT_KEYS as TEXT_KEYS,
    relative_path as relative_path,
    text_format as text_format,
)
from sfumato.domain.labelled import frame_columns as frame_columns
from sfumato.domain.lookup import MISSING_HINT as MISSING_HINT
from sfumato.domain.numeric import exact_coordinates as exact_coordinates
from sfumato.domain.refusals import At as At
from sfumato.domain.scalars import STRING_READERS as STRING_READERS
