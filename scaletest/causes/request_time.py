"""Where workers spend the time of a request.

That is in the states of its run, and in the gap before it. A cycle is the time from the
end of a worker's request to the end of its next one, so it is gap and run time. The mean cycle of N
workers is N x time / completions: what it grows by is exactly what throughput lacks, and nothing
else.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from scaletest.causes.places import PLACES
from scaletest.causes.steps import MeasuredStep, Rows
from scaletest.model import Activity, Reply, State
from scaletest.stats.chance import Chance

# Times of a request beside those of the places where it is spent.
CPU_S, THROTTLED_S = "cpu_s", "throttled_s"
COLUMNS: tuple[str, ...] = (*PLACES, CPU_S, THROTTLED_S)
# Neighbouring requests of a step are joined to this many units at most, so that the bootstrap of
# 50,000 requests takes no longer.
MOST_UNITS = 250
# repeat and worker
Stratum = tuple[int, str]
# Rows of COLUMNS, each the sums over some requests, and their number
_Units = Mapping[Stratum, Sequence[tuple[float, ...]]]


@dataclass(frozen=True, slots=True)
class Cycle:
    """One successful request, and the gap before it in which its worker had nothing to do."""

    reply: Reply
    activity: Activity
    repeat: int
    gap_s: float

    def columns(self) -> list[float]:
        """Its seconds in the order of COLUMNS; run time without a state was not observed."""
        seconds = [self.activity.seconds.get(state, 0.0) for state in State]
        seconds[-1] += max(0.0, self.reply.run_s - sum(seconds))
        return [*seconds, self.gap_s, self.activity.cpu_s, self.activity.throttled_s]


@dataclass(frozen=True, slots=True)
class RequestTime:
    """The time of one step's requests.

    cycles: of the requests that carry their activity. Workers leave it out by chance where requests
    are short, so those of one worker in one repeat stand for all its requests then. requests: the
    number of all requests, by repeat and worker.
    """

    workers: int
    per_device: int
    cycles: Sequence[Cycle]
    requests: Mapping[Stratum, int]

    @property
    def covered(self) -> float:
        """The part of the requests whose worker reports where time went."""
        whole = sum(self.requests.values())
        telling = {cycle.reply.worker for cycle in self.cycles}
        counts = [count for (_, worker), count in self.requests.items() if worker in telling]
        return sum(counts) / (whole or 1)

    def of(self, repeats: Collection[int]) -> RequestTime:
        """The time of some measurements alone."""
        cycles = [cycle for cycle in self.cycles if cycle.repeat in repeats]
        return RequestTime(
            self.workers,
            self.per_device,
            cycles,
            {stratum: count for stratum, count in self.requests.items() if stratum[0] in repeats},
        )

    def means(self) -> dict[str, float]:
        """Mean seconds a request, by column; it needs a request."""
        units = itertools.chain.from_iterable(self._units().values())
        *sums, requests = map(math.fsum, zip(*units, strict=True))
        return {name: seconds / requests for name, seconds in zip(COLUMNS, sums, strict=True)}

    def resampled(self, chance: Chance, draws: int) -> list[dict[str, float]]:
        """The means of `draws` samples.

        Each has as many requests of every worker, drawn with replacement.
        """
        strata = [list(zip(*units, strict=True)) for units in self._units().values()]
        # columns in which any request has a time
        used = [
            index for index in range(len(COLUMNS)) if any(any(columns[index]) for columns in strata)
        ]
        return [_drawn(strata, used, chance) for _ in range(draws)]

    def _units(self) -> _Units:
        """The requests of each worker in units; many are joined in blocks.

        Blocks also keep what neighbours have in common. Units have a weight that makes up for the
        requests of that worker that do not report where their time went.
        """
        by_worker: dict[Stratum, list[list[float]]] = defaultdict(list)
        for cycle in self.cycles:
            by_worker[cycle.repeat, cycle.reply.worker].append(cycle.columns())
        size = math.ceil(len(self.cycles) / MOST_UNITS)
        units: dict[Stratum, list[tuple[float, ...]]] = {}
        for stratum, rows in by_worker.items():
            weight = self.requests[stratum] / len(rows)
            units[stratum] = []
            for begin in range(0, len(rows), size):
                block = rows[begin : begin + size]
                sums = (weight * sum(column) for column in zip(*block, strict=True))
                units[stratum].append((*sums, weight * len(block)))
        return units


def request_time(step: MeasuredStep, records: Rows) -> RequestTime:
    """The time of the requests behind a step's throughput."""
    repeats = step.used_repeats
    cycles: list[Cycle] = []
    requests: dict[Stratum, int] = defaultdict(int)
    for sample in step.samples:
        if sample.measurement.repeat not in repeats or not sample.counted:
            continue
        # At the end of a step workers run out of requests one by one: what ends after the first did
        # is left out.
        first, last = sample.counted_completions.under_load
        before: dict[str, float] = {}
        rows = records.get(sample.measurement.key, ())
        for record in sorted(rows, key=lambda record: record.reply.ended_s):
            reply = record.reply
            if record.ok and reply.worker in before and first < reply.ended_s <= last:
                requests[record.repeat, reply.worker] += 1
                if reply.activity is not None:
                    # since the last one of its worker ended, whatever became of that
                    gap_s = max(0.0, reply.ended_s - before[reply.worker] - reply.run_s)
                    cycles.append(Cycle(reply, reply.activity, record.repeat, gap_s))
            if reply.ended_s:
                before[reply.worker] = reply.ended_s
    return RequestTime(step.workers, step.per_device, cycles, requests)


def _drawn(
    strata: Sequence[Sequence[Sequence[float]]], used: Sequence[int], chance: Chance
) -> dict[str, float]:
    """The means of one sample with as many requests of every worker, drawn with replacement."""
    sums = dict.fromkeys(used, 0.0)
    requests = 0.0
    for columns in strata:
        units = range(len(columns[0]))
        picks = [chance.choice(units) for _ in units]
        requests += sum(map(columns[-1].__getitem__, picks))
        for index in used:
            sums[index] += sum(map(columns[index].__getitem__, picks))
    return dict.fromkeys(COLUMNS, 0.0) | {
        COLUMNS[index]: total / requests for index, total in sums.items()
    }
