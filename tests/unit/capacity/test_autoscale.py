"""HPA and KEDA by golden vectors of the controllers' own arithmetic; the simulation by what must
hold in any case; the choice among simulated rules, and the report of it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.capacity.autoscale import simulation
from scaletest.capacity.autoscale.choice import BestRule, PlayedRule, choose, weaknesses
from scaletest.capacity.autoscale.hpa import (
    Behavior,
    Hpa,
    HpaSpec,
    ScaledJob,
    ScaledObject,
    ScalingPolicy,
    ScalingRules,
    TargetType,
    propose,
)
from scaletest.capacity.autoscale.rule import (
    RULES,
    SimulationResult,
    candidates,
    parse,
    recommend,
    to_values,
    turns,
)
from scaletest.capacity.autoscale.simulation import (
    SimulatedPod,
    SimulationSetting,
    simulate,
    victims,
)
from scaletest.capacity.commands.autoscale import command
from scaletest.capacity.report import Simulation, charts, simulation_report
from scaletest.model import Outcome, Record, Reply
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.render.chart import Chart
from scaletest.report import formats
from tests.unit.golden_files import golden
from tests.unit.valid import checked

AVERAGE_5 = HpaSpec(0, 100, TargetType.AVERAGE_VALUE, 5000)
VALUE_2 = HpaSpec(0, 100, TargetType.VALUE, 2000)


@pytest.mark.parametrize(
    ("total", "replicas"),
    [(8.9, 2), (9, 2), (10, 2), (11, 2), (11.1, 3), (0, 0), (50, 10), (14.9, 3), (15.1, 4)],
)
def test_an_average_value_target_gives_replicas_by_the_total(total: float, replicas: int) -> None:
    assert propose(AVERAGE_5, 2, 2, 2, round(total * 1000)) == replicas


@pytest.mark.parametrize(
    ("total", "replicas", "wanted"),
    [
        (2, 4, 4),
        (2.2, 4, 4),
        (2.3, 4, 5),
        (20, 4, 40),
        (0, 4, 0),
        (1.7, 4, 4),
        (1.5, 4, 3),
        (5, 0, 3),
    ],
)
def test_value_multiplies_the_replicas(total: float, replicas: int, wanted: int) -> None:
    assert propose(VALUE_2, replicas, replicas, replicas, round(total * 1000)) == wanted


def test_inside_the_tolerance_average_value_goes_by_the_status() -> None:
    # given a change to 4 that is not carried out: 2 pods are there, and 10 is what 2 pods should
    # have
    assert propose(AVERAGE_5, 4, 2, 2, 10_000) == 2
    assert propose(VALUE_2, 4, 2, 2, 2_000) == 4


def test_the_first_recommendation_is_the_first_number_of_replicas_also_zero() -> None:
    slow = Behavior(up=ScalingRules(60, (ScalingPolicy("Percent", 100, 15),)))
    hpa = Hpa(HpaSpec(1, 10, TargetType.AVERAGE_VALUE, 1000, slow))
    assert hpa.sync(0, 0, 0, 0, [5000]) == 0
    # when something else makes the first replica, expect the 0 to hold it back until it is older
    # than the window
    assert [hpa.sync(at, 1, 1, 1, [5000]) for at in (15, 30, 45)] == [1, 1, 1]
    assert hpa.sync(60, 1, 1, 1, [5000]) == 2


def syncs(
    behavior: Behavior | None, demands: list[float], replicas: int = 1, **spec: Any
) -> list[int]:
    hpa = Hpa(
        HpaSpec(
            **{"minimum": 1, "maximum": 100, **spec},
            target=TargetType.AVERAGE_VALUE,
            target_milli=1000,
            behavior=behavior,
        )
    )
    course = []
    for number, demand in enumerate(demands):
        replicas = hpa.sync(15.0 * number, replicas, replicas, replicas, [round(demand * 1000)])
        course.append(replicas)
    return course


def test_replicas_rise_as_fast_as_the_policies_allow() -> None:
    assert syncs(None, [50] * 5) == [4, 8, 16, 32, 50]
    assert syncs(Behavior(), [50] * 5) == [5, 10, 20, 40, 50]


def test_replicas_fall_only_after_the_stabilisation_window() -> None:
    # nothing shrinks while a larger recommendation is younger than five minutes
    course = syncs(None, [50] * 5 + [10] * 22)
    assert course[4:25] == [50] * 21
    assert course[25] == 10
    # with `behavior` a recommendation exactly as old as the window is forgotten already
    course = syncs(Behavior(), [50] * 5 + [10] * 22)
    assert course[4:24] == [50] * 20
    assert course[24] == 10


def test_policies_limit_the_way_down() -> None:
    pods = ScalingRules(0, (ScalingPolicy("Pods", 2, 60), ScalingPolicy("Percent", 10, 60)))
    assert syncs(Behavior(down=pods), [10] + [1] * 9, 10) == [10, 8, 8, 8, 8, 6, 6, 6, 6, 4]
    least = replace(pods, select="Min")
    assert syncs(Behavior(down=least), [10] + [1] * 5, 10) == [10, 9, 9, 9, 9, 8]
    assert syncs(Behavior(down=replace(pods, select="Disabled")), [10] + [1] * 9, 10) == [10] * 10


def test_an_upward_window_waits_for_a_lasting_need() -> None:
    slow = Behavior(up=ScalingRules(60, (ScalingPolicy("Percent", 100, 15),)))
    assert syncs(slow, [2, 8, 8, 8, 8, 8, 8], 2) == [2, 2, 2, 2, 4, 8, 8]
    assert syncs(slow, [2, 8, 2, 8, 2, 8, 2], 2) == [2] * 7


def test_replicas_follow_bounds_zero_and_failed_metrics() -> None:
    assert syncs(None, [50], 200) == [100]
    assert syncs(None, [50], 1, minimum=5) == [5]
    assert syncs(None, [50], 0) == [0]  # scaling is off while replicas are 0 and minReplicas is not
    assert syncs(None, [50], 0, minimum=0) == [4]
    hpa = Hpa(HpaSpec(1, 10, TargetType.AVERAGE_VALUE, 1000))
    assert hpa.sync(0, 5, 5, 5, [None]) == 5
    assert hpa.sync(15, 5, 5, 5, [None, 1000]) == 5  # some failed and the rest would shrink
    assert hpa.sync(30, 5, 5, 5, [None, 8000]) == 8
    assert hpa.sync(45, 8, 8, 8, [1000, 9000]) == 9  # the largest


def test_tolerance_of_one_direction() -> None:
    spec = replace(
        AVERAGE_5,
        behavior=Behavior(
            up=ScalingRules(0, (), tolerance=0.0), down=ScalingRules(0, (), tolerance=0.5)
        ),
    )
    assert propose(spec, 2, 2, 2, 10_001) == 3
    assert propose(spec, 2, 2, 2, 5_000) == 2


@given(st.lists(st.floats(0, 200), min_size=1, max_size=60), st.booleans(), st.integers(0, 120))
def test_replicas_stay_within_bounds_and_hold_still_when_demand_does(
    demands: list[float], ruled: bool, replicas: int
) -> None:
    course = syncs(
        Behavior() if ruled else None, demands + [20] * 60, replicas, minimum=1, maximum=100
    )
    if replicas == 0:
        assert set(course) == {0}
    else:
        assert all(1 <= number <= 100 for number in course)
        assert 18 <= course[-1] <= 23


@pytest.mark.parametrize(
    ("strategy", "length", "running", "pending", "created"),
    [
        ("default", 10, 4, 0, 6),
        ("default", 3, 5, 0, 0),
        ("default", 100, 4, 0, 16),
        ("custom", 10, 4, 0, 7),
        ("custom", 1, 4, 0, 0),
        ("accurate", 10, 4, 2, 8),
        ("accurate", 18, 4, 1, 16),
        ("accurate", 0, 4, 2, 0),
        ("eager", 100, 4, 3, 13),
        ("eager", 5, 4, 3, 5),
    ],
)
def test_a_scaled_job_creates_jobs_by_length_running_and_pending(
    strategy: str, length: int, running: int, pending: int, created: int
) -> None:
    assert (
        ScaledJob(strategy, maximum=20, deduction=1, share=0.5).create(length, running, pending)
        == created
    )


def test_jobs_are_never_fewer_than_the_minimum() -> None:
    assert ScaledJob(maximum=20, minimum=3).create(0, 1, 0) == 2
    assert ScaledJob(maximum=20, minimum=3).create(5, 4, 0) == 4


def test_keda_wakes_at_once_and_sleeps_after_its_cooldown() -> None:
    keda = ScaledObject(minimum=0)
    assert keda.hpa_minimum == 1
    assert [
        keda.poll(at, value, replicas)
        for at, value, replicas in ((0, 0, 0), (30, 1, 0), (60, 0, 3))
    ] == [0, 1, 3]
    assert keda.poll(330, 0, 3) == 3
    assert keda.poll(331, 0, 3) == 0
    assert ScaledObject(minimum=2).poll(9999, 0, 5) == 5
    assert ScaledObject(activation=5).poll(0, 5, 0) == 0  # strictly more


def test_pods_are_removed_in_the_order_of_the_replica_set_controller() -> None:
    starting, new, old, busy = (
        SimulatedPod(0.9, 95),
        SimulatedPod(0.1, 0, ready_s=90),
        SimulatedPod(0.2, 0, ready_s=10),
        SimulatedPod(0.3, 0, ready_s=99),
    )
    busy.request = 1
    pods = [old, busy, new, starting]
    assert victims(pods, 4, 100) == [starting, busy, new, old]


def small(seed: int = 1, run_s: float = 240.0) -> simulation.Arrivals:
    chance = random.Random(seed)
    return simulation.pattern(
        "poisson", chance, simulation.runs_of(chance, run_s, 0.2), 2 / 60, 1800
    )


def play(rule: str, seed: int = 1, **setting: Any) -> SimulationResult:
    return simulate(small(), parse(rule), SimulationSetting(**setting), random.Random(seed))


@pytest.mark.parametrize("name", RULES)
def test_every_rule_accounts_for_every_request_and_repeats_itself(name: str) -> None:
    result = play(name, start_s=20, jitter=0.2, grace_s=30)
    assert result == play(name, start_s=20, jitter=0.2, grace_s=30)
    assert len(result.waits_s) == result.ended <= result.requests
    assert result.makespan_s is None or result.ended == result.requests
    assert all(wait >= 0 for wait in result.waits_s)
    assert result.peak <= 2 * RULES[name].maximum
    # pods worked at least as long as the requests that ended took
    if result.ended == result.requests:
        assert result.pod_s >= sum(small().runs) - 1e-6
    assert json.loads(json.dumps(result.to_dict()))["rule"] == name


def test_one_worker_and_constant_runs_by_hand() -> None:
    # three requests at 0, 10 s each, on one pod that is ready after 20 s
    work = simulation.Arrivals((0.0, 0.0, 0.0), (10.0, 10.0, 10.0))
    result = simulate(work, parse("demand:max=1"), SimulationSetting(20, 0, 30), random.Random(1))
    assert (result.waits_s, result.makespan_s, result.pod_s) == ((20.0, 30.0, 40.0), 50.0, 50.0)
    assert (result.changes, result.killed, result.peak) == (0, 0, 1)


def test_the_desired_rule_avoids_the_flips_and_kills_of_the_original_rule() -> None:
    # the original's way: too few, too late, then everybody away
    fast, wide, right = play("waiting-fast"), play("demand"), play("desired:window=600,grace=600")
    assert fast.killed > 20
    assert fast.flips > 5 * wide.flips
    assert wide.mean_wait_s is not None
    assert fast.mean_wait_s is not None
    assert wide.mean_wait_s < fast.mean_wait_s / 3
    assert (right.flips, right.killed) == (0, 0)


def test_drain_kills_no_request() -> None:
    assert play("demand-fast").killed > 0
    assert play("demand-fast:grace=3000").killed == 0


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.floats(0, 500), st.floats(0.1, 200)), min_size=1, max_size=40),
    st.sampled_from(sorted(RULES)),
    st.floats(0, 60),
    st.floats(0, 100),
)
def test_no_simulated_request_is_lost(
    rows: list[tuple[float, float]], name: str, start_s: float, grace_s: float
) -> None:
    times = tuple(sorted(at for at, _ in rows))
    work = simulation.Arrivals(times, tuple(run for _, run in rows))
    result = simulate(
        work,
        RULES[name],
        SimulationSetting(start_s, 0.5, grace_s, until_s=20_000),
        random.Random(1),
    )
    assert result.ended <= result.requests == len(rows)
    assert result.pod_s >= 0
    assert all(point.running <= point.pods for point in result.course)
    assert all(0 <= point.waiting + point.running <= len(rows) for point in result.course)


def test_recommend_prefers_what_keeps_the_target_then_what_costs_least() -> None:
    drawn = {
        "cheap but late": SimulationResult("", 2, 2, 1, 0, 0, 9.0, 10.0, 1, (50.0, 60.0)),
        "kills": SimulationResult("", 2, 2, 1, 0, 3, 9.0, 5.0, 1, (1.0, 2.0)),
        "good": SimulationResult("", 2, 2, 1, 0, 0, 9.0, 20.0, 1, (1.0, 2.0)),
        "dear": SimulationResult("", 2, 2, 1, 0, 0, 9.0, 30.0, 1, (0.0, 0.0)),
        "unfinished": SimulationResult("", 2, 1, 1, 0, 0, None, 1.0, 1, (0.0,)),
    }
    rules = [replace(RULES["demand"], name=name) for name in drawn]
    best, order = recommend(rules, lambda rule: drawn[rule.name], 30.0)
    assert (best.rule.name, best.met) == ("good", True)
    assert [choice.rule.name for choice in order] == [
        "good",
        "dear",
        "kills",
        "cheap but late",
        "unfinished",
    ]
    assert len({rule.name for rule in candidates(10, 1, 30.0)}) == len(
        list(candidates(10, 1, 30.0))
    )


def test_no_recommended_rule_follows_a_load_that_swings_at_every_look() -> None:
    for rule in candidates(10, 1, 30.0):
        assert syncs(rule.behavior, [8, 2] * 5, 8) == [8] * 10, rule.name


def test_a_recommended_minimum_of_none_is_scaled_by_keda() -> None:
    # minReplicas: 0 in an HPA is refused by Kubernetes before 1.37
    assert {rule.kind for rule in candidates(10, 0, 30.0)} == {"keda"}
    assert {rule.kind for rule in candidates(10, 1, 30.0)} == {"hpa"}
    for rule in candidates(10, 0, 30.0):
        values = to_values(rule)["autoscaling"]
        # KEDA finds desired workers nowhere but in the exporter
        wanted = "exporter" if rule.metric == "desired_workers" else None
        assert values.get("source") == wanted


def test_changes_of_direction_of_the_replicas_are_counted() -> None:
    assert [turns(row) for row in ([], [1], [1, 2], [1, -1], [1, -1, 0, -2, 3])] == [0, 0, 0, 1, 2]


@pytest.mark.parametrize("name", simulation.PATTERNS)
def test_patterns_have_their_rate(name: str) -> None:
    chance = random.Random(5)
    drawn = simulation.pattern(name, chance, simulation.runs_of(chance, 2.0, 0.5), 0.5, 10_000)
    assert len(drawn.arrivals) == pytest.approx(5000, rel=0.05)
    assert list(drawn.arrivals) == sorted(drawn.arrivals)
    assert sum(drawn.runs) / len(drawn.runs) == pytest.approx(2.0, rel=0.05)
    assert 0 <= drawn.arrivals[0] <= drawn.arrivals[-1] < 10_000


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "demand:x=1",
        "demand:max=0",
        "demand:max=x",
        "desired:window=99999",
        "demand:target=0",
        "demand:target=nan",
        "jobs:strategy=wild",
        "demand:min=5,max=2",
    ],
)
def test_a_rule_with_impossible_values_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse(text)


@given(st.text(max_size=40))
def test_a_rule_of_any_text_is_read_or_refused(text: str) -> None:
    for given_text in (text, "demand:" + text):
        try:
            parse(given_text)
        except InvalidValue:
            pass


def test_options_of_a_rule_become_chart_values() -> None:
    rule = parse("demand:target=2.5,min=2,max=64,down_window=120,down_pods=3")
    values = to_values(rule)["autoscaling"]
    assert (
        values["target"],
        values["minReplicas"],
        values["maxReplicas"],
    ) == (
        "2.5",
        2,
        64,
    )
    assert values["behavior"]["scaleDown"] == {
        "stabilizationWindowSeconds": 120,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 3, "periodSeconds": 60}],
    }


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command, arguments, standalone_mode=False)


def test_given_rules_are_played_and_shown_as_json_and_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "rules.html"
    line = (
        "--duration",
        "600",
        "--rule",
        "demand",
        "--rule",
        "desired:window=120",
    )
    first, again = run(*line, "--format", "json"), run(*line, "--format", "json")
    assert first.stdout == again.stdout
    rows = json.loads(first.stdout)
    run(*line, "-o", str(page))
    assert [row["rule"] for row in rows["rules"]] == ["demand", "desired:window=120"]
    text = page.read_text("utf-8")
    # each rule for wide screens and for phones, with a legend
    assert text.count("<svg ") == 4
    assert text.count('class="c-wanted"') == 8 and "requests that wait" in text
    assert "<script" not in text
    # the load can be read on the page
    assert "s on average, deviation" in text and "2/min for 10 min, poisson" in text
    assert "killed" in run("--duration", "300", "--rule", "demand").output


def test_a_simulation_replays_recorded_runs_and_traces(tmp_path: Path) -> None:
    record = Record("q", 1, Reply("r", Outcome.SUCCEEDED, run_s=7.0), 8.0)
    (tmp_path / "plan.json").write_text("{}")
    (tmp_path / "records.jsonl").write_text(record.to_json() + "\n")
    trace = tmp_path / "trace"
    trace.write_text("0\n5.5\n3\n")
    line = (
        "--run",
        str(tmp_path),
        "--trace",
        str(trace),
        "--rule",
        "demand:max=1",
        "--format",
        "json",
    )
    row = json.loads(run(*line, "--pod-start", "0").stdout)["rules"][0]
    assert (row["requests"], row["makespan_s"]) == (3, 21.0)
    for bad in (
        ("--trace", str(tmp_path / "no")),
        ("--run", str(tmp_path / "no")),
        ("--rate", "-1/min"),
        ("--rate", "60"),
    ):
        assert isinstance(run(*bad).exception, UsageError)
    for name in ("steady", "burst", "wave"):
        huge = ("--pattern", name, "--rate", "1e6/min", "--duration", "1e6s")
        assert isinstance(run(*huge).exception, InvalidValue)
    (tmp_path / "records.jsonl").write_bytes(b"\xff\xfe")
    assert isinstance(run("--run", str(tmp_path)).exception, InvalidValue)
    trace.write_text("1\nnan\n")
    assert isinstance(run("--trace", str(trace)).exception, InvalidValue)


def test_recommend_prints_yaml_or_reports_that_no_rule_suffices() -> None:
    line = ("--seconds", "5", "--rate", "6/min", "--duration", "600", "--max-workers", "8")
    good = run(*line, "--wait-target", "60", "--format", "json")
    assert (good.return_value, json.loads(good.stdout)["met"]) == (0, True)
    assert isinstance(run(*line, "--format", "html").exception, UsageError)
    bad = run(*line, "--wait-target", "0.001", "--pod-start", "60")
    assert bad.return_value == 3
    assert yaml.safe_load(bad.stdout)["autoscaling"]["maxReplicas"] == 8


LOAD = [("arrivals", "2/min for 30 min"), ("seed", "1")]


def figures(name: str, **changes: Any) -> PlayedRule:
    """A rule whose result is made up: everything ended, nothing was killed."""
    usual = SimulationResult(name, 2, 2, 0, 0, 0, 9.0, 10.0, 1, (5.0, 5.0))
    return PlayedRule(replace(RULES["demand"], name=name), replace(usual, **changes), 30.0)


def played(*rules: str, run_s: float = 240.0) -> Simulation:
    """These rules, played against half an hour of two requests a minute."""
    chance = random.Random(1)
    arrivals = simulation.pattern(
        "poisson", chance, simulation.runs_of(chance, run_s, 0.3), 2 / 60, 1800.0
    )
    results = [
        PlayedRule(rule, simulate(arrivals, rule, SimulationSetting(), random.Random(1)), 30.0)
        for rule in map(parse, rules)
    ]
    return Simulation(arrivals, results, LOAD, 1, ["scaletest", "autoscale"])


def chosen(*rules: PlayedRule) -> BestRule:
    return choose(rules, mean_run_s=60.0)


def test_the_best_rule_is_found_criterion_by_criterion() -> None:
    rules = [
        figures("unfinished", ended=1, waits_s=(0.0,), pod_s=1.0),
        figures("kills", killed=1, waits_s=(0.0, 0.0)),
        figures("slow", waits_s=(90.0, 90.0)),
        figures("restless", flips=9, waits_s=(1.0, 1.0)),
        figures("dear", pod_s=99.0),
        figures("best"),
    ]
    choice = chosen(*rules)
    assert choice.played.rule.name == "best"
    # expect one rule less after each criterion
    assert [step.left for step in choice.steps] == [
        ("kills", "slow", "restless", "dear", "best"),
        ("slow", "restless", "dear", "best"),
        ("restless", "dear", "best"),
        ("dear", "best"),
        ("best",),
    ]


def test_a_rule_that_never_scales_does_not_win_by_its_calm() -> None:
    calm = figures("calm", waits_s=(500.0, 900.0))
    lively = figures("lively", flips=20)
    assert chosen(calm, lively).played.rule.name == "lively"
    # and a wait that differs by less than a tenth of a run time does not decide
    assert chosen(replace_wait(calm, 10.9), lively).played.rule.name == "calm"
    assert chosen(replace_wait(calm, 11.1), lively).played.rule.name == "lively"


def replace_wait(rule: PlayedRule, wait_s: float) -> PlayedRule:
    return replace(rule, result=replace(rule.result, waits_s=(wait_s, wait_s)))


@given(
    st.lists(
        st.builds(
            figures,
            st.text("abc", min_size=1, max_size=3),
            ended=st.integers(0, 2),
            killed=st.integers(0, 2),
            flips=st.integers(0, 2),
            pod_s=st.floats(0, 100),
            waits_s=st.sampled_from([(), (1.0,), (2.0, 60.0)]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_some_rule_is_always_the_best(rules: Sequence[PlayedRule]) -> None:
    choice = chosen(*rules)
    assert choice.played in rules
    left = [len(step.left) for step in choice.steps]
    assert left == sorted(left, reverse=True) and left[-1] >= 1
    # no rule that ends more requests is left out
    assert choice.played.result.ended == max(rule.result.ended for rule in rules)


def test_a_window_that_is_shorter_than_a_request_is_named_with_a_longer_one() -> None:
    simulated = played("desired", "desired:window=300", "demand-gentle")
    short, long, gentle = simulated.played
    reason, *_ = weaknesses(short, simulated.arrivals)
    assert "over 60 s and a request runs for 244 s" in reason.reason
    assert "desired:window=300" in reason.remedy and "autoscaling.exporter.window" in reason.remedy
    # expect nothing of rules that neither kill nor turn, and nothing about a window elsewhere
    assert (long.result.flips, long.result.killed) == (0, 0)
    assert list(weaknesses(long, simulated.arrivals)) == []
    assert not any("window" in each.reason for each in weaknesses(gentle, simulated.arrivals))
    assert simulated.choice.played is long


def test_a_request_longer_than_any_window_gets_another_rule() -> None:
    simulated = played("desired", run_s=3000.0)
    assert "demand-gentle" in next(weaknesses(simulated.played[0], simulated.arrivals)).remedy


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("waiting-fast", "counts only what waits"),
        ("original-wait", "a run time late"),
        ("original-count", "type Value"),
        ("demand-fast", "whether busy or idle"),
    ],
)
def test_every_way_to_do_worse_has_its_reason(rule: str, reason: str) -> None:
    simulated = played(rule)
    reasons = [each.reason for each in weaknesses(simulated.played[0], simulated.arrivals)]
    assert any(reason in each for each in reasons)


RULES_PLAYED = ("original-count", "waiting-fast", "desired", "desired:window=300")


@pytest.mark.parametrize("form", ["text", "md", "csv"])
def test_simulated_rules_are_shown_alike(form: str) -> None:
    golden(f"autoscale.{form}", formats.render(simulation_report(played(*RULES_PLAYED)), form))


def test_the_page_names_the_best_rule_with_its_settings_before_anything_else() -> None:
    simulated = played(*RULES_PLAYED)
    page = formats.render(simulation_report(simulated), "html")
    assert "<title>BEST RULE: Autoscaling rules" in page
    assert "<strong>BEST RULE</strong> desired:window=300:" in page
    settings, others = page.index('<pre class="copy">queues:'), page.index(">All rules</h2>")
    assert settings < others < page.index("shorter than a request") < page.index("<figure")
    # expect the settings as the chart takes them
    text = page[page.index("queues:") : page.index("</pre>")]
    values = yaml.safe_load(text.replace("&#39;", "'"))
    assert values == {"queues": {"NAME": to_values(parse("desired:window=300"))}}
    # no word of the program's inside
    assert "flips" not in page and "makespan" not in page
    assert "desired:window=300 (best)" in page
    assert page.count("<svg ") == 2 * len(RULES_PLAYED)


def test_charts_of_rules_have_labelled_axes_with_whole_counts_on_one_scale() -> None:
    simulated = played(*RULES_PLAYED)
    drawn = charts(simulated, simulated.choice)
    assert drawn[0].title.startswith("desired:window=300 (best): 0 direction changes, 0 killed")
    for chart in drawn:
        assert (chart.x.label, chart.y.label) == ("time, min", "requests, replicas")
        assert whole(chart)
        assert len(chart.x.labelled) >= 4
    assert len({(chart.x.high, chart.y.high) for chart in drawn}) == 1
    # of one request at a time as well
    quiet = Simulation(
        simulation.Arrivals((0.0,), (10.0,)),
        [figures("one", course=simulated.played[0].result.course[:2])],
        LOAD,
        1,
    )
    assert all(map(whole, charts(quiet, quiet.choice)))


def whole(chart: Chart) -> bool:
    """Whether the axis upwards has marks at whole numbers only."""
    return all(mark == round(mark) for mark, _ in chart.y.labelled)


def test_where_even_the_best_rule_kills_the_page_says_so() -> None:
    head = simulation_report(played("waiting-fast")).head
    assert head.verdict.kind == "FAIL" and "search" in head.verdict.remedy
    assert "no other rule was played" in head.verdict.reason


def test_the_command_exits_with_0_and_names_the_best_rule() -> None:
    line = ["--rule", "waiting-fast", "--rule", "demand-gentle", "--seconds", "4m"]
    shown = CliRunner().invoke(command, line)
    assert shown.exit_code == 0 and "BEST RULE  demand-gentle" in shown.output
    data = CliRunner().invoke(command, [*line, "--format", "json"])
    assert json.loads(data.stdout)["best"] == "demand-gentle"


@pytest.mark.parametrize("form", ["auto", "plain"])
def test_a_log_of_a_simulation_tells_how_much_is_played(form: str) -> None:
    line = ["--rule", "waiting", "--rule", "demand", "--progress", form]
    assert CliRunner().invoke(command, line).stderr == "simulation of 2 rules against 55 requests\n"
    assert CliRunner().invoke(command, [*line, "--progress", "none"]).stderr == ""


def test_programs_get_an_event_a_rule() -> None:
    for options, rules in ((["--rule", "demand", "--rule", "desired"], 2), ([], 40)):
        ended = CliRunner().invoke(command, [*options, "--progress", "json", "--duration", "5m"])
        lines = [line for line in ended.stderr.splitlines() if line.startswith("{")]
        events = [checked(json.loads(line), "progress-event") for line in lines]
        begun = [event for event in events if event["event"] == "step_begun"]
        assert [event["done"] for event in begun] == list(range(rules))
        assert {(event["steps"], event["unit"]) for event in begun} == {(rules, "rule")}
        assert begun[0]["left_s"] is None and begun[-1]["left_s"] is not None
        assert [events[0]["event"], events[-1]["event"]] == ["start", "end"]
        assert events[-1]["done"] == rules and events[-1]["run"] == ""
