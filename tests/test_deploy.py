"""The files in ``deploy``: they name options, metrics and extras that exist, and nginx and systemd accept them."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import yaml  # type: ignore[import-untyped]

from sfumato.cli import serve
from sfumato.device import Client
from sfumato.server import run
from sfumato.server.http.telemetry import Metrics
from sfumato.server.jobs.watchdog import notify, report_health
from support import ROOT
from support.collectors import POLICY, free_port, served, until

DEPLOY = ROOT / "deploy"
OPTIONS = {option for parameter in serve.command.params for option in parameter.opts}


def read(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def options(words: list[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("--")}


def test_compose_and_kubernetes_use_options_that_exist() -> None:
    compose = yaml.safe_load(read("compose.yaml"))
    words = compose["services"]["collector"]["command"]
    assert words[0] == "serve"
    assert options(words) <= OPTIONS
    assert {"--trust-proxy", "--allow-hosts"} <= options(words)
    (subnet,) = compose["networks"]["inside"]["ipam"]["config"]
    assert f"--trust-proxy={subnet['subnet']}" in words
    for service in compose["services"].values():
        assert set(service.get("secrets", [])) <= set(compose["secrets"])
        volumes = {volume.partition(":")[0] for volume in service.get("volumes", [])}
        assert {volume for volume in volumes if not volume.startswith(".")} <= set(compose["volumes"])
    deployment, service, ingress = yaml.safe_load_all(read("kubernetes.yaml"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"][0] == "serve"
    assert options(container["args"]) <= OPTIONS
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert ingress["spec"]["rules"][0]["host"] in container["args"][-1]


def seconds(duration: str) -> int:
    return int(duration.removesuffix("s"))


#: Keys of services that the compose file uses; Compose rejects a key that it does not know.
SERVICE_KEYS = {
    *("build", "cap_drop", "command", "depends_on", "environment", "healthcheck", "image", "logging", "networks"),
    *("ports", "read_only", "restart", "secrets", "security_opt", "stop_grace_period", "tmpfs", "ulimits", "volumes"),
}


def test_the_parts_of_the_compose_file_fit_together() -> None:
    compose = yaml.safe_load(read("compose.yaml"))
    assert set(compose) == {"name", "x-logging", "services", "networks", "volumes", "secrets"}
    services = compose["services"]
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, name
        assert set(service.get("depends_on", ())) <= set(services)
        assert set(service["networks"]) <= set(compose["networks"])
        assert service["restart"] == "unless-stopped"
        assert service["logging"]["options"].keys() == {"max-size", "max-file"}
        assert ("ports" in service) == (name == "proxy")  # nothing else has an address outside
    collector, database = services["collector"], services["database"]
    assert collector["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert "healthcheck" in database
    assert (DEPLOY / collector["build"]["context"] / collector["build"]["dockerfile"]).is_file()
    assert seconds(collector["stop_grace_period"]) > run._GRACE
    assert collector["read_only"]
    assert collector["tmpfs"] == ["/tmp"]
    words = dict(word.removeprefix("--").split("=", 1) for word in collector["command"][1:])
    assert f"reverse_proxy collector:{words['port']} " in read("Caddyfile")
    store = urlsplit(words["store"])
    assert (store.username, store.hostname) == (database["environment"]["POSTGRES_USER"], "database")
    assert store.path == f"/{database['environment']['POSTGRES_DB']}"
    secrets = {"pgpass": collector["environment"]["PGPASSFILE"]}
    secrets["database_password"] = database["environment"]["POSTGRES_PASSWORD_FILE"]
    assert secrets == {name: f"/run/secrets/{name}" for name in compose["secrets"]}


def test_the_parts_of_the_kubernetes_file_fit_together() -> None:
    deployment, service, ingress = yaml.safe_load_all(read("kubernetes.yaml"))
    kinds = {"Deployment": "apps/v1", "Service": "v1", "Ingress": "networking.k8s.io/v1"}
    for document in (deployment, service, ingress):
        assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
        assert kinds[document["kind"]] == document["apiVersion"]
    pod = deployment["spec"]["template"]["spec"]
    assert deployment["spec"]["template"]["metadata"]["labels"] == deployment["spec"]["selector"]["matchLabels"]
    assert pod["terminationGracePeriodSeconds"] > run._GRACE
    assert pod["securityContext"]["runAsNonRoot"]
    assert f"USER {pod['securityContext']['runAsUser']}" in read("Dockerfile")
    (container,) = pod["containers"]
    (port,) = (port["containerPort"] for port in container["ports"])
    assert f"--port={port}" in container["args"]
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": port}
    variables = {variable["name"] for variable in container["env"]}
    assert set(re.findall(r"\$\((\w+)\)", " ".join(container["args"]))) <= variables
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert container["securityContext"]["readOnlyRootFilesystem"]
    (service_port,) = service["spec"]["ports"]
    assert service_port["targetPort"] == port
    (rule,) = ingress["spec"]["rules"]
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]
    metrics, everything = rule["http"]["paths"]
    assert (metrics["path"], metrics["pathType"]) == ("/metrics", "Exact")
    assert metrics["backend"]["service"]["name"] != service["metadata"]["name"]
    assert (everything["path"], everything["pathType"]) == ("/", "Prefix")
    target = {"name": service["metadata"]["name"], "port": {"number": service_port["port"]}}
    assert everything["backend"]["service"] == target


def test_the_image_installs_extras_that_exist_and_probes_a_path_that_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (stated,) = re.findall(r"'\.\[(.*?)\]'", read("Dockerfile"))
    assert set(stated.split(",")) <= set(extras)
    assert "/readyz" in read("Dockerfile")


def test_the_image_is_built_from_the_files_of_the_package_alone() -> None:
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]

    def is_sent(path: str) -> bool:
        """Whether Docker sends a file to the build: the last pattern decides that matches it or a folder around it."""
        names, sent = [path, *map(str, PurePosixPath(path).parents)][:-1], True
        for pattern in patterns:
            regex = re.escape(pattern.removeprefix("!")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
            if any(re.fullmatch(regex, name) for name in names):
                sent = pattern.startswith("!")
        return sent

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = ["pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]]
    for path in (*needed, *project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]):
        assert is_sent(path), path
    assert is_sent("src/sfumato/server/store/base.py")
    secrets = [entry["file"].removeprefix("./") for entry in yaml.safe_load(read("compose.yaml"))["secrets"].values()]
    others = ["collect.db", "collect.db-wal", ".env", ".git/config", "clients/secret", "src/sfumato/__pycache__/a.pyc"]
    for path in (*(f"deploy/{secret}" for secret in secrets), *others):
        assert not is_sent(path), path
    folders = {f"/deploy/{PurePosixPath(secret).parent}/" for secret in secrets}
    assert folders <= set((ROOT / ".gitignore").read_text().splitlines())


def test_alerts_and_dashboard_use_metrics_that_exist() -> None:
    text = Metrics().text().decode()
    metrics = {line.split("{")[0].split()[0] for line in text.splitlines() if not line.startswith("#")}
    metrics |= {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    metrics |= {f"{name}_bucket" for name in metrics}
    rules = yaml.safe_load(read("alerts.yaml"))["groups"][0]["rules"]
    expressions = [rule["expr"] for rule in rules]
    expressions += [
        target["expr"] for panel in json.loads(read("grafana.json"))["panels"] for target in panel["targets"]
    ]
    for expression in expressions:
        assert set(re.findall(r"sfumato_\w+", expression)) <= metrics, expression
    page = (ROOT / "docs" / "operations" / "monitor.md").read_text(encoding="utf-8")
    assert read("alerts.yaml").partition("\n")[2] in page


def test_the_files_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert f"```ini\n{read('sfumato.service')}```" in page
    nginx = read("nginx.conf").partition("\n")[2]
    assert "".join(f"    {line}\n" if line else "\n" for line in nginx.splitlines()) in page


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not on this machine")
    unit = read("sfumato.service")
    command = re.search(r"^ExecStart=(\S+) serve (.*)$", unit, flags=re.MULTILINE)
    assert command is not None
    assert options(command[2].split()) <= OPTIONS
    file = tmp_path / "sfumato.service"
    file.write_text(unit.replace(command[1], "/bin/true"))
    done = subprocess.run([program, "verify", str(file)], capture_output=True, text=True, check=False)
    assert "sfumato.service" not in done.stderr, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("promtool", "check", "rules", str(DEPLOY / "alerts.yaml")),
        ("caddy", "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")),
    ],
    ids=lambda command: command[0],
)
def test_prometheus_and_caddy_accept_their_files(command: tuple[str, ...], tmp_path: Path) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not on this machine")
    folders = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    environment = os.environ | folders | {"SFUMATO_HOST": "collect.example"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


# -- systemd's watchdog ----------------------------------------------------------------------------------------


def test_the_watchdog_hears_of_a_collector_that_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not notify("READY=1")  # nothing listens
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "40000")
        healthy = [True]

        async def run() -> list[str]:
            task = asyncio.create_task(report_health(lambda: healthy[0]))
            messages = [(await asyncio.to_thread(listener.recv, 100)).decode() for _ in range(4)]
            healthy[0] = False
            await asyncio.sleep(0.05)
            listener.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while listener.recv(100):
                    pass
            await asyncio.sleep(0.05)  # five intervals without a message
            with pytest.raises(BlockingIOError):
                listener.recv(100)
            task.cancel()
            return messages

        assert asyncio.run(run()) == ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"]


# -- nginx -----------------------------------------------------------------------------------------------------


@pytest.mark.component
def test_nginx_takes_submissions_over_tls_and_logs_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nginx, openssl = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"), shutil.which("openssl")
    if nginx is None or openssl is None:
        pytest.skip("nginx or openssl is not on this machine")
    private, certificate, secure_port, plain_port = (
        tmp_path / "key.pem",
        tmp_path / "cert.pem",
        free_port(),
        free_port(),
    )
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=collect.example",
         "-addext", "subjectAltName=DNS:collect.example", "-keyout", str(private), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    with served(f"sqlite:///{tmp_path}/collect.db", hosts="collect.example") as collector:
        site = read("nginx.conf")
        for before, after in {
            "listen 443 ssl;": f"listen 127.0.0.1:{secure_port} ssl;",
            "listen 80;": f"listen 127.0.0.1:{plain_port};",
            "    listen [::]:443 ssl;\n": "",
            "    listen [::]:80;\n": "",
            "/etc/letsencrypt/live/collect.example/fullchain.pem": str(certificate),
            "/etc/letsencrypt/live/collect.example/privkey.pem": str(private),
            "127.0.0.1:8000": f"127.0.0.1:{collector.port}",
            "networks 100;": "networks 2;",
        }.items():
            assert site.count(before) == 1, before
            site = site.replace(before, after)
        log = tmp_path / "error.log"
        folders = " ".join(
            f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        user = "user root;" if os.getuid() == 0 else ""  # the user of workers otherwise, which cannot write here
        # The test states addresses of its clients, because this machine may have no address of IPv6.
        site = f"set_real_ip_from 127.0.0.1; real_ip_header X-Address; {site}"
        configuration = (
            f"{user} daemon off; worker_processes 1; pid {tmp_path}/nginx.pid; error_log {log} info;\n"
            f"events {{}}\nhttp {{ access_log {tmp_path}/access.log; {folders}\n{site}}}\n"
        )
        (tmp_path / "nginx.conf").write_text(configuration)
        command = [nginx, "-e", str(log), "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
        done = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        process = subprocess.Popen(command)
        try:
            until(lambda: _listens(secure_port))
            context = ssl.create_default_context(cafile=str(certificate))

            def ask(path: str, head: str = "", host: str = "collect.example") -> bytes:
                return send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{head}\r\n".encode())

            def send(request: bytes) -> bytes:
                with (
                    socket.create_connection(("127.0.0.1", secure_port), timeout=30) as plain,
                    context.wrap_socket(plain, server_hostname="collect.example") as secure,
                ):
                    secure.sendall(request)
                    answer = b""
                    while piece := secure.recv(2**16):
                        answer += piece
                return answer

            # A client of the library: only the address of the name and the certificate authority are those of the test.
            monkeypatch.setattr(socket, "getaddrinfo", _on_this_machine(socket.getaddrinfo))
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            address = f"https://collect.example:{secure_port}"
            admin = Client(address, collector.admin, attempts=3)
            name, _ = admin.create("Through nginx", POLICY, "rr", submission="token", results="public")
            participant = Client(address, admin.tokens(name, 1)[0], attempts=3)
            participant.submit(name, [1], batch="one-person")
            keyed, key = admin.create("Many through nginx", POLICY, "rr", submission="key", results="public")
            reports = np.arange(300_000, dtype=np.uint8) % 5  # long enough for a temporary file of nginx, which it logs
            machine = Client(address, key, attempts=3)
            machine.submit(keyed, reports, batch="many-people")
            assert [admin.aggregate(one).n for one in (name, keyed)] == [1, len(reports)]
            for client in (admin, participant, machine):
                client.close()
            # Two live streams of one network leave its other addresses no request, and other networks theirs.
            stream = f"GET /v1/collections/{name}/live HTTP/1.1\r\nHost: collect.example\r\nX-Address: "
            with contextlib.ExitStack() as stack:
                for other in ("2001:db8::1", "2001:db8:0:0:a:a:a:a"):
                    plain = stack.enter_context(socket.create_connection(("127.0.0.1", secure_port), timeout=30))
                    secure = stack.enter_context(context.wrap_socket(plain, server_hostname="collect.example"))
                    secure.sendall(f"{stream}{other}\r\n\r\n".encode())
                    assert secure.recv(2**10).startswith(b"HTTP/1.1 200 ")
                assert ask("/readyz", "X-Address: 2001:db8::3\r\n").startswith(b"HTTP/1.1 429 ")
                for other in ("2001:db8:0:1::1", "2001:db9::1", "192.0.2.1"):
                    assert ask("/readyz", f"X-Address: {other}\r\n").startswith(b"HTTP/1.1 200 ")
            too_long = f"POST /v1/collections HTTP/1.1\r\nHost: collect.example\r\nContent-Length: {2**24}\r\n\r\n"
            assert send(too_long.encode()).startswith(b"HTTP/1.1 413 ")
            assert ask("/readyz").endswith(b'{"status":"ready"}')
            assert ask("/v1/collections").startswith(b"HTTP/1.1 200 ")
            assert b"wrong-host" in ask("/v1/collections", host="second.example")
            assert b"Strict-Transport-Security: max-age=31536000" in ask("/studio")
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", plain_port)) as plain_client:
                plain_client.request("GET", "/studio", headers={"Host": "collect.example"})
                moved = plain_client.getresponse()
                assert (moved.status, moved.headers["Location"]) == (301, "https://collect.example/studio")
            assert ask("/metrics").startswith(b"HTTP/1.1 403 ")
            assert ask("/v1/collections", "Broken header\r\n").startswith(b"HTTP/1.1 400 ")
            with socket.create_connection(("127.0.0.1", secure_port)) as plain:
                plain.sendall(b"not TLS\r\n\r\n")
                plain.recv(100)
        finally:
            process.terminate()
            process.wait()
    # nginx without its collector: the errors of every request would name the sender.
    process = subprocess.Popen(command)
    try:
        until(lambda: _listens(secure_port))
        assert all(b" 502 " in ask("/readyz") for _ in range(3))
    finally:
        process.terminate()
        process.wait()
    written = log.read_text()
    assert "start worker process" in written  # the log of nginx itself works
    assert "client" not in written
    assert "127.0.0.1" not in written.replace(f"127.0.0.1:{collector.port}", "")
    access = tmp_path / "access.log"
    assert not access.exists() or access.read_text() == ""
    # Without the two lines, the same nginx writes addresses.
    (tmp_path / "nginx.conf").write_text(re.sub(r"(access_log off|error_log  /dev/null crit);", "", configuration))
    process = subprocess.Popen(command)
    try:
        until(lambda: _listens(secure_port))
        assert b" 502 " in ask("/readyz")
    finally:
        process.terminate()
        process.wait()
    assert "client: 127.0.0.1" in log.read_text()
    assert "127.0.0.1" in access.read_text()


def _on_this_machine(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """Return a resolver for which the name of the examples is an address of this machine."""
    return lambda host, *rest, **named: resolve("127.0.0.1" if host == "collect.example" else host, *rest, **named)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
