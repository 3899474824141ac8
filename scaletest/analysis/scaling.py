"""Speed-up, efficiency and the serial fraction of every step, each with a 95 % interval.

    S(N) = X(N) / X(1)        E(N) = S(N) / N        e(N) = (1/S - 1/N) / (1 - 1/N)

The last is the serial fraction of Karp and Flatt (1990).

When the least number of workers is not 1, it is the base and N counts multiples of it. Intervals
come from the log delta method: the relative errors of the two throughputs add in squares. The base
compared with itself is exactly 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.estimate import Estimate, within


@dataclass(frozen=True, slots=True)
class MeasuredThroughput:
    """The throughput of one number of workers, repeats already joined.

    per_s: requests/s. relative: half-width of the 95 % interval over the throughput; infinity when
    unknown.
    """

    workers: int
    per_s: float
    relative: float = math.inf


@dataclass(frozen=True, slots=True)
class Scaled:
    """Speed-up and efficiency of one step. serial_fraction: None for the base."""

    workers: int
    multiple: float
    speedup: Estimate
    efficiency: Estimate
    serial_fraction: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "workers": self.workers,
            "speedup": self.speedup.to_dict(),
            "efficiency": self.efficiency.to_dict(),
            "serial_fraction": self.serial_fraction.to_dict() if self.serial_fraction else None,
        }


def usable(measured: Iterable[MeasuredThroughput]) -> list[MeasuredThroughput]:
    """Steps by workers, ascending, without those that had no throughput.

    ValueError when a number of workers comes twice.
    """
    rows = sorted((step for step in measured if step.per_s > 0), key=lambda step: step.workers)
    if len({step.workers for step in rows}) < len(rows):
        raise ValueError("join the repeats of a number of workers first")
    return rows


def scaling(measured: Iterable[MeasuredThroughput]) -> list[Scaled]:
    """Figures of every step with a throughput, by workers, relative to the least number of them."""
    rows = usable(measured)
    return [_scaled(step, rows[0]) for step in rows]


def _scaled(step: MeasuredThroughput, base: MeasuredThroughput) -> Scaled:
    multiple = step.workers / base.workers
    if step is base:
        exactly_1 = Estimate(1.0, 1.0, 1.0)
        return Scaled(step.workers, multiple, exactly_1, exactly_1, None)
    speedup = within(step.per_s / base.per_s, math.hypot(step.relative, base.relative))
    serial = Estimate(
        _serial(speedup.value, multiple),
        _serial(speedup.high, multiple),
        _serial(speedup.low, multiple),
    )
    return Scaled(step.workers, multiple, speedup, speedup.scaled(1 / multiple), serial)


def _serial(speedup: float, multiple: float) -> float:
    """Karp and Flatt's serial fraction; 0 for perfect scaling, below 0 for better than perfect."""
    if speedup <= 0:
        return math.inf
    return (1 / speedup - 1 / multiple) / (1 - 1 / multiple)
