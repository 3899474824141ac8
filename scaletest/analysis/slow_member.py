"""One worker, device or node whose requests got slower alone: that looks like contention, and is none.

With N workers of which one takes longer, throughput lacks as if all shared something. What they share slows all of them
down, though, so a member is told apart when it brings most of the added run time and the others hardly any.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.cause_text import seconds_text
from scaletest.analysis.request_time import Cycle, RequestTime

# Its part of the run time that all requests together added, and what the others' run time grew by at most, of its own.
LEAST_PART = 0.75
MOST_OF_OTHERS = 0.25
# It takes so much longer than the others at least, and by so many standard errors.
LEAST_LONGER = 1.1
CERTAIN = 4.0


@dataclass(frozen=True, slots=True)
class SlowMember:
    """kind: worker, device or node. place: where a slow worker is, where nobody else is. Mean run times in seconds.

    evidence: what the resources there did, where that differs from elsewhere.
    """

    kind: str
    name: str
    place: str
    run_s: float
    others_run_s: float
    evidence: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """How it is said behind a cause."""
        where = f" ({self.place})" if self.place else ""
        told = (
            f"only one {self.kind} is slow, {self.name}{where}: {seconds_text(self.run_s)} a request, "
            f"{seconds_text(self.others_run_s)} elsewhere"
        )
        return "; ".join([told, *self.evidence])

    @property
    def remedy(self) -> str:
        """What to try."""
        return f"look at what is different about this {self.kind}, and measure without it"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "evidence": list(self.evidence)}


def slow_member(before: RequestTime, after: RequestTime) -> SlowMember | None:
    """The one worker, else device, else node, that got slower alone; None where there is none."""
    base_s = _mean([cycle.reply.run_s for cycle in before.cycles])
    for kind in ("worker", "device", "node"):
        members = _members(kind, after)
        name = _slow(members, base_s) if len(members) > 1 else ""
        if name:
            others = [run_s for other, times in members.items() if other != name for run_s in times]
            place = _place(name, after.cycles) if kind == "worker" else ""
            return SlowMember(kind, name, place, _mean(members[name]), _mean(others))
    return None


def _members(kind: str, time: RequestTime) -> dict[str, list[float]]:
    """Run times by member. Every repeat has workers of its own, so those of the first stand for all."""
    first = min((cycle.repeat for cycle in time.cycles), default=0)
    members: dict[str, list[float]] = defaultdict(list)
    for cycle in time.cycles:
        name = getattr(cycle.reply, kind)
        if name and (kind != "worker" or cycle.repeat == first):
            members[name].append(cycle.reply.run_s)
    return members


def _slow(members: Mapping[str, Sequence[float]], base_s: float) -> str:
    """The name of the member that added most of the run time while the others added hardly any; "" for none."""
    added = {name: sum(times) - len(times) * base_s for name, times in members.items()}
    name = max(added, key=lambda member: added[member])
    own, others = members[name], [run_s for other, times in members.items() if other != name for run_s in times]
    grown_s, others_grown_s = _mean(own) - base_s, _mean(others) - base_s
    alone = added[name] >= LEAST_PART * sum(added.values()) and others_grown_s <= MOST_OF_OTHERS * grown_s
    if grown_s <= 0 or not alone or min(len(own), len(others)) < 2:
        return ""
    error = math.hypot(*(statistics.stdev(times) / math.sqrt(len(times)) for times in (own, others)))
    longer = _mean(own) > LEAST_LONGER * _mean(others) and _mean(own) - _mean(others) > CERTAIN * error
    return name if longer else ""


def _place(worker: str, cycles: Sequence[Cycle]) -> str:
    """The node and the device of a worker, where no other worker is on it."""
    own = next(cycle.reply for cycle in cycles if cycle.reply.worker == worker)
    places = []
    for kind in ("node", "device"):
        name = getattr(own, kind)
        shared = any(getattr(cycle.reply, kind) == name and cycle.reply.worker != worker for cycle in cycles)
        if name and not shared:
            places.append(f"{kind} {name}")
    return ", ".join(places)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
