"""One worker, device or node whose requests got slower alone: like contention, and none.

With N workers of which one takes longer, throughput falls as if all shared something. A shared
resource slows all of them down, though, so a member is slow by itself when it brings most of the
added run time and the others hardly any.
"""

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.causes.places import seconds_text
from scaletest.causes.request_time import Cycle, RequestTime
from scaletest.model.declared import choice
from scaletest.model.writing import Written

# At least this part of the run time that all requests added is its own, and the run time of the
# others grew by at most that part of what its own grew by.
LEAST_PART = 0.75
MOST_OF_OTHERS = 0.25
# It takes at least this many times as long as the others, by so many standard errors.
LEAST_LONGER = 1.1
CERTAIN = 4.0


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
    base_s = _mean([cycle.reply.run_s for cycle in before.cycles if cycle.ok])
    # repeats have workers of their own, so the first one stands for all
    first = min((cycle.repeat for cycle in after.cycles), default=0)
    for kind in ("worker", "device", "node"):
        members: dict[str, list[float]] = defaultdict(list)  # run times
        for cycle in after.cycles:
            member = getattr(cycle.reply, kind)
            if cycle.ok and member and (kind != "worker" or cycle.repeat == first):
                members[member].append(cycle.reply.run_s)
        name = _slow(members, base_s) if len(members) > 1 else ""
        if name:
            place = _place(name, after.cycles) if kind == "worker" else ""
            others_s = _mean(_others(members, name))
            return SlowMember(kind, name, place, _mean(members[name]), others_s)
    return None


def _slow(members: Mapping[str, Sequence[float]], base_s: float) -> str:
    """Return the member that added most of the run time while the others added hardly any.

    "" for none.
    """
    added = {name: sum(times) - len(times) * base_s for name, times in members.items()}
    name = max(added, key=lambda member: added[member])
    own, others = members[name], _others(members, name)
    grown_s, others_grown_s = _mean(own) - base_s, _mean(others) - base_s
    alone = (
        added[name] >= LEAST_PART * sum(added.values())
        and others_grown_s <= MOST_OF_OTHERS * grown_s
    )
    if grown_s <= 0 or not alone or min(len(own), len(others)) < 2:
        return ""
    error = math.hypot(
        *(statistics.stdev(times) / math.sqrt(len(times)) for times in (own, others))
    )
    longer = _mean(own) > LEAST_LONGER * _mean(others)
    return name if longer and _mean(own) - _mean(others) > CERTAIN * error else ""


def _others(members: Mapping[str, Sequence[float]], name: str) -> list[float]:
    """Return the run times of all members but one."""
    return list(
        itertools.chain.from_iterable(times for other, times in members.items() if other != name)
    )


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


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0
