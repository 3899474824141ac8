"""Simulated autoscaling rules as a report.

It shows the best rule and its settings, the figures of all rules side by side, why some of them do
worse, and each rule's course over time. The charts are on one scale, so that rules can be compared.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from scaletest.capacity.autoscale.best_rule import (
    BestRule,
    choose_best,
    find_weaknesses,
)
from scaletest.capacity.autoscale.load import Requests
from scaletest.capacity.autoscale.rule import to_values
from scaletest.capacity.autoscale.simulation import SimulationResult
from scaletest.model import Verdict, VerdictKind
from scaletest.render.axis import Axis, axis_end
from scaletest.render.blocks import Block, Facts, Figure, Pairs, Table, Text
from scaletest.render.chart import Chart, Point
from scaletest.render.contents import Head, Report, Section, Sheet, make_page
from scaletest.render.numbers import format_duration, format_seconds, plural

WIDTH, HEIGHT = 860.0, 240.0  # px
PHONE_SIZE = (360.0, 260.0)  # width and height in px on phones
# The lines of a chart, by field of a point of the course: CSS class, and text of the legend.
LINES = {
    "waiting": ("c-wanted", "requests that wait"),
    "running": ("c-law", "requests that run"),
    "replicas": ("c-data", "replicas that the rule wants"),
}
# What the columns mean that do not say it themselves.
MEANINGS = (
    "Direction changes: how often the wanted replicas turned from growing to shrinking or back."
    " Each turn stops pods that are soon started again.",
    "Killed: requests whose pod was stopped before they had ended. They start again from the"
    " beginning.",
    "Pod-seconds: the time for which pods existed, summed over all pods: what the rule costs.",
)
# Of the table of all rules, in the order of `_rules_table`.
COLUMNS = (
    "rule",
    "replica changes",
    "direction changes",
    "killed",
    "mean wait",
    "p95 wait",
    "all ended after",
    "pod-seconds",
    "most pods",
)


@dataclass(frozen=True, slots=True)
class RuleComparison:
    """Rules that were simulated with the same requests."""

    requests: Requests
    results: Sequence[SimulationResult]
    load: Pairs  # the requests, and how pods come and go, as names and values
    seed: int  # of chance
    command_line: Sequence[str] = ()  # what was typed

    @property
    def choice(self) -> BestRule:
        """The best rule."""
        return choose_best(self.results, self.requests.mean_run_s)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "schema_version": 1,
            "seed": self.seed,
            "best": self.choice.result.rule.name,
            "rules": [result.to_dict() for result in self.results],
        }


def make_comparison_report(comparison: RuleComparison) -> Report:
    """Return the report of simulated rules, which each format renders.

    It passes when every request ends under the best rule and none is killed.
    """
    choice = comparison.choice
    best = choice.result
    is_sound = best.ended == best.requests and not best.killed
    head = Head(
        title=f"Autoscaling rules, {plural(len(comparison.requests.arrivals_s), 'request')}",
        verdict=Verdict(
            VerdictKind.PASS if is_sound else VerdictKind.FAIL,
            _best_rule_sentence(comparison, choice),
            "" if is_sound else "let scaletest autoscale search for a rule, without <rule>",
        ),
        answer="BEST RULE",
        folder="",
        conditions=[f"{name}: {value}" for name, value in comparison.load],
        facts=[
            ("requests killed", str(best.killed)),
            ("direction changes", str(best.direction_changes)),
            ("mean wait", format_seconds(best.mean_wait_s)),
            ("pod-seconds", f"{best.pod_s:.0f}"),
            ("most pods at once", str(best.peak_pods)),
        ],
        environment={"command_line": list(comparison.command_line)},
    )
    # the parts that a terminal and a comment share
    rules, weaknesses = _rules_table(comparison, choice), _weakness_lines(comparison)
    # a row for each rule, with the names and base units of JSON
    rows = [result.to_dict() for result in comparison.results]
    return Report(
        head=head,
        summary=lambda: [rules, Text(weaknesses), Text(MEANINGS, "soft", optional=True)],
        comment=lambda: [rules, Text(weaknesses, "list")],
        sections=lambda: make_sections(comparison, choice),
        sheet=lambda: Sheet(list(rows[0]), [list(row.values()) for row in rows]),
        cases=list,
        data=comparison.to_dict,
        picture=lambda: draw_courses(comparison, choice),
    )


def _best_rule_sentence(comparison: RuleComparison, choice: BestRule) -> str:
    """Say what the best rule does to requests and replicas, and which criterion decided for it."""
    best = choice.result
    lost = best.requests - best.ended
    ends = f"{lost} of {best.requests} requests do not end" if lost else "every request ends"
    kills = "none is killed"
    if best.killed:
        kills = f"pods are taken from {plural(best.killed, 'request')}"
    turns = "never turn"
    if best.direction_changes:
        turns = f"turn {plural(best.direction_changes, 'time')}"
    reason = "no other rule was simulated"
    if len(comparison.results) > 1:
        reason = f"the best of {len(comparison.results)} rules: {list(choice.left_after)[-1]}"
    return (
        f"{best.rule.name}: {ends}, {kills}, the mean wait is {format_seconds(best.mean_wait_s)},"
        f" and the replicas {turns} between growing and shrinking; {reason}"
    )


def make_sections(comparison: RuleComparison, choice: BestRule) -> list[Section]:
    """Return the sections of the page: the best rule's settings, the table, courses and inputs."""
    # how the rule was chosen, and its settings as values of the Helm chart
    criteria = Table(
        ("criterion", "rules left"),
        [(criterion, ", ".join(left)) for criterion, left in choice.left_after.items()],
        texts=(0, 1),
        layout="wrapped",
        title="How it was chosen",
        note="Each criterion keeps the best rules, and the next is applied to what is left.",
    )
    settings = yaml.safe_dump(
        {"queues": {"NAME": to_values(choice.result.rule)}}, sort_keys=False
    ).rstrip()
    # a chart of each rule, with what it is in words below
    courses: list[Block] = []
    rules = zip(_best_first(comparison, choice), draw_courses(comparison, choice), strict=True)
    for result, chart in rules:
        courses.append(Figure(chart, f"{chart.title}. The rule: {result.rule.note}.", PHONE_SIZE))
    return make_page(
        {
            f"Settings of {choice.result.rule.name}": [
                Text([choice.result.rule.note], "soft"),
                Text([settings], "copy"),
                Text(
                    [
                        "Put this into the values of the chart, with the name of your queue for"
                        " NAME. The part behavior fits into any HorizontalPodAutoscaler too."
                    ],
                    "soft",
                ),
                criteria,
            ],
            "All rules": [_rules_table(comparison, choice), Text(MEANINGS, "soft")],
            "Why rules kill requests or change their direction": [
                Text(_weakness_lines(comparison), "list")
            ],
            "Replicas and requests over time": courses,
            "What was simulated": [
                Facts(comparison.load),
                Text(
                    [
                        "HPA and KEDA compute as their controllers do, on a virtual clock. The same"
                        " seed gives the same result."
                    ],
                    "soft",
                ),
            ],
        }
    )


def _rules_table(comparison: RuleComparison, choice: BestRule) -> Table:
    """Return the figures of all rules, a row each."""
    rows = []
    for result in comparison.results:
        rows.append(
            [
                _rule_title(result.rule.name, is_best=result is choice.result),
                str(result.changes),
                str(result.direction_changes),
                str(result.killed),
                format_seconds(result.mean_wait_s),
                format_seconds(result.wait_s(0.95)),
                "never" if result.makespan_s is None else format_duration(result.makespan_s),
                f"{result.pod_s:.0f}",
                str(result.peak_pods),
            ]
        )
    return Table(COLUMNS, rows, texts=(0,), spare=("replica changes", "most pods"))


def _rule_title(rule: str, *, is_best: bool) -> str:
    return f"{rule} (best)" if is_best else rule


def _weakness_lines(comparison: RuleComparison) -> list[str]:
    """Say why rules kill requests or turn, with the names of those of which each is true."""
    names_by_weakness: dict[str, list[str]] = {}
    for result in comparison.results:
        for weakness in find_weaknesses(result, comparison.requests):
            names_by_weakness.setdefault(weakness, []).append(result.rule.name)
    return [f"{', '.join(names)}: {weakness}" for weakness, names in names_by_weakness.items()]


def draw_courses(comparison: RuleComparison, choice: BestRule) -> list[Chart]:
    """Draw a chart of each rule, the best one first, all on one scale."""
    results = _best_first(comparison, choice)
    until_s, top = common_scale(results)
    return [draw_course(result, until_s, top, is_best=result is results[0]) for result in results]


def _best_first(comparison: RuleComparison, choice: BestRule) -> list[SimulationResult]:
    return sorted(comparison.results, key=lambda result: result is not choice.result)


def common_scale(results: Sequence[SimulationResult]) -> tuple[float, int]:
    """Return the scale of all charts: the latest end in seconds, and the largest number."""
    until_s, largest = 0.0, 1
    for result in results:
        for point in result.course:
            until_s = max(until_s, point.at_s)
            largest = max(largest, point.replicas, point.waiting, point.running)
    return until_s or 1.0, largest


def draw_course(
    result: SimulationResult, until_s: float, top: int, *, is_best: bool = False
) -> Chart:
    """Draw one rule's course: what waits and runs, and the wanted replicas, as steps.

    until_s, top: the ends of the axes of time and of numbers, as `common_scale` returns them.
    """
    turns = plural(result.direction_changes, "direction change")
    title = (
        f"{_rule_title(result.rule.name, is_best=is_best)}: {turns}, {result.killed} killed,"
        f" mean wait {format_seconds(result.mean_wait_s)}"
    )
    # requests and replicas are counted, so no mark lies between two whole numbers
    most_marks = min(6, top + 1)
    chart = Chart(
        re.sub(r"[^A-Za-z0-9]+", "-", f"course-{result.rule.name}"),
        title,
        "requests that wait and run, and the replicas that the rule wants, over time",
        Axis("time, min", 0.0, until_s / 60, max_marks=9),
        Axis("requests, replicas", 0.0, axis_end(top, most_marks), max_marks=most_marks),
        WIDTH,
        HEIGHT,
    )
    for name, (css, explanation) in LINES.items():
        chart.legend(explanation, css)
        # as steps: a value holds until the next one
        points: list[Point] = []
        for point in result.course:
            # a value that stays needs no corner, except at the end of the line
            at_min, value = point.at_s / 60, float(getattr(point, name))
            if not points:
                points.append((at_min, value))
            elif value != points[-1][1] or point is result.course[-1]:
                points += [(at_min, points[-1][1]), (at_min, value)]
        chart.line(points, css)
    return chart
