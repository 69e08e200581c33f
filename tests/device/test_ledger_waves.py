"""Waves of a ledger: the exact law of all reports, memory that survives restarts, exhaustion, and seeded bugs."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import pytest

import sfumato as sf
from sfumato.auditing.interpreter import branches
from sfumato.device.ledger import Ledger
from sfumato.errors import BudgetExceeded, InvalidInput
from sfumato.mechanisms import Draws, MemoizedMechanism

COIN = sf.Domain(["heads", "tails"])
FRUIT = sf.Domain(["apple", "pear", "fig"])


def memoized(domain: sf.Domain = FRUIT, first: str = "1", lifetime: str = "2", **settings: Any) -> MemoizedMechanism:
    mechanism = sf.design(sf.Uniform(domain, first), lifetime=sf.Uniform(domain, lifetime), **settings)
    assert isinstance(mechanism, MemoizedMechanism)
    return mechanism


# -- the exact law of the code that runs on the device -------------------------------------------------------


class Enumerated(Ledger):
    """A ledger whose decisions come from an interpreter, which follows every branch."""

    path: Draws

    def _decisions(self, stream: object) -> Draws:  # noqa: ARG002
        return self.path

    def restarted(self) -> Self:
        """The ledger as another process reads it."""
        again = cast("Self", type(self).from_json(self.to_json()))
        again.path = self.path
        return again


class ReusesReports(Enumerated):
    """A bug: the randomness of a wave is used for the next one too."""

    def answer_wave(self, collection: str, mechanism: MemoizedMechanism, value: object, wave: int, **rest: Any) -> Any:
        report = super().answer_wave(collection, mechanism, value, wave, **rest)
        last = self._waves[-1]
        for earlier in self._waves[:-1]:
            if earlier.release == last.release:
                self._waves[-1] = dataclasses.replace(last, report=earlier.report)
                return np.frombuffer(earlier.report, np.uint8)
        return report


class ForgetsAnswers(Enumerated):
    """A bug: a restart loses the permanent answers, which are drawn again."""

    def restarted(self) -> Self:
        again = type(self)()
        again.path = self.path
        return again


def law_of(kind: type[Enumerated], mechanism: MemoizedMechanism, values: Sequence[Any]) -> dict[Any, Fraction]:
    """The exact joint law of the reports of several waves, with a restart between any two of them."""
    law: dict[Any, Fraction] = {}

    def run(draws: Draws) -> tuple[int, ...]:
        ledger, reports = kind(), []
        for wave, value in enumerate(values):
            ledger.path = draws
            reports.append(int(ledger.answer_wave("daily", mechanism, value, wave)[0]))
            ledger = ledger.restarted()
        return tuple(reports)

    for reports, weight, total in branches(run):
        law[reports] = law.get(reports, Fraction(0)) + Fraction(weight, total)
    return law


def expected_law(mechanism: MemoizedMechanism, values: Sequence[Any]) -> dict[Any, Fraction]:
    """The same law from its formula: one permanent answer per value, all of them independent."""
    groups = [[i for i, value in enumerate(values) if value == each] for each in dict.fromkeys(values)]
    law = {}
    for reports in itertools.product(mechanism.reports(), repeat=len(values)):
        law[reports] = Fraction(1)
        for group in groups:
            x = mechanism.domain.encode_one(values[group[0]])
            law[reports] *= mechanism.joint_probability([reports[i] for i in group], x)
    return law


HISTORIES = [["heads"] * 3, ["heads", "tails", "heads"], ["tails", "tails", "heads"]]


@pytest.mark.slow
@pytest.mark.parametrize("values", HISTORIES, ids="-".join)
def test_the_reports_of_all_waves_have_exactly_the_stated_law(values: list[str]) -> None:
    mechanism = memoized(COIN)
    assert law_of(Enumerated, mechanism, values) == expected_law(mechanism, values)


def test_all_reports_of_the_device_obey_both_levels() -> None:
    """The likelihoods of every history of reports, read from the ledger that runs, for both values."""
    mechanism = memoized(COIN)
    laws = [law_of(Enumerated, mechanism, [value] * 3) for value in COIN]
    for reports in laws[0]:
        assert mechanism.lifetime.allows([law[reports] for law in laws])
    for wave in range(3):
        for report in mechanism.reports():
            column = [sum(p for reports, p in law.items() if reports[wave] == report) for law in laws]
            assert sf.Uniform(COIN, 1).allows(column)
            assert not sf.Uniform(COIN, "0.9").allows(column)


@pytest.mark.parametrize("bug", [ReusesReports, ForgetsAnswers])
def test_seeded_bugs_are_caught_by_the_law(bug: type[Enumerated]) -> None:
    mechanism = memoized(COIN)
    values = ["heads"] * 3
    wrong = law_of(bug, mechanism, values)
    assert sum(wrong.values()) == 1
    assert wrong != expected_law(mechanism, values)


@pytest.mark.slow
def test_an_answer_that_is_drawn_again_breaks_the_lifetime_policy() -> None:
    mechanism = memoized(COIN, "1", "1.2")
    laws = [law_of(ForgetsAnswers, mechanism, [value] * 3) for value in COIN]
    assert not all(mechanism.lifetime.allows([law[reports] for law in laws]) for reports in laws[0])


# -- memory ------------------------------------------------------------------------------------------------


def test_a_wave_is_answered_once() -> None:
    mechanism, ledger = memoized(first="0.1"), Ledger()
    first = ledger.answer_wave("daily", mechanism, "fig", 0)
    again = [ledger.answer_wave("daily", mechanism, value, 0) for value in ("fig", "apple", "pear") * 20]
    assert all((report == first).all() for report in again)
    assert len(ledger.releases) == 1


def test_each_new_value_is_charged_once() -> None:
    mechanism, ledger = memoized(), Ledger()
    for wave, value in enumerate(["fig", "fig", "pear", "fig", "pear", "apple", "fig"]):
        ledger.answer_wave("daily", mechanism, value, wave)
    assert [release.permanent for release in ledger.releases] == [True] * 3
    assert str(ledger.total) == "6"
    assert ledger.spent(FRUIT) == mechanism.lifetime_policy(changes=2)
    assert [wave.release for wave in ledger._waves] == [0, 0, 1, 0, 1, 2, 0]


def test_charges_are_not_permanent_answers() -> None:
    mechanism, ledger = memoized(max_changes=1), Ledger()
    ledger.charge("daily", mechanism, mechanism.lifetime)
    for wave, value in enumerate(["fig", "pear"]):
        ledger.answer_wave("daily", mechanism, value, wave)
    assert [wave.release for wave in ledger._waves] == [1, 2]


@pytest.mark.parametrize(
    ("settings", "releases"),
    [
        ({"max_changes": 1}, [0, 1, 1, 0, 1, 1]),
        ({"max_changes": 0}, [0, 0, 0, 0, 0, 0]),
        ({"refresh_every": 2}, [0, 0, 1, 1, 2, 2]),
        ({"refresh_every": 2, "max_changes": 1}, [0, 0, 1, 1, 1, 1]),
    ],
)
def test_a_device_keeps_answering_when_its_memory_is_full(settings: dict[str, Any], releases: list[int]) -> None:
    mechanism, ledger = memoized(**settings), Ledger()
    values = ["fig", "pear", "apple", "fig", "pear", "apple"]
    for wave, value in enumerate(values):
        assert len(ledger.answer_wave("daily", mechanism, value, wave)) == 1
    assert [wave.release for wave in ledger._waves] == releases
    effective = mechanism.effective_values([[FRUIT.encode_one(value) for value in values]])[0].tolist()
    first_of = {release: effective[releases.index(release)] for release in releases}
    assert effective == [first_of[release] for release in releases]


def test_a_budget_that_is_used_up_is_not_visible() -> None:
    mechanism, ledger = memoized(), Ledger(budget=sf.Uniform(FRUIT, 4))
    for wave, value in enumerate(["fig", "pear", "apple", "apple", "fig"]):
        ledger.answer_wave("daily", mechanism, value, wave)
    assert [wave.release for wave in ledger._waves] == [0, 1, 1, 1, 0]
    assert str(ledger.total) == "4"
    with pytest.raises(BudgetExceeded):
        ledger.answer_wave("another", mechanism, "fig", 0)
    assert len(ledger.releases) == 2


def test_waves_and_single_answers_do_not_share_a_collection() -> None:
    mechanism, ledger = memoized(), Ledger()
    ledger.answer_wave("daily", mechanism, "fig", 0)
    with pytest.raises(InvalidInput, match="mechanism and policy must be those of the earlier reports"):
        ledger.answer("daily", mechanism, mechanism.lifetime, "fig")
    with pytest.raises(InvalidInput, match="mechanism and policy must be"):
        ledger.answer_wave("daily", memoized(lifetime="3"), "fig", 1)
    with pytest.raises(InvalidInput, match="wave must be an integer"):
        ledger.answer_wave("daily", mechanism, "fig", -1)
    with pytest.raises(InvalidInput, match="mechanism must be a MemoizedMechanism"):
        ledger.answer_wave("another", mechanism.single, "fig", 0)  # type: ignore[arg-type]
    first = ledger.answer_wave("daily", mechanism, "pear", cast("int", np.int64(0)))
    assert (first == ledger.answer_wave("daily", mechanism, "fig", 0)).all()


def test_the_file_is_written_before_each_step(tmp_path: Path) -> None:
    path, mechanism = tmp_path / "ledger.json", memoized()
    Ledger().save(path)
    with Ledger.open(path) as ledger:
        report = ledger.answer_wave("daily", mechanism, "fig", 0)
        stored = json.loads(path.read_text())
        assert stored["ledger"] == 2
        assert [wave["report"] for wave in stored["waves"]] == [mechanism.report_format.encode(int(report[0])).hex()]
        copied = Ledger.load(path)
    # A ledger that does not know the latest wave must not replace the file.
    with Ledger.open(path) as ledger:
        ledger.answer_wave("daily", mechanism, "fig", 1)
    with pytest.raises(InvalidInput, match="hold only releases that this ledger has"):
        copied.save(path)


def test_a_ledger_without_waves_has_the_earlier_version() -> None:
    ledger = Ledger()
    ledger.answer("once", sf.mechanisms.RandomizedResponse(FRUIT, 1), sf.Uniform(FRUIT, 1), "fig")
    document = json.loads(ledger.to_json())
    assert document["ledger"] == 1
    assert "waves" not in document
    assert "permanent" not in document["releases"][0]


@pytest.mark.parametrize(
    "change",
    [
        {"release": 1},
        {"release": -1},
        {"wave": "x"},
        {"report": "zz"},
        {"collection": ""},
        {"collection": "other"},
        {"more": 1},
    ],
)
def test_a_misshapen_wave_is_refused(change: dict[str, Any]) -> None:
    ledger = Ledger()
    ledger.answer_wave("daily", memoized(), "fig", 0)
    document = json.loads(ledger.to_json())
    document["waves"][0].update(change)
    with pytest.raises(InvalidInput):
        Ledger.from_json(json.dumps(document))


def test_streams_and_bitmaps_work_with_waves() -> None:
    domain = sf.Domain.range(12)
    mechanism = sf.design(sf.Uniform(domain, 1), mechanism="subset", lifetime=sf.Uniform(domain, 3))
    assert isinstance(mechanism, MemoizedMechanism)
    histories = []
    for _ in range(2):
        ledger, stream = Ledger(), sf.InsecureSeeded(5)
        histories.append([ledger.answer_wave("daily", mechanism, 3, wave, stream=stream) for wave in range(5)])
        again = Ledger.from_json(ledger.to_json())
        assert (again.answer_wave("daily", mechanism, 3, 4) == histories[-1][4]).all()
    assert np.array_equal(np.concatenate(histories[0]), np.concatenate(histories[1]))
    counts = sf.aggregate(mechanism, np.concatenate(histories[0]))
    assert counts.n == 5


def test_values_of_one_bucket_share_an_answer() -> None:
    domain = sf.Domain.range(9)
    single = sf.mechanisms.LocalHashing(domain, 1, buckets=3)
    mechanism = MemoizedMechanism.for_policies(single, sf.Uniform(domain, 1), sf.Uniform(domain, 2))
    for seed in range(20):
        ledger, stream = Ledger(), sf.InsecureSeeded(seed)
        for wave in range(18):
            ledger.answer_wave("daily", mechanism, wave % 9, wave, stream=stream)
        answers = [int.from_bytes(release.report or b"", "little") for release in ledger.releases]
        assert len({answer // 3 for answer in answers}) == 1, "a person keeps one hash function"
        used = {single.bucket(answers[0] // 3, x) for x in range(9)}
        assert len(answers) == len(used) <= 3
        assert ledger.total <= sf.Epsilon(6)


def test_answers_of_two_buckets_have_exactly_the_stated_law() -> None:
    """Two waves with a change: one hash function, and independent answers of its buckets."""
    domain = sf.Domain.range(3)
    single = sf.mechanisms.LocalHashing(domain, "ln 3", buckets=2)
    mechanism = MemoizedMechanism.for_policies(single, sf.Uniform(domain, "ln 3"), sf.Uniform(domain, "inf"))
    law = law_of(Enumerated, mechanism, [1, 2])
    keep, uniform = mechanism.keep_probability(0), Fraction(1, mechanism.outputs)
    expected: dict[Any, Fraction] = {}
    for reports in itertools.product(mechanism.reports(), repeat=2):
        total = Fraction(0)
        for function in range(single.hashes):  # at an infinite level, permanent answers are the true buckets
            answers = [function * 2 + single.bucket(function, x) for x in (1, 2)]
            pairs = zip(reports, answers, strict=True)
            likelihoods = [keep * (report == answer) + (1 - keep) * uniform for report, answer in pairs]
            total += likelihoods[0] * likelihoods[1] / single.hashes
        expected[reports] = total
    assert law == expected


@pytest.mark.slow
@pytest.mark.parametrize("single", [sf.mechanisms.RandomizedResponse(COIN, 1), sf.mechanisms.LocalHashing(COIN, 1)])
def test_a_schedule_hides_whether_and_when_a_value_changed(single: Any) -> None:
    """All histories of two periods obey the levels of two answers; without a schedule, not even two equal people do."""
    policies = sf.Uniform(COIN, 1), sf.Uniform(COIN, "1.2")
    histories = list(itertools.product(COIN, repeat=2))
    everyone = sf.Domain.range(len(histories))
    scheduled = MemoizedMechanism.for_policies(single, *policies, refresh_every=1)
    laws = [law_of(Enumerated, scheduled, values) for values in histories]
    limit = sf.Uniform(everyone, scheduled.lifetime_policy(changes=1).epsilon)  # type: ignore[attr-defined]
    assert all(limit.allows([law[reports] for law in laws]) for reports in laws[0])
    repeated = MemoizedMechanism.for_policies(single, sf.Uniform(COIN, 1), sf.Uniform(COIN, 1))  # ρ = 1
    laws = [law_of(Enumerated, repeated, values) for values in histories]
    seen = {reports for law in laws for reports in law}
    assert not all(limit.allows([law.get(reports, Fraction(0)) for law in laws]) for reports in seen)


# -- readable totals ---------------------------------------------------------------------------------------


def test_levels_are_finite_and_readable_for_every_kind_of_policy() -> None:
    illnesses = sf.Domain(["none", "flu", "hiv"])
    ledger = Ledger(budget=[sf.HighLow(illnesses, ["hiv"], 2), sf.Uniform(COIN, 1)])
    policy = sf.HighLow(illnesses, ["hiv"], "0.5")
    for name in ("spring", "summer", "autumn"):
        ledger.charge(name, sf.design(policy), policy)
    ledger.charge("coin", sf.mechanisms.RandomizedResponse(COIN, "0.25"), sf.Uniform(COIN, "0.25"))
    assert list(map(str, ledger.levels(illnesses))) == [
        "'hiv' against 'none': 1.5 of 2",
        "'none' against 'flu': not limited",
    ]
    assert list(map(str, ledger.levels(COIN))) == ["'heads' against 'tails': 0.25 of 1"]
    assert ledger.levels(FRUIT) == ()
    assert ledger.total.is_infinite
    assert str(ledger.protected_total) == "1.75"


def test_levels_of_policies_with_several_levels_and_of_other_kinds() -> None:
    blocks = sf.Blocks(sf.Domain.range(4), "aabb", ["1", "0.5"], 2)
    ledger = Ledger()
    ledger.charge("blocks", sf.design(blocks, max_seconds=0), blocks)
    assert list(map(str, ledger.levels(blocks.domain))) == [
        "2 against 3: 0.5",
        "0 against 1: 1",
        "0 against 2: 2",
    ]
    prior = sf.Prior(COIN, ["1/3", "2/3"], 1)
    ledger = Ledger(budget=sf.Prior(COIN, ["1/3", "2/3"], 3))
    ledger.charge("prior", sf.design(prior), prior)
    assert list(map(str, ledger.levels(COIN))) == ["a prior policy: 1 of 3"]
    assert str(ledger.protected_total) == "1"
    assert str(Ledger().protected_total) == "0"


# -- a killed process --------------------------------------------------------------------------------------

#: Devices that answer waves, each in a process that kills itself at a step: the n-th time that it comes to a place. The
#: script loads the library once, and every device is a fork of it. After each device it copies what is stored and sent.
DEVICES = """
import json, os, signal, sys
import sfumato as sf
from pathlib import Path
from sfumato.device.ledger import Ledger
from sfumato.mechanisms import InstantaneousResponse, MemoizedMechanism, RandomizedResponse

folder, kills, waves_per_run = Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
path, sent = folder / "ledger.json", folder / "sent"
domain = sf.Domain(["apple", "pear", "fig"])
policies = sf.Uniform(domain, 1), sf.Uniform(domain, 2)
mechanism = MemoizedMechanism.for_policies(RandomizedResponse(domain, 1), *policies, refresh_every=1)


def run(first, place, count):
    left = count

    def come_to(name):
        nonlocal left
        left -= name == place
        if name == place and left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(function, name):
        def surrounded(*arguments, **options):
            come_to(f"before {name}")
            result = function(*arguments, **options)
            come_to(f"after {name}")
            return result
        return surrounded

    InstantaneousResponse.sample = around(InstantaneousResponse.sample, "the report")
    MemoizedMechanism.draw_permanent = around(MemoizedMechanism.draw_permanent, "the answer")
    Path.replace = around(Path.replace, "the file")
    for wave in range(first, first + waves_per_run):
        with Ledger.open(path) as ledger:
            report = int(ledger.answer_wave("daily", mechanism, ["fig", "pear"][wave % 2], wave)[0])
        come_to("before sending")
        with sent.open("a") as file:
            file.write(f"{wave} {report}\\n")
        come_to("after sending")


for number, (place, count) in enumerate(kills):
    lines = sent.read_text().splitlines()
    first = int(lines[-1].split()[0]) if lines else 0  # the last wave is sent again
    child = os.fork()
    if child == 0:
        run(first, place, count)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    snapshot = {"code": code, "ledger": path.read_text(), "sent": sent.read_text().splitlines()}
    (folder / f"after-{number}.json").write_text(json.dumps(snapshot))
"""
STEPS = ("the report", "the answer", "the file", "sending")
PLACES = [f"{side} {step}" for step in STEPS for side in ("before", "after")]


def check_killed_devices(folder: Path, kills: Sequence[tuple[str, int]], waves_per_run: int = 4) -> dict[str, int]:
    """Kill devices at places; check that nothing is drawn again, and that no wave is sent with two reports."""
    script = folder / "devices.py"
    script.write_text(DEVICES)
    Ledger().save(folder / "ledger.json")
    (folder / "sent").touch()
    subprocess.run([sys.executable, str(script), str(folder), json.dumps(kills), str(waves_per_run)], check=True)
    answers: dict[int, Any] = {}
    reports: dict[int, Any] = {}
    killed = between = 0
    for number in range(len(kills)):
        after = json.loads((folder / f"after-{number}.json").read_text())
        assert after["code"] in (0, -signal.SIGKILL)
        killed += after["code"] != 0
        ledger = Ledger.from_json(after["ledger"])
        # Nothing that was stored has changed since the last restart.
        for place, release in enumerate(ledger.releases):
            assert answers.setdefault(place, release) == release
        for wave in ledger._waves:
            assert reports.setdefault(wave.wave, wave) == wave
        # Every period has one permanent answer, and at most the last one has no report yet.
        assert len({release.value for release in ledger.releases}) == len(ledger.releases)
        assert [wave.release for wave in ledger._waves] == list(range(len(ledger._waves)))
        waiting = len(ledger.releases) - len(ledger._waves)
        assert waiting in (0, 1)
        between += waiting and after["code"] != 0
        # Every report that was sent is the stored one, also if it was sent twice.
        for line in after["sent"]:
            number_of_wave, report = map(int, line.split())
            assert int.from_bytes(reports[number_of_wave].report, "little") == report
    sent_twice = len(after["sent"]) - len({line.split()[0] for line in after["sent"]})
    return {"killed": killed, "between": between, "waves": len(reports), "sent twice": sent_twice}


@pytest.mark.slow
def test_a_killed_device_draws_nothing_again(tmp_path: Path) -> None:
    kills = [(place, 2) for place in PLACES] + [("before the report", 2)]
    counts = check_killed_devices(tmp_path, kills)
    assert counts["killed"] == len(kills)
    assert counts["between"] >= 3
    assert counts["sent twice"] >= 3


@pytest.mark.soak
def test_a_device_that_is_killed_fifty_times_between_its_draws_draws_nothing_again(tmp_path: Path) -> None:
    counts = check_killed_devices(tmp_path, [("before the report", 1)] + [("before the report", 2)] * 49)
    assert counts["killed"] == counts["between"] == 50
    others = tmp_path / "others"
    others.mkdir()
    generator = random.Random(2026)
    kills = [(generator.choice(PLACES), generator.randrange(2, 4)) for _ in range(50)]
    print(counts, check_killed_devices(others, kills))
