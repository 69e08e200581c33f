"""The wheel: it builds, installs into an empty environment outside the checkout, and does its main job there."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from support import ROOT

pytestmark = pytest.mark.component

SMOKE = """
import sfumato as sf, pathlib, importlib.metadata
assert "site-packages" in sf.__file__, sf.__file__
assert (pathlib.Path(sf.__file__).parent / "py.typed").exists()
assert (pathlib.Path(sf.__file__).parent / "server" / "pages" / "sfumato.js").exists()
assert importlib.metadata.version("sfumato")
domain = sf.Domain(["none", "flu", "hiv", "cancer"])
policy = sf.HighLow(domain, sensitive=["hiv", "cancer"], epsilon=1)
mechanism = sf.mechanisms.SubsetSelection(domain, 1)
certificate = sf.audit(mechanism, policy).raise_if_violated()
assert sf.verify(sf.Certificate.from_json(certificate.to_json())) == certificate
print("smoke test passed")
"""


#: Where the wheel has the files of the browser client, by where the repository has them.
CLIENT = {
    "clients/js/sfumato.js": "sfumato/server/pages/sfumato.js",
    "clients/js/sfumato.d.ts": "sfumato/server/pages/sfumato.d.ts",
}


def run(*command: str | Path, cwd: Path) -> str:
    result = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}:\n{result.stdout}\n{result.stderr}"
    return result.stdout


def test_the_wheel_works_outside_the_checkout(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"sfumato"}
        for source, place in CLIENT.items():
            assert names.count(place) == 1
            assert archive.read(place) == (ROOT / source).read_bytes()
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    # What the wheel needs is taken at the versions that the tests run with.
    lock = ROOT / "requirements" / "lock.txt"
    run(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--retries",
        "10",
        "--constraint",
        lock,
        wheel,
        cwd=tmp_path,
    )
    assert run(python, "-I", "-c", SMOKE, cwd=tmp_path).strip() == "smoke test passed"


def test_an_editable_install_has_no_copy_of_the_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy in the environment would be out of date after the next change of the source."""
    build = importlib.import_module("hatchling.build")
    monkeypatch.chdir(ROOT)
    with zipfile.ZipFile(tmp_path / build.build_editable(str(tmp_path))) as archive:
        assert [name for name in archive.namelist() if name.endswith((".js", ".ts"))] == []


def test_the_source_distribution_has_the_client_with_its_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = importlib.import_module("hatchling.build")
    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / build.build_sdist(str(tmp_path))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "clients" / "js").rglob("*") if path.is_file()}
    assert set(CLIENT) <= files <= names
