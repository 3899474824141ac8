"""The choice among simulated rules, and the report of it."""

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
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.autoscale import simulation
from scaletest.analysis.autoscale.choice import BestRule, PlayedRule, choose, weaknesses
from scaletest.analysis.autoscale.rule import RULES, SimulationResult, parse, to_values
from scaletest.analysis.autoscale.simulation import SimulationSetting, simulate
from scaletest.cli.autoscale import command
from scaletest.render.svg import Chart
from scaletest.report import formats
from scaletest.report.autoscaling import Simulation, charts, simulation_report
from tests.unit.golden_files import golden
from tests.unit.valid import checked

LOAD = [("arrivals", "2/min for 30 min"), ("seed", "1")]
LOG = "simulation of 2 rules against 55 requests\n"


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


def test_the_command_exits_with_0_and_names_the_best_rule(tmp_path: Path) -> None:
    line = ["--rule", "waiting-fast", "--rule", "demand-gentle", "--seconds", "4m"]
    shown = CliRunner().invoke(command, line)
    assert shown.exit_code == 0 and "BEST RULE  demand-gentle" in shown.output
    data = CliRunner().invoke(command, [*line, "--format", "json"])
    assert json.loads(data.stdout)["best"] == "demand-gentle"
    page = tmp_path / "rules.html"
    assert CliRunner().invoke(command, [*line, "-o", str(page)]).exit_code == 0
    text = page.read_text("utf-8")
    # the load can be read on the page
    assert "240 s on average, deviation 30 %" in text and "2/min for 30 min, poisson" in text


@pytest.mark.parametrize("form", ["auto", "plain"])
def test_a_log_of_a_simulation_tells_how_much_is_played(form: str) -> None:
    line = ["--rule", "waiting", "--rule", "demand", "--progress", form]
    assert CliRunner().invoke(command, line).stderr == LOG
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
