"""Where workers spend the time of a request: in the states of its run, and in the gap before it.

A cycle is the time from the end of a worker's request to the end of its next one, so it is gap and
run time. The mean cycle of N workers is N x time / completions: what it grows by is exactly what
throughput lacks, and nothing else.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scaletest.analysis.cause_text import PLACES
from scaletest.analysis.doubling import StepPart, judged
from scaletest.analysis.law_interval import Chance
from scaletest.analysis.steps import MeasuredStep, Rows, Step
from scaletest.model import Activity, Record, Reply, State

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
        if whole:
            return sum(counts) / whole
        return 0.0

    def of(self, repeats: Collection[int]) -> RequestTime:
        """The time of some measurements alone."""
        cycles = [cycle for cycle in self.cycles if cycle.repeat in repeats]
        requests = {
            stratum: count for stratum, count in self.requests.items() if stratum[0] in repeats
        }
        return RequestTime(self.workers, self.per_device, cycles, requests)

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
        used = [index for index in range(len(COLUMNS)) if _used(strata, index)]
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
        units = {}
        for stratum, rows in by_worker.items():
            weight = self.requests[stratum] / len(rows)
            units[stratum] = [_joined(block, weight) for block in _blocks(rows, size)]
        return units


def request_time(step: Step, records: Rows) -> RequestTime:
    """The time of the requests behind a step's throughput."""
    repeats = repeats_of(step)
    cycles: list[Cycle] = []
    requests: dict[Stratum, int] = defaultdict(int)
    for sample in step.samples:
        if sample.measurement.repeat not in repeats:
            continue
        for record, gap_s in _gaps(sample, records.get(sample.measurement.key, ())):
            requests[record.repeat, record.reply.worker] += 1
            if record.reply.activity is not None:
                cycles.append(Cycle(record.reply, record.reply.activity, record.repeat, gap_s))
    return RequestTime(step.workers, step.per_device, cycles, requests)


def repeats_of(step: Step) -> set[int]:
    """The measurements that a step's throughput uses, by their repeat."""
    parts: Sequence[StepPart] = step.parts
    if step.mirrored:
        parts = judged(parts)
    return {part.repeat for part in parts}


def _gaps(sample: MeasuredStep, rows: Sequence[Record]) -> Iterator[tuple[Record, float]]:
    """The requests that count, each with the seconds since the last one of its worker ended.

    Whatever became of that last one. At the end of a step workers run out of requests one by one:
    what ends after the first did is left out.
    """
    if not sample.counted:
        return
    first = min(record.reply.ended_s for record in sample.counted)
    last_of: dict[str, float] = {}
    for record in sample.counted:
        last_of[record.reply.worker] = max(
            record.reply.ended_s, last_of.get(record.reply.worker, 0.0)
        )
    last = min(last_of.values())
    before: dict[str, float] = {}
    for record in sorted(rows, key=lambda record: record.reply.ended_s):
        reply = record.reply
        if record.ok and reply.worker in before and first < reply.ended_s <= last:
            yield record, max(0.0, reply.ended_s - before[reply.worker] - reply.run_s)
        if reply.ended_s:
            before[reply.worker] = reply.ended_s


def _blocks(rows: Sequence[list[float]], size: int) -> Iterable[Sequence[list[float]]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _joined(rows: Sequence[list[float]], weight: float) -> tuple[float, ...]:
    """The sums of some requests by column, then their number, all times `weight`."""
    sums = (weight * sum(column) for column in zip(*rows, strict=True))
    return (*sums, weight * len(rows))


def _used(strata: Sequence[Sequence[Sequence[float]]], index: int) -> bool:
    """Whether any request has a time in this column."""
    return any(any(columns[index]) for columns in strata)


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
