"""Results of searches in a folder, so that the same search need not run twice."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato._core import Floats, canonical_hash, parse_json, writing
from sfumato.auditing import audit
from sfumato.compiler.solvers.goals import Estimation, ExpectedLoss, Goal, SquaredError
from sfumato.compiler.solvers.result import Optimum
from sfumato.errors import InvalidInput, file_error
from sfumato.policy import Policy

__all__ = ["SearchCache"]

#: Version of the entries; a change of the search that makes older results worse increases it.
_VERSION = 1


@dataclass(frozen=True)
class SearchCache:
    """A folder of results, one file per policy, utility, prior and limits.

    Parameters
    ----------
    folder
        The folder; it is created when the first result is stored.
    """

    folder: Path

    @classmethod
    def read(cls, subject: str, folder: str | os.PathLike[str] | None) -> SearchCache | None:
        """Return the cache in a folder, or None if there is no folder; raise InvalidInput if it is not a folder."""
        if folder is None:
            return None
        if not isinstance(folder, (str, os.PathLike)):
            raise InvalidInput(subject, "cache", "be the path of a folder", folder)
        path = Path(folder)
        if path.exists() and not path.is_dir():
            raise InvalidInput(subject, "cache", "be the path of a folder", str(folder))
        return cls(path)

    def path(self, policy: Policy, goal: Goal, prior: Floats, limits: dict[str, int | None]) -> Path:
        """Return the file of a search; its name is the hash of everything that the result depends on but time."""
        document = {
            "version": _VERSION,
            "policy": policy.to_dict(),
            "utility": _goal_document(goal),
            "prior": [value.hex() for value in prior.tolist()],
            **limits,
        }
        return self.folder / f"{canonical_hash(document)}.json"

    def find(self, path: Path, policy: Policy, seconds: float) -> Optimum | None:
        """Return the stored result of a search that was optimal or had at least this time; None if there is none.

        The caller must not trust the file: a mechanism that does not obey the policy, and a file that cannot be read,
        count as no result.
        """
        try:
            document = parse_json(path.read_text(encoding="utf-8"))
            optimum = Optimum.from_dict(document["optimum"])
            is_enough = optimum.status == "optimal" or float(document["seconds"]) >= seconds
        except (OSError, ValueError, KeyError, TypeError):  # InvalidInput is a ValueError
            return None
        if not is_enough or optimum.mechanism.domain != policy.domain:
            return None
        return optimum if audit(optimum.mechanism, policy).holds else None

    def store(self, path: Path, optimum: Optimum, seconds: float) -> None:
        """Store the result of a search that had this time."""
        document: dict[str, Any] = {"seconds": seconds, "optimum": optimum.to_dict()}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise file_error(error, str(self.folder), "cache", "be a folder that can be created") from error
        with writing(path) as file:
            file.write(json.dumps(document).encode())


def _goal_document(goal: Goal) -> dict[str, Any]:
    """Return a utility with its numbers."""
    if isinstance(goal, SquaredError):
        return {"name": goal.name, "numbers": [value.hex() for value in goal.numbers.tolist()]}
    if isinstance(goal, ExpectedLoss):
        return {"name": goal.name, "matrix": [[value.hex() for value in row] for row in goal.matrix.tolist()]}
    if isinstance(goal, Estimation) and goal.question is not None:
        return {"name": goal.name, "question": goal.question.to_dict()}
    return {"name": goal.name}
