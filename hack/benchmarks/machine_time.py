"""A simulated machine whose speed changes, and the workloads of the studies of verdicts."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

CELL_S = 1.0
RAMP_S, RAMP_FROM = 40.0, 0.1
CORRELATION = 0.6
SCATTER = 0.1
RARE, RARE_TIMES = 0.02, 20.0
PARETO = 1.5
HALF_SPEED_S, HALF_SPEED_EVERY_S = 5.0, 35.0
FLUCTUATION, FLUCTUATION_S = 0.1, 10.0
DRIFT_PER_S = 0.001
# Limits of the speed of a machine that drifts.
SLOWEST, FASTEST = 0.2, 5.0


class Machine:
    """Speed by time, in cells of a second: run times are for speed 1.

    kind: of workload; some affect all workers. per_s: steady relative change. jump: (seconds,
    factor) of a single change.
    """

    def __init__(
        self,
        kind: str,
        chance: random.Random,
        *,
        per_s: float = 0.0,
        jump: tuple[float, float] = (math.inf, 1.0),
    ) -> None:
        self._kind, self._chance = kind, chance
        self._per_s = per_s + {"slows down": -DRIFT_PER_S, "speeds up": DRIFT_PER_S}.get(kind, 0.0)
        self._jump = jump
        self._shake: list[float] = []
        self._constant = (
            not self._per_s and math.isinf(jump[0]) and kind not in ("fluctuates", "half speed")
        )

    def done_at(self, start_s: float, work: float) -> float:
        """Compute when `work` seconds of work end that begin at start_s."""
        if self._constant:
            return start_s + work
        now = start_s
        while True:
            cell = math.floor(now / CELL_S)
            edge, speed = (cell + 1) * CELL_S, self.speed(cell)
            if now + work / speed <= edge:
                return now + work / speed
            work -= (edge - now) * speed
            now = edge

    def speed(self, cell: int) -> float:
        """Compute the speed in the cell of that number."""
        now = (cell + 0.5) * CELL_S
        speed = min(FASTEST, max(SLOWEST, math.exp(self._per_s * now)))
        if now >= self._jump[0]:
            speed *= self._jump[1]
        if self._kind == "half speed" and now % HALF_SPEED_EVERY_S < HALF_SPEED_S:
            speed *= 0.5
        if self._kind == "fluctuates":
            speed *= max(0.2, 1.0 + FLUCTUATION * self._shaken(cell))
        return speed

    def _shaken(self, cell: int) -> float:
        keep = math.exp(-CELL_S / FLUCTUATION_S)
        while len(self._shake) <= cell:
            before = self._shake[-1] if self._shake else self._chance.gauss(0, 1)
            self._shake.append(keep * before + math.sqrt(1 - keep**2) * self._chance.gauss(0, 1))
        return self._shake[cell]


def _lognormal(chance: random.Random) -> float:
    """Draw from a lognormal distribution with mean 1 and standard deviation 1."""
    return chance.lognormvariate(-math.log(2) / 2, math.sqrt(math.log(2)))


def _rare(chance: random.Random) -> float:
    mean = 1 - RARE + RARE * RARE_TIMES
    return (
        max(0.05, chance.gauss(1, SCATTER)) * (RARE_TIMES if chance.random() < RARE else 1.0) / mean
    )


# run times with mean 1; the others scatter by 10 %, and "half speed" not at all
_DRAWS: dict[str, Callable[[random.Random], float]] = {
    "exponential": lambda chance: chance.expovariate(1.0),
    "lognormal": _lognormal,
    "pareto": lambda chance: chance.paretovariate(PARETO) * (PARETO - 1) / PARETO,
    "rare": _rare,
    "half speed": lambda chance: 1.0,
}
KINDS = ("iid", "autocorrelated", "ramp")
# the rows of the table in docs/results/error-rates.md
WORKLOADS = (
    "iid",
    "lognormal",
    "pareto",
    "rare",
    "slows down",
    "speeds up",
    "fluctuates",
    "half speed",
)


def run_times(kind: str, chance: random.Random) -> Iterator[float]:
    """Yield run times with mean 1."""
    if kind in _DRAWS:
        while True:
            yield _DRAWS[kind](chance)
    z = chance.gauss(0, 1)
    while True:
        correlation = CORRELATION if kind == "autocorrelated" else 0.0
        z = correlation * z + math.sqrt(1 - correlation**2) * chance.gauss(0, 1)
        yield max(0.05, 1.0 + SCATTER * z)


def end_of_ramp(start_s: float, work: float) -> float:
    """Compute the end of work from start_s on, while speed rises from RAMP_FROM to 1 in RAMP_S."""
    grow = (1.0 - RAMP_FROM) / RAMP_S

    def done(t: float) -> float:
        return RAMP_FROM * t + grow * t * t / 2 if t < RAMP_S else done_at_end + (t - RAMP_S)

    done_at_end = RAMP_FROM * RAMP_S + grow * RAMP_S**2 / 2
    target = done(start_s) + work
    if target >= done_at_end:
        return RAMP_S + target - done_at_end
    return (-RAMP_FROM + math.sqrt(RAMP_FROM**2 + 2 * grow * target)) / grow


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A change of the machine during a run. jump: a change by 10 % either way at a random time."""

    name: str
    per_s: float = 0.0
    jump: bool = False


DISTURBANCES = (
    Disturbance("none"),
    Disturbance("slows down by 0.3 %/s", per_s=-0.003),
    Disturbance("speeds up by 0.3 %/s", per_s=0.003),
    Disturbance("changes by 10 %", jump=True),
)
