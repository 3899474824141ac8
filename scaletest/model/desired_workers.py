"""The number of workers that a queue needs, by the figures of its recent window.

The window has slots of ten seconds. The exporter and the simulator use the same rule:

    wanted = ceil(S * (lambda / rho + waiting / W))

S is the mean run time and lambda the rate at which requests come, so S * lambda workers keep up
exactly (Little's law). rho, the target utilisation, leaves room: a queue served at its limit grows
without bound, and the article on load testing found 70 % to do considerably better. Requests that
wait already shall be worked off within W seconds, which takes S * waiting / W workers more. The
rate shows load before a backlog does, and does not move when workers are added: a rule that
multiplies the number of workers (HPA with a plain value) oscillates.

The wanted number falls only when all numbers of a whole window were lower, so that a quiet moment
stops no worker.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from scaletest.model.declared import PositiveSeconds
from scaletest.model.document import Document
from scaletest.model.time_slots import LONGEST_WINDOW_S

# More are a mistake: a run time of days and a thousand requests a second.
MOST_WORKERS = 1_000_000

# Times, and the numbers that were wanted then.
History = tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class Targets(Document):
    """What the number of workers is chosen for: how busy they are, and how long requests wait."""

    # share of the time that workers are busy
    utilisation: Annotated[
        float, Meta(gt=0, le=1, extra={"hint": "give a share above 0, at most 1, such as 0.7"})
    ] = 0.7
    # in which a backlog is worked off
    wait_s: Annotated[PositiveSeconds, Meta(title="wait target")] = 30.0
    # over which rates and run times are measured, and for which a lower number must last
    window_s: Annotated[
        float, Meta(gt=0, le=LONGEST_WINDOW_S, title="window", extra={"unit": "s"})
    ] = 60.0


@dataclass(frozen=True, slots=True)
class QueueDemand:
    """The present load of a queue, from which its wanted workers follow."""

    waiting: int
    running: int
    submitted_per_s: float = 0.0
    run_s: float | None = None  # mean run time of a request, None when none ever ended


def wanted_workers(demand: QueueDemand, targets: Targets) -> int:
    """Return the number of workers wanted now.

    While no run time is known, it is one for each waiting or running request.
    """
    present = demand.waiting + demand.running
    if demand.run_s is None:
        return min(present, MOST_WORKERS)
    starts_per_s = demand.submitted_per_s / targets.utilisation + demand.waiting / targets.wait_s
    # a billionth is noise of floating point, not a worker
    number = math.ceil(demand.run_s * starts_per_s - 1e-9)
    return min(max(number, min(present, 1)), MOST_WORKERS)


def desired_workers(
    now_s: float, wanted_now: int, history: Sequence[tuple[float, int]], window_s: float
) -> tuple[int, History]:
    """Return the number to act on, and the history to pass in next time.

    The number is the highest that was wanted in the last `window_s` seconds. now_s: any clock that
    does not go back. Only numbers that may still become the highest are remembered.
    """
    recent = [(time_s, number) for time_s, number in history if time_s > now_s - window_s]
    while recent and recent[-1][1] <= wanted_now:
        recent.pop()
    remembered = (*recent, (now_s, wanted_now))
    return remembered[0][1], remembered
