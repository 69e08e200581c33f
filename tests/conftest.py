"""Kinds of tests, random cases (a fixed set, or many new ones with ``--soak``), databases to test with, and
counted time.

``component`` tests need PostgreSQL, Spark, a browser or npm, or start a service; ``soak`` tests run only with
``--soak``; ``slow`` ones take more than about half a second. Every other test is ``quick`` and needs no marker;
``-m quick`` also draws fewer random cases.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from sfumato.compiler import planning
from sfumato.compiler.solvers import optimization
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.mechanisms import registry
from sfumato.testing import MechanismContract
from support.clocks import Clock

if TYPE_CHECKING:
    from support.collectors import Postgres

# Nothing may fail because a machine is slow: no deadlines, no complaint about slow generation.
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=15)
settings.register_profile("soak", settings.get_profile("ci"), derandomize=False, max_examples=3000, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="draw many more random cases, new ones every time")


def pytest_configure(config: pytest.Config) -> None:
    quick = config.getoption("markexpr") == "quick"
    settings.load_profile("soak" if config.getoption("--soak") else "quick" if quick else "ci")


#: Parts of the contract of mechanisms that read whole laws, of up to 200 mechanisms per class.
_WHOLE_LAWS = (
    MechanismContract.test_the_stated_law_is_the_samplers_law_and_its_rows_sum_to_one,
    MechanismContract.test_the_audit_passes_at_epsilon_and_fails_just_below_it,
    MechanismContract.test_the_probability_of_a_right_guess_is_that_of_the_law,
    MechanismContract.test_the_shortened_audit_agrees_with_the_full_one,
)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    long = pytest.mark.skip(reason="runs only with --soak")
    for item in items:
        if "postgres" in getattr(item, "fixturenames", ()):
            item.add_marker("component")
        if getattr(item, "function", None) in _WHOLE_LAWS:
            item.add_marker("slow")
        if item.get_closest_marker("soak") and not config.getoption("--soak"):
            item.add_marker(long)
        if not any(item.get_closest_marker(name) for name in ("component", "soak", "slow")):
            item.add_marker("quick")


@pytest.fixture
def counted_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every reading of the clock take a millisecond, for the limits of plans, designs and searches."""
    for module in (optimization, planning):
        monkeypatch.setattr(module, "Deadline", lambda seconds: Deadline(seconds, Clock(0.001)))


@pytest.fixture(autouse=True)
def registered_mechanisms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test leave a mechanism in the registry."""
    for name in ("_FAMILIES", "_BY_CLASS", "_BY_NAME"):
        monkeypatch.setattr(registry, name, copy.copy(getattr(registry, name)))


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for the tests of one file."""
    from support.collectors import Postgres

    server = Postgres()
    try:
        yield server
    finally:
        server.throw_away()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.component)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new store, of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/collect.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()
