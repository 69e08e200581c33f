"""Two libraries that people use, audited as black boxes: slow, optional, and each in an environment of its own.

Their samplers speak the line protocol of ``sfumato audit-sampler`` from a virtual environment made for the purpose, so
that what they depend on stays apart. The seeds are fixed, so the results are too.
"""

from __future__ import annotations

import json
import os
import subprocess
import venv
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.auditing.black_box import audit_sampler
from sfumato.cli import main
from sfumato.cli._lines import LineSampler

pytestmark = pytest.mark.component  # needs an index of packages

TRIALS = 100_000
PACKAGES = ["multi-freq-ldpy==0.2.5", "pure-ldp==1.2.0", "scipy", "scikit-learn", "statsmodels", "xxhash<4"]

SUBSET_SELECTION = """
import json, sys
import numpy as np
from numba import njit
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

@njit
def seed(number):
    np.random.seed(number)

seed(7)
for line in sys.stdin:
    print(*SS_Client(json.loads(line), 128, 1.0))
"""

# One cohort and one hash function that collides nowhere: a plain unary encoding, f set for epsilon = 1.
RAPPOR = """
import json, random, sys
from pure_ldp.frequency_oracles.rappor import RAPPORClient

random.seed(7)
client = RAPPORClient(f=0.5, m=16, hash_funcs=[[int]], num_of_cohorts=1, index_mapper=lambda x: x)
client.update_params(f=client.convert_eps_to_f(1), hash_funcs=[[int]])
for line in sys.stdin:
    bits, cohort = client.privatise(json.loads(line))
    print(*bits, sep="")
"""


@pytest.fixture(scope="module")
def peer_python(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (pytestconfig.getoption("--soak") or os.environ.get("SFUMATO_PEERS") == "1"):
        pytest.skip("audits of other libraries run only with --soak or SFUMATO_PEERS=1")
    environment = tmp_path_factory.mktemp("peers") / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"the other libraries cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    return python


def test_the_order_of_a_subset_gives_the_value_away_in_multi_freq_ldpy(peer_python: Path, tmp_path: Path) -> None:
    (tmp_path / "sampler.py").write_text(SUBSET_SELECTION)
    with LineSampler([str(peer_python), str(tmp_path / "sampler.py")], TRIALS) as lines:

        def sampler(value: object, n: int) -> list[list[int]]:
            return [[int(item) for item in line.split()] for line in lines(value, n)]

        policy = sf.Uniform(sf.Domain.range(128), 1)
        audit = audit_sampler(sampler, policy, TRIALS, values=[1, 3], batch=True)
    print(audit)  # shown by pytest -rP
    plain = audit.plain or audit
    assert plain.violated
    assert plain.event == f"the first item is {plain.pair[0]}"
    assert plain.epsilon_lower > 4
    assert audit.epsilon_lower > 5  # the true value stands in front and never elsewhere: a learned score sees both


def test_the_true_bit_is_never_cleared_in_pure_ldp(
    peer_python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sampler.py").write_text(RAPPOR)
    (tmp_path / "policy.toml").write_text('[domain]\nsize = 16\n[policy]\nkind = "uniform"\nepsilon = 1\n')
    options = ["--policy", str(tmp_path / "policy.toml"), "--trials", str(TRIALS), "--json"]
    code = main(["audit-sampler", *options, "--", str(peer_python), str(tmp_path / "sampler.py")])
    captured = capsys.readouterr()
    assert code == 1, captured.err
    print(captured.out)
    result = json.loads(captured.out)
    plain = result["plain"] or result
    assert plain["counts"][1] == 0  # infinite, as far as so many reports can show
    assert plain["epsilon_lower"] > 6
    true = plain["pair"][1]
    name = "the first byte" if true == 0 else f"byte {true} (counted from 0)"
    assert plain["event"] == f"{name} is b'0'"
