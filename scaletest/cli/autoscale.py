"""scaletest autoscale: play a workload against autoscaling rules, and find a good rule."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import click
import yaml

from scaletest.analysis.autoscale import arrivals
from scaletest.analysis.autoscale.arrivals import Arrivals
from scaletest.analysis.autoscale.recommend import candidates, recommend
from scaletest.analysis.autoscale.result import SimulationResult
from scaletest.analysis.autoscale.rule import CHANGES, RULES, Rule, parse, to_values
from scaletest.analysis.autoscale.simulated_pods import PodTiming
from scaletest.analysis.autoscale.simulation import SimulationSetting, simulate
from scaletest.cli import options as shared
from scaletest.cli import stored
from scaletest.cli.output import echo
from scaletest.model import Record, checks
from scaletest.model.errors import InvalidValue
from scaletest.report.autoscaling import COLUMNS, page, row

F = TypeVar("F", bound=Callable[..., object])
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


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The load that is played, its run times, and how pods come and go. Times are in seconds, the
    rate in requests a minute.
    """

    seconds: float
    variation: float
    run_dir: Path | None
    pattern: str
    rate: float
    duration: float
    trace: Path | None
    min_workers: int
    max_workers: int
    pod_start: float
    grace: float
    seed: int


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """Which rules are played."""

    load: LoadOptions
    rules: tuple[str, ...]
    html: Path | None
    output: str


@dataclass(frozen=True, slots=True)
class RecommendOptions:
    """What a rule must reach."""

    load: LoadOptions
    wait_target: float
    output: str


@command.command("simulate")
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
@shared.output
@shared.typed(SimulateOptions)
def simulate_rules(options: SimulateOptions) -> None:
    """Play one workload against several rules, side by side.

    \b
    scaletest autoscale simulate --seconds 240 --rate 2
    scaletest autoscale simulate --rule demand:down_window=60,target=2 --rule desired:window=300 \\
      --html rules.html
    """
    chosen = [_within(parse(text), options.load) for text in options.rules or DEFAULT_RULES]
    workload, setting = _workload(options.load), _setting(options.load)
    results = [_play(rule, workload, setting, options.load.seed) for rule in chosen]
    if options.html is not None:
        title = f"Autoscaling rules, {len(workload.arrivals)} requests"
        _write(options.html, page(title, results, {rule.name: rule.note for rule in chosen}))
    if options.output != "table":
        shared.show(
            {
                "schema_version": 1,
                "seed": options.load.seed,
                "rules": [result.to_dict() for result in results],
            },
            options.output,
        )
        return
    _table(results)


@command.command("recommend")
@workload_options
@click.option(
    "--wait-target",
    type=float,
    default=30.0,
    show_default=True,
    metavar="S",
    help="Most seconds that 95 % of the requests may wait.",
)
@shared.output
@shared.typed(RecommendOptions)
def recommend_rule(options: RecommendOptions) -> int:
    """Search for the cheapest rule that keeps a wait target and kills no request, and print it as
    YAML for the chart.

    Cost is pod seconds. Exit code 3 when no rule keeps the target; then the best of them is
    printed.
    """
    checks.seconds(options.wait_target, "wait target", zero=False)
    workload, setting = _workload(options.load), _setting(options.load)
    tried = candidates(options.load.max_workers, options.load.min_workers, options.wait_target)
    best, choices = recommend(
        tried,
        lambda rule: _play(rule, workload, setting, options.load.seed),
        options.wait_target,
    )
    values = to_values(best.rule)
    if options.output != "table":
        rows = [{"met": choice.met, **choice.result.to_dict()} for choice in choices]
        shared.show(
            {"schema_version": 1, "met": best.met, "values": values, "tried": rows}, options.output
        )
    else:
        met = sum(choice.met for choice in choices)
        echo(
            f"{met} of {len(choices)} rules keep the target; the best:",
            err=True,
        )
        for choice in choices[:5]:
            wait = choice.result.wait_s(0.95)
            state = "met " if choice.met else "not "
            shown = "unknown" if wait is None else f"{wait:.1f} s"
            echo(
                f"  {state} p95 wait {shown:>9}  pod-seconds"
                f" {choice.result.pod_s:>10.0f}  changes {choice.result.changes:>4}  killed"
                f" {choice.result.killed:>3}  {choice.rule.name}",
                err=True,
            )
        echo(yaml.safe_dump(values, sort_keys=False), nl=False)
    return 0 if best.met else 3


@command.command()
@shared.output
def rules(output: str) -> None:
    """List the rules that can be played, and what can be changed about them."""
    if output != "table":
        shared.show(
            {name: {"note": rule.note, **to_values(rule)} for name, rule in RULES.items()}, output
        )
        return
    for rule in RULES.values():
        echo(f"{rule.name:18} {rule.note}")
    echo(f"keys: {', '.join(CHANGES)}", err=True)


def _within(rule: Rule, load: LoadOptions) -> Rule:
    """The rule with the fewest and most replicas of the command line, unless it has its own."""
    base = RULES[rule.name.partition(":")[0]]
    if base.minimum == rule.minimum and rule.minimum:
        rule = replace(rule, minimum=load.min_workers)
    if base.maximum == rule.maximum:
        rule = replace(rule, maximum=load.max_workers)
    return rule


def _play(
    rule: Rule, workload: Arrivals, setting: SimulationSetting, seed: int
) -> SimulationResult:
    return simulate(workload, rule, setting, random.Random(seed))


def _setting(load: LoadOptions) -> SimulationSetting:
    start_s = checks.seconds(load.pod_start, "pod start")
    grace_s = checks.seconds(load.grace, "grace")
    return SimulationSetting(PodTiming(start_s, 0.0, grace_s), start=max(0, load.min_workers))


def _workload(load: LoadOptions) -> Arrivals:
    chance = random.Random(load.seed)
    mean_s = checks.seconds(load.seconds, "seconds", zero=False)
    variation = checks.number(load.variation, "variation", maximum=10.0, zero=True)
    duration_s = checks.seconds(load.duration, "duration", zero=False)
    per_s = checks.number(load.rate, "rate", maximum=1e6) / 60.0
    runs = arrivals.runs_of(chance, mean_s, variation)
    if load.run_dir:
        runs = arrivals.recorded(chance, _recorded(load.run_dir))
    if load.trace:
        times = _trace(load.trace)
        return arrivals.Arrivals(times, tuple(runs() for _ in times))
    return arrivals.pattern(load.pattern, chance, runs, per_s, duration_s)


def _recorded(folder: Path) -> list[float]:
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
    rows = [list(COLUMNS), *(row(result) for result in results)]
    widths = []
    for column in range(len(COLUMNS)):
        widths.append(max(len(line[column]) for line in rows))
    for line in rows:
        first, *rest = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        echo("  ".join([first.strip().ljust(widths[0]), *rest]).rstrip())
