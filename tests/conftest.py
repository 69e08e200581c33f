"""Kinds of tests, random cases (a fixed set, or many new ones with ``--soak``), databases to test with, and
counted time.

``component`` tests need PostgreSQL, Spark, a browser or npm, or start a service; ``soak`` tests run only with
``--soak``; ``slow`` ones take more than about half a second. Every other test is ``quick`` and needs no marker;
``-m quick`` also draws fewer random cases.
"""

from __future__ import annotations

import copy
import functools
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
    from playwright.sync_api import Browser

    from sfumato._core import Epsilon
    from sfumato.mechanisms import Mechanism
    from support.browsing import People
    from support.collectors import Postgres, Served

# Nothing may fail because a machine is slow: no deadlines, no complaint about slow generation.
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=15)
settings.register_profile("soak", settings.get_profile("ci"), derandomize=False, max_examples=3000, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="draw many more random cases, new ones every time")


#: Maximum number of random mechanisms per check of a contract without ``--soak``: seven domains at seven levels.
_CONTRACT_CASES = 49


def pytest_configure(config: pytest.Config) -> None:
    quick = config.getoption("markexpr") == "quick"
    if not config.getoption("--soak"):
        every = MechanismContract.mechanisms

        @functools.wraps(every)
        def some(self: MechanismContract, count: int | None = None) -> Iterator[tuple[Mechanism, Epsilon]]:
            return every(self, min(self.cases if count is None else count, _CONTRACT_CASES))

        MechanismContract.mechanisms = some  # type: ignore[method-assign]
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
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        items[:] = _in_shares(items, workers)


def _in_shares(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests in an order in which each worker of pytest-xdist starts with long tests.

    With ``--dist worksteal``, each worker begins with a share of consecutive tests, and an idle worker takes tests from
    the end of another share. Each share therefore begins with the components of some folders, so that only one worker
    starts Spark. Files with slow tests follow, and quick tests are last. Tests of a file stay together.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    first: dict[Path, list[pytest.Item]] = {}  # the components by folder
    rest: list[list[pytest.Item]] = []
    for path, tests in files.items():
        if any(item.get_closest_marker("component") for item in tests):
            first.setdefault(path.parent, []).extend(tests)
        else:
            rest.append(tests)
    rest.sort(key=lambda tests: not any(item.get_closest_marker("slow") for item in tests))
    groups = [*first.values(), *rest]
    for number, tests in enumerate(groups):
        shares[number % workers].extend(tests)
    return [item for share in _cut(shares, len(items)) for item in share]


def _cut(shares: list[list[pytest.Item]], total: int) -> list[list[pytest.Item]]:
    """Return shares of equal length; the ends of longer shares go to the ends of shorter ones."""
    lengths = [(total + number) // len(shares) for number in range(len(shares))]
    surplus = [item for share, length in zip(shares, lengths, strict=True) for item in share[length:]]
    filled = []
    for share, length in zip(shares, lengths, strict=True):
        missing = max(length - len(share), 0)
        filled.append(share[:length] + surplus[:missing])
        surplus = surplus[missing:]
    return filled


@pytest.fixture
def is_soak(request: pytest.FixtureRequest) -> bool:
    """Whether the run has ``--soak``, for tests that then repeat more."""
    return bool(request.config.getoption("--soak"))


@pytest.fixture
def counted_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every reading of the clock take a millisecond, for the limits of plans, designs and searches."""
    for module in (optimization, planning):
        monkeypatch.setattr(module, "Deadline", lambda seconds: Deadline(seconds, Clock(0.001)))


#: The registry before any test; doctests of the library register mechanisms too, and have no fixtures.
_REGISTRY = {name: copy.copy(getattr(registry, name)) for name in ("_FAMILIES", "_BY_CLASS", "_BY_NAME")}


@pytest.fixture(autouse=True)
def registered_mechanisms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every test with the mechanisms of the library, and let no test leave one in the registry."""
    for name, entries in _REGISTRY.items():
        monkeypatch.setattr(registry, name, copy.copy(entries))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, shared by all tests of a worker; each test has its own database."""
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


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A collector for the tests of a module, unless the module has its own."""
    from support.collectors import served

    with served(f"sqlite:///{tmp_path_factory.mktemp('collector')}/collect.db") as collector:
        yield collector


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of a module, unless the module has its own."""
    from support.components import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def people(browser: Browser, collector: Served) -> Iterator[People]:
    """The visitors of the pages of a collector, which must report no fault."""
    from support.browsing import People

    visitors = People(browser, collector)
    yield visitors
    assert visitors.close() == []
