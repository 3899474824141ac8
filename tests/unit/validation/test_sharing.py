"""Workers per device: which number is best, work per second, and both in every form of a report."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaletest.cli.main import run as program
from scaletest.model import Record, VerdictKind
from scaletest.model.errors import UsageError
from scaletest.validation.before_run import device_names
from scaletest.validation.judging.evaluation import Evaluation, evaluate
from scaletest.validation.judging.sharing import compare_sharing
from scaletest.validation.judging.steps import summarise, work_rates
from scaletest.validation.judging.throughput import Throughput
from scaletest.validation.measure.launch import refuse_other_devices
from scaletest.validation.options import DeploymentOptions, ValidationPlace
from scaletest.validation.plan import Plan
from tests.unit import made_runs as runs
from tests.unit.made import measured
from tests.unit.valid import checked

NOWHERE = DeploymentOptions("", "", "", "", 1.0, False)
HERE = ValidationPlace(True, None, NOWHERE, False)


def plan(*numbers: int, devices: int = 1, **settings: Any) -> Plan:
    slots = numbers[-1] * devices
    return Plan(
        limit=slots,
        per_device=numbers,
        devices=devices,
        device_glob="/dev/x*",
        queue="q",
        **settings,
    )


def evaluated(shared_plan: Plan, cycles: dict[int, float], **options: Any) -> Evaluation:
    """The result when a request takes that many seconds with so many workers per device."""
    measurements, records = measured(
        {k * shared_plan.devices: cycle for k, cycle in cycles.items()}, **options
    )
    result = evaluate(shared_plan, measurements, records, random.Random(1))
    checked(result.to_dict(), "result")
    return result


def test_the_best_number_is_the_least_that_is_not_worse() -> None:
    # given devices that serve two runs at full speed
    result = evaluated(plan(1, 2, 4, 8, devices=2), {1: 1.0, 2: 1.0, 4: 2.0, 8: 4.0})
    assert (result.sharing.best, result.sharing.equals) == (2, (2, 4, 8))
    assert [candidate.worse for candidate in result.sharing.candidates] == [
        True,
        False,
        False,
        False,
    ]
    assert result.verdict.kind is VerdictKind.PASS
    assert result.verdict.reason.startswith("2 workers on each device")
    # and the law is one of workers per device, not of workers
    choice = result.growth.choice
    assert (choice.law.name, choice.law.ceiling) == ("capped", pytest.approx(4, rel=0.02))


def test_a_number_that_is_better_by_more_than_chance_is_best_alone() -> None:
    result = evaluated(plan(1, 2, 4), {1: 1.0, 2: 1.1, 4: 1.5})
    assert (result.sharing.best, result.sharing.equals) == (4, (4,))
    assert "every other number does less" in result.verdict.reason


def test_a_number_that_runs_out_of_memory_is_excluded_and_fails_the_run(tmp_path: Path) -> None:
    result = runs.make("sharing", tmp_path).result
    assert result.sharing.best == 2
    assert [candidate.excluded for candidate in result.sharing.candidates] == [
        "",
        "",
        "",
        "256 requests failed, 256 at the memory limit",
    ]
    assert result.verdict.kind is VerdictKind.FAIL
    assert "256 reached the limit of a device's memory" in result.verdict.reason


def test_without_a_measured_number_there_is_no_best_number() -> None:
    result = evaluated(plan(1, 2), {1: 1.0, 2: 1.0}, count=1)
    assert (result.sharing.best, result.verdict.kind) == (None, VerdictKind.INVALID)


def test_imprecise_measurements_give_no_reliable_best_number() -> None:
    # given so few and so scattered requests that the first number may do a tenth of the second, or
    # all of it
    result = evaluated(plan(1, 2), {1: 1.0, 2: 1.5}, count={1: 12, 2: 8}, scatter=0.5)
    assert result.sharing.best == 1
    assert result.verdict.kind is VerdictKind.INVALID
    assert "too imprecise to call a number best" in result.verdict.reason
    assert "<max_step>" in result.verdict.remedy


def test_of_equal_numbers_one_is_seldom_called_worse() -> None:
    # given five numbers that do the same, each run with what no interval within it sees
    wrong, chance = 0, random.Random(7)
    for seed in range(200):
        cycles = {k: k * (1 + chance.gauss(0, 0.008)) for k in (1, 2, 4, 8, 16)}
        numbers = {1: 64, 2: 32, 4: 16, 8: 8, 16: 6}
        measurements, records = measured(cycles, count=numbers, scatter=0.05, seed=seed)
        comparison = plan(1, 2, 4, 8, 16)
        shared = compare_sharing(comparison, summarise(comparison, measurements, records))
        wrong += any(candidate.worse for candidate in shared.candidates)
    # expect one run in twenty, and room for chance: 16 is exceeded in 2 of 100 series
    assert wrong <= 16


# -- work
# --------------------------------------------------------------------------------------------------


def with_frames(records: list[Record], amounts: Any) -> list[Record]:
    return [
        replace(row, reply=replace(row.reply, figures={"frames": amounts()})) for row in records
    ]


def frames(row: Record, value: Any) -> Record:
    return replace(
        row, reply=replace(row.reply, figures={"frames": value, "fps": 9.0, "bytes": "many"})
    )


def test_equal_work_is_a_multiple_of_the_throughput(tmp_path: Path) -> None:
    step = runs.make("sharing", tmp_path).result.steps[0]
    assert set(step.work) == {"frames"}
    assert step.work["frames"].per_s == pytest.approx(300 * step.throughput.per_s)
    assert step.work["frames"].relative == pytest.approx(step.throughput.relative)


def test_work_is_counted_where_requests_are() -> None:
    # given a slow beginning that is cut off, with work of its own
    measurements, records = measured({1: 0.5}, count=80)
    for key, rows in records.items():
        records[key] = [frames(row, 1000 if index < 5 else 10) for index, row in enumerate(rows)]
    plan = Plan(limit=1, queue="q", warmup_s=3.0)
    result = evaluate(plan, measurements, records, random.Random(1))
    (step,) = result.steps
    assert step.work["frames"].per_s == pytest.approx(10 * step.throughput.per_s)


@pytest.mark.parametrize("value", ["10", -5, 0])
def test_invalid_amounts_of_work_are_ignored(value: Any) -> None:
    _, records = measured({1: 0.5}, count=10)
    rate = Throughput(2.0, 0.1, 10, 9, True)
    assert work_rates(rate, [frames(row, value) for row in records[1, 0]]) == {}


def test_the_interval_of_uneven_work_holds_the_truth() -> None:
    # given requests of one second and 50 to 150 frames
    covered, chance = 0, random.Random(3)
    for seed in range(200):
        measurements, records = measured({2: 1.0}, count=30, scatter=0.05, seed=seed)
        for key, rows in records.items():
            records[key] = with_frames(rows, lambda: chance.randint(50, 150))
        result = evaluate(Plan(limit=2, queue="q"), measurements, records, random.Random(1))
        rate = result.steps[0].work["frames"]
        covered += abs(rate.per_s - 200) <= rate.half_width
    assert covered >= 183  # of 190 expected; fewer come in 2 of 100 series


def test_per_device_is_refused_for_deployments_with_the_chart_value_to_set() -> None:
    with pytest.raises(UsageError, match="<per_device> is for local workers") as refused:
        DeploymentOptions("media", "", "", "", 120.0, False).refuse_local(plan(1, 2))
    assert "extraArguments: [--per-device, K]" in refused.value.hint


def test_records_say_how_many_shared_a_device(tmp_path: Path) -> None:
    row = runs.sharing_steps()[2][0]
    again = Record.from_json(row.to_json())
    assert (again.per_device, again.step) == (4, 8)
    assert "per_device" not in json.loads(replace(row, per_device=0).to_json())


def test_a_dry_run_refuses_what_the_run_would(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "validate",
        "--dry-run",
        "--deployment",
        "media",
        "--per-device",
        "1,2",
        "--preset",
        "nvidia",
    ]
    assert program(arguments) == 2
    assert "--per-device is for local workers" in capsys.readouterr().err


def test_a_run_is_not_resumed_with_fewer_devices(tmp_path: Path) -> None:
    for name in ("f0", "f1"):
        (tmp_path / name).touch()
    device_plan = replace(plan(1, 2, devices=2), device_glob=f"{tmp_path}/f*")
    refuse_other_devices(device_plan, device_names)
    (tmp_path / "f1").unlink()
    with pytest.raises(UsageError, match="started with 2 devices, and there are 1 now"):
        refuse_other_devices(device_plan, device_names)


def test_work_of_a_step_is_joined_as_its_throughput_is(tmp_path: Path) -> None:
    # given a way down that is a third as long as the way up, and slower
    up = runs.rows(1, 0.5, 60, 0, noise=0.02, figures={"frames": 20})
    down = runs.rows(1, 0.6, 20, 1, noise=0.02, figures={"frames": 20})
    folder = runs.stored(tmp_path / "run", Plan(limit=1, queue="q"), [up, down])
    (step,) = runs.loaded(folder).result.steps
    # expect 20 frames for every request that the throughput counts
    assert len(step.samples) == 2
    assert step.work["frames"].per_s == pytest.approx(20 * step.throughput.per_s, rel=1e-6)
