"""Several load agents as one: a step is dealt out, begun together, and merged. Percentiles come
from all samples.

Intended starts are dealt in turn, so all agents together follow the very pace that one would have
followed.
"""

from __future__ import annotations

import base64
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from scaletest.analysis.saturation.forecast import HEAD_START_S
from scaletest.broker.connection import REDIS_ERRORS
from scaletest.broker.rendezvous import Rendezvous
from scaletest.load.http_call import HttpCall
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult
from scaletest.load.payloads import Payloads
from scaletest.model.attempt import Attempt
from scaletest.model.errors import AgentLost, ScaletestError, Unreachable, WaitTimeout

JOIN_S = 60.0
LATE_S = 30.0
LOOK_S = 0.05


class AgentsLoad:
    """The coordinator's side. check: raises when an agent ended by itself."""

    def __init__(
        self,
        meeting: Rendezvous,
        agents: int,
        check: Callable[[], None] = lambda: None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._meeting, self._agents, self._check = meeting, agents, check
        self._clock, self._sleep = clock, sleep
        self._number = 0

    def wait(self, patience_s: float = JOIN_S) -> None:
        """Until all agents have come. WaitTimeout otherwise."""
        deadline = self._clock() + patience_s
        while self._meeting.joined() < self._agents:
            self._check()
            if self._clock() > deadline:
                raise WaitTimeout(
                    f"{self._meeting.joined()} of {self._agents} agents came within"
                    f" {patience_s:.0f} s",
                    hint=(
                        "can they reach the Redis of --redis-url? Have pods room (--agent-cpu)?"
                        " Look at their logs"
                    ),
                )
            self._sleep(LOOK_S)

    def measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        """As LevelLoad says. Unreachable when the Redis in which they meet is gone."""
        try:
            return self._measure(order, stopping, tell)
        except REDIS_ERRORS as error:
            raise Unreachable(
                f"the Redis of the agents went away: {error}", hint="look whether it runs"
            ) from error

    def _measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        self._number += 1
        begin_s = self._clock() + self._meeting.offset_s() + HEAD_START_S
        self._meeting.order(
            [
                {**one, "number": self._number, "begin_s": begin_s}
                for one in _dealt(order, self._agents)
            ]
        )
        deadline = self._clock() + HEAD_START_S + LATE_S + order.patience_s
        deadline += order.seconds if not order.count else 86_400.0
        found: list[dict[str, Any]] = []
        while len(found) < self._agents:
            if stopping():
                self._meeting.stop()
            one = self._meeting.brought(self._number)
            if one is None:
                self._look()
                if self._clock() > deadline:
                    left = self._agents - len(found)
                    raise AgentLost(
                        f"{left} of {self._agents} agents did not bring their results",
                        hint="look whether they live",
                    )
                continue
            found.append(one)
            tell(sum(len(row["samples"]) for row in found), 0)
        return merged(found, self._agents)

    def _look(self) -> None:
        try:
            self._check()
        except AgentLost:
            self._meeting.alive()  # one that ended because Redis is gone is not what went wrong
            raise

    def close(self) -> None:
        """End the meeting; agents end by themselves."""
        self._meeting.close()


def _dealt(order: LoadOrder, agents: int) -> list[dict[str, Any]]:
    """The part of each agent."""
    whole: dict[str, Any] = {
        "seconds": None if order.count else order.seconds,
        "patience_s": order.patience_s,
    }
    if order.pace is None:
        busy = min(
            agents, order.parallel
        )  # who keeps nothing in flight cannot send its part of the count
        counts = [_part(order.count, busy, index) for index in range(busy)] + [0] * (agents - busy)
        return [
            {**whole, "parallel": _part(order.parallel, agents, index), "count": count}
            for index, count in enumerate(counts)
        ]
    times = list(
        itertools.takewhile(
            lambda at: at < order.seconds, itertools.islice(order.pace, order.count or None)
        )
    )
    behind = order.most_behind / agents
    return [
        {**whole, "times": times[index::agents], "most_behind": behind} for index in range(agents)
    ]


def _part(whole: int, agents: int, index: int) -> int:
    return whole // agents + (index < whole % agents)


def merged(found: Sequence[dict[str, Any]], agents: int) -> LoadResult:
    """All samples, numbered apart; the tester is as good as its worst agent."""
    samples = []
    for one in found:
        index, late_s = int(one["agent"]), max(0.0, float(one["late_s"]))
        for row in one["samples"]:
            sample = Attempt(*row)
            # under closed load nothing was due before the agent began
            due_s = sample.due_s if one["open"] else sample.due_s + late_s
            samples.append(
                sample._replace(
                    request=sample.request * agents + index,
                    due_s=due_s,
                    noticed_s=sample.noticed_s + late_s,
                    sent_s=sample.sent_s + late_s,
                    ended_s=sample.ended_s + late_s,
                )
            )
    return LoadResult(
        samples,
        max(float(one["seconds"]) for one in found),
        max(float(one["cpu"]) for one in found),
        max(float(one["beat_s"]) for one in found),
        max(float(one["throttled_s"]) for one in found),
        sum(int(one["unsent"]) for one in found),
        throttled_periods=max(float(one.get("throttled_periods", 0.0)) for one in found),
    )


def described(call: HttpCall, payloads: Payloads) -> dict[str, Any]:
    """Call and payloads for the plan that agents share. A queue is described as what QueueLoad
    takes.
    """
    bodies = [None if body is None else base64.b64encode(body).decode() for body in payloads.all()]
    return {"call": {**asdict(call), "headers": dict(call.headers)}, "bodies": bodies}


def understood(plan: dict[str, Any]) -> tuple[HttpCall, Payloads]:
    """What `described` wrote."""
    bodies = [None if body is None else base64.b64decode(body) for body in plan["bodies"]]
    return HttpCall(**plan["call"]), Payloads(bodies)


def serve(
    meeting: Rendezvous,
    make: Callable[[dict[str, Any], str], LevelLoad],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """The agent's side: follow orders until the meeting is over; how many there were. make: of the
    plan and a name.
    """
    plan = meeting.plan()
    index, done = meeting.join(), 0
    load = make(plan, str(index + 1))
    try:
        while True:
            order = meeting.next_order(index)
            if order is None:
                if not meeting.alive():
                    return done
                continue
            try:
                _follow(meeting, load, order, index, clock, sleep)
            except ScaletestError:
                if not meeting.alive():
                    return done
                raise
            done += 1
    finally:
        load.close()


def _follow(
    meeting: Rendezvous,
    load: LevelLoad,
    order: dict[str, Any],
    index: int,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    offset_s = meeting.offset_s()
    sleep(max(0.0, order["begin_s"] - offset_s - clock()))
    late_s = clock() + offset_s - order["begin_s"]
    pace = iter(order["times"]) if "times" in order else None
    mine = LoadOrder(
        order["seconds"] if order["seconds"] is not None else float("inf"),
        parallel=order.get("parallel", 0),
        pace=pace,
        count=order.get("count", 0)
        or (len(order["times"]) if pace is not None and order["seconds"] is None else 0),
        most_behind=order.get("most_behind", float("inf")),
        patience_s=order["patience_s"],
    )
    # a loop that is to keep nothing in flight need not run: it would look for its end all the time
    idle = (pace is None and not mine.parallel) or (order["seconds"] is None and not mine.count)
    found = (
        LoadResult([], 1e-6, 0.0, 0.0, 0.0, 0)
        if idle
        else load.measure(mine, meeting.stopped, lambda *_: None)
    )
    meeting.bring(
        order["number"],
        {
            "agent": index,
            "open": pace is not None,
            "late_s": late_s,
            "samples": [list(one) for one in found.samples],
            "seconds": found.seconds,
            "cpu": found.cpu,
            "beat_s": found.beat_s,
            "throttled_s": found.throttled_s,
            "throttled_periods": found.throttled_periods,
            "unsent": found.unsent,
        },
    )
