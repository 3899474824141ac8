"""Play a load against autoscaling rules, with progress, and print what comes of it."""

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from scaletest.capacity.autoscale.best_rule import PlayedRule
from scaletest.capacity.autoscale.load import Arrivals, PlayOptions
from scaletest.capacity.autoscale.rule import Rule, parse_rule, to_values
from scaletest.capacity.autoscale.rule_search import SHARE_IN_TIME, candidate_rules, rank_rules
from scaletest.capacity.autoscale.simulation import SimulationResult, simulate
from scaletest.capacity.report import Simulation, make_simulation_report
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


def compare_rules(options: PlayOptions, texts: Sequence[str], output: Output, form: str) -> int:
    """Play rules side by side, and name the best; exit code 0. form: of the progress."""
    load = options.load
    rules = [load.limit_replicas(rule) for rule in list(map(parse_rule, texts))]
    arrivals = draw_requests(options)
    with rule_player(options, arrivals, len(rules), form) as play:
        played = [PlayedRule(rule, play(rule), load.setting.grace_of(rule)) for rule in rules]
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
    simulation = Simulation(
        arrivals, played, about, options.seed, list(map(mask_passwords, sys.argv))
    )
    stored.deliver(make_simulation_report(simulation), output)
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
    with rule_player(options, arrivals, len(rules), form) as play:
        ranking = rank_rules(rules, play, wait_target_s)
    best = ranking[0]
    values = to_values(best.rule)
    if not output.is_data:  # beside the YAML that may be piped
        met = sum(tried.met for tried in ranking)
        echo(f"{met} of {len(ranking)} rules keep the target; the best:", err=True)
        for tried in ranking[:5]:
            wait_s = tried.result.wait_s(SHARE_IN_TIME)
            wait = "unknown" if wait_s is None else f"{wait_s:.1f} s"
            echo(
                f"  {'met' if tried.met else 'not'}  p95 wait {wait:>9}  pod-seconds"
                f" {tried.result.pod_s:>10.0f}  changes {tried.result.changes:>4}  killed"
                f" {tried.result.killed:>3}  {tried.rule.name}",
                err=True,
            )
    output.show(
        {
            "schema_version": 1,
            "met": best.met,
            "values": values,
            "tried": [{"met": tried.met, **tried.result.to_dict()} for tried in ranking],
        },
        [as_text(values, "yaml").rstrip()],
    )
    return 0 if best.met else 3


def draw_requests(options: PlayOptions) -> Arrivals:
    """Draw the requests, which every rule gets."""
    run_times, times = None, None
    # run times as they were recorded
    if options.run:
        folder = stored.find(options.run)
        if folder.kind != "validation":
            raise UsageError(
                f"{options.run} is not a validation", hint="name a run of: scaletest validate"
            )
        records = registry.type_of(folder).folder(folder.path).rows(RECORDS)
        run_times = [record.reply.run_s for record in records if record.ok]
    # arrivals as a file says
    if options.trace:
        try:
            values = sorted(float(line) for line in options.trace.read_text("utf-8").split())
        except (OSError, ValueError) as error:
            raise InvalidValue(
                f"the trace cannot be read: {error}", hint="give a file with one number per line"
            ) from error
        times = [checks.seconds(value, "an arrival", maximum=1e9) for value in values]
    return options.load.draw_requests(random.Random(options.seed), run_times, times)


@contextmanager
def rule_player(
    options: PlayOptions, arrivals: Arrivals, count: int, form: str
) -> Iterator[Callable[[Rule], SimulationResult]]:
    """Yield a function that plays these requests against one of `count` rules.

    Meanwhile the progress is shown. form: see `progress_views.show_progress`.
    """
    lengths_s, began_s = list[float](), time.monotonic()
    title = f"{plural(count, 'rule')} against {plural(len(arrivals.arrivals), 'request')}"
    with show_progress(form) as progress, progress.of_work("simulation", title):

        def play(rule: Rule) -> SimulationResult:
            progress.note(rule.name)
            # the same chance for every rule, so that they differ by what they decide alone
            result = simulate(arrivals, rule, options.load.setting, random.Random(options.seed))
            lengths_s.append(time.monotonic() - began_s - sum(lengths_s))
            left = expect_alike(lengths_s, count - len(lengths_s))
            progress.at(len(lengths_s), count, left=left, unit=RULE)
            return result

        progress.at(0, count, unit=RULE)
        yield play
