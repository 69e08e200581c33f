"""The loop of the page on devices loses no report and sends none twice, wherever its process is killed."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato as sf
from support import ROOT
from support.collectors import served

pytestmark = pytest.mark.component

#: Devices that run the loop until they kill themselves at a step, and once more. The script loads the library once, and
#: every run is a fork of it. A step is a line of Python of the loop, or of the files whose work a kill can interrupt.
DEVICES = """
import json, os, signal, sys
import sfumato as sf
from pathlib import Path
from sfumato.device import Client, client, ledger, transport
from sfumato._core import atomic_files, locks

loop, url, collection, folder, places = sys.argv[1:4] + [Path(sys.argv[4]), json.loads(sys.argv[5])]
FILES = {"loop", *(module.__file__ for module in (client, ledger, transport, atomic_files, locks))}
DOMAIN = sf.Domain(["none", "flu", "hiv", "cancer"])


def take_part(value, place):
    # Run the loop for a user with a value, up to a place between 0 and 1; return the number of steps.
    steps = 0

    def step(frame, event, argument):
        nonlocal steps
        if frame.f_code.co_filename not in FILES:
            return None
        steps += event == "line"
        if steps == place > 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return step

    names = {"sf": sf, "domain": DOMAIN, "policy": sf.HighLow(DOMAIN, ["hiv", "cancer"], epsilon="0.5")}
    sys.settrace(step)
    exec(compile(loop, "loop", "exec"), names)
    with Client(url, attempts=1) as device:
        names["take_part"](device, collection, ask=lambda: value)
    sys.settrace(None)
    return steps


def run(number, value, place=0):
    # Fork a device with its own folder; return its exit code and the number of its steps.
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        home = folder / str(number)
        home.mkdir(exist_ok=True)
        os.chdir(home)
        try:
            os.write(writer, str(take_part(value, place)).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    with open(reader) as pipe:
        steps = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), int(steps or 0)


_, steps = run("first", "flu")
codes = []
for number, place in enumerate(places):
    codes.append(run(number, "flu", 1 + int(place * steps))[0])
    codes.append(run(number, "hiv")[0])  # the next start, with another value by now
print(json.dumps({"steps": steps, "codes": codes}))
"""


def loop_of_the_page() -> str:
    """The definitions of the loop, without its use."""
    page = (ROOT / "docs" / "how-to" / "on-the-device.md").read_text(encoding="utf-8")
    (loop,) = re.findall(r"^```python\n((?:(?!^```).)*def take_part.*?)^(?:with Client|```)", page, re.M | re.S)
    return str(loop)


def test_a_device_that_is_killed_anywhere_sends_its_report_at_the_next_start(tmp_path: Path, is_soak: bool) -> None:
    generator, kills = random.Random(2026), 300 if is_soak else 30
    places = [(number + generator.random()) / kills for number in range(kills)]  # one in each part of the loop
    domain = sf.Domain(["none", "flu", "hiv", "cancer"])
    with served(f"sqlite:///{tmp_path}/collect.db") as collector:
        name, _, _ = collector.create(sf.HighLow(domain, ["hiv", "cancer"], epsilon="0.5"), mechanism="rr")
        command = [sys.executable, "-c", DEVICES, loop_of_the_page(), collector.url, name, str(tmp_path)]
        run = subprocess.run([*command, json.dumps(places)], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        result = json.loads(run.stdout)
        counted = collector.aggregate(name).n
    print(result["steps"], "steps,", counted, "reports of", kills + 1, "devices")
    assert result["codes"] == [-signal.SIGKILL, 0] * kills
    ledgers = [sf.Ledger.load(tmp_path / str(number) / "ledger.json") for number in ["first", *range(kills)]]
    assert [len(ledger.releases) for ledger in ledgers] == [1] * (kills + 1)
    assert counted == kills + 1
