"""Reports about changes: the exact law of the ledger that runs, the level of all reports, memory, and estimates."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from benchmarks.baselines.dyadic import Dyadic, Signs
from sfumato.auditing.interpreter import branches
from sfumato.device.ledger import Ledger
from sfumato.errors import BudgetExceeded, InvalidInput, SfumatoError
from sfumato.mechanisms import ChangeSchedule, Draws

COIN = sf.Domain(["no", "yes"])


def schedule(waves: int = 4, epsilon: str = "1", **settings: Any) -> ChangeSchedule:
    return ChangeSchedule(COIN, ["yes"], epsilon, waves, **settings)


SCHEDULES = {
    "an event": schedule(),
    "an event, dyadic": schedule(dyadic=True),
    "two changes": schedule(max_changes=2),
    "two changes, dyadic": schedule(max_changes=2, dyadic=True),
    "three waves, dyadic": schedule(3, "ln 3", max_changes=2, dyadic=True),
    "one wave": schedule(1),
    "more changes than waves": schedule(3, max_changes=7),
}
every_schedule = pytest.mark.parametrize("made", SCHEDULES.values(), ids=SCHEDULES)


def law(made: ChangeSchedule, statuses: tuple[int, ...]) -> dict[Any, Fraction]:
    """The law of all reports, from its formula, with the reports that the device sends in each wave."""
    result = {}
    for scale in range(made.scales):
        for signs in itertools.product((0, 1), repeat=made.waves >> scale):
            left = list(signs)
            sent = tuple((2 * scale + left.pop(0),) if made.is_due(scale, wave) else () for wave in range(made.waves))
            result[sent] = made.probability(scale, signs, statuses)
    return result


# -- levels --------------------------------------------------------------------------------------------------


@every_schedule
def test_the_level_of_all_reports_holds_between_all_histories(made: ChangeSchedule) -> None:
    """Every history, also those with more changes than devices report, at any times."""
    histories = list(itertools.product((0, 1), repeat=made.waves))
    laws = [law(made, history) for history in histories]
    assert all(sum(each.values()) == 1 for each in laws)
    policy = sf.Uniform(sf.Domain.range(len(histories)), made.epsilon)
    for sent in laws[0]:
        assert policy.allows([each[sent] for each in laws])
    if made.waves >= 2 * made.max_changes:  # the level is reached
        tighter = sf.Uniform(policy.domain, made.epsilon * Fraction(999, 1000))
        assert not all(tighter.allows([each[sent] for each in laws]) for sent in laws[0])


@every_schedule
def test_the_promise_is_audited_on_every_branch(made: ChangeSchedule) -> None:
    certificate = sf.audit(*made.promise)
    assert certificate.holds
    assert certificate.coverage == "all"
    assert sf.verify(certificate) == certificate
    document = {**made.to_dict(), "epsilon": str(made.epsilon * Fraction(1001, 1000))}
    wider = ChangeSchedule.from_dict({**document, "weight": str(ChangeSchedule.from_dict(document).weight)})
    _, policy = made.promise
    assert not sf.audit(wider.promise[0], policy).holds or made.weight == wider.weight


def test_a_weight_above_the_level_is_rejected() -> None:
    made = schedule()
    with pytest.raises(InvalidInput, match="weight must be an integer in"):
        ChangeSchedule.from_dict({**made.to_dict(), "weight": str(made.weight + 1)})
    weaker = ChangeSchedule.from_dict({**made.to_dict(), "weight": str(made.weight - 1)})
    assert sf.audit(*weaker.promise).holds
    assert weaker != made
    assert weaker.hash != made.hash


def test_signs_at_the_whole_level_break_it() -> None:
    """A seeded bug: signs at ε instead of ε/c."""
    wrong, right = schedule(max_changes=2, epsilon="2"), schedule(max_changes=2)
    histories = list(itertools.product((0, 1), repeat=4))
    policy = sf.Uniform(sf.Domain.range(len(histories)), right.epsilon)
    laws = [law(wrong, history) for history in histories]
    assert not all(policy.allows([each[sent] for each in laws]) for sent in laws[0])
    assert not sf.audit(wrong.promise[0], right.promise[1]).holds


# -- the code that runs on the device --------------------------------------------------------------------------


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


class ForgetsStatuses(Enumerated):
    """A bug: the device forgets what it has reported, so one change is reported again in every wave."""

    def _reported_statuses(self, *arguments: Any) -> dict[int, int]:
        return dict.fromkeys(super()._reported_statuses(*arguments), 0)


class DrawsTheScaleAgain(Enumerated):
    """A bug: every restart draws another length of intervals."""

    def restarted(self) -> Self:
        again = super().restarted()
        again._waves = [each for each in again._waves if each.collection != "daily"]
        again._releases = []
        return again


def device_law(
    kind: type[Enumerated], made: ChangeSchedule, statuses: tuple[int, ...], answered: tuple[int, ...] | None = None
) -> dict[Any, Fraction]:
    """The exact law of the reports of the ledger in the answered waves, with a restart between any two waves."""
    result: dict[Any, Fraction] = {}

    def run(draws: Draws) -> tuple[Any, ...]:
        ledger, sent = kind(), []
        for wave in range(len(statuses)) if answered is None else answered:
            ledger.path = draws
            sent.append(tuple(ledger.answer_change("daily", made, COIN.label(statuses[wave]), wave).tolist()))
            ledger = ledger.restarted()
        return tuple(sent)

    for sent, weight, total in branches(run):
        result[sent] = result.get(sent, Fraction(0)) + Fraction(weight, total)
    return result


HISTORIES = [(0, 0, 0), (1, 1, 0), (0, 1, 0), (1, 0, 1)]


@pytest.mark.parametrize("dyadic", [False, True])
@pytest.mark.parametrize("changes", [1, 2])
@pytest.mark.parametrize("statuses", HISTORIES)
def test_the_device_has_exactly_the_stated_law(statuses: tuple[int, ...], changes: int, dyadic: bool) -> None:
    made = schedule(3, max_changes=changes, dyadic=dyadic)
    assert device_law(Enumerated, made, statuses) == law(made, statuses)


PATTERNS = [each for size in range(1, 4) for each in itertools.combinations(range(4), size)]


@pytest.mark.parametrize("dyadic", [False, True])
@pytest.mark.parametrize("answered", PATTERNS, ids=repr)
def test_reports_after_absences_are_about_one_interval_and_obey_the_level(
    answered: tuple[int, ...], dyadic: bool
) -> None:
    """By enumeration of the ledger that runs: all histories of four waves with at most two changes."""
    made = schedule(4, max_changes=2, dyadic=dyadic)
    histories = [each for each in itertools.product((0, 1), repeat=4) if sum(np.diff([0, *each]) != 0) <= 2]
    laws = [device_law(Enumerated, made, history, answered) for history in histories]
    policy = sf.Uniform(sf.Domain.range(len(histories)), made.epsilon)
    for sent in set().union(*laws):
        assert policy.allows([each.get(sent, Fraction(0)) for each in laws])
    for history, each in zip(histories, laws, strict=True):
        ends = dict(zip((-1, *range(4)), (0, *history), strict=True))
        for place, wave in enumerate(answered):
            for scale in range(made.scales):
                weights = [sum(p for sent, p in each.items() if sent[place] == (2 * scale + sign,)) for sign in (0, 1)]
                start = wave - (1 << scale)
                is_seen = made.is_due(scale, wave) and start in (-1, *answered)
                assert sum(weights) == (Fraction(1, made.scales) if is_seen else 0)
                if is_seen:  # the mean sign is that of the change over this interval alone
                    change = ends[wave] - ends[start]
                    assert weights[1] * made.scales == made.sign.probability(1, 1 + change)


def test_seeded_bugs_of_the_device_are_caught() -> None:
    made = schedule(3, max_changes=1)
    wrong = [device_law(ForgetsStatuses, made, statuses) for statuses in ((1, 1, 1), (0, 0, 0))]
    assert wrong[0] != law(made, (1, 1, 1))
    assert not all(sf.Uniform(COIN, 1).allows([each[sent] for each in wrong]) for sent in wrong[0])
    made = schedule(3, max_changes=1, dyadic=True)
    assert device_law(DrawsTheScaleAgain, made, (0, 0, 0)) != law(made, (0, 0, 0))


def test_a_wave_is_answered_once_and_the_schedule_is_charged_once(tmp_path: Path) -> None:
    made, path = schedule(8, max_changes=2), tmp_path / "ledger.json"
    Ledger(budget=sf.Uniform(COIN, "1.5")).save(path)
    sent = []
    for wave in range(8):
        with Ledger.open(path) as ledger:
            sent.append(ledger.answer_change("daily", made, ["no", "yes"][wave % 2], wave))
            stored = json.loads(path.read_text())  # written ahead of the return
            assert len(stored["waves"]) == wave + 1
    with Ledger.open(path) as ledger:
        for wave in range(8):
            for value in COIN:
                assert (ledger.answer_change("daily", made, value, wave) == sent[wave]).all()
        assert [str(ledger.total), len(ledger.releases)] == ["1", 1]
        assert list(map(str, ledger.levels(COIN))) == ["'no' against 'yes': 1 of 1.5"]
        with pytest.raises(BudgetExceeded):
            ledger.answer_change("another", made, "no", 0)
        assert len(ledger.releases) == 1


def test_waves_are_answered_in_order_and_may_be_left_out() -> None:
    made, ledger = schedule(8, max_changes=2), Ledger()
    for wave, value, reports in ((0, "no", 1), (3, "yes", 0), (6, "no", 0)):  # no interval has both ends
        assert len(ledger.answer_change("daily", made, value, wave)) == reports
    stored = [each for each in ledger._waves if each.collection == "daily"]
    assert ledger._reported_statuses("daily", made, stored) == {0: 0, 3: 1, 6: 0}
    with pytest.raises(InvalidInput, match="wave must be after 6"):
        ledger.answer_change("daily", made, "no", 5)
    with pytest.raises(InvalidInput, match="wave must be an integer in"):
        ledger.answer_change("daily", made, "no", 8)
    with pytest.raises(InvalidInput, match="mechanism and policy must be those of the earlier reports"):
        ledger.answer_change("daily", schedule(9), "no", 7)
    with pytest.raises(InvalidInput, match="schedule must be"):
        ledger.answer_change("daily", made.sign, "no", 7)  # type: ignore[arg-type]
    with pytest.raises(SfumatoError):
        ledger.answer_change("daily", made, "perhaps", 7)
    document = json.loads(ledger.to_json())
    document["waves"][0]["report"] = "00" * 33
    with pytest.raises(InvalidInput, match="be the HMAC of a status"):
        Ledger.from_json(json.dumps(document)).answer_change("daily", made, "no", 7)


def test_a_ledger_with_changes_has_the_version_of_waves() -> None:
    ledger = Ledger()
    ledger.answer_change("daily", schedule(), "no", 0)
    document = json.loads(ledger.to_json())
    assert document["ledger"] == 2
    assert set(document["waves"][0]) == {"collection", "wave", "release", "report"}
    assert pickle.loads(pickle.dumps(ledger)).to_json() == ledger.to_json()


# -- parameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"counted": []}, "counted must have at least one value"),
        ({"counted": ["no", "yes"]}, "counted must have at least one value"),
        ({"counted": "yes"}, "counted must be a list"),
        ({"counted": ["maybe"]}, "maybe"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": "1e-30"}, "epsilon must be at least about 1e-18 per change"),
        ({"epsilon": "1e-14", "max_changes": 2**20}, "epsilon must be at least about 1e-18 per change"),
        ({"waves": 0}, "waves must be an integer in"),
        ({"waves": 2**21}, "waves must be an integer in"),
        ({"max_changes": 0}, "max_changes must be an integer in"),
        ({"dyadic": 1}, "dyadic must be"),
    ],
)
def test_parameters_out_of_range_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SfumatoError, match=message):
        ChangeSchedule(**{"domain": COIN, "counted": ["yes"], "epsilon": 1, "waves": 4, **settings})


def test_waves_and_scales_that_a_schedule_lacks_are_rejected() -> None:
    made = schedule(4)
    for wave in (-5, -1, 4, 99, 1.5, True, np.int64(4)):
        with pytest.raises(InvalidInput, match="wave must be an integer in"):
            made.standard_error(10, wave)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="wave must be an integer in"):
            made.intervals(wave)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="wave must be an integer in"):
            made.is_due(0, wave)  # type: ignore[arg-type]
    for scale in (-1, 1, 0.5):
        with pytest.raises(InvalidInput, match="scale must be an integer in"):
            made.is_due(scale, 0)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="scale must be an integer in"):
            made.probability(scale, [0, 1], [0, 1, 1, 1])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="signs must have 4 items"):
        made.probability(0, [0, 1], [0, 1, 1, 1])
    with pytest.raises(InvalidInput, match="statuses must have 4 items"):
        made.probability(0, [0, 1, 0, 0], [0, 1])


@pytest.mark.parametrize("dyadic", [False, True])
def test_waves_may_be_numpy_integers(dyadic: bool) -> None:
    made = ChangeSchedule(COIN, ["yes"], 1, np.int64(4), max_changes=np.int8(1), dyadic=dyadic)  # type: ignore[arg-type]
    assert made == schedule(4, dyadic=dyadic)
    assert json.dumps(made.to_dict()) == json.dumps(schedule(4, dyadic=dyadic).to_dict())
    reports = {wave: [0, 1, 1] for wave in range(4)}
    expected = sf.estimate_changes(made, reports)
    result = sf.estimate_changes(made, {np.uint16(wave): each for wave, each in reports.items()})  # type: ignore[misc]
    assert result == expected
    assert made.standard_error(np.int64(10), np.int64(0)) == made.standard_error(10, 0)  # type: ignore[arg-type]
    assert made.intervals(np.int32(3)) == made.intervals(3)  # type: ignore[arg-type]
    assert made.is_due(np.int8(0), np.uint8(3))  # type: ignore[arg-type]
    assert result.change(np.int64(3)) == expected.change(3)  # type: ignore[arg-type]
    assert result.frequency(np.int64(0)) == expected.frequency(0)  # type: ignore[arg-type]


@every_schedule
def test_a_schedule_is_data(made: ChangeSchedule) -> None:
    again = ChangeSchedule.from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    assert again.hash == made.hash
    assert hash(again) == hash(made)
    assert pickle.loads(pickle.dumps(made)) == made
    for change in ({"version": 2}, {"more": 1}, {"epsilon": None}, {"counted": "yes"}, {"domain": 3}):
        with pytest.raises(InvalidInput):
            ChangeSchedule.from_dict({**made.to_dict(), **change})


def test_several_values_may_be_counted_and_levels_may_be_infinite() -> None:
    illnesses = sf.Domain(["none", "flu", "covid"])
    made = ChangeSchedule(illnesses, ["covid", "flu"], "inf", 3, max_changes=3)
    assert made.counted == ("flu", "covid")
    assert [made.status(value) for value in illnesses] == [0, 1, 1]
    ledger = Ledger()
    sent = [ledger.answer_change("daily", made, value, wave) for wave, value in enumerate(["flu", "covid", "none"])]
    assert (int(sent[0][0]), int(sent[2][0])) == (1, 0)
    with pytest.raises(InvalidInput, match="shape"):
        made.effective_statuses([0, 1])
    with pytest.raises(InvalidInput, match="0 and 1"):
        made.effective_statuses([[0, 2]])


# -- estimates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("waves", "changes"), [(8, 1), (8, 2), (128, 4)])
def test_errors_are_those_of_the_published_mechanisms(waves: int, changes: int) -> None:
    signs, dyadic = (schedule(waves, max_changes=changes, dyadic=each) for each in (False, True))
    assert signs.change_error(1) ** 2 == pytest.approx(Signs(waves, changes, 1.0).change_variance(0), rel=1e-12)
    baseline = Dyadic(waves, changes, 1.0)
    assert dyadic.change_error(1) ** 2 == pytest.approx(baseline.change_variance(0), rel=1e-12)
    for wave in (0, 2, waves - 1):
        assert dyadic.standard_error(1, wave) ** 2 == pytest.approx(baseline.variance(wave + 1, 0), rel=1e-12)
        assert signs.standard_error(1, wave) ** 2 == pytest.approx((wave + 1) * signs.change_error(1) ** 2)


@pytest.mark.parametrize("made", [schedule(3, max_changes=2), schedule(3, max_changes=2, dyadic=True)], ids=repr)
@pytest.mark.parametrize("statuses", [(0, 0, 0), (1, 1, 1), (0, 1, 0), (1, 0, 1)])
def test_estimates_are_unbiased_and_their_errors_are_bounds(made: ChangeSchedule, statuses: tuple[int, ...]) -> None:
    """By enumeration of one person's reports, given that each scale has one person."""
    effective = [0, *made.effective_statuses([list(statuses)])[0].tolist()]
    moments = np.zeros((2, made.waves, made.scales))
    for scale in range(made.scales):
        for signs in itertools.product((0, 1), repeat=made.waves >> scale):
            p = float(made.probability(scale, signs, statuses)) * made.scales
            for interval, sign in enumerate(signs):
                score = (2 * sign - 1) / made.gain
                moments[:, (interval + 1 << scale) - 1, scale] += p * score, p * score**2
    for wave in range(made.waves):
        parts = made.intervals(wave)
        assert sum(moments[0, end, scale] for scale, end in parts) == pytest.approx(effective[wave + 1])
        variance = sum(moments[1, end, scale] - moments[0, end, scale] ** 2 for scale, end in parts)
        assert variance <= len(parts) / made.gain**2 + 1e-12
        assert moments[0, wave, 0] == pytest.approx(effective[wave + 1] - effective[wave])


def simulated(made: ChangeSchedule, statuses: Any, seed: int) -> dict[int, Any]:
    """The reports of many devices, drawn wave by wave from the law of the schedule."""
    random = np.random.default_rng(seed)
    n, waves = statuses.shape
    ones = made.sign.matrix()[:, 1]
    scales = random.integers(made.scales, size=n)
    padded = np.column_stack([np.zeros(n, int), made.effective_statuses(statuses)])
    reports = {}
    for wave in range(waves):
        due = (wave + 1) % (1 << scales) == 0
        change = padded[due, wave + 1] - padded[due, wave + 1 - (1 << scales[due])]
        reports[wave] = 2 * scales[due] + (random.random(len(change)) < ones[change + 1])
    return reports


@pytest.mark.slow
@pytest.mark.parametrize("dyadic", [False, True])
def test_intervals_cover_the_reported_shares(dyadic: bool) -> None:
    """400 surveys of 1,000 people. The bounds reject a coverage of 95% with probability below 1e-6 in any cell."""
    made = schedule(6, "2", max_changes=2, dyadic=dyadic)
    random = np.random.default_rng(3)
    statuses = (np.arange(6) >= random.integers(0, 12, size=(1_000, 1))).astype(int)
    statuses[:100, 3:] = 0
    truth = made.effective_statuses(statuses).mean(axis=0)
    inside = np.zeros((2, 6))
    for repetition in range(400):
        table: Any = sf.estimate_changes(made, simulated(made, statuses, repetition)).to_columns()
        inside[0] += (table["low"] <= truth) & (truth <= table["high"])
        steps = np.diff(truth, prepend=0)
        inside[1] += (table["change_low"] <= steps) & (steps <= table["change_high"])
    assert (inside >= 350).all()
    assert inside.mean() <= 393


@pytest.mark.parametrize("dyadic", [False, True])
@pytest.mark.parametrize("attendance", [1.0, 0.5])
def test_ledgers_that_leave_out_waves_have_honest_errors(attendance: float, dyadic: bool) -> None:
    """60 surveys of 150 ledgers, each of which answers a wave with the stated probability; fixed seeds.

    The two-sided tests of the mean errors of 4 shares and 4 changes reject unbiased estimates with probability alpha
    below 0.001 in total: |z| < 4.2 in 8 cells. At least 49 of 60 intervals contain the truth in every cell, which a
    coverage of 95% misses with probability below 0.001 in total.
    """
    made, waves, surveys = schedule(4, "6", dyadic=dyadic), 4, 60
    random, stream = np.random.default_rng(5), sf.InsecureSeeded(5)
    statuses = (np.arange(waves) >= random.choice([0, 0, 1, 3, 9, 9, 9, 9], size=(150, 1))).astype(int)
    shares = statuses.mean(axis=0)
    truth = np.array([shares, np.diff(shares, prepend=0)])
    values, inside = [], np.zeros((2, waves))
    for _ in range(surveys):
        reports: dict[int, list[Any]] = {wave: [] for wave in range(waves)}
        for history, is_present in zip(statuses, random.random(statuses.shape) < attendance, strict=True):
            ledger = Ledger()
            for wave in np.flatnonzero(is_present).tolist():
                value = COIN.label(int(history[wave]))
                reports[wave].append(ledger.answer_change("daily", made, value, wave, stream=stream))
        table: Any = sf.estimate_changes(made, reports).to_columns()
        values.append([table["frequency"], table["change"]])
        limits = np.array([[table["low"], table["high"]], [table["change_low"], table["change_high"]]])
        inside += (limits[:, 0] <= truth) & (truth <= limits[:, 1])
    errors = np.array(values) - truth
    z = errors.mean(axis=0) / errors.std(axis=0, ddof=1) * math.sqrt(surveys)
    assert np.abs(z).max() < 4.2
    assert (inside >= 49).all()


def test_errors_cover_people_who_leave_out_the_wave_of_a_fall() -> None:
    """A quarter of the people have the statuses 1, 0, 1. Others report about wave 1 than about waves 0 and 2."""
    made = schedule(3, "inf", max_changes=3)
    result = sf.estimate_changes(made, {0: [1, 0], 1: [1, 0], 2: [1, 0]})
    changed, square = 1 / 4, 1 / made.gain**2
    both_rises = 2 * (square - changed) + 4 * changed * (1 - changed)
    the_fall = square - changed**2
    assert (both_rises + the_fall) / 2 > 3 * square / 2  # more than the bound for people who answer in all waves
    variance = result.frequency(2).standard_error ** 2
    assert variance == pytest.approx(3 * (square + 1) / 2)
    assert variance > (both_rises + the_fall) / 2
    assert result.to_pandas()["standard_error"][2] == pytest.approx(math.sqrt(variance))
    assert result.frequency(1).standard_error ** 2 == pytest.approx(2 * square / 2)
    assert result.change(2).standard_error ** 2 == pytest.approx(square / 2)


@pytest.mark.parametrize("dyadic", [False, True])
def test_the_table_has_the_numbers_of_the_methods(dyadic: bool) -> None:
    made = schedule(6, dyadic=dyadic)
    statuses = np.random.default_rng(1).integers(2, size=(500, 6))
    result = sf.estimate_changes(made, simulated(made, statuses, 1))
    table = result.to_pandas(0.9)
    for wave in range(6):
        for name, error, number in (
            ("frequency", "standard_error", result.frequency(wave)),
            ("change", "change_error", result.change(wave)),
        ):
            assert table[name][wave] == pytest.approx(number.value)
            assert table[error][wave] == pytest.approx(number.standard_error)
        assert (table["low"][wave], table["high"][wave]) == pytest.approx(result.frequency(wave).interval(0.9))
    assert type(result).from_dict(json.loads(json.dumps(result.to_dict()))) == result
    assert pickle.loads(pickle.dumps(result)) == result
    assert result.plot().axes
    assert len(result._repr_html_()) > 100
    with pytest.raises(InvalidInput):
        type(result).from_dict({**result.to_dict(), "counts": [[[0, -1]]]})


def test_reports_come_in_several_forms_and_must_belong_to_the_schedule() -> None:
    made = schedule(4, dyadic=True)
    people = [Ledger() for _ in range(30)]
    listed = {wave: [each.answer_change("a", made, "no", wave) for each in people] for wave in range(4)}
    joined = {wave: np.concatenate(each) for wave, each in listed.items()}
    expected = sf.estimate_changes(made, joined)
    for form in (list, np.array, pd.Series, tuple):
        assert sf.estimate_changes(made, {wave: form(each) for wave, each in joined.items()}) == expected
    assert sf.estimate_changes(made, listed) == expected
    assert expected.counts.sum() == sum(map(len, joined.values()))
    with pytest.raises(InvalidInput, match="the reports of wave 0 must be integers of"):
        sf.estimate_changes(made, {0: [2]})  # intervals of two waves end later
    with pytest.raises(InvalidInput, match="the reports of wave 0 must be integers of"):
        sf.estimate_changes(made, {0: [0.5]})
    with pytest.raises(InvalidInput, match="the wave must be an integer in"):
        sf.estimate_changes(made, {4: [0]})
    with pytest.raises(InvalidInput, match="mapping"):
        sf.estimate_changes(made, [[0]])  # type: ignore[arg-type]
    nothing = sf.estimate_changes(made, {})
    assert math.isnan(nothing.to_pandas()["frequency"][0])
    with pytest.raises(InvalidInput, match="have reports about all its intervals"):
        nothing.frequency(0)


def test_a_report_without_intervals_is_a_report_of_the_sign() -> None:
    """Without dyadic intervals, a wave is an ordinary collection about the mean of -1, 0 and 1."""
    made = schedule(2)
    reports = [1] * 60 + [0] * 40
    mean = sf.estimate(made.sign, sf.aggregate(made.sign, reports)).mean()
    assert mean.value == pytest.approx(sf.estimate_changes(made, {0: reports}).change(0).value)


def test_a_device_that_stops_between_its_two_writes_keeps_the_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, path = schedule(64, dyadic=True), tmp_path / "ledger.json"
    Ledger().save(path)
    write = Ledger._write_ahead

    def stop_after_the_scale(ledger: Ledger) -> None:
        write(ledger)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, Ledger.open(path) as ledger:
        patched.setattr(Ledger, "_write_ahead", stop_after_the_scale)
        with pytest.raises(KeyboardInterrupt):
            ledger.answer_change("daily", made, "yes", 0)
    scale = Ledger.load(path).releases[0].report
    for wave in range(64):
        with Ledger.open(path) as ledger:
            report = ledger.answer_change("daily", made, "yes", wave)
        assert [each.report for each in ledger.releases] == [scale]
        assert scale is not None
        assert {int(each) // 2 for each in report} <= {scale[0]}
