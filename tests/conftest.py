"""How random cases are drawn: a fixed set by default, many and new ones with ``--soak``."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# Nothing may fail because a machine is slow: no deadlines, no complaint about slow generation.
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", settings.get_profile("ci"), derandomize=False, max_examples=3000, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="draw many more random cases, new ones every time")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("soak" if config.getoption("--soak") else "ci")
