"""Paces of open load: intended starts of requests, in seconds since the load began. Pure.

A pace is an iterator of times that never decrease. When it ends, the load ends. The random
generator is a parameter.
"""

import itertools
import math
import random
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue
from scaletest.model.quantities import PER_SECOND, in_base_units

MAX_RATE = 100_000.0
RATES = {"": 1.0, **PER_SECOND}


class RateChange(NamedTuple):
    """A time from which on the load has another rate."""

    from_s: float
    position: float  # requests that were due until then
    rate: float


class RatePace(Iterator[float]):
    """A pace whose rate may change while it runs; with a rate of 0 nothing is due.

    The starts have positions on an axis where one request is due in each unit, and the rate is the
    speed on that axis. So a change moves no start that was due before it, and loses none.

    `change` may be called while another thread iterates, but not by two threads at once.
    """

    def __init__(self, positions: Iterator[float], rate: float, arrivals: str = "") -> None:
        """Begin with a rate, in requests a second.

        positions: of the starts, ascending. arrivals: how they come, as in "at random".
        """
        self._positions, self._arrivals = positions, arrivals
        self._changes = deque([RateChange(0.0, 0.0, rate)])  # the first applies to the last start
        self._position = 0.0  # of the last start that was iterated over

    def __str__(self) -> str:
        return f"{self.rate:g} requests/s {self._arrivals}".strip()

    @property
    def rate(self) -> float:
        """Requests a second now."""
        return self._changes[-1].rate

    def __next__(self) -> float:
        self._position = next(self._positions)
        return self.due_s

    @property
    def due_s(self) -> float:
        """When the last start that was iterated over is due; infinity during a pause."""
        changes = self._changes
        while len(changes) > 1 and changes[1].position < self._position:
            changes.popleft()
        from_s, position, rate = changes[0]
        return from_s + ((self._position - position) / rate if rate else math.inf)

    def change(self, rate: float, from_s: float) -> None:
        """Have this rate from then on; times must not decrease. 0 for a pause."""
        if rate:
            _check_rate(rate, "rate")
        last = self._changes[-1]
        position = last.position + (from_s - last.from_s) * last.rate
        self._changes.append(RateChange(from_s, position, rate))


def constant(rate: float) -> RatePace:
    """Start a request every 1 / `rate` seconds, for ever."""
    _check_rate(rate, "rate")
    return RatePace(map(float, itertools.count()), rate)


def poisson(rate: float, chance: random.Random) -> RatePace:
    """Start requests by chance: independent, exponential gaps with mean 1 / `rate` s, for ever."""
    _check_rate(rate, "poisson rate")
    gaps = (chance.expovariate(1.0) for _ in itertools.count())
    return RatePace(itertools.accumulate(gaps), rate, "at random")


def exact_poisson(rate: float, length_s: float, chance: random.Random) -> Iterator[float]:
    """Return a Poisson process of `length_s` seconds with exactly rate times length starts.

    Two such loads offer the same number of requests, while the rate within each varies as in a
    Poisson process. Given their number, the starts of a Poisson process are independent and uniform
    (Cox and Lewis 1966, 2.2).
    """
    _check_rate(rate, "poisson rate")
    return iter(sorted(chance.random() * length_s for _ in range(max(1, round(rate * length_s)))))


def parse_rate(text: str) -> float:
    """Parse requests a second, as in 20/s or 600/min; a bare number is per s, and 0 is a pause."""
    rate = in_base_units(text, RATES)
    if rate is None:
        raise InvalidValue(
            f"{cut_text(text, 40)!r} is not a rate", hint="write e.g. 20/s or 600/min; 0 pauses"
        )
    if rate:
        _check_rate(rate, "rate")
    return rate


def _check_rate(rate: float, name: str) -> None:
    if not (math.isfinite(rate) and 0 < rate <= MAX_RATE):
        raise InvalidValue(
            f"{name} is {rate}", hint=f"give requests per second, above 0 and up to {MAX_RATE:g}"
        )
