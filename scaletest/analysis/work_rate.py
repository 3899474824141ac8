"""What requests report to have done, per second: frames of transcodes, samples of training, bytes of transfers.

Work per second is requests per second times the mean work of the requests that are counted there, so both stand on the
same completions after the same warm-up, and a request that reports none has done none. The relative errors of the two
add in squares; requests of equal work add nothing to the error of the throughput.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from scaletest.analysis.student_t import t95
from scaletest.analysis.throughput import Throughput
from scaletest.model import Record

# Figures that are amounts of work, so that adding them up over requests makes sense.
FIGURES = ("frames", "samples", "bytes")
MEMORY_HITS = "memory_limit_hits"

Work = Mapping[str, Throughput]


def work(rate: Throughput, counted: Sequence[Record]) -> Work:
    """The work per second of every figure that one of the counted requests reports, with its 95 % interval."""
    found = {}
    for name in FIGURES:
        amounts = [_number(row.reply.figures.get(name)) for row in counted]
        if any(amounts):
            found[name] = _times(rate, [amount or 0.0 for amount in amounts])
    return found


def hits(rows: Sequence[Record]) -> int:
    """How many requests met the limit of a device's memory, whether they failed of it or not."""
    return sum(bool(_number(row.reply.figures.get(MEMORY_HITS))) for row in rows)


def _times(rate: Throughput, amounts: Sequence[float]) -> Throughput:
    mean = statistics.fmean(amounts)
    error = math.inf
    if len(amounts) > 1:
        error = t95(len(amounts) - 1) * statistics.stdev(amounts, mean) / mean / math.sqrt(len(amounts))
    per_s = rate.per_s * mean
    return Throughput(per_s, per_s * math.hypot(rate.relative, error), rate.completions, rate.freedom, rate.enough)


def _number(value: object) -> float | None:
    """Figures come from programs: text, and what is no amount, count as nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value > 0 else None
