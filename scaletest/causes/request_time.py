"""Where workers spend the time of a request: in the states of its run, and in the gap before it.

A cycle is the time from the end of a worker's request to the end of its next one. The mean cycle of
N workers is N / throughput by definition: what it grows by is exactly what throughput lacks. So all
time of all workers counts, also that of a request that failed, or waited so long that it ended when
others had no more to do.
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
# The part of the requests that must be pinned to CPUs: the others may not have been looked at when
# what they start was.
MOSTLY_PINNED = 0.5
# repeat and worker
Stratum = tuple[int, str]
# Rows of COLUMNS, each the sums over some requests, and their number
_Units = Mapping[Stratum, Sequence[tuple[float, ...]]]


@dataclass(frozen=True, slots=True)
class Cycle:
    """One request, and the gap before it in which its worker had nothing to do."""

    reply: Reply
    activity: Activity
    repeat: int
    gap_s: float
    part: float = 1.0  # of the cycle that lies in the time behind the throughput
    ok: bool = True  # whether the request succeeded, so that it counts for the throughput

    def columns(self) -> list[float]:
        """Return its seconds in the order of COLUMNS.

        Run time without a state was not observed, unless the worker waited for a CPU then. In the
        gap a worker that does so is not idle: it sends its last reply, or takes this request.
        """
        seconds = {state: self.activity.seconds.get(state, 0.0) for state in State}
        unseen_s = max(0.0, self.reply.run_s - sum(seconds.values()))
        waited_s = min(unseen_s + self.gap_s, self.activity.waited_before_s)
        seconds[State.CPU_WAIT] += waited_s
        seconds[State.NOT_OBSERVED] += max(0.0, unseen_s - waited_s)
        idle_s = self.gap_s - max(0.0, waited_s - unseen_s)
        return [*seconds.values(), idle_s, self.activity.cpu_s, self.activity.throttled_s]


@dataclass(slots=True)
class WorkerTotal:
    """Sums over all requests of one worker in one measurement, whether they tell or not."""

    requests: int = 0
    seconds: float = 0.0  # of its cycles, as far as they lie in the time behind the throughput
    done: float = 0.0  # successful requests, with fractions


@dataclass(frozen=True, slots=True)
class RequestTime:
    """The time of one step's requests.

    Workers leave out the activity of short requests by chance, so the requests of one worker in one
    repeat that carry it stand for all of its requests then.
    """

    workers: int
    per_device: int
    cycles: Sequence[Cycle]  # those of requests that carry their activity
    totals: Mapping[Stratum, WorkerTotal]
    cycle_s: Mapping[int, float]  # workers / throughput, by repeat

    @property
    def sampled_share(self) -> float:
        """The part of the requests whose workers report where time went; it needs a request."""
        reporting = {cycle.reply.worker for cycle in self.cycles}
        all_requests = sum(total.requests for total in self.totals.values())
        sampled = [total for (_, name), total in self.totals.items() if name in reporting]
        return sum(total.requests for total in sampled) / all_requests

    @property
    def spare_requests(self) -> int:
        """The requests that tell, beyond the first of each worker: degrees of freedom."""
        return len(self.cycles) - len({(cycle.repeat, cycle.reply.worker) for cycle in self.cycles})

    @property
    def pinned_cpus(self) -> int:
        """How many CPUs all requests together may use, where most may not use all; else 0."""
        pinned = [cycle for cycle in self.cycles if cycle.activity.cpus]
        cpus = {(cycle.reply.node, cpu) for cycle in pinned for cpu in cycle.activity.cpus}
        return len(cpus) if len(pinned) > MOSTLY_PINNED * len(self.cycles) else 0

    def of(self, repeats: Collection[int]) -> RequestTime:
        """Return the time of some measurements alone."""
        return RequestTime(
            self.workers,
            self.per_device,
            [cycle for cycle in self.cycles if cycle.repeat in repeats],
            {stratum: total for stratum, total in self.totals.items() if stratum[0] in repeats},
            {repeat: cycle_s for repeat, cycle_s in self.cycle_s.items() if repeat in repeats},
        )

    def means(self) -> dict[str, float]:
        """Return mean seconds a request, by column; it needs a request."""
        units = itertools.chain.from_iterable(self._units().values())
        *sums, requests = map(math.fsum, zip(*units, strict=True))
        return {name: seconds / requests for name, seconds in zip(COLUMNS, sums, strict=True)}

    def resampled(self, chance: Chance, draws: int) -> list[dict[str, float]]:
        """Return the means of `draws` samples.

        Each has as many requests of every worker, drawn with replacement.
        """
        strata = [list(zip(*units, strict=True)) for units in self._units().values()]
        return [_draw_means(strata, chance) for _ in range(draws)]

    def _units(self) -> _Units:
        """Return the requests of each worker in units; many are joined in blocks.

        Blocks also keep what neighbours have in common. Units have weights that make up for the
        requests of that worker that do not report where their time went.
        """
        by_worker: dict[Stratum, list[Cycle]] = defaultdict(list)
        for cycle in self.cycles:
            by_worker[cycle.repeat, cycle.reply.worker].append(cycle)
        size = math.ceil(len(self.cycles) / MOST_UNITS)
        units: dict[Stratum, list[tuple[float, ...]]] = {}
        for stratum, cycles in by_worker.items():
            total = self.totals[stratum]
            rows = [[cycle.part * s for s in cycle.columns()] for cycle in cycles]
            told_s = sum(itertools.chain.from_iterable(row[: len(PLACES)] for row in rows))
            weight = total.seconds / told_s if told_s > 0 else 0.0
            # those that tell may all have failed: then each stands for as much of what was done
            parts = [cycle.part * cycle.ok for cycle in cycles]
            parts = parts if sum(parts) > 0 else [1.0] * len(parts)
            for row, part in zip(rows, parts, strict=True):
                row.append(part * total.done / sum(parts) / weight if weight else 0.0)
            units[stratum] = []
            for begin in range(0, len(rows), size):
                block = rows[begin : begin + size]
                units[stratum].append(
                    tuple(weight * sum(column) for column in zip(*block, strict=True))
                )
        self._scale_to_throughput(units)
        return units

    def _scale_to_throughput(self, units: dict[Stratum, list[tuple[float, ...]]]) -> None:
        """Make the mean cycle of each repeat workers / throughput, which it is by definition.

        What a worker did that ended no request in this time was not observed.
        """
        for repeat, cycle_s in self.cycle_s.items():
            own = [name for name in units if name[0] == repeat]
            rows = list(itertools.chain.from_iterable(units[name] for name in own))
            told_s = sum(sum(row[: len(PLACES)]) for row in rows)
            done = sum(row[-1] for row in rows)
            if not (done > 0 and told_s > 0 and cycle_s > 0):
                continue
            known_part = min(1.0, sum(name[0] == repeat for name in self.totals) / self.workers)
            factor = told_s / done / (cycle_s * known_part)
            for name in own:
                units[name] = [(*row[:-1], factor * row[-1]) for row in units[name]]
            if known_part < 1.0:
                silent = [0.0] * (len(COLUMNS) + 1)
                silent[COLUMNS.index(State.NOT_OBSERVED)] = told_s * (1.0 / known_part - 1.0)
                units[repeat, ""] = [tuple(silent)]


def request_time(step: MeasuredStep, records: Rows) -> RequestTime:
    """Return the time of the requests behind a step's throughput."""
    cycles: list[Cycle] = []
    totals: dict[Stratum, WorkerTotal] = defaultdict(WorkerTotal)
    cycle_s: dict[int, float] = {}
    for sample in step.samples:
        repeat = sample.measurement.repeat
        if repeat not in step.used_repeats or not sample.counted:
            continue
        if sample.throughput.per_s > 0:
            cycle_s[repeat] = step.workers / sample.throughput.per_s
        # Where a worker starves, or has too few requests, there is hardly a time in which the
        # progress of every worker is known: then from the first completion until the first worker
        # has no more to do.
        completions = sample.counted_completions
        first, last = (
            completions.under_load
            if sample.starved or not any(completions.span)
            else completions.span
        )
        before: dict[str, float] = {}
        rows = records.get(sample.measurement.key, ())
        for record in sorted(rows, key=lambda record: record.reply.ended_s):
            reply = record.reply
            if not reply.ended_s or not reply.worker:
                continue
            # since the last one of its worker ended, whatever became of that
            began_s = before.get(reply.worker, reply.ended_s - reply.run_s)
            before[reply.worker] = reply.ended_s
            whole_s = reply.ended_s - began_s
            inside_s = min(last, reply.ended_s) - max(first, began_s)
            if inside_s <= 0 or whole_s <= 0:
                continue
            part = min(1.0, inside_s / whole_s)
            total = totals[repeat, reply.worker]
            total.requests += 1
            total.seconds += inside_s
            total.done += part * record.ok
            if reply.activity is not None:
                gap_s = max(0.0, whole_s - reply.run_s)
                cycles.append(Cycle(reply, reply.activity, repeat, gap_s, part, record.ok))
    return RequestTime(step.workers, step.per_device, cycles, totals, cycle_s)


def _draw_means(strata: Sequence[Sequence[Sequence[float]]], chance: Chance) -> dict[str, float]:
    """Return the means of as many requests of every worker, drawn with replacement.

    strata: for each worker the columns of its units, the last with their numbers of requests.
    """
    sums = [0.0] * (len(COLUMNS) + 1)
    for columns in strata:
        units = range(len(columns[0]))
        picks = [chance.choice(units) for _ in units]
        for index, column in enumerate(columns):
            sums[index] += sum(map(column.__getitem__, picks))
    *seconds, requests = sums
    return {name: total_s / requests for name, total_s in zip(COLUMNS, seconds, strict=True)}
