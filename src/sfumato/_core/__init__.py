"""Foundations without privacy knowledge: exact arithmetic, validation, documents, files, parallelism."""

from sfumato._core.atomic_files import PIPE, replacing, writing
from sfumato._core.documents import (
    canonical_hash,
    canonical_json,
    check_keys,
    did_you_mean,
    finite,
    label_document,
    read_label,
)
from sfumato._core.exact import (
    INFINITE,
    ZERO,
    Epsilon,
    EpsilonLike,
    arb_precision,
    ceil_of_log,
    chi_square_is_likelier,
    digits_of,
    exact_fraction,
    exceeds,
    excess,
    floor_of_log,
    floor_of_ratio,
    information,
    integer_kernel,
    sign_of_sum,
    to_arb,
)
from sfumato._core.locks import locked
from sfumato._core.optional import import_late, import_optional, import_pyarrow
from sfumato._core.parallel import by_threads, core_count
from sfumato._core.plots import plot_result, register_plot
from sfumato._core.simplex import project_beside_clear, project_to_simplex
from sfumato._core.text import percent
from sfumato._core.types import Floats, Integers, Words

__all__ = [
    "INFINITE",
    "PIPE",
    "ZERO",
    "Epsilon",
    "EpsilonLike",
    "Floats",
    "Integers",
    "Words",
    "arb_precision",
    "by_threads",
    "canonical_hash",
    "canonical_json",
    "ceil_of_log",
    "check_keys",
    "chi_square_is_likelier",
    "core_count",
    "did_you_mean",
    "digits_of",
    "exact_fraction",
    "exceeds",
    "excess",
    "finite",
    "floor_of_log",
    "floor_of_ratio",
    "import_late",
    "import_optional",
    "import_pyarrow",
    "information",
    "integer_kernel",
    "label_document",
    "locked",
    "percent",
    "plot_result",
    "project_beside_clear",
    "project_to_simplex",
    "read_label",
    "register_plot",
    "replacing",
    "sign_of_sum",
    "to_arb",
    "writing",
]
