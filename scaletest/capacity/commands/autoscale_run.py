"""Simulate autoscaling rules under a load, show progress, and print the results."""

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from scaletest.capacity.autoscale.load import Requests, SimulationOptions
from scaletest.capacity.autoscale.rule import Rule, parse_rule, to_values
from scaletest.capacity.autoscale.rule_search import (
    SHARE_IN_TIME,
    candidate_rules,
    keeps_target,
    rank_rules,
)
from scaletest.capacity.autoscale.simulation import SimulationResult, simulate
from scaletest.capacity.report import RuleComparison, make_comparison_report
from scaletest.cli import stored
from scaletest.cli.output import Output, as_text, echo
from scaletest.cli.progress_views import show_progress
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.masking import mask_passwords
from scaletest.model.run_progress import expect_alike
from scaletest.render.numbers import format_seconds, plural
from scaletest.runs import registry
from scaletest.runs.folder import RECORDS

# What the progress of a simulation counts.
RULE = "rule"
# How many of the rules that were tried are listed, the best ones.
MOST_SHOWN = 5


def compare_rules(
    options: SimulationOptions, texts: Sequence[str], output: Output, form: str
) -> int:
    """Simulate rules side by side, and name the best; exit code 0. form: of the progress."""
    load = options.load
    rules = [
        parse_rule(text, minimum=load.min_workers, maximum=load.max_workers, grace_s=load.grace_s)
        for text in texts
    ]
    requests = make_requests(options)
    with simulating(options, requests, len(rules), form) as simulate_rule:
        results = list(map(simulate_rule, rules))
    # the load, as names and values
    run_time = f"{format_seconds(load.seconds)} on average, deviation {100 * load.variation:g} %"
    arrivals_text = f"{60 * load.rate:g}/min for {load.duration_s / 60:g} min, {load.pattern}"
    about = [
        ("run time of a request", f"as in run {options.run}" if options.run else run_time),
        ("arrivals", f"as in {options.trace}" if options.trace else arrivals_text),
        ("workers", f"{load.min_workers} to {load.max_workers}"),
        ("a pod is ready after", format_seconds(load.pod_start_s)),
        ("grace period", format_seconds(load.grace_s)),
        ("seed", str(options.seed)),
    ]
    command_line = list(map(mask_passwords, sys.argv))
    comparison = RuleComparison(requests, results, about, options.seed, command_line)
    stored.deliver(make_comparison_report(comparison), output)
    return 0


def search_rule(options: SimulationOptions, wait_target_s: float, output: Output, form: str) -> int:
    """Simulate all candidates and print the best; exit code 3 when none keeps the target."""
    if output.form not in ("text", "json", "yaml"):
        raise UsageError(
            f"only rules that are given by --rule are shown as {output.form}",
            hint="give --rule, or --format yaml",
        )
    checks.seconds(wait_target_s, "wait target", zero=False)
    requests, load = make_requests(options), options.load
    rules = list(
        candidate_rules(
            minimum=load.min_workers,
            maximum=load.max_workers,
            grace_s=load.grace_s,
            wait_s=wait_target_s,
        )
    )
    with simulating(options, requests, len(rules), form) as simulate_rule:
        ranking = rank_rules(rules, simulate_rule, wait_target_s)
    are_kept = [keeps_target(result, wait_target_s) for result in ranking]
    values = to_values(ranking[0].rule)
    if not output.is_data:  # beside the YAML that may be piped
        echo(f"{sum(are_kept)} of {len(ranking)} rules keep the target; the best:", err=True)
        for result in ranking[:MOST_SHOWN]:
            met = "met" if keeps_target(result, wait_target_s) else "not"
            wait_s = result.wait_s(SHARE_IN_TIME)
            wait = "unknown" if wait_s is None else f"{wait_s:.1f} s"
            echo(
                f"  {met}  p95 wait {wait:>9}  pod-seconds {result.pod_s:>10.0f}"
                f"  changes {result.changes:>4}  killed {result.killed:>3}  {result.rule.name}",
                err=True,
            )
    output.show(
        {
            "schema_version": 1,
            "met": are_kept[0],
            "values": values,
            "tried": [
                {"met": met, **result.to_dict()}
                for met, result in zip(are_kept, ranking, strict=True)
            ],
        },
        [as_text(values, "yaml").rstrip()],
    )
    return 0 if are_kept[0] else 3


def make_requests(options: SimulationOptions) -> Requests:
    """Make the requests, which every rule gets: drawn, or as a run and a file say."""
    # run times as they were recorded
    run_times_s = None
    if options.run:
        folder = stored.find(options.run)
        if folder.kind != "validation":
            raise UsageError(
                f"{options.run} is not a validation", hint="name a run of: scaletest validate"
            )
        records = registry.type_of(folder).folder(folder.path).rows(RECORDS)
        run_times_s = [record.reply.run_s for record in records if record.ok]
    # arrivals as a file says
    arrivals_s = None
    if options.trace:
        try:
            values = sorted(float(line) for line in options.trace.read_text("utf-8").split())
        except (OSError, ValueError) as error:
            raise InvalidValue(
                f"the trace cannot be read: {error}", hint="give a file with one number per line"
            ) from error
        arrivals_s = [checks.seconds(value, "an arrival", maximum=1e9) for value in values]
    return options.load.draw_requests(random.Random(options.seed), run_times_s, arrivals_s)


@contextmanager
def simulating(
    options: SimulationOptions, requests: Requests, count: int, form: str
) -> Iterator[Callable[[Rule], SimulationResult]]:
    """Yield a function that simulates one of `count` rules; meanwhile the progress is shown.

    form: see `progress_views.show_progress`.
    """
    lengths_s: list[float] = []  # how long each simulation took
    began_s = time.monotonic()
    title = f"{plural(count, 'rule')} against {plural(len(requests.arrivals_s), 'request')}"
    with show_progress(form) as progress, progress.of_work("simulation", title):

        def simulate_rule(rule: Rule) -> SimulationResult:
            progress.note(rule.name)
            # the same chance for every rule, so that they differ by what they decide alone
            chance = random.Random(options.seed)
            result = simulate(requests, rule, options.load.pod_start_s, chance)
            lengths_s.append(time.monotonic() - began_s - sum(lengths_s))
            left = expect_alike(lengths_s, count - len(lengths_s))
            progress.at(len(lengths_s), count, left=left, unit=RULE)
            return result

        progress.at(0, count, unit=RULE)
        yield simulate_rule
