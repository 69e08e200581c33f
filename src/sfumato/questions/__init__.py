"""Questions: what is to be learned from the reports, as linear functions of the frequencies."""

from sfumato.questions.base import Question
from sfumato.questions.kinds import Distribution, Frequencies, Mean, Quantiles, Ranges, Workload
from sfumato.questions.marginals import (
    Marginals,
    cell_positions as cell_positions,
    marginal_sums as marginal_sums,
    table_columns as table_columns,
)
from sfumato.questions.order import (
    check_order as check_order,
    numeric_labels as numeric_labels,
    positions_between as positions_between,
)
from sfumato.questions.reading import (
    load_question,
    question_from_document as question_from_document,
    question_from_string as question_from_string,
    read_question as read_question,
)

__all__ = [
    "Distribution",
    "Frequencies",
    "Marginals",
    "Mean",
    "Quantiles",
    "Question",
    "Ranges",
    "Workload",
    "load_question",
]
