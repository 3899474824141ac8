"""The completions of workers, as progress in time and as cycles from one to the next.

Between two of its completions a worker progresses evenly. Progress has two virtues over counting
completions in a window. It is not quantised: workers in lockstep that finish a request every 30 s
progress by exactly T / 30 in T seconds, wherever the window begins. And it is unbiased for any
distribution of run times: the part of a cycle that lies before an instant is evenly distributed, so
the loss at one end of the window equals the gain at the other.
"""

import itertools
import math
import statistics
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from scaletest.model import Record

# The clock of Redis counts microseconds: completions that are closer together have no rate.
RESOLUTION_S = 1e-6
# A cycle is slow that takes more than this many times as long as its worker's cycles usually do.
SLOW_FACTOR = 3.0
# A worker with fewer cycles than this borrows the median of all workers.
OWN_MEDIAN_CYCLES = 5
# A cycle of more usual requests than this was a standstill; a list of them would take memory.
MOST_FILLED = 10_000


@dataclass(frozen=True)
class Completions:
    """The successful completions of a measurement; what follows from them is computed once."""

    # worker -> when it finished its requests, in Redis seconds, ascending
    by_worker: Mapping[str, Sequence[float]]

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Completions":
        """Return the successful completions among these records."""
        times: dict[str, list[float]] = defaultdict(list)
        for record in records:
            if record.ok:
                times[record.reply.worker].append(record.reply.ended_s)
        return cls({worker: sorted(ended_s) for worker, ended_s in times.items()})

    @cached_property
    def total(self) -> int:
        """Return the number of completions of all workers."""
        return sum(map(len, self.by_worker.values()))

    @cached_property
    def fewest(self) -> int:
        """Return the number of completions of the worker with the fewest; 0 without workers."""
        return min(map(len, self.by_worker.values()), default=0)

    # -- time
    # ----------------------------------------------------------------------------------------------

    @cached_property
    def span(self) -> tuple[float, float]:
        """Return the time in which every worker's progress is known, in s; (0, 0) without one.

        From the latest first completion to the earliest last one.
        """
        _, end_s = self.under_load
        begin_s = max((times[0] for times in self.by_worker.values() if times), default=0.0)
        return (begin_s, end_s) if end_s - begin_s > RESOLUTION_S else (0.0, 0.0)

    @cached_property
    def under_load(self) -> tuple[float, float]:
        """Return the time from the first completion to the end of the load, in s; (0, 0) without.

        The load ends when the first worker has no more to do while others may finish what they
        hold.
        """
        active = [times for times in self.by_worker.values() if times]
        if not active:
            return 0.0, 0.0
        return min(times[0] for times in active), min(times[-1] for times in active)

    # -- progress and rates
    # ----------------------------------------------------------------------------------------------

    @cached_property
    def rate(self) -> float:
        """Return the throughput in the span, which there must be, in requests/s."""
        begin_s, end_s = self.span
        return sum(self.progress((begin_s, end_s))) / (end_s - begin_s)

    @cached_property
    def rate_under_load(self) -> float:
        """Return completions/s of all workers while under load; 0 without such a time."""
        begin_s, end_s = self.under_load
        if end_s - begin_s <= RESOLUTION_S:
            return 0.0
        done = sum(bisect_right(times, end_s) for times in self.by_worker.values())
        # the first completion begins that time, so it does not belong to what was done in it
        return (done - 1) / (end_s - begin_s)

    @cached_property
    def done_by_worker(self) -> dict[str, float]:
        """Return how many requests each worker did in the span, with fractions, by its name."""
        by_worker = self.progress_by_worker(self.span)
        return {worker: done for worker, (done,) in by_worker.items()}

    def progress(self, edges: Sequence[float]) -> list[float]:
        """Return the requests that all workers did between neighbouring edges, with fractions.

        edges: instants in Redis seconds, which ascend inside the span.
        """
        done = [
            sum(_cycles_done(times, edge) for times in self.by_worker.values()) for edge in edges
        ]
        return differences(done)

    def progress_by_worker(self, edges: Sequence[float]) -> dict[str, list[float]]:
        """Return the same as `progress` for each worker alone, by its name."""
        return {
            worker: differences([_cycles_done(times, edge) for edge in edges])
            for worker, times in self.by_worker.items()
        }

    def rates(self, bins: int, trend_per_s: float = 0.0) -> list[float]:
        """Return the throughput in `bins` equal parts of the span, in requests/s.

        trend_per_s: a steady relative change per second, which is taken out.
        """
        width_s, edges = self._bins(bins)
        return [
            done / width_s * math.exp(-trend_per_s * index * width_s)
            for index, done in enumerate(self.progress(edges))
        ]

    def rates_by_worker(self, bins: int) -> list[list[float]]:
        """Return the throughput of each worker in `bins` equal parts of the span, in requests/s."""
        width_s, edges = self._bins(bins)
        done_by_worker = self.progress_by_worker(edges).values()
        return [[done / width_s for done in done_in_bins] for done_in_bins in done_by_worker]

    def _bins(self, bins: int) -> tuple[float, list[float]]:
        """Return the width of `bins` equal parts of the span, and their edges, in s."""
        begin_s, end_s = self.span
        width_s = (end_s - begin_s) / bins
        return width_s, [begin_s + index * width_s for index in range(bins)] + [end_s]

    # -- cycles, from a completion of a worker to its next one
    # ----------------------------------------------------------------------------------------------

    @cached_property
    def cycles(self) -> dict[str, list[float]]:
        """Return the times between the completions of each worker, in s."""
        return {worker: differences(times) for worker, times in self.by_worker.items()}

    @cached_property
    def all_cycles(self) -> list[float]:
        """Return the cycles of all workers, in s."""
        return list(itertools.chain.from_iterable(self.cycles.values()))

    @cached_property
    def slow_limits(self) -> dict[str, float]:
        """Return the length in s above which a cycle is slow, by worker with at least one cycle."""
        if not self.all_cycles:
            return {}
        median = statistics.median(self.all_cycles)
        limits = {}
        for worker, cycles in self.cycles.items():
            if cycles:
                usual_s = statistics.median(cycles) if len(cycles) >= OWN_MEDIAN_CYCLES else median
                limits[worker] = SLOW_FACTOR * usual_s
        return limits

    @cached_property
    def usual_cycles(self) -> list[list[float]]:
        """Return the cycles in s that are not slow, a list for each worker with a cycle."""
        return [
            [cycle for cycle in self.cycles[worker] if cycle <= limit]
            for worker, limit in self.slow_limits.items()
        ]

    @cached_property
    def mean_usual_cycle_s(self) -> float:
        """Return the mean length of the cycles that are not slow, in s; 0 without one."""
        cycles = list(itertools.chain.from_iterable(self.usual_cycles))
        return statistics.fmean(cycles) if cycles else 0.0

    # -- other completions made of these
    # ----------------------------------------------------------------------------------------------

    def after(self, cut_s: float) -> "Completions":
        """Return the completions at or after `cut_s`, in Redis seconds.

        The first one of each worker ends no cycle any more: it only begins one.
        """
        return Completions(
            {worker: times[bisect_left(times, cut_s) :] for worker, times in self.by_worker.items()}
        )

    @cached_property
    def dealt_in_turn(self) -> "Completions":
        """Return the same completions, dealt out to the workers in turn.

        Where a worker starves there is hardly a time in which the progress of every worker is
        known, although that of all together is. Dealt out, every cycle lasts N / throughput.
        """
        times = sorted(itertools.chain.from_iterable(self.by_worker.values()))
        count = len(self.by_worker)
        return Completions(
            {worker: times[index::count] for index, worker in enumerate(self.by_worker)}
        )

    @cached_property
    def with_slow_cycles_filled(self) -> "Completions":
        """Return the completions with each slow cycle filled by usual ones, evenly spaced.

        For tests whether a step changes along its time. Where nothing is slow these are the same.
        """
        limits = self.slow_limits
        if not any(max(self.cycles[worker]) > limit for worker, limit in limits.items()):
            return self
        filled_by_worker: dict[str, Sequence[float]] = {}
        for worker, times in self.by_worker.items():
            filled = list(times[:1])
            for cycle, end in zip(self.cycles[worker], times[1:], strict=True):
                # as many usual cycles as fit into a slow one: at least one, since what is slow for
                # a quick worker may be shorter than the mean of all workers
                count = 1
                if cycle > limits[worker] and self.mean_usual_cycle_s > 0:
                    fitting = cycle / self.mean_usual_cycle_s
                    count = round(min(MOST_FILLED, max(1.0, fitting)))
                begin = filled[-1]
                filled += [begin + (end - begin) * index / count for index in range(1, count)]
                filled.append(end)
            filled_by_worker[worker] = filled
        return Completions(filled_by_worker)


def differences(values: Sequence[float]) -> list[float]:
    """Return each value less the one before it: one fewer than there are values."""
    return [later - earlier for earlier, later in itertools.pairwise(values)]


def _cycles_done(times: Sequence[float], instant: float) -> float:
    """Return how many cycles a worker had done at `instant`, with the part of the present one.

    times: of its completions, ascending. 0 before the first, and all cycles after the last.
    """
    index = bisect_right(times, instant)
    if index == 0:
        return 0.0
    if index == len(times):
        return index - 1.0
    previous, following = times[index - 1], times[index]
    return index - 1 + (instant - previous) / (following - previous)
