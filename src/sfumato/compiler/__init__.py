"""The compiler: find a mechanism for a policy and a utility.

- :func:`plan` compares mechanisms by their expected error.
- :func:`design` returns the best of the compared mechanisms.
- :func:`optimal` searches all mechanisms that the policy allows.
- :class:`Questionnaire` compares ways to ask for several attributes within one budget.
- :mod:`bounds` has bounds on the error of every mechanism.
"""

from sfumato.compiler import bounds
from sfumato.compiler.designing import design
from sfumato.compiler.information import RobustInformation, robust_information
from sfumato.compiler.planning import plan
from sfumato.compiler.plans import Plan, Row
from sfumato.compiler.predictions import PredictedError
from sfumato.compiler.questionnaires import Questionnaire, QuestionnairePlan, Sampling, Strategy
from sfumato.compiler.solvers.goals import (
    Estimation,
    ExpectedLoss,
    Goal,
    MutualInformation,
    SquaredError,
    WorstEstimation,
    goal_of,
)
from sfumato.compiler.solvers.optimization import optimal
from sfumato.compiler.solvers.result import Optimum

__all__ = [
    "Estimation",
    "ExpectedLoss",
    "Goal",
    "MutualInformation",
    "Optimum",
    "Plan",
    "PredictedError",
    "Questionnaire",
    "QuestionnairePlan",
    "RobustInformation",
    "Row",
    "Sampling",
    "SquaredError",
    "Strategy",
    "WorstEstimation",
    "bounds",
    "design",
    "goal_of",
    "optimal",
    "plan",
    "robust_information",
]


# Imported by other packages of Sfumato; not part of the public interface.
from sfumato.compiler.bounds import least_risk as least_risk
from sfumato.compiler.designing import (
    DEFAULT_WAVES as DEFAULT_WAVES,
    memoized_bits as memoized_bits,
    memoized_choice as memoized_choice,
)
from sfumato.compiler.expected_errors import expected_tv as expected_tv
from sfumato.compiler.planning import (
    SEARCH_SECONDS as SEARCH_SECONDS,
    SEARCHED_VALUES as SEARCHED_VALUES,
)
from sfumato.compiler.predictions import (
    TRUTHS as TRUTHS,
    truth_distribution as truth_distribution,
    unbiased_errors as unbiased_errors,
)
from sfumato.compiler.report_length import MaxBits as MaxBits, ReportLength as ReportLength
from sfumato.compiler.solvers.answer_errors import error_of_answers as error_of_answers
