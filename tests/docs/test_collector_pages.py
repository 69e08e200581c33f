"""The pages on the collector match its code: settings, metrics, endpoints, fields, limits, log events, backups."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

import sfumato as sf
from sfumato.cli import admin_tokens, serve, sfumato
from sfumato.server.api import schemas
from sfumato.server.api.operations import OPERATIONS
from sfumato.server.app import create_app
from sfumato.server.http.connections import TESTED_UVICORN
from sfumato.server.http.responses import REASONS
from sfumato.server.http.telemetry import Metrics
from sfumato.server.settings import Settings
from support import ROOT
from support.collectors import served

DOCS = ROOT / "docs"
OPERATIONS_PAGE, API_PAGE = "operations.md", "collector.md"
BACKUP_PAGE, MONITOR_PAGE, SCALE_PAGE = (f"operations/{name}.md" for name in ("back-up", "monitor", "scale"))
#: The name of each kind of access in the table of endpoints.
ACCESS = {"anybody": "public", "author": "author", "owner": "owner", "sender": "sender", "reader": "reader"}
#: Request and response types, by the heading of the section that documents their fields.
FIELDS = {
    "Open a collection": (schemas.NewCollection, schemas.Created),
    "Open a survey": (schemas.NewSurvey, schemas.CreatedSurvey),
    "A collection": (schemas.CollectionResponse, schemas.Change),
    "Send reports": (schemas.OneReport, schemas.Receipt),
    "One-time tokens": (schemas.NewTokens, schemas.TokenList),
    "Keys": (schemas.KeyResponse,),
    "Estimates": (schemas.EstimateResponse, schemas.EstimateRow, schemas.AnswerRow),
    "Waves": (schemas.NewWaves, schemas.WavesSchedule, schemas.WavesResponse, schemas.WaveResponse, schemas.ChangeRow),
    "Check a policy": (schemas.Check, schemas.Checked, schemas.Region, schemas.SuspicionRow),
    "Plan": (schemas.PlanRequest, schemas.PlanResponse, schemas.PlanRow),
}


def read(page: str) -> str:
    """Return a page of the documentation."""
    return (DOCS / page).read_text(encoding="utf-8")


def section(page: str, heading: str) -> str:
    """Return the part of a page from a heading to the next heading of the same or a higher rank."""
    match = re.search(rf"^(#+) {re.escape(heading)}$\n(.*?)(?=^#{{1,2}} |\Z)", read(page), re.MULTILINE | re.DOTALL)
    assert match is not None, heading
    rank, text = match.groups()
    return re.split(rf"^#{{1,{len(rank)}}} ", text, flags=re.MULTILINE)[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of every table row whose first cell is code."""
    lines = re.findall(r"^ *\| (`.*) \|$", text, re.MULTILINE)
    return [re.split(r" (?<!\\)\| ", line) for line in lines]


def code(cell: str) -> list[str]:
    """Return the pieces of code in a cell."""
    return re.findall(r"`([^`]*)`", cell)


def test_the_settings_table_has_every_option_with_its_default() -> None:
    documented = {code(option)[0]: code(default)[0] for option, _, _, default in rows_of_settings()}
    options = {
        parameter.opts[0]: str(parameter.to_info_dict()["default"])
        for parameter in serve.command.params
        if isinstance(parameter, click.Option)
    }
    assert documented == options


def rows_of_settings() -> list[list[str]]:
    """Return the rows of the settings table."""
    return [row for row in rows(section(OPERATIONS_PAGE, "Configure")) if len(row) == 4]


def test_the_metrics_table_has_every_metric_with_its_type() -> None:
    documented = {code(name)[0]: kind for name, kind, _ in rows(section(MONITOR_PAGE, "Metrics"))}
    exposed = dict(re.findall(r"^# TYPE (\S+) (\S+)$", Metrics().text().decode(), re.MULTILINE))
    assert documented == {name: kind for name, kind in exposed.items() if not name.endswith("_created")}


def test_alerts_use_metrics_and_reasons_that_exist() -> None:
    rules = section(MONITOR_PAGE, "Alerts")
    names = set(re.findall(r"\bsfumato_\w+", rules))
    assert names
    exposed = re.findall(r"^# TYPE (\S+)", Metrics().text().decode(), re.MULTILINE)
    assert {name.removesuffix("_bucket") for name in names} <= set(exposed)
    reasons = {reason for group in re.findall(r'reason=~?"([^"]*)"', rules) for reason in group.split("|")}
    assert reasons
    assert reasons <= set(REASONS)


def test_the_log_table_has_every_event() -> None:
    documented = {event for row in rows(section(MONITOR_PAGE, "Logs")) for event in code(row[0])}
    assert documented == logged_events()


def logged_events() -> set[str]:
    """Return the messages of all calls of LOG in the collector."""
    events = set()
    for path in (ROOT / "src" / "sfumato" / "server").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("LOG."):
                message = ast.unparse(node.args[0]).strip("f'\"")
                events |= {message.format(action=action) for action in ("deleted", "shuffled")}
    return events


def test_the_endpoints_table_has_every_route() -> None:
    cells = rows(section(API_PAGE, "Endpoints"))
    documented = {code(row[0])[0]: row[1] for row in cells if "/v1/" in row[0]}
    assert documented == {f"{operation.method} {operation.path}": ACCESS[operation.who] for operation in OPERATIONS}
    routes = create_app(Settings())._routes._routes.values()
    paths = {
        f"{method} {route.path}" for route in routes for method in route.handlers if method not in ("HEAD", "OPTIONS")
    }
    assert {path for row in cells for path in code(row[0])} == paths


@pytest.mark.parametrize("heading", FIELDS)
def test_every_field_is_in_its_section(heading: str) -> None:
    words = " ".join(re.findall(r"`([^`\n]*)`", section(API_PAGE, heading)))
    words += " ".join(re.findall(r"^```\w*\n(.*?)^```", section(API_PAGE, heading), re.MULTILINE | re.DOTALL))
    types: tuple[Any, ...] = FIELDS[heading]
    missing = [
        f"{kind.__name__}.{field.encode_name}"
        for kind in types
        for field in msgspec.structs.fields(kind)
        if not re.search(rf"\b{field.encode_name}\b", words)
    ]
    assert not missing


def test_actions_name_reasons_that_exist() -> None:
    actions = section(API_PAGE, "Errors").partition("What a client should do:")[2]
    assert set(re.findall(r"`([a-z-]+)`", actions)) <= set(REASONS)


def test_the_limits_are_those_of_the_settings() -> None:
    limits, settings = section(SCALE_PAGE, "Limits"), Settings()
    for shown in (
        f"{settings.max_bytes // 2**20} MiB (`--max-bytes`)",
        f"{settings.rate:g} per second (`--rate`), after a burst of {settings.burst:,}",
        f"| connections | {settings.connections:,},",
        f"| {settings.timeout:g} seconds | `too-slow`",
        f"| {settings.waiting:,}, and 256 MiB",
        f"| {settings.streams} and {settings.streams_each} | `overloaded`",
        f"| {settings.estimates_each} and {settings.estimates_per_collection} at a time |",
        f"| {settings.slow_estimates_each} and {settings.slow_estimates_per_collection} at a time |",
        f"| {settings.estimate_seconds:g} seconds, 1 GiB | `too-hard`",
        f"| connections from one address, or one /64 network of IPv6 | {settings.connections_each},",
        f"| {settings.open_batch} (`--open-batch`) |",
        f"| {settings.open_per_address:,} per day (`--open-per-address`) |",
        f"| {settings.open_per_collection:,} per day (`--open-per-collection`) |",
        f"{settings.plan_seconds:g} seconds, {settings.plan_bytes // 2**30} GiB, {settings.plan_values:,} values",
    ):
        assert shown in limits, shown


def test_pages_that_speak_of_trust_agree_that_the_collector_serves_the_survey_page() -> None:
    limits = (DOCS / "browser-client.md").read_text(encoding="utf-8").partition("## What the module does not do\n")[2]
    assert "**It does not protect against the server of the page,**" in limits
    for page in ("survey-pages.md", "explanations/threat-model.md"):
        source = (DOCS / page).read_text(encoding="utf-8")
        assert "browser-client.md#what-the-module-does-not-do" in source, page
        assert not re.search(r"not rely on\s+the\s+collector", source), page
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "| the collector (apart from the code of the pages that it serves)," in security


def test_the_tested_versions_of_uvicorn_are_those_of_the_code() -> None:
    first, last = TESTED_UVICORN
    for page in (OPERATIONS_PAGE, "operations/troubleshoot.md", "explanations/collector.md"):
        assert f"0.{first} to 0.{last}" in read(page), page


def test_commands_of_operators_have_options_that_exist() -> None:
    commands = {"serve": serve.command, "admin-tokens": admin_tokens.command}
    lines = [
        line
        for page in [DOCS / OPERATIONS_PAGE, *sorted((DOCS / "operations").glob("*.md"))]
        for line in re.findall(r"sfumato ((?:serve|admin-tokens) --[^`'\n]*)", page.read_text(encoding="utf-8"))
    ]
    assert len(lines) > 5
    root = click.Context(sfumato, **sfumato.context_settings)  # click stores the help option of the first context
    for line in lines:
        name, *arguments = shlex.split(line)
        commands[name].make_context(name, arguments, parent=root)  # raises UsageError for an unknown option or value


def test_proxy_and_service_agree_with_the_settings() -> None:
    page = read(OPERATIONS_PAGE)
    match = re.search(r"client_max_body_size (\d+)m;", page)
    assert match is not None
    assert int(match[1]) * 2**20 > Settings().max_bytes
    assert set(re.findall(r"127\.0\.0\.1:(\d+)|--port (\d+)", page)) == {("8000", ""), ("", "8000")}
    assert len(set(re.findall(r"/var/lib/sfumato/\w+\.db", page + read(BACKUP_PAGE)))) == 1


@pytest.mark.component
def test_the_backup_script_copies_a_running_store_that_can_be_restored(tmp_path: Path) -> None:
    match = re.search(r"^```sh\n(.*?)^```", read(BACKUP_PAGE), re.MULTILINE | re.DOTALL)
    assert match is not None
    backups, restored = tmp_path / "backups", tmp_path / "restored"
    backups.mkdir()
    restored.mkdir()
    script = match[1].replace("/var/backups/sfumato", str(backups)).replace("/var/lib/sfumato", str(tmp_path))
    script = script.replace("/opt/sfumato/bin/sfumato", f"{sys.executable} -m sfumato.cli")
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        name, mechanism, _ = collector.create()
        reports = sf.privatize(mechanism, ["none"] * 100)
        collector.send(name, mechanism, reports, "before-backup")
        subprocess.run(["sh", "-c", script], check=True)
    (backup,) = backups.iterdir()
    assert backup.stat().st_mode & 0o777 == 0o600
    shutil.copy(backup, restored / "collect.db")
    with served(f"sqlite:///{restored}/collect.db") as collector:
        collector.send(name, mechanism, reports, "before-backup")
        assert collector.aggregate(name) == sf.aggregate(mechanism, reports)
