"""From looks at a request's processes to seconds by state, which sum to the time that passed.

Time on a CPU, and waiting for one, is counted by the kernel between two looks. What is left of the interval was spent
blocked: half of it is given to what was blocked at its begin, half to what is blocked at its end, so that a state is
neither too long nor too short on average, wherever in a request the looks fall. A process that did not live through
the interval gets no more of it than it lived. Nothing else is guessed: the rest was not observed.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

from scaletest.model.activity import MAX_WAITS, State, Wait
from scaletest.system.blocking import Doing
from scaletest.system.tree import Look, Share


class TimeByState:
    """Seconds by state of one request."""

    def __init__(self) -> None:
        self._seconds: dict[Doing, float] = defaultdict(float)
        # blocked in a thread that ran at both ends of the interval
        self._unknown_s = 0.0
        self._seen_run_s = 0.0
        self._last: Look | None = None

    def add(self, state: State, seconds: float, name: str = "") -> None:
        """Time whose state is known."""
        self._seconds[Doing(state, name)] += max(0.0, seconds)

    def interval(self, seconds: float, look: Look | None, unchanged_s: float = 0.0) -> None:
        """The time up to a look at all processes, which saw nobody when it is None.

        unchanged_s: how long at the begin of the interval nobody ran.
        """
        shares = look.shares if look else []
        self._seen_run_s += sum(share.run_s for share in shares)
        run_s, wait_s = union(seconds, shares)
        self.add(State.ON_CPU, run_s)
        self.add(State.CPU_WAIT, wait_s)
        blocked_s = max(0.0, seconds - run_s - wait_s)
        still_s = min(blocked_s, unchanged_s) if self._last else 0.0
        if self._last:
            self._grant(self._last, still_s)
        self._blocked(blocked_s - still_s, self._last, look)
        self._last = look

    def close(self, seconds: float, cpu_s: float, unchanged_s: float = 0.0) -> None:
        """The time from the last look to the end. cpu_s: of all processes since the begin."""
        unseen_s = max(0.0, cpu_s - self._seen_run_s)
        hidden_s = self._seconds[Doing(State.NOT_OBSERVED)]
        run_s = min(seconds, unseen_s * seconds / (seconds + hidden_s)) if seconds > 0 else 0.0
        self.add(State.ON_CPU, run_s)
        still_s = min(seconds - run_s, unchanged_s) if self._last else 0.0
        if self._last:
            self._grant(self._last, still_s)
        self._blocked(seconds - run_s - still_s, self._last, None)
        self._settle_unknown()
        # CPU time that no look saw, of processes that lived between two looks
        moved_s = min(unseen_s - run_s, self._seconds[Doing(State.NOT_OBSERVED)])
        self._move(State.NOT_OBSERVED, State.ON_CPU, moved_s)

    def throttle(self, seconds: float) -> None:
        """Seconds in which a limit held all processes back: that part of the waiting for a CPU was for the limit."""
        self._move(State.CPU_WAIT, State.THROTTLED, min(seconds, self._seconds[Doing(State.CPU_WAIT)]))

    def seconds(self, total_s: float) -> dict[State, float]:
        """By state; they sum to the total."""
        sums: dict[State, float] = defaultdict(float)
        for doing, seconds in self._seconds.items():
            sums[doing.state or State.NOT_OBSERVED] += seconds
        rest_s = total_s - sum(sums.values())
        if rest_s > 0:
            sums[State.NOT_OBSERVED] += rest_s
        return {state: sums[state] for state in State if sums[state] > 0}

    def waits(self) -> tuple[Wait, ...]:
        """The longest waits for something that has a name."""
        named = [
            Wait(doing.state, doing.object, s) for doing, s in self._seconds.items() if doing.state and doing.object
        ]
        return tuple(heapq.nlargest(MAX_WAITS, named, key=lambda wait: wait.seconds))

    def _blocked(self, seconds: float, begin: Look | None, end: Look | None) -> None:
        """Time in which nothing ran, between two looks; at the begin and the end of the request one is missing."""
        left_s = seconds
        for look, other in ((begin, end), (end, begin)):
            if look is None:
                continue
            part_s = seconds * _part(look, other)
            lived = other is not None and look.thread in other.threads
            granted_s = part_s if lived else min(part_s, look.age_s)
            left_s -= granted_s
            self._grant(look, granted_s)
        self.add(State.NOT_OBSERVED, left_s)

    def _grant(self, look: Look, seconds: float) -> None:
        if look.doing.state is None:
            self._unknown_s += seconds
        else:
            self._seconds[look.doing] += seconds

    def _settle_unknown(self) -> None:
        """A thread that ran at every look was blocked now and then: as it was at other looks, if at any."""
        ran = (State.ON_CPU, State.NOT_OBSERVED)
        known = {doing: seconds for doing, seconds in self._seconds.items() if doing.state not in ran and seconds > 0}
        whole_s = sum(known.values())
        if not whole_s:
            self.add(State.NOT_OBSERVED, self._unknown_s)
        for doing, seconds in known.items():
            self._seconds[doing] += self._unknown_s * seconds / whole_s
        self._unknown_s = 0.0

    def _move(self, source: State, target: State, seconds: float) -> None:
        if seconds > 0:
            self._seconds[Doing(source)] -= seconds
            self._seconds[Doing(target)] += seconds


def union(seconds: float, shares: Sequence[Share]) -> tuple[float, float]:
    """Seconds in which any thread ran, and in which none did and any waited for a CPU, as if they were independent."""
    none_runs = none_runs_or_waits = 1.0
    for share in shares:
        part = min(1.0, share.run_s / seconds) if seconds > 0 else 0.0
        none_runs *= 1 - part
        none_runs_or_waits *= 1 - min(1.0, part + share.wait_s / seconds) if seconds > 0 else 1.0
    return seconds * (1 - none_runs), seconds * (none_runs - none_runs_or_waits)


def _part(look: Look, other: Look | None) -> float:
    """How much of a blocked interval one end may claim: all when at the other end something ran."""
    if other is None or (look.doing.state is not None and other.doing.state is None):
        return 1.0
    return 0.0 if look.doing.state is None and other.doing.state is not None else 0.5
