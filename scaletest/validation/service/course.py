"""When a service under load is warm, and when a step has been measured. Pure.

A replica that is ready may still compile, or fill a cache. So a step counts only from when the
latency in the last windows agrees, and no replica still gets faster, where answers name theirs. A
step whose throughput changes between its halves was not warm yet, and begins again.
"""

import math
import statistics
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from scaletest.model.attempt import Attempt

# Consecutive windows of the warm-up whose latencies must agree.
WARM_WINDOWS = 3
# A window lasts this long at least, and so many times the usual latency.
SHORTEST_WINDOW_S, WINDOW_LATENCIES = 1.0, 2.0
# A window of the warm-up needs so many successes, and so many of a replica to say how that fares.
LEAST_SUCCESSES, LEAST_OF_REPLICA = 5, 3
# A step lasts so many times the usual latency at least.
STEP_LATENCIES = 10.0
# A service of long answers may take so many latencies to be warm, whatever the limit is.
LIMIT_LATENCIES = 20.0
# The last attempts, which tell the usual latency of now.
RECENT_ATTEMPTS = 500
# Windows whose throughputs give a step its interval.
LEAST_WINDOWS, MOST_WINDOWS = 4, 20
# Latencies of windows, and throughputs of the halves of a step, that differ by less than these
# parts are alike, as are all that differ by less than so many standard errors.
ALIKE_LATENCIES, ALIKE_HALVES = 0.10, 0.03
SIGNIFICANT_ERRORS = 3.0
# A service of which every request fails is loaded no longer than this.
LONGEST_FAILING_S = 5.0

# Stands for all replicas together, beside the names of replicas.
ALL_REPLICAS = ""


class Mean(NamedTuple):
    """The mean of times in seconds, with its standard error."""

    seconds: float
    error: float


def progress(
    attempts: Sequence[Attempt], edges: Sequence[float], *, tokens: bool = False
) -> list[float]:
    """Return how much was done between neighbouring edges, a request in flight by its part.

    Whole requests would make steps: those that began together end together. tokens: count them
    instead of requests.
    """
    done = [0.0] * (len(edges) - 1)
    for attempt in attempts:
        takes_s = attempt.ended_s - attempt.sent_s
        if not attempt.ok or takes_s <= 0:
            continue
        weight = attempt.tokens if tokens else 1
        first = max(0, bisect_right(edges, attempt.sent_s) - 1)
        for index in range(first, len(done)):
            begin, end = edges[index], edges[index + 1]
            if begin >= attempt.ended_s:
                break
            shared = min(end, attempt.ended_s) - max(begin, attempt.sent_s)
            done[index] += weight * max(0.0, shared) / takes_s
    return done


def rates(
    attempts: Sequence[Attempt], begin_s: float, end_s: float, *, tokens: bool = False
) -> list[float]:
    """Return the throughput per second in equal windows of this time, each of some latencies.

    tokens: count them instead of requests.
    """
    usual_s = usual_latency(attempts)
    count = MOST_WINDOWS
    if usual_s > 0:
        count = int((end_s - begin_s) / (WINDOW_LATENCIES * usual_s))
        count = max(LEAST_WINDOWS, min(MOST_WINDOWS, count))
    width_s = (end_s - begin_s) / count
    edges = [begin_s + index * width_s for index in range(count)] + [end_s]
    return [done / width_s for done in progress(attempts, edges, tokens=tokens)]


def usual_latency(attempts: Sequence[Attempt]) -> float:
    """Return the median latency of successes in seconds; 0 without any."""
    latencies_s = [attempt.ended_s - attempt.sent_s for attempt in attempts if attempt.ok]
    return statistics.median(latencies_s) if latencies_s else 0.0


def halves_differ(windows: Sequence[float]) -> bool:
    """Return whether throughput changed between the halves of a step, by more than chance."""
    half = len(windows) // 2
    early, late = windows[:half], windows[-half:]
    before, behind = statistics.fmean(early), statistics.fmean(late)
    error = math.hypot(statistics.stdev(early), statistics.stdev(late)) / math.sqrt(half)
    least_change = max(ALIKE_HALVES * before, SIGNIFICANT_ERRORS * error)
    return before > 0 and abs(behind - before) > least_change


def _is_slower(one: Mean, other: Mean) -> bool:
    """Return whether one mean latency is above the other, by more than chance."""
    error = math.hypot(one.error, other.error)
    least_change = max(ALIKE_LATENCIES * other.seconds, SIGNIFICANT_ERRORS * error)
    return one.seconds - other.seconds > least_change


class VisitCourse:
    """Decides when the warm-up and the step are over. Times are seconds since the load began."""

    def __init__(self, step_s: float, warm_limit_s: float) -> None:
        self._step_s, self._limit_s = step_s, warm_limit_s
        self.attempts: list[Attempt] = []  # that have ended, in this order
        # of each window of the warm-up: latencies by replica, and of ALL_REPLICAS
        self._windows: list[dict[str, Mean]] = []
        self._window_began_s = 0.0
        self.from_s: float | None = None  # when the step began, after the warm-up
        self.until_s = 0.0
        self.is_warm = False
        self.is_over = False

    def look(self, now_s: float) -> bool:
        """Return whether the load may end."""
        if self.from_s is None:
            self._watch_warm_up(now_s)
            failing = now_s >= LONGEST_FAILING_S and len(self.attempts) >= LEAST_SUCCESSES
            if failing and not any(attempt.ok for attempt in self.attempts):
                self.from_s = 0.0
                self.until_s = now_s
                self.is_over = True
            return self.is_over
        if now_s < self.until_s:
            return False
        # the load goes on for a latency, so that what is in flight at the end is as slow as usual
        attempts = self._ended_since(self.from_s)
        if now_s >= self.until_s + usual_latency(attempts):
            changed = halves_differ(rates(attempts, self.from_s, self.until_s))
            if changed and self.is_warm and now_s < self._limit_s:
                self._begin_step(now_s)
            else:
                self.is_over = True
        return self.is_over

    def _ended_since(self, begin_s: float) -> list[Attempt]:
        return self.attempts[bisect_left(self.attempts, begin_s, key=lambda row: row.ended_s) :]

    def _begin_step(self, now_s: float) -> None:
        usual_s = usual_latency(self.attempts[-RECENT_ATTEMPTS:])
        self.from_s = now_s
        self.until_s = now_s + max(self._step_s, STEP_LATENCIES * usual_s)

    def _watch_warm_up(self, now_s: float) -> None:
        """Close the window of the warm-up if it is long enough; begin the step if it was warm."""
        usual_s = usual_latency(self.attempts[-RECENT_ATTEMPTS:])
        if now_s - self._window_began_s < max(SHORTEST_WINDOW_S, WINDOW_LATENCIES * usual_s):
            return
        limit_s = max(self._limit_s, LIMIT_LATENCIES * usual_s)
        succeeded = [row for row in self._ended_since(self._window_began_s) if row.ok]
        if len(succeeded) < LEAST_SUCCESSES and now_s < limit_s:
            return
        self._windows.append(_latencies_by_replica(succeeded))
        self._window_began_s = now_s
        self.is_warm = self._last_windows_agree()
        if self.is_warm or now_s >= limit_s:
            self._begin_step(now_s)

    def _last_windows_agree(self) -> bool:
        last = self._windows[-WARM_WINDOWS:]
        if len(last) < WARM_WINDOWS or not all(ALL_REPLICAS in window for window in last):
            return False
        together = [window[ALL_REPLICAS] for window in last]
        if _is_slower(max(together), min(together)):
            return False
        # of a replica it counts only whether it got faster: a balancer that chooses by chance moves
        # its queue up and down
        for name in set().union(*last):
            times = [window[name] for window in last if name in window]
            if name != ALL_REPLICAS and _is_slower(times[0], times[-1]):
                return False
        return True


def _latencies_by_replica(succeeded: Sequence[Attempt]) -> dict[str, Mean]:
    """Return the mean latency of all requests, and the mean pace of each replica that had some."""
    times: dict[str, list[float]] = defaultdict(list)
    for attempt in succeeded:
        latency_s = attempt.ended_s - attempt.sent_s
        times[ALL_REPLICAS].append(latency_s)
        if attempt.pod:
            # a token's time is of the replica alone, and a latency also of its queue
            times[attempt.pod].append(attempt.per_token_s or latency_s)
    return {
        name: Mean(statistics.fmean(rows), statistics.stdev(rows) / math.sqrt(len(rows)))
        for name, rows in times.items()
        if len(rows) >= LEAST_OF_REPLICA
    }
