"""What scaletest saturate prints: a plan, a run, and settings that were tuned."""

from collections.abc import Sequence

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
)
from scaletest.render.text_table import align_table
from scaletest.saturation.judging.forecast import time_left
from scaletest.saturation.judging.step_sequence import SaturationSequence
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
            _share_text(row.used_memory_gib, row.memory_gib),
            _rate_text(row.per_s_per_core),
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
    settings = len(parse_settings(tuning))
    left = time_left(SaturationSequence(plan))
    first = f"{plan.start:g}" if plan.start else "a rate found by the probe"
    length = f"{plan.count} requests" if plan.count else f"{plan.step_s:g} s"
    lines = {
        "target": plan.target,
        "load": f"{plan.load}: from {first} to {plan.highest:g} {plan.unit} at most",
        "steps": f"{length} each",
        "takes": "as long as that many requests take in each step, which is not known in advance",
    }
    if settings:
        lines["settings"] = f"{settings}, all this for each"
    times: dict[str, float | None] = {"least_s": None, "most_s": None}
    if left is not None:
        least_s, most_s = left.least_s * max(1, settings), left.most_s * max(1, settings)
        times = {"least_s": least_s, "most_s": most_s}
        lines["takes"] = f"{duration_range(least_s, most_s)} as a rule, if requests are fast"
    if plan.limit:
        lines["limit"] = plan.limit
    if plan.wanted:
        lines["wanted"] = f"{plan.wanted:g} requests/s"
    output.show({**plan.to_dict(), **times}, (f"{label:10}{text}" for label, text in lines.items()))
