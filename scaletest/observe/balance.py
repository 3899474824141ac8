"""Seconds that looks stand for beyond what they met, kept for the worker's next requests.

Looks fall into short requests by chance. Over many of them each look stands for as much time as
passes between two. What that is more than the blocked time of the requests that looks met is given
to those that none met: the sums of a worker's requests are right, those of a short request alone
are not.
"""

import heapq
from collections import defaultdict

from scaletest.model.activity import State
from scaletest.observe.doing import Doing
from scaletest.observe.time_by_state import TimeByState

# Seconds of one state that are kept for later requests, or given to them in advance, at most.
MOST_KEPT_S = 1.0
# States with an object for which seconds are kept: requests may each wait for a file or an address
# of its own.
MOST_KEPT = 64


class Balance:
    """What the looks at a worker's requests stand for beyond the blocked time of the requests that
    they met.

    As much again may be given in advance, as the last look has it, so that what is kept need not
    come first.
    """

    def __init__(self) -> None:
        self._kept: dict[Doing, float] = defaultdict(float)
        self._last: dict[Doing, float] = {}

    def settle(self, spent: TimeByState, stands_for_s: float) -> None:
        """Close a request. stands_for_s: the time that its looks at something blocked stand for; 0
        when none did.
        """
        blocked = spent.blocked_seconds()
        total_s = sum(blocked.values())
        if total_s <= 0:
            return
        if stands_for_s <= 0:
            # Take so much of what is kept; what is missing in advance, if not too much is given
            # already.
            seconds = blocked.get(Doing(State.NOT_OBSERVED), 0.0)
            positive = {doing: kept_s for doing, kept_s in self._kept.items() if kept_s > 0}
            positive_s = sum(positive.values())
            part = min(1.0, seconds / positive_s) if positive_s > 0 else 0.0
            granted = defaultdict(float, {doing: part * s for doing, s in positive.items()})
            advance_s = min(
                seconds - sum(granted.values()),
                MOST_KEPT_S + sum(min(0.0, s) for s in self._kept.values()),
            )
            for doing, share in self._last.items():
                granted[doing] += share * max(0.0, advance_s)
            for doing, granted_s in granted.items():
                self._kept[doing] -= granted_s
            spent.assign_unobserved(granted)
            return
        self._last = {doing: seconds / total_s for doing, seconds in blocked.items()}
        for doing, part in self._last.items():
            self._keep(doing, part * (stands_for_s - total_s))
        # where too many objects have something kept, those with the least of it become one without
        # a name
        objects = [doing for doing in self._kept if doing.object]
        least = len(objects) - MOST_KEPT // 2 if len(objects) > MOST_KEPT else 0
        for doing in heapq.nsmallest(least, objects, key=lambda doing: abs(self._kept[doing])):
            self._keep(Doing(doing.state), self._kept.pop(doing))

    def _keep(self, doing: Doing, seconds: float) -> None:
        self._kept[doing] = max(-MOST_KEPT_S, min(MOST_KEPT_S, self._kept[doing] + seconds))
