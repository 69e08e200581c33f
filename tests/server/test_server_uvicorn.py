"""What the collector's connections rely on inside uvicorn: this fails where a new version has changed it.

After a failure: read what changed in ``uvicorn/protocols/http``, adapt ``sfumato.server.http.connections``, and only
then widen ``TESTED_UVICORN`` and the range in ``pyproject.toml``. ``test_server_connections.py`` tests the behaviour.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httptools
import pytest
import uvicorn
from uvicorn.protocols import utils
from uvicorn.protocols.http import flow_control, httptools_impl
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from sfumato.errors import InvalidInput
from sfumato.server.http.connections import TESTED_UVICORN, Connection, JoinedWrites, check_uvicorn
from support import ROOT

#: The methods of uvicorn's protocol that are overridden or called, with their parameters.
METHODS = {
    "__init__": ["self", "config", "server_state", "app_state", "_loop"],
    "connection_made": ["self", "transport"],
    "connection_lost": ["self", "exc"],
    "data_received": ["self", "data"],
    "on_headers_complete": ["self"],
    "on_body": ["self", "body"],
    "_unsupported_upgrade_warning": ["self"],
    "pause_writing": ["self"],
    "resume_writing": ["self"],
    "send_400_response": ["self", "msg"],
}
#: Attributes of the protocol, of its flow control and of a request under way that are read or set.
ATTRIBUTES = {
    "client",
    "cycle",
    "flow",
    "loop",
    "parser",
    "pipeline",
    "server_state",
    "timeout_keep_alive_task",
    "transport",
}
CYCLE_ATTRIBUTES = {"disconnected", "keep_alive", "message_event", "more_body", "response_complete"}
CYCLE_PARAMETERS = {
    "scope", "transport", "flow", "logger", "access_logger", "access_log", "default_headers", "message_event",
    "expect_100_continue", "keep_alive", "on_response",
}  # fmt: skip


@pytest.fixture
def protocol() -> Any:
    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        raise AssertionError

    loop = asyncio.new_event_loop()
    config = uvicorn.Config(app, log_config=None, ws="none", lifespan="off")
    config.load()
    yield HttpToolsProtocol(config, ServerState(), {}, loop)
    loop.close()


def test_uvicorn_calls_and_is_called_with_the_known_parameters() -> None:
    for name, parameters in METHODS.items():
        assert name in vars(HttpToolsProtocol), f"HttpToolsProtocol.{name} is gone"
        assert list(inspect.signature(getattr(HttpToolsProtocol, name)).parameters) == parameters, name
    overridden = {
        name for name, value in vars(Connection).items() if callable(value) and hasattr(HttpToolsProtocol, name)
    }
    assert overridden - set(dir(object)) | {"__init__"} == set(METHODS)


def test_the_classes_are_those_that_are_extended() -> None:
    assert HttpToolsProtocol.__mro__[1] is asyncio.Protocol
    assert Connection.__mro__[1] is HttpToolsProtocol
    assert set(inspect.signature(RequestResponseCycle.__init__).parameters) == {"self"} | CYCLE_PARAMETERS


def test_the_attributes_of_a_connection_are_there(protocol: Any) -> None:
    assert set(vars(protocol)) >= ATTRIBUTES
    assert protocol.cycle is None
    assert protocol.timeout_keep_alive_task is None
    assert len(protocol.pipeline) == 0
    assert protocol.server_state.default_headers == []
    added = {"_all", "_earlier", "_overhead", "_progress", "_since", "network", "waits_for_client"}
    assert not added & set(vars(protocol)), "a name is used twice"
    assert callable(httptools.HttpRequestParser(protocol).should_upgrade)


def test_the_attributes_of_a_request_and_of_flow_control_are_there() -> None:
    cycle = RequestResponseCycle(**dict.fromkeys(CYCLE_PARAMETERS))  # type: ignore[arg-type]
    assert set(vars(cycle)) >= CYCLE_ATTRIBUTES
    assert cycle.response_complete is False
    assert cycle.disconnected is False
    paused: list[bool] = []
    flow = FlowControl(SimpleNamespace(pause_reading=lambda: paused.append(True)))  # type: ignore[arg-type]
    assert flow.write_paused is False
    flow.pause_reading()
    assert paused == [True]


def test_callbacks_of_the_parser_reach_the_overriding_methods() -> None:
    """The parser looks its callbacks up by name, on the object."""
    source = inspect.getsource(httptools_impl.HttpToolsProtocol.__init__)
    assert "httptools.HttpRequestParser(self)" in source
    assert "self.send_400_response(" in inspect.getsource(HttpToolsProtocol.data_received)
    assert "self.pipeline.appendleft(" in inspect.getsource(HttpToolsProtocol.on_headers_complete)
    assert "self.timeout_keep_alive_task = " in inspect.getsource(HttpToolsProtocol.on_response_complete)


def test_uvicorn_calls_nothing_of_a_transport_that_is_not_passed_on() -> None:
    used = {
        name
        for module in (httptools_impl, flow_control, utils)
        for name in re.findall(r"\b_?transport\.(\w+)", inspect.getsource(module))
    }
    assert used - {"set_protocol"} <= set(vars(JoinedWrites))  # that one only for web sockets, which are off


def test_only_tested_versions_are_served_with() -> None:
    first, last = TESTED_UVICORN
    check_uvicorn()
    for version in (f"0.{first}.0", f"0.{last}.3"):
        check_uvicorn(version)
    for version in (f"0.{first - 1}.0", f"0.{last + 1}.0", "1.0.0", "0.x", ""):
        with pytest.raises(InvalidInput, match=f"must have a version from 0.{first} to 0.{last}"):
            check_uvicorn(version)


def test_the_project_file_names_the_same_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    first, last = TESTED_UVICORN
    wanted = f"uvicorn>=0.{first},<0.{last + 1}"
    assert wanted in project["project"]["optional-dependencies"]["server"]
    assert wanted in project["dependency-groups"]["dev"]


def test_an_untested_version_ends_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from sfumato.server import run
    from sfumato.server.settings import Settings

    monkeypatch.setattr(check_uvicorn, "__defaults__", ("0.99.0",))
    monkeypatch.setattr(uvicorn, "run", lambda *_, **__: pytest.fail("it was started"))
    with pytest.raises(InvalidInput, match=r"got '0\.99\.0'"):
        run.serve(Settings(store=f"sqlite:///{tmp_path}/none.db"), "127.0.0.1", 0)
