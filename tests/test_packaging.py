"""The wheel: it builds, installs into an empty environment outside the checkout, and does its main job there."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]

SMOKE = """
import sfumato as sf, pathlib, importlib.metadata
assert "site-packages" in sf.__file__, sf.__file__
assert (pathlib.Path(sf.__file__).parent / "py.typed").exists()
assert importlib.metadata.version("sfumato")
domain = sf.Domain(["none", "flu", "hiv", "cancer"])
policy = sf.HighLow(domain, sensitive=["hiv", "cancer"], epsilon=1)
mechanism = sf.mechanisms.SubsetSelection(domain, 1)
certificate = sf.audit(mechanism, policy).raise_if_violated()
assert sf.audit_again(sf.Certificate.from_json(certificate.to_json())) == certificate
print("smoke test passed")
"""


def run(*command: str | Path, cwd: Path) -> str:
    result = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}:\n{result.stdout}\n{result.stderr}"
    return result.stdout


def test_the_wheel_works_outside_the_checkout(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
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
