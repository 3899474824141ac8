"""Amounts that requests report, per second: frames of transcodes, samples of training, bytes moved.

Work per second is requests per second times the mean work of the requests that are counted there,
so both rest on the same completions after the same warm-up, and a request that reports none has
done none. The relative errors of the two add in squares; requests of equal work add nothing to the
error of the throughput.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from scaletest.model import Record
from scaletest.stats.student import t95
from scaletest.validation.judging.throughput import Throughput

# Figures that are amounts of work, so that adding them up over requests makes sense.
FIGURES = ("frames", "samples", "bytes")
MEMORY_HITS = "memory_limit_hits"


def work_rates(rate: Throughput, counted: Sequence[Record]) -> dict[str, Throughput]:
    """Return work per second of every figure that counted requests report, with 95 % intervals.

    rate: of the counted requests.
    """
    rates = {}
    for name in FIGURES:
        reported = [_positive_number(record.reply.figures.get(name)) for record in counted]
        if not any(reported):
            continue
        amounts = [amount or 0.0 for amount in reported]
        mean, error = statistics.fmean(amounts), math.inf
        if len(amounts) > 1:
            spread = statistics.stdev(amounts, mean)
            error = t95(len(amounts) - 1) * spread / mean / math.sqrt(len(amounts))
        per_s = rate.per_s * mean
        half_width = per_s * math.hypot(rate.relative, error)
        rates[name] = replace(rate, per_s=per_s, half_width=half_width)
    return rates


def count_memory_hits(rows: Sequence[Record]) -> int:
    """Return how many requests reached the limit of a device's memory, failed or not."""
    return sum(bool(_positive_number(record.reply.figures.get(MEMORY_HITS))) for record in rows)


def _positive_number(value: object) -> float | None:
    """Return a figure as a number; None for text and negative amounts, which programs may give."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value > 0 else None
