"""When a service under load is warm, and when a step has been measured. Pure.

A replica that is ready may still compile, or fill a cache. So a step counts only from when the
latency in the last windows agrees, and no replica still gets faster, where answers name theirs. A
step whose throughput changes between its halves was not warm yet, and begins again.
"""

import itertools
import math
import statistics
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence

from scaletest.model.attempt import Attempt

# Windows that must agree, to this part of the smallest or as far as chance explains.
WINDOWS, AGREE = 3, 0.10
SHORTEST_S = 1.0
# A window has so many latencies and successes at least, and a step so many latencies.
OF_WINDOW, LEAST_OF_WINDOW, OF_STEP = 2.0, 5, 10.0
# A service of long answers may take so many latencies to be warm, whatever the limit is.
OF_LIMIT = 20.0
# Fewer requests of a replica in a window say nothing about it.
FEWEST = 3
# Attempts that tell the usual latency of now.
MOST_RECENT = 500
# Windows whose throughputs give a step its interval.
LEAST_PARTS, MOST_PARTS = 4, 20
# Halves that differ by more than this part, and by more than so many standard errors, differ.
MATTERS, SIGNIFICANT = 0.03, 3.0
# A service of which every request fails is not loaded any longer than this.
FAILING_S = 5.0


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
    """Return the throughput in equal windows of this time, each of some latencies."""
    usual_s = usual_latency(attempts)
    count = int((end_s - begin_s) / (OF_WINDOW * usual_s)) if usual_s > 0 else MOST_PARTS
    count = max(LEAST_PARTS, min(MOST_PARTS, count))
    width_s = (end_s - begin_s) / count
    edges = [begin_s + index * width_s for index in range(count)] + [end_s]
    return [done / width_s for done in progress(attempts, edges, tokens=tokens)]


def usual_latency(attempts: Sequence[Attempt]) -> float:
    """Return the median latency of successes; 0 without any."""
    known = [attempt.ended_s - attempt.sent_s for attempt in attempts if attempt.ok]
    return statistics.median(known) if known else 0.0


def change_between_halves(windows: Sequence[float]) -> float:
    """Return by which part the second half is faster; 0 where that may be chance."""
    half = len(windows) // 2
    early, late = windows[:half], windows[-half:]
    before, behind = statistics.fmean(early), statistics.fmean(late)
    if before <= 0:
        return 0.0
    scatter = math.hypot(statistics.stdev(early), statistics.stdev(late)) / math.sqrt(half)
    matters = abs(behind - before) > max(MATTERS * before, SIGNIFICANT * scatter)
    return behind / before - 1.0 if matters else 0.0


def _agree(windows: Sequence[tuple[float, float]]) -> bool:
    """Return whether these means with their errors are alike."""
    (low, low_error), (high, high_error) = min(windows), max(windows)
    return high - low <= max(AGREE * low, SIGNIFICANT * math.hypot(low_error, high_error))


def _fell(windows: Sequence[tuple[float, float]]) -> bool:
    """Return whether the last of these means is below the first.

    Of a replica only that counts: a balancer that chooses by chance moves its queue up and down.
    """
    (before, before_error), (behind, behind_error) = windows[0], windows[-1]
    error = math.hypot(before_error, behind_error)
    return before - behind > max(AGREE * behind, SIGNIFICANT * error)


class VisitCourse:
    """Decides when the warm-up and the step are over. Times are seconds since the load began."""

    def __init__(self, step_s: float, warm_limit_s: float) -> None:
        self._step_s, self._limit_s = step_s, warm_limit_s
        self.attempts: list[Attempt] = []  # in the order of their ends
        self._ended: list[float] = []
        # mean and its standard error of all latencies, "", and of the pace of each replica
        self._windows: list[dict[str, tuple[float, float]]] = []
        self._window_began = 0.0
        self.from_s: float | None = None  # when the step began, after the warm-up
        self.until_s = 0.0
        self.is_warm = False
        self.is_over = False

    def add(self, attempt: Attempt) -> None:
        """Note an attempt that has ended."""
        self.attempts.append(attempt)
        self._ended.append(attempt.ended_s)

    def look(self, now_s: float) -> bool:
        """Return whether the load may end."""
        if self.from_s is None:
            self._look_whether_warm(now_s)
            failing = now_s >= FAILING_S and len(self.attempts) >= FEWEST
            if failing and not any(attempt.ok for attempt in self.attempts):
                self.from_s, self.until_s = 0.0, now_s
                self.is_over = True
            return self.is_over
        if now_s < self.until_s:
            return False
        # the load goes on for a latency, so that what is in flight at the end is as slow as usual
        begun = self._since(self.from_s)
        if now_s >= self.until_s + usual_latency(begun):
            changed = change_between_halves(rates(begun, self.from_s, self.until_s))
            if changed and self.is_warm and now_s < self._limit_s:
                self._begin(now_s)
            else:
                self.is_over = True
        return self.is_over

    def _since(self, begin_s: float) -> list[Attempt]:
        return self.attempts[bisect_left(self._ended, begin_s) :]

    def _recent_latency(self) -> float:
        return usual_latency(self.attempts[-MOST_RECENT:])

    def _begin(self, now_s: float) -> None:
        usual_s = self._recent_latency()
        self.from_s = now_s
        self.until_s = now_s + max(self._step_s, OF_STEP * usual_s)

    def _look_whether_warm(self, now_s: float) -> None:
        recent = self._since(self._window_began)
        usual_s = self._recent_latency()
        limit_s = max(self._limit_s, OF_LIMIT * usual_s)
        is_short = now_s - self._window_began < max(SHORTEST_S, OF_WINDOW * usual_s)
        if is_short or (sum(row.ok for row in recent) < LEAST_OF_WINDOW and now_s < limit_s):
            return
        times: dict[str, list[float]] = defaultdict(list)
        for attempt in recent:
            if attempt.ok:
                latency_s = attempt.ended_s - attempt.sent_s
                times[""].append(latency_s)
                if attempt.pod:
                    # a token's time is of the replica alone, and a latency also of its queue
                    times[attempt.pod].append(attempt.per_token_s or latency_s)
        self._windows.append(
            {
                name: (statistics.fmean(own), statistics.stdev(own) / math.sqrt(len(own)))
                for name, own in times.items()
                if len(own) >= FEWEST
            }
        )
        last = self._windows[-WINDOWS:]
        self.is_warm = len(last) == WINDOWS and all("" in window for window in last)
        if self.is_warm:
            replicas = set(itertools.chain.from_iterable(last)) - {""}
            paces = [[row[name] for row in last if name in row] for name in replicas]
            self.is_warm = _agree([row[""] for row in last]) and not any(map(_fell, paces))
        if self.is_warm or now_s >= limit_s:
            self._begin(now_s)
        self._window_began = now_s
