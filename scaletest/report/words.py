"""Sentences about runs of several types: the same on a terminal, in a page and in a comment."""

from collections.abc import Sequence

from scaletest.model import Verdict, VerdictKind
from scaletest.render.numbers import format_seconds
from scaletest.stats.percentiles import Distribution

# The note of charts whose axis does not reach to the end of a long interval.
CUT = "An interval without an upper end goes on above its chart."
# Units of axes in words, where their sign alone says little.
AXES = {"/s": "per second", "x": "times the step before"}


def run_warnings(verdict: Verdict, interrupted: str, lines: Sequence[str]) -> list[str]:
    """Return the warnings of a run; an interruption first, where the verdict does not say it."""
    if not interrupted or interrupted in verdict.reason or verdict.kind is VerdictKind.RUNNING:
        return list(lines)
    return [f"interrupted: {interrupted}; the verdict rests on what was measured before", *lines]


def format_percentile(times: Distribution, name: str) -> str:
    """Format a percentile of durations. name: p50, p90, p95 or p99."""
    percentile = getattr(times, name)
    return format_seconds(percentile.value if percentile else None)
