"""A validation on a terminal: under 25 lines for 8 steps, in 80 columns."""

from scaletest.render.blocks import Block, Text
from scaletest.render.numbers import format_seconds
from scaletest.render.text import clean_text, one_line
from scaletest.report import failures
from scaletest.report.words import run_warnings
from scaletest.stats.percentiles import samples_needed
from scaletest.validation.report.causes import doubling_text, evidence_text
from scaletest.validation.report.law import law_sentence
from scaletest.validation.report.parts import ReportParts, spread_texts
from scaletest.validation.report.resources import resources_line
from scaletest.validation.report.words import (
    best_share_text,
    intervals_text,
    share_text,
    speedup_bars,
)

MOST_WARNINGS = 3
MOST_ERRORS = 2
MOST_CAUSES = 3
WIDTH = 80
# Titles as a terminal shortens them.
SHORT = {
    "per device": "K",
    "workers": "N",
    "efficiency": "effic.",
    "fair workers/devices": "fair",
    "memory limit": "memory",
}


def terminal_summary(parts: ReportParts) -> list[Block]:
    """Return the table, its foot, and what is known of the run besides."""
    result = parts.result
    left_out = ["efficiency", f"wait {parts.quantile}"] if result.plan.compares else []
    # what the numbers of the table mean
    foot = intervals_text(result.steps)
    if foot and result.plan.compares:
        foot += "; K: workers on each device; fair: most over least of workers/devices"
    if foot and parts.quantile != "p95":
        foot += f"; p95 needs {samples_needed(0.95)} requests per step"
    warnings = run_warnings(result.verdict, result.interrupted, result.warnings)
    errors = [f"error, {line}" for line in failures.lines(result.failures)]
    # what stops the run, a line for each cause, the largest first
    limits = []
    causes = result.limits
    if causes:
        title = f"what limits it, from {doubling_text(causes)}:"
        limits.append(f"{title} {causes.headline}" if causes.headline else title)
    if causes and not causes.headline:
        for cause in causes.causes[:MOST_CAUSES]:
            # with its object and the first of its evidence; how that was before is left out
            named = clean_text(", ".join(filter(None, (cause.label, cause.object))), 48)
            evidence = evidence_text(cause, 1).partition(" (")[0]
            added = f"+{format_seconds(cause.grown_s.value)}"
            known = ", ".join(filter(None, (named, evidence)))
            line = one_line(f"  {share_text(cause.share, 0):<14} {added:<8} {known}")
            limits.append(line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}...")
        if causes.not_observed:
            limits.append(f"  {1.0 - causes.observed:<23.0%} not observed")
        # the verdict may have said already that slow requests are what grew
        if causes.slow and causes.slow.sentence not in result.verdict.reason:
            limits.append(f"  {causes.slow.sentence}")
    return [
        parts.table(left_out, SHORT),
        Text([foot], "soft"),
        Text(speedup_bars(result), "chart", optional=True),
        Text([law_sentence(result)], label="scaling", optional=True),
        Text([best_share_text(result)], label="shares"),
        *spread_texts(result.steps),
        Text(warnings, "warning", label="warning", most=MOST_WARNINGS, rest="warning"),
        Text(errors, most=MOST_ERRORS, rest="failure group"),
        Text([resources_line(result)], label="resources", optional=True),
        Text(limits, optional=True),
    ]
