"""Turn looks at a request's processes into seconds by state, which sum to the time that passed.

Time on a CPU, and waiting for one, is counted by the kernel between two looks. What is left of the
interval was spent blocked: half of it is given to what was blocked at its begin, the rest to what
is blocked at its end, so that a state is neither too long nor too short on average, wherever in a
request the looks fall. Where something ran at one end and was blocked once, all is the other end's;
after many short waits its part goes to the states that got less than the looks at what was blocked
say, since these are a sample of the blocked time. In a script that runs one command after the other
the begin and the end of each are known, so its waits are as long as they were. What no look stands
for was not observed.
"""

import heapq
from collections import defaultdict
from collections.abc import Collection, Sequence

from scaletest.model.activity import MAX_WAITS, State, Wait
from scaletest.observe.doing import Doing
from scaletest.observe.tree import FEW_SLICES, NOTHING_RAN, ThreadShare, TreeLook

# States whose time the kernel counts, or that are taken from such.
_COUNTED = (State.ON_CPU, State.CPU_WAIT, State.THROTTLED)
# With no more CPU time than this beside that of a request's first process no other one was there.
_ALONE_S = 0.002
# What sums of floats are off by.
_ROUNDING_S = 1e-9
# Seconds of one state that are kept for later requests, or given to them in advance, at most.
MOST_KEPT_S = 1.0
# States and objects for which seconds are kept.
MOST_KEPT = 64


class TimeByState:
    """Seconds by state of one request."""

    def __init__(self) -> None:
        self._seconds: dict[Doing, float] = defaultdict(float)
        # how much of the request the looks at each blocked state stand for
        self._weights: dict[Doing, float] = defaultdict(float)
        # blocked near a look at which something ran, so that nobody knows in which state
        self._unknown_s = 0.0
        # the same, where somebody may have waited for a CPU whom nobody counted
        self._uncounted_s = 0.0
        # the same behind the last look
        self._uncounted_at_end_s = 0.0
        # CPU time that looks saw
        self._seen_run_s = 0.0
        self._last: TreeLook | None = None
        # whether never more than one thread did anything
        self._in_sequence = True

    def add(self, state: State, seconds: float, name: str = "") -> None:
        """Add time whose state is known."""
        self._seconds[Doing(state, name)] += max(0.0, seconds)

    def add_interval(self, seconds: float, look: TreeLook | None, unchanged_s: float = 0.0) -> None:
        """Add the time up to a look at all processes, which saw nobody when it is None.

        unchanged_s: how long at the begin of the interval nobody ran.
        """
        shares = look.shares if look else []
        self._seen_run_s += sum(share.run_s for share in shares)
        run_s, wait_s = run_and_wait_s(seconds, shares)
        self._add_earlier_wait(
            max((share.run_s + share.wait_s - seconds for share in shares), default=0.0)
        )
        # The kernel's counts tell of all waits for a CPU where no thread came or went, and one of
        # them ran at most: of several, how long they waited at once is only estimated.
        counted = look is not None and len(shares) <= 1
        if look is not None and self._last is not None:
            counted = counted and look.threads == self._last.threads
        elif look is not None:  # at the begin of the request
            counted = counted and len(look.threads) == 1
        self._divide(seconds, run_s, wait_s, unchanged_s, look, counted=counted)
        self._in_sequence = self._in_sequence and look is not None and look.in_sequence
        self._last = look

    def add_end(
        self,
        seconds: float,
        cpu_s: float,
        unchanged_s: float = 0.0,
        first: ThreadShare = NOTHING_RAN,
    ) -> None:
        """Add the time from the last look to the end.

        cpu_s: of all processes since the begin. unchanged_s: as in `add_interval`. first: how long
        the first process ran and waited for a CPU since that look.
        """
        # of the CPU time that no look saw, this interval has the part that it has of all time that
        # was not observed
        unseen_run_s = max(0.0, cpu_s - self._seen_run_s)
        run_s = wait_s = 0.0
        if seconds > 0:
            unobserved_s = self._seconds[Doing(State.NOT_OBSERVED)]
            run_s = min(seconds, unseen_run_s * seconds / (seconds + unobserved_s))
            wait_s = min(seconds - run_s, max(0.0, first.wait_s))
        self._add_earlier_wait(first.wait_s - wait_s)
        is_alone = self._last is not None and len(self._last.threads) == 1
        is_counted = is_alone and unseen_run_s <= first.run_s + _ALONE_S
        self._divide(seconds, run_s, wait_s, unchanged_s, None, counted=is_counted)
        self._spread_unknown()

        # the rest of that CPU time is of processes that lived between two looks: it was where
        # somebody was not counted, else where nothing was observed
        unseen_run_s -= run_s
        hidden_s = min(max(0.0, unseen_run_s), self._uncounted_s)
        self.add(State.ON_CPU, hidden_s)
        self._uncounted_s -= hidden_s
        self._spread_or_hide(self._unknown_s, _COUNTED)
        self._spread_or_hide(self._uncounted_s + self._uncounted_at_end_s, (State.ON_CPU,))
        unseen_run_s = max(0.0, unseen_run_s - hidden_s)
        moved_s = min(unseen_run_s, self._seconds[Doing(State.NOT_OBSERVED)])
        self._move(State.NOT_OBSERVED, State.ON_CPU, moved_s)
        unseen_run_s -= moved_s
        if self._in_sequence and unseen_run_s > 0:
            # it ran, and waited for a CPU as others did, at the ends of what was blocked, since
            # nothing else went on meanwhile
            ran_s = self._seconds[Doing(State.ON_CPU)]
            wait_per_run = self._seconds[Doing(State.CPU_WAIT)] / ran_s if ran_s > 0 else 0.0
            blocked = self.blocked_seconds()
            taken_s = min(unseen_run_s * (1.0 + wait_per_run), sum(blocked.values()))
            self._spread(-taken_s, blocked)
            taken_run_s = taken_s / (1.0 + wait_per_run)
            self.add(State.ON_CPU, taken_run_s)
            self.add(State.CPU_WAIT, taken_s - taken_run_s)

    def _spread_unknown(self) -> None:
        """Divide what was blocked near a look at which something ran, by the other looks.

        Each blocked state gets what it lacks of its part of all blocked time; when none lacks any,
        by these parts.
        """
        unknown_s = self._unknown_s + self._uncounted_s
        blocked_s = unknown_s + sum(self._seconds[doing] for doing in self._weights)
        total_weight = sum(self._weights.values())
        if total_weight <= 0 or blocked_s <= 0:
            return
        parts = {
            doing: blocked_s * weight / total_weight for doing, weight in self._weights.items()
        }
        lacking = {doing: max(0.0, part - self._seconds[doing]) for doing, part in parts.items()}
        self._spread(unknown_s, lacking if sum(lacking.values()) > 0 else parts)
        self._unknown_s = self._uncounted_s = 0.0

    @property
    def ends_blocked(self) -> bool:
        """Whether the last look met something blocked."""
        return self._last is not None and self._last.doing.state is not None

    @property
    def waits_in_sequence(self) -> bool:
        """Whether the last look met something blocked, and nothing that goes on beside it."""
        return self.ends_blocked and self._last is not None and self._last.in_sequence

    def blocked_seconds(self) -> dict[Doing, float]:
        """Return the seconds that only looks tell of, with those that were not observed."""
        return {
            doing: s for doing, s in self._seconds.items() if doing.state not in _COUNTED and s > 0
        }

    def assign_unobserved(self, seconds: dict[Doing, float]) -> None:
        """Give time that was not observed to the states that it was spent in."""
        for doing, s in seconds.items():
            self._seconds[doing] += s
        self._seconds[Doing(State.NOT_OBSERVED)] -= sum(seconds.values())

    def count_throttled(self, seconds: float) -> None:
        """Count as throttled what was waiting for a CPU while a limit held all processes back."""
        self._move(
            State.CPU_WAIT, State.THROTTLED, min(seconds, self._seconds[Doing(State.CPU_WAIT)])
        )

    def seconds_by_state(self, total_s: float) -> dict[State, float]:
        """Return seconds by state, which sum to the total."""
        sums: dict[State, float] = defaultdict(float)
        for doing, seconds in self._seconds.items():
            sums[doing.state or State.NOT_OBSERVED] += seconds
        sums[State.NOT_OBSERVED] += max(0.0, total_s - sum(sums.values()))
        return {state: sums[state] for state in State if sums[state] > _ROUNDING_S}

    def longest_waits(self) -> tuple[Wait, ...]:
        """Return the longest waits for something that has a name."""
        named = [
            Wait(doing.state, doing.object, s)
            for doing, s in self._seconds.items()
            if doing.state and doing.object
        ]
        return tuple(heapq.nlargest(MAX_WAITS, named, key=lambda wait: wait.seconds))

    def _add_earlier_wait(self, seconds: float) -> None:
        """Add what a thread waited for a CPU before the last look, which saw it runnable.

        The kernel tells of a wait when it is over.
        """
        moved_s = max(0.0, min(seconds, self._unknown_s))
        self._unknown_s -= moved_s
        uncounted_s = max(0.0, min(seconds - moved_s, self._uncounted_s))
        self._uncounted_s -= uncounted_s
        self.add(State.CPU_WAIT, moved_s + uncounted_s)

    def _divide(
        self,
        seconds: float,
        run_s: float,
        wait_s: float,
        unchanged_s: float,
        end: TreeLook | None,
        *,
        counted: bool,
    ) -> None:
        """Divide an interval since the last look, in which so much was run and waited for a CPU.

        counted: whether all waits for a CPU in this time are known.
        """
        self.add(State.ON_CPU, run_s)
        self.add(State.CPU_WAIT, wait_s)
        blocked_s = max(0.0, seconds - run_s - wait_s)
        still_s = 0.0
        if self._last:  # at the begin of the interval nobody ran
            still_s = min(blocked_s, unchanged_s)
            self._grant(self._last, still_s, counted=True)
            if self._last.doing.state is not None:
                self._weights[self._last.doing] += still_s
        divided_s = blocked_s - still_s
        # the looks at the ends of the interval, each with its part of the rest; at the begin and
        # the end of the request one of the two is missing
        ends = [(look, 1.0) for look in (self._last, end) if look is not None]
        if self._last is not None and end is not None:
            begin_part = 0.5
            is_one_wait = sum(share.slices for share in end.shares) <= FEW_SLICES
            if is_one_wait and (self._last.doing.state is None) != (end.doing.state is None):
                begin_part = 1.0 if end.doing.state is None else 0.0
            elif self._last.in_sequence and end.in_sequence and end.age_s < divided_s:
                # a script's next command began at a known time, and what was before it at the begin
                begin_part = 1.0 - end.age_s / divided_s
            ends = [(self._last, begin_part), (end, 1.0 - begin_part)]
        for look, part in ends:
            self._grant(look, divided_s * part, counted=counted, at_end=end is None)
            # each look at a blocked state stands for its part of the request
            if look.doing.state is not None:
                self._weights[look.doing] += (seconds - still_s) * part
        if not ends:
            self.add(State.NOT_OBSERVED, divided_s)

    def _grant(
        self, look: TreeLook, seconds: float, *, counted: bool, at_end: bool = False
    ) -> None:
        if look.doing.state is not None:
            self._seconds[look.doing] += seconds
        elif look.short_waits is not None:
            self._seconds[look.short_waits] += seconds
        elif counted:
            self._unknown_s += seconds
        elif at_end:
            self._uncounted_at_end_s += seconds
        else:
            self._uncounted_s += seconds

    def _spread_or_hide(self, seconds: float, impossible: Collection[State]) -> None:
        """Give seconds to the known states but the impossible ones, by their length.

        Where there is none, they were not observed.
        """
        possible = {
            doing: spent_s
            for doing, spent_s in self._seconds.items()
            if doing.state not in (*impossible, State.NOT_OBSERVED) and spent_s > 0
        }
        if sum(possible.values()) > 0:
            self._spread(seconds, possible)
        else:
            self.add(State.NOT_OBSERVED, seconds)

    def _spread(self, seconds: float, weights: dict[Doing, float]) -> None:
        total = sum(weights.values()) or 1.0
        for doing, weight in weights.items():
            self._seconds[doing] += seconds * weight / total

    def _move(self, source: State, target: State, seconds: float) -> None:
        if seconds > 0:
            self._seconds[Doing(source)] -= seconds
            self._seconds[Doing(target)] += seconds


def run_and_wait_s(seconds: float, shares: Sequence[ThreadShare]) -> tuple[float, float]:
    """Return the seconds in which any thread ran, and in which none did and any waited for a CPU.

    Threads count as independent.
    """
    none_runs = none_runs_or_waits = 1.0
    for share in shares:
        part = min(1.0, share.run_s / seconds) if seconds > 0 else 0.0
        none_runs *= 1 - part
        none_runs_or_waits *= 1 - min(1.0, part + share.wait_s / seconds) if seconds > 0 else 1.0
    return seconds * (1 - none_runs), seconds * (none_runs - none_runs_or_waits)


class Balance:
    """Seconds that looks stand for beyond what they met, kept for the worker's next requests.

    Looks fall into short requests by chance. Over many of them each look stands for as much time as
    passes between two. What that is more than the blocked time of the requests that looks met is
    given to those that none met: the sums of a worker's requests are right, those of a short
    request alone are not. As much again may be given in advance, as the last look has it, so that
    what is kept need not come first.
    """

    def __init__(self) -> None:
        self._kept: dict[Doing, float] = defaultdict(float)
        self._last: dict[Doing, float] = {}

    def settle(self, spent: TimeByState, stands_for_s: float | None) -> None:
        """Close a request.

        stands_for_s: the time that its looks at something blocked stand for; 0 when none did, None
        where they stand for what they met, as in a script that was followed.
        """
        blocked = spent.blocked_seconds()
        total_s = sum(blocked.values())
        if stands_for_s is None:
            stands_for_s = total_s
        if total_s <= 0:
            return
        if stands_for_s <= 0:
            self._grant_kept(spent, blocked.get(Doing(State.NOT_OBSERVED), 0.0))
            return
        self._last = {doing: seconds / total_s for doing, seconds in blocked.items()}
        for doing, part in self._last.items():
            self._keep(doing, part * (stands_for_s - total_s))
        # requests may each wait for an object of its own: then these have one sum without a name
        if len(self._kept) > MOST_KEPT:
            for doing in [doing for doing in self._kept if doing.object]:
                self._keep(Doing(doing.state), self._kept.pop(doing))

    def _grant_kept(self, spent: TimeByState, unobserved_s: float) -> None:
        """Give a request that no look met so much of what is kept, and the rest in advance."""
        kept = {doing: kept_s for doing, kept_s in self._kept.items() if kept_s > 0}
        kept_s = sum(kept.values())
        part = min(1.0, unobserved_s / kept_s) if kept_s > 0 else 0.0
        granted = defaultdict(float, {doing: part * seconds for doing, seconds in kept.items()})
        # not if too much is given already
        given_s = -sum(seconds for seconds in self._kept.values() if seconds < 0)
        advance_s = min(unobserved_s - part * kept_s, MOST_KEPT_S - given_s)
        for doing, share in self._last.items():
            granted[doing] += share * max(0.0, advance_s)
        for doing, seconds in granted.items():
            self._kept[doing] -= seconds
        spent.assign_unobserved(granted)

    def _keep(self, doing: Doing, seconds: float) -> None:
        self._kept[doing] = max(-MOST_KEPT_S, min(MOST_KEPT_S, self._kept[doing] + seconds))
