"""Play a load against autoscaling rules, with progress, and print what comes of it."""

import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from scaletest.capacity.autoscale.choice import PlayedRule, candidate_rules, find_best
from scaletest.capacity.autoscale.load import Arrivals, PlayOptions
from scaletest.capacity.autoscale.rule import Rule, parse_rule, to_values
from scaletest.capacity.autoscale.simulation import SimulationResult, simulate
from scaletest.capacity.report import Simulation, simulation_report
from scaletest.cli import stored
from scaletest.cli.output import Output, as_text, echo
from scaletest.cli.progress_views import show_progress
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.masking import mask_passwords
from scaletest.render.blocks import Pairs
from scaletest.render.numbers import format_seconds, plural
from scaletest.runs import registry
from scaletest.runs.folder import RECORDS

# What the progress of a simulation counts.
RULE = "rule"


def compare_rules(options: PlayOptions, texts: Sequence[str], output: Output, form: str) -> int:
    """Play rules side by side, and name the best; exit code 0. form: of the progress."""
    load = options.load
    rules = list(map(load.within, list(map(parse_rule, texts))))
    arrivals = draw_requests(options)
    with playing(options, arrivals, len(rules), form) as play:
        results = list(map(play, rules))
    played = list(map(PlayedRule, rules, results, map(load.setting.grace_of, rules)))
    simulation = Simulation(
        arrivals, played, describe(options), options.seed, list(map(mask_passwords, sys.argv))
    )
    stored.deliver(simulation_report(simulation), output)
    return 0


def search_rule(options: PlayOptions, wait_target_s: float, output: Output, form: str) -> int:
    """Play all candidates and print the best one; exit code 3 when none keeps the target."""
    if output.form not in ("text", "json", "yaml"):
        raise UsageError(
            f"only rules that are given by --rule are shown as {output.form}",
            hint="give --rule, or --format yaml",
        )
    checks.seconds(wait_target_s, "wait target", zero=False)
    arrivals, load = draw_requests(options), options.load
    rules = list(candidate_rules(load.max_workers, load.min_workers, wait_target_s))
    with playing(options, arrivals, len(rules), form) as play:
        best, choices = find_best(rules, play, wait_target_s)
    values = to_values(best.rule)
    if not output.is_data:
        met = sum(choice.met for choice in choices)
        echo(f"{met} of {len(choices)} rules keep the target; the best:", err=True)
        for choice in choices[:5]:
            wait = choice.result.wait_s(0.95)
            wait_text = "unknown" if wait is None else f"{wait:.1f} s"
            echo(
                f"  {'met' if choice.met else 'not'}  p95 wait {wait_text:>9}  pod-seconds"
                f" {choice.result.pod_s:>10.0f}  changes {choice.result.changes:>4}  killed"
                f" {choice.result.killed:>3}  {choice.rule.name}",
                err=True,
            )
    output.show(
        {
            "schema_version": 1,
            "met": best.met,
            "values": values,
            "tried": [{"met": choice.met, **choice.result.to_dict()} for choice in choices],
        },
        [as_text(values, "yaml").rstrip()],
    )
    return 0 if best.met else 3


def draw_requests(options: PlayOptions) -> Arrivals:
    """Draw the requests, which every rule gets."""
    run_times, times = None, None
    if options.run:
        folder = stored.find(options.run)
        if folder.kind != "validation":
            raise UsageError(
                f"{options.run} is not a validation", hint="name a run of: scaletest validate"
            )
        records = registry.type_of(folder).folder(folder.path).rows(RECORDS)
        run_times = [record.reply.run_s for record in records if record.ok]
    if options.trace:
        try:
            values = sorted(float(line) for line in options.trace.read_text("utf-8").split())
        except (OSError, ValueError) as error:
            raise InvalidValue(
                f"the trace cannot be read: {error}", hint="give a file with a number a line"
            ) from error
        times = [checks.seconds(value, "an arrival", maximum=1e9) for value in values]
    return options.load.arrivals(random.Random(options.seed), run_times, times)


@contextmanager
def playing(
    options: PlayOptions, arrivals: Arrivals, count: int, form: str
) -> Iterator[Callable[[Rule], SimulationResult]]:
    """Yield a function that plays these requests against one of `count` rules, and shows how far
    it is. form: see `progress_views.shown`.
    """
    done, began_s = itertools.count(1), time.monotonic()
    title = f"{plural(count, 'rule')} against {plural(len(arrivals.arrivals), 'request')}"
    with show_progress(form) as progress, progress.of_work("simulation", title):

        def play(rule: Rule) -> SimulationResult:
            progress.note(rule.name)
            result = simulate(arrivals, rule, options.load.setting, random.Random(options.seed))
            number = next(done)
            left_s = (time.monotonic() - began_s) * (count / number - 1)
            progress.at(number, count, left_s=left_s, unit=RULE)
            return result

        progress.at(0, count, unit=RULE)
        yield play


def describe(options: PlayOptions) -> Pairs:
    """Describe the load, as names and values."""
    load = options.load
    run = f"{format_seconds(load.seconds)} on average, deviation {100 * load.variation:g} %"
    coming = f"{60 * load.rate:g}/min for {load.duration_s / 60:g} min, {load.pattern}"
    return [
        ("run time of a request", f"as in run {options.run}" if options.run else run),
        ("arrivals", f"as in {options.trace}" if options.trace else coming),
        ("workers", f"{load.min_workers} to {load.max_workers}"),
        ("a pod is ready after", format_seconds(load.pod_start_s)),
        ("grace period", format_seconds(load.grace_s)),
        ("seed", str(options.seed)),
    ]
