"""Amounts that requests report, per second: frames of transcodes, samples of training, bytes moved.

Work per second is requests per second times the mean work of the requests that are counted there,
so both rest on the same completions after the same warm-up, and a request that reports none has
done none. The relative errors of the two add in squares; requests of equal work add nothing to the
error of the throughput.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from scaletest.model import Record
from scaletest.stats.student import t95
from scaletest.validation.judging.throughput import Throughput

# Figures that are amounts of work, so that adding them up over requests makes sense.
FIGURES = ("frames", "samples", "bytes")
MEMORY_HITS = "memory_limit_hits"
Work = Mapping[str, Throughput]


def work(rate: Throughput, counted: Sequence[Record]) -> Work:
    """Work per second of every figure that a counted request reports, with its 95 % interval."""
    rates = {}
    for name in FIGURES:
        amounts = [_number(record.reply.figures.get(name)) for record in counted]
        if any(amounts):
            rates[name] = _times(rate, [amount or 0.0 for amount in amounts])
    return rates


def hits(rows: Sequence[Record]) -> int:
    """How many requests reached the limit of a device's memory, whether they failed or not."""
    return sum(bool(_number(record.reply.figures.get(MEMORY_HITS))) for record in rows)


def _times(rate: Throughput, amounts: Sequence[float]) -> Throughput:
    mean = statistics.fmean(amounts)
    error = math.inf
    if len(amounts) > 1:
        error = (
            t95(len(amounts) - 1) * statistics.stdev(amounts, mean) / mean / math.sqrt(len(amounts))
        )
    per_s = rate.per_s * mean
    return Throughput(
        per_s, per_s * math.hypot(rate.relative, error), rate.completions, rate.freedom, rate.enough
    )


def _number(value: object) -> float | None:
    """A figure as a number. Figures come from programs: text and negative amounts give None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value > 0 else None
