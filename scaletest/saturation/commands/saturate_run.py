"""What scaletest saturate prints: a plan, a run, and settings that were tuned."""

from collections.abc import Iterator, Sequence

from scaletest.cli import stored
from scaletest.cli.options import WatchOptions
from scaletest.cli.output import Output
from scaletest.cli.watching import watch_runs
from scaletest.render.blocks import Table
from scaletest.render.numbers import (
    NOTHING,
    duration_range,
    format_percent,
    format_seconds,
    format_significant,
    whole_duration,
)
from scaletest.render.text_table import align_table
from scaletest.saturation.judging.forecast import SaturationForecast, forecast
from scaletest.saturation.judging.step_sequence import MOST_AGAIN, MOST_LENGTHS
from scaletest.saturation.judging.tuning import parse_settings, rank_settings
from scaletest.saturation.measure.runner import saturate
from scaletest.saturation.measure.tuning import tune
from scaletest.saturation.options import SaturationOptions
from scaletest.saturation.plan import SaturationPlan
from scaletest.saturation.report.report import saturation_report
from scaletest.saturation.run_type import RUN_TYPE

TITLES = ("setting", "saturated at", "latency at 70%", "CPU used", "memory used", "per core", "")


def run_saturation(
    plan: SaturationPlan, options: SaturationOptions, output: Output, watch: WatchOptions
) -> int:
    """Measure, and print the run in that form; return its exit code."""
    with watch_runs(watch) as progress:
        folder, code = saturate(plan, options, progress)
    # judged again from what is on disk, as every later report of the run is
    stored.deliver_finished(saturation_report(RUN_TYPE.judge(folder)), output)
    return code


def run_tuning(
    plan: SaturationPlan, options: SaturationOptions, output: Output, watch: WatchOptions
) -> int:
    """Measure settings, and print them, the best first; return the exit code."""
    with watch_runs(watch) as progress:
        tried, code = tune(plan, options, progress)
    tried = rank_settings(tried)
    cells = [
        (
            " ".join(f"{key}={value}" for key, value in row.setting.items()),
            _rate_text(row.per_s),
            format_seconds(row.latency_s),
            _share_text(row.used_cpu, row.cpu),
            _share_text(row.used_memory, row.memory),
            _rate_text(row.worth),
            ", ".join([*row.marks, *filter(None, [row.trouble])]),
        )
        for row in tried
    ]
    output.show(
        {"schema_version": 1, "kind": "tuning", "settings": [row.to_dict() for row in tried]},
        align_table(Table(TITLES, cells, texts=(6,))),
    )
    return code


def _rate_text(per_s: float | None) -> str:
    """Write a rate that may be unknown."""
    return f"{format_significant(per_s)}/s" if per_s else NOTHING


def _share_text(used: float | None, asked: float) -> str:
    """Write the used part of a resource; nothing where either is unknown."""
    return format_percent(used / asked, 0) if used is not None and asked else NOTHING


def show_plan(plan: SaturationPlan, tuning: Sequence[str], output: Output) -> None:
    """Print what will be done, and how long it takes. tuning: settings that are measured."""
    count = len(parse_settings(tuning))
    expected = forecast(plan).times(max(1, count))
    row = expected.to_dict()
    output.show(
        {**plan.to_dict(), "longest_s": row["longest_s"], "forecast": row},
        (f"{label:10}{text}" for label, text in _plan_lines(plan, expected, count)),
    )


def _plan_lines(
    plan: SaturationPlan, expected: SaturationForecast, count: int
) -> Iterator[tuple[str, str]]:
    """Yield target, load, steps and duration, and their limits, in words. count: of settings."""
    yield "target", plan.target
    first = f"{plan.start:g}" if plan.start else "a rate found by the probe"
    yield "load", f"{plan.load}: from {first} to {plan.highest:g} {plan.unit} at most"
    length = f"{plan.count} requests" if plan.count else f"{plan.step_s:g} s"
    yield "steps", f"{length} each, {expected.most} at most"
    if count:
        yield "settings", f"{count}, all this for each"
    least_s, most_s, longest_s = expected.least_s, expected.most_s, expected.longest_s
    if least_s is None or most_s is None or longest_s is None:
        # steps of a fixed number of requests end when these do
        takes = "as long as that many requests take in each step, which is not known in advance"
    else:
        condition = "if requests are fast" + (" and pods ready at once" if count else "")
        at_most = f"{whole_duration(longest_s)} at most"
        takes = f"{duration_range(least_s, most_s)} as a rule, {at_most}, {condition}"
    yield "takes", takes
    if plan.limit:
        limit = f"{plan.limit}: a step that does not decide it is extended"
        yield "limit", f"{limit}, up to {MOST_LENGTHS} times as long"
    yield "retries", f"up to {MOST_AGAIN} for steps in which the load generator was late"
    if plan.wanted:
        yield "wanted", f"{plan.wanted:g} requests/s"
