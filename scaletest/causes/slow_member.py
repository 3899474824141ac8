"""One worker, device or node whose requests got slower alone: like contention, and none.

With N workers of which one takes longer, throughput falls as if all shared something. A shared
resource slows all of them down, though, so a member is slow by itself when it brings most of the
added run time and the others hardly any.
"""

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.causes.places import seconds_text
from scaletest.causes.request_time import Cycle, RequestTime
from scaletest.model.declared import choice
from scaletest.model.writing import Written

# At least this part of the run time that all requests added is its own, and the run time of the
# others grew by at most that part of what its own grew by.
LEAST_SHARE, MOST_OF_OTHERS = 0.75, 0.25
# It takes at least this many times as long as the others, by so many standard errors.
LEAST_LONGER, LEAST_STANDARD_ERRORS = 1.1, 4.0


@dataclass(frozen=True, slots=True)
class SlowMember(Written):
    """A member whose requests alone are slow. Mean run times in seconds."""

    description = "the only worker, device or node whose requests became slower"

    kind: Annotated[str, choice(("worker", "device", "node")), "worker, device or node."]
    name: str
    place: Annotated[str, "node or device of a slow worker, when no other worker is on it"]
    run_s: Annotated[float, "mean run time there"]
    others_run_s: Annotated[float, "mean run time elsewhere"]
    evidence: Annotated[tuple[str, ...], "resources there whose use differs from elsewhere"] = ()

    @property
    def sentence(self) -> str:
        """The sentence about it that follows a cause."""
        where = f" ({self.place})" if self.place else ""
        summary = (
            f"only one {self.kind} is slow, {self.name}{where}: "
            f"{seconds_text(self.run_s)} a request, {seconds_text(self.others_run_s)} elsewhere"
        )
        return "; ".join([summary, *self.evidence])

    @property
    def remedy(self) -> str:
        """What to try."""
        return f"look at what is different about this {self.kind}, and measure without it"


def slow_member(before: RequestTime, after: RequestTime) -> SlowMember | None:
    """Return the worker, else device, else node, that got slower alone; None without one."""
    run_times_before_s = [cycle.reply.run_s for cycle in before.cycles if cycle.ok]
    usual_s = statistics.fmean(run_times_before_s) if run_times_before_s else 0.0
    # repeats have workers of their own, so the first one stands for all
    first_repeat = min((cycle.repeat for cycle in after.cycles), default=0)
    for kind in ("worker", "device", "node"):
        run_times: dict[str, list[float]] = defaultdict(list)
        for cycle in after.cycles:
            name = getattr(cycle.reply, kind)
            if cycle.ok and name and (kind != "worker" or cycle.repeat == first_repeat):
                run_times[name].append(cycle.reply.run_s)
        if len(run_times) < 2:
            continue
        added_s = {name: sum(times) - len(times) * usual_s for name, times in run_times.items()}
        slowest = max(added_s, key=lambda name: added_s[name])
        own = run_times.pop(slowest)
        others = list(itertools.chain.from_iterable(run_times.values()))
        brings_most = added_s[slowest] >= LEAST_SHARE * sum(added_s.values())
        if brings_most and _is_slow_alone(own, others, usual_s):
            place = _place(slowest, after.cycles) if kind == "worker" else ""
            return SlowMember(kind, slowest, place, statistics.fmean(own), statistics.fmean(others))
    return None


def _is_slow_alone(own: Sequence[float], others: Sequence[float], usual_s: float) -> bool:
    """Return whether run times grew, and those of the others hardly did. usual_s: before that."""
    if min(len(own), len(others)) < 2:
        return False
    own_s, others_s = statistics.fmean(own), statistics.fmean(others)
    grown_s = own_s - usual_s
    if grown_s <= 0 or others_s - usual_s > MOST_OF_OTHERS * grown_s:
        return False
    error_s = math.hypot(
        *(statistics.stdev(times) / math.sqrt(len(times)) for times in (own, others))
    )
    return own_s > LEAST_LONGER * others_s and own_s - others_s > LEAST_STANDARD_ERRORS * error_s


def _place(worker: str, cycles: Sequence[Cycle]) -> str:
    """Return the node and the device of a worker, where no other worker is on it."""
    own = next(cycle.reply for cycle in cycles if cycle.reply.worker == worker)
    places = []
    for kind in ("node", "device"):
        name = getattr(own, kind)
        shared = any(
            getattr(cycle.reply, kind) == name and cycle.reply.worker != worker for cycle in cycles
        )
        if name and not shared:
            places.append(f"{kind} {name}")
    return ", ".join(places)
