"""scaletest autoscale: play a workload against autoscaling rules, and find a good rule."""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import cloup

from scaletest.capacity.autoscale.choice import PlayedRule
from scaletest.capacity.autoscale.rule import (
    CHANGES,
    RULES,
    Rule,
    RuleChoice,
    SimulationResult,
    candidates,
    parse,
    recommend,
    to_values,
)
from scaletest.capacity.autoscale.simulation import PATTERNS, Arrivals, PlayedLoad, simulate
from scaletest.capacity.report import Simulation, simulation_report
from scaletest.cli import options as shared
from scaletest.cli import stored
from scaletest.cli.headings import heading
from scaletest.cli.output import Output, as_text, echo
from scaletest.cli.progress_views import shown
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.texts import masked
from scaletest.render.blocks import Pairs
from scaletest.render.numbers import plural, seconds
from scaletest.runs import registry
from scaletest.runs.folder import RECORDS

# What the progress of a simulation counts.
RULE = "rule"


# The load, the run times, and how pods come and go: PlayOptions.
workload_options = shared.group(
    heading("Load"),
    shared.duration("--seconds", default="60s", help="Let a request run this long, on average."),
    click.option(
        "--variation",
        type=float,
        default=0.3,
        show_default=True,
        metavar="SHARE",
        help=(
            "Spread the run times: their standard deviation is this share of their mean;"
            " with 0 all are the same."
        ),
    ),
    click.option(
        "--run",
        default="",
        metavar="RUN",
        help="Draw the run times of requests from the records of this stored run instead.",
    ),
    click.option(
        "--pattern",
        type=click.Choice(PATTERNS),
        default="poisson",
        show_default=True,
        help="Let requests come in this pattern.",
    ),
    click.option(
        "--rate",
        type=shared.RATE_WITH_UNIT,
        default="2/min",
        show_default=True,
        metavar="RATE",
        help="Let requests come at this mean rate; it needs its unit.",
    ),
    shared.duration("--duration", default="30m", help="Let requests come for this long."),
    click.option(
        "--trace",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Let requests come at the times in this file instead, in seconds, one a line.",
    ),
    heading("Pods"),
    click.option(
        "--min-workers",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Let the rule ask for at least N replicas.",
    ),
    click.option(
        "--max-workers",
        type=int,
        default=10,
        show_default=True,
        metavar="N",
        help="Let the rule ask for at most N replicas.",
    ),
    shared.duration(
        "--pod-start",
        default="20s",
        help="Let a pod need this long from its creation until it is ready.",
    ),
    shared.duration(
        "--grace", default="30s", help="Give a pod that is deleted this long to finish its request."
    ),
    heading("Accuracy"),
    click.option(
        "--seed",
        metavar="N",
        type=int,
        default=1,
        show_default=True,
        help="Use this seed for random numbers; the same seed gives the same run.",
    ),
)


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """The load that is played, and what is used in place of its run times and arrivals."""

    load: PlayedLoad
    run: str
    trace: Path | None
    seed: int

    def arrivals(self) -> Arrivals:
        """The requests, which every rule gets."""
        recorded = _recorded(self.run) if self.run else None
        times = _trace(self.trace) if self.trace else None
        return self.load.arrivals(random.Random(self.seed), recorded, times)

    def simulation(self, chosen: Sequence[Rule], form: str) -> Simulation:
        """These rules, played against the same requests. form: of the progress."""
        rules, arrivals = list(map(self.load.within, chosen)), self.arrivals()
        with self.player(arrivals, len(rules), form) as play:
            results = list(map(play, rules))
        graces = map(self.load.setting.grace_of, rules)
        played = list(map(PlayedRule, rules, results, graces))
        command_line = list(map(masked, sys.argv))
        return Simulation(arrivals, played, self.described, self.seed, command_line)

    @contextmanager
    def player(
        self, arrivals: Arrivals, count: int, form: str
    ) -> Iterator[Callable[[Rule], SimulationResult]]:
        """A function that plays these requests against one of `count` rules, and shows how far it
        is. form: see `progress_views.shown`.
        """
        done, began_s = itertools.count(1), time.monotonic()
        title = f"{plural(count, 'rule')} against {plural(len(arrivals.arrivals), 'request')}"
        with (
            shown(form) as progress,
            progress.of_work("simulation", title),
        ):

            def play(rule: Rule) -> SimulationResult:
                progress.note(rule.name)
                result = simulate(arrivals, rule, self.load.setting, random.Random(self.seed))
                number = next(done)
                left_s = (time.monotonic() - began_s) * (count / number - 1)
                progress.at(number, count, left_s=left_s, unit=RULE)
                return result

            progress.at(0, count, unit=RULE)
            yield play

    @property
    def described(self) -> Pairs:
        """The load in words, as names and values."""
        load = self.load
        run = f"{seconds(load.seconds)} on average, deviation {100 * load.variation:g} %"
        coming = f"{60 * load.rate:g}/min for {load.duration_s / 60:g} min, {load.pattern}"
        return [
            ("run time of a request", f"as in run {self.run}" if self.run else run),
            ("arrivals", f"as in {self.trace}" if self.trace else coming),
            ("workers", f"{load.min_workers} to {load.max_workers}"),
            ("a pod is ready after", seconds(load.pod_start_s)),
            ("grace period", seconds(load.grace_s)),
            ("seed", str(self.seed)),
        ]


@cloup.command("autoscale")
@workload_options
@heading("Autoscaling")
@shared.duration(
    "--wait-target",
    default="30s",
    help="Look for a rule by which 95 % of the requests wait no longer than this.",
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help=(
        f"Play this rule instead, one of {', '.join(RULES)}; its keys are {', '.join(CHANGES)}. The"
        " option may be repeated, to compare rules."
    ),
)
@heading("Output")
@shared.output("text", "json", "yaml", "html", "md", "csv", "png")
@shared.progress
@shared.grouped
def command(
    workload: PlayOptions,
    wait_target_s: float,
    rules: tuple[str, ...],
    output: Output,
    progress: str,
) -> int:
    """Search for a good autoscaling rule, or play rules side by side.

    Without --rule it is the cheapest rule that keeps a wait target and kills no request, as YAML
    for the chart; else the rules that are given are compared, and the best is named.

    \b
    scaletest autoscale --seconds 4m --rate 2/min --wait-target 1m
    scaletest autoscale --run LAST --rate 30/min --max-workers 32 \\
      --output rule.yaml
    scaletest autoscale --rule demand:down_window=60,target=2 \\
      --rule desired:window=300 --output rules.html

    HPA and KEDA are simulated as they compute, with pods that start slowly and drain, on a virtual
    clock. Cost is pod seconds. With --min-workers 0 the rules are KEDA's. Exit code 3 when no rule
    keeps the target; then the best of them is printed.
    """
    if rules:
        played = workload.simulation(list(map(parse, rules)), progress)
        stored.deliver(simulation_report(played), output)
        return 0
    return _recommend(workload, wait_target_s, output, progress)


def _recommend(workload: PlayOptions, wait_target_s: float, output: Output, progress: str) -> int:
    """Play all candidates and print the best one."""
    if output.form not in ("text", "json", "yaml"):
        raise UsageError(
            f"only rules that are given by --rule are shown as {output.form}",
            hint="give --rule, or --format yaml",
        )
    checks.seconds(wait_target_s, "wait target", zero=False)
    arrivals, load = workload.arrivals(), workload.load
    candidate_rules = list(candidates(load.max_workers, load.min_workers, wait_target_s))
    with workload.player(arrivals, len(candidate_rules), progress) as play:
        best, choices = recommend(candidate_rules, play, wait_target_s)
    values = to_values(best.rule)
    if not output.is_data:
        for line in _choice_lines(choices):
            echo(line, err=True)
    rows = [{"met": choice.met, **choice.result.to_dict()} for choice in choices]
    output.show(
        {"schema_version": 1, "met": best.met, "values": values, "tried": rows},
        [as_text(values, "yaml").rstrip()],
    )
    return 0 if best.met else 3


def _choice_lines(choices: list[RuleChoice]) -> Iterator[str]:
    met = sum(choice.met for choice in choices)
    yield f"{met} of {len(choices)} rules keep the target; the best:"
    for choice in choices[:5]:
        wait = choice.result.wait_s(0.95)
        shown = "unknown" if wait is None else f"{wait:.1f} s"
        yield (
            f"  {'met' if choice.met else 'not'}  p95 wait {shown:>9}  pod-seconds"
            f" {choice.result.pod_s:>10.0f}  changes {choice.result.changes:>4}  killed"
            f" {choice.result.killed:>3}  {choice.rule.name}"
        )


def _recorded(run: str) -> list[float]:
    folder = stored.find(run)
    if folder.kind != "validation":
        raise UsageError(f"{run} is no validation", hint="name a run of: scaletest validate")
    records = registry.type_of(folder).folder(folder.path).rows(RECORDS)
    return [record.reply.run_s for record in records if record.ok]


def _trace(path: Path) -> tuple[float, ...]:
    try:
        values = sorted(float(line) for line in path.read_text("utf-8").split())
    except (OSError, ValueError) as error:
        raise InvalidValue(
            f"the trace cannot be read: {error}", hint="give a file with a number a line"
        ) from error
    return tuple(checks.seconds(value, "an arrival", maximum=1e9) for value in values)
