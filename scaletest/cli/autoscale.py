"""scaletest autoscale: play a workload against autoscaling rules, and find a good rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from scaletest.cli import options, stored
from scaletest.cli.output import echo
from scaletest.model.errors import InvalidValue

if TYPE_CHECKING:
    from scaletest.analysis.autoscale.arrivals import Arrivals
    from scaletest.analysis.autoscale.result import SimulationResult
    from scaletest.analysis.autoscale.rule import Rule
    from scaletest.analysis.autoscale.simulation import SimulationSetting

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_RULES = (
    "original-count",
    "waiting",
    "waiting-fast",
    "demand",
    "demand-fast",
    "demand-gentle",
    "desired",
)


@click.group("autoscale")
def command() -> None:
    """Simulate autoscaling rules: HPA and KEDA as they compute, pods that start slowly and drain, a
    virtual clock.
    """


WORKLOAD_OPTIONS = (
    click.option(
        "--seconds",
        type=float,
        default=60.0,
        show_default=True,
        metavar="S",
        help="Mean run time of a request.",
    ),
    click.option(
        "--variation",
        type=float,
        default=0.3,
        show_default=True,
        metavar="SHARE",
        help="Standard deviation of run times over their mean; 0: all the same.",
    ),
    click.option(
        "--run-dir",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Draw run times from the records of a run instead.",
    ),
    click.option(
        "--pattern",
        type=click.Choice(["poisson", "steady", "wave", "steps", "burst"]),
        default="poisson",
        show_default=True,
        help="Pattern of the arrivals.",
    ),
    click.option(
        "--rate",
        type=float,
        default=2.0,
        show_default=True,
        metavar="N",
        help="Requests a minute, on average.",
    ),
    click.option(
        "--duration",
        type=float,
        default=1800.0,
        show_default=True,
        metavar="S",
        help="Requests come during S seconds.",
    ),
    click.option(
        "--trace",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Requests come at these times instead: a line each, in seconds.",
    ),
    click.option(
        "--min-workers",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Fewest replicas.",
    ),
    click.option(
        "--max-workers",
        type=int,
        default=10,
        show_default=True,
        metavar="N",
        help="Most replicas.",
    ),
    click.option(
        "--pod-start",
        type=float,
        default=20.0,
        show_default=True,
        metavar="S",
        help="Seconds from a pod's creation until it is ready.",
    ),
    click.option(
        "--grace",
        type=float,
        default=30.0,
        show_default=True,
        metavar="S",
        help="Grace period of a pod that is deleted.",
    ),
    click.option(
        "--seed",
        type=int,
        default=1,
        show_default=True,
        help="Seed; the same seed gives the same run.",
    ),
)


def workload_options(function: F) -> F:
    """Add the options of the load, the run times, and how pods come and go."""
    for option in reversed(WORKLOAD_OPTIONS):
        function = option(function)
    return function


@command.command()
@workload_options
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="A rule to play; see rules.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a page with charts over time.",
)
@options.output
def simulate(rules: tuple[str, ...], html: Path | None, output: str, **given: Any) -> None:
    """Play one workload against several rules, side by side.

    \b
    scaletest autoscale simulate --seconds 240 --rate 2
    scaletest autoscale simulate --rule demand:down_window=60,target=2 --rule desired:window=300 \\
      --html rules.html
    """
    from scaletest.analysis.autoscale.rule import parse

    chosen = [_within(parse(text), given) for text in rules or DEFAULT_RULES]
    workload, setting = _workload(given), _setting(given)
    results = [_play(rule, workload, setting, given["seed"]) for rule in chosen]
    if html is not None:
        from scaletest.report.autoscaling import page

        title = f"Autoscaling rules, {len(workload.arrivals)} requests"
        _write(html, page(title, results, {rule.name: rule.note for rule in chosen}))
    if output != "table":
        options.show(
            {
                "schema_version": 1,
                "seed": given["seed"],
                "rules": [result.to_dict() for result in results],
            },
            output,
        )
        return
    _table(results)


@command.command()
@workload_options
@click.option(
    "--wait-target",
    type=float,
    default=30.0,
    show_default=True,
    metavar="S",
    help="Most seconds that 95 % of the requests may wait.",
)
@options.output
def recommend(wait_target: float, output: str, **given: Any) -> int:
    """Search for the cheapest rule that keeps a wait target and kills no request, and print it as
    YAML for the chart.

    Cost is pod seconds. Exit code 3 when no rule keeps the target; then the best of them is
    printed.
    """
    import yaml

    from scaletest.analysis.autoscale.recommend import candidates, recommend
    from scaletest.analysis.autoscale.rule import to_values
    from scaletest.model import checks

    checks.seconds(wait_target, "wait target", zero=False)
    workload, setting = _workload(given), _setting(given)
    tried = candidates(given["max_workers"], given["min_workers"], wait_target)
    best, found = recommend(
        tried, lambda rule: _play(rule, workload, setting, given["seed"]), wait_target
    )
    values = to_values(best.rule)
    if output != "table":
        rows = [{"met": choice.met, **choice.result.to_dict()} for choice in found]
        options.show(
            {"schema_version": 1, "met": best.met, "values": values, "tried": rows}, output
        )
    else:
        echo(
            f"{sum(c.met for c in found)} of {len(found)} rules keep the target; the best:",
            err=True,
        )
        for choice in found[:5]:
            wait = choice.result.wait_s(0.95)
            shown = "unknown" if wait is None else f"{wait:.1f} s"
            echo(
                f"  {'met ' if choice.met else 'not '} p95 wait {shown:>9}  pod-seconds"
                f" {choice.result.pod_s:>10.0f}  changes {choice.result.changes:>4}  killed"
                f" {choice.result.killed:>3}  {choice.rule.name}",
                err=True,
            )
        echo(yaml.safe_dump(values, sort_keys=False), nl=False)
    return 0 if best.met else 3


@command.command()
@options.output
def rules(output: str) -> None:
    """List the rules that can be played, and what can be changed about them."""
    from scaletest.analysis.autoscale.rule import CHANGES, RULES, to_values

    if output != "table":
        options.show(
            {name: {"note": rule.note, **to_values(rule)} for name, rule in RULES.items()}, output
        )
        return
    for rule in RULES.values():
        echo(f"{rule.name:18} {rule.note}")
    echo(f"keys: {', '.join(CHANGES)}", err=True)


def _within(rule: Rule, given: dict[str, Any]) -> Rule:
    """The rule with the fewest and most replicas of the command line, unless it has its own."""
    from dataclasses import replace

    from scaletest.analysis.autoscale.rule import RULES

    base = RULES[rule.name.partition(":")[0]]
    least = given["min_workers"] if base.minimum == rule.minimum and rule.minimum else rule.minimum
    most = given["max_workers"] if base.maximum == rule.maximum else rule.maximum
    return replace(rule, minimum=least, maximum=most)


def _play(
    rule: Rule, workload: Arrivals, setting: SimulationSetting, seed: int
) -> SimulationResult:
    import random

    from scaletest.analysis.autoscale.simulation import simulate

    return simulate(workload, rule, setting, random.Random(seed))


def _setting(given: dict[str, Any]) -> SimulationSetting:
    from scaletest.analysis.autoscale.simulated_pods import PodTiming
    from scaletest.analysis.autoscale.simulation import SimulationSetting
    from scaletest.model import checks

    start_s, grace_s = (
        checks.seconds(given["pod_start"], "pod start"),
        checks.seconds(given["grace"], "grace"),
    )
    return SimulationSetting(PodTiming(start_s, 0.0, grace_s), start=max(0, given["min_workers"]))


def _workload(given: dict[str, Any]) -> Arrivals:
    import random

    from scaletest.analysis.autoscale import arrivals
    from scaletest.model import checks

    chance = random.Random(given["seed"])
    mean_s = checks.seconds(given["seconds"], "seconds", zero=False)
    variation = checks.number(given["variation"], "variation", maximum=10.0, zero=True)
    duration_s = checks.seconds(given["duration"], "duration", zero=False)
    per_s = checks.number(given["rate"], "rate", maximum=1e6) / 60.0
    runs = arrivals.runs_of(chance, mean_s, variation)
    if given["run_dir"]:
        runs = arrivals.recorded(chance, _recorded(given["run_dir"]))
    if given["trace"]:
        times = _trace(given["trace"])
        return arrivals.Arrivals(times, tuple(runs() for _ in times))
    return arrivals.pattern(given["pattern"], chance, runs, per_s, duration_s)


def _recorded(folder: Path) -> list[float]:
    from scaletest.model import Record

    if not (folder / "records.jsonl").is_file():
        folder = stored.find(str(folder)).path
    try:
        lines = (folder / "records.jsonl").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidValue(
            f"the run cannot be read: {error}", hint="give the folder of a run"
        ) from error
    records = [Record.from_json(line) for line in lines]
    return [record.reply.run_s for record in records if record.ok]


def _trace(path: Path) -> tuple[float, ...]:
    from scaletest.model import checks

    try:
        values = sorted(float(line) for line in path.read_text("utf-8").split())
    except (OSError, ValueError) as error:
        raise InvalidValue(
            f"the trace cannot be read: {error}", hint="give a file with a number a line"
        ) from error
    return tuple(checks.seconds(value, "an arrival", maximum=1e9) for value in values)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InvalidValue(
            f"the page cannot be written: {error}", hint="give another --html FILE"
        ) from error


def _table(results: list[SimulationResult]) -> None:
    from scaletest.report.autoscaling import COLUMNS, row

    rows = [list(COLUMNS), *(row(result) for result in results)]
    widths = [max(len(line[column]) for line in rows) for column in range(len(COLUMNS))]
    for line in rows:
        first, *rest = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        echo("  ".join([first.strip().ljust(widths[0]), *rest]).rstrip())
