"""What each load agent does: its work, and how it follows the orders of its coordinator."""

import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import structs

from scaletest.broker import Client, connect
from scaletest.broker.rendezvous import Rendezvous
from scaletest.load.http import HttpWork
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.saturation.measure.queue_load import QueueLoad

# Redis may be away this long before requests on a queue are given up.
CLIENT_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class QueueWork:
    """The requests of this process, or of each agent, on a queue."""

    queue: str
    arguments: tuple[str, ...]
    time_limit_s: float
    maximum: int  # requests in flight


Work = HttpWork | QueueWork


def make_load(work: Work, redis_url: str, agent: str = "") -> LevelLoad:
    """Make the load that does this work. agent: the name of this agent, "" without agents."""
    if isinstance(work, HttpWork):
        return work.make_load(agent)

    def client() -> Client:
        return Client(connect(redis_url), patience_s=CLIENT_PATIENCE_S)

    return QueueLoad(
        client,
        work.queue,
        arguments=work.arguments,
        time_limit_s=work.time_limit_s,
        maximum=work.maximum,
        agent=agent,
    )


def follow_orders(
    rendezvous: Rendezvous,
    make: Callable[[dict[str, Any], str], LevelLoad],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Follow orders as an agent until the rendezvous ends; return how many there were.

    make: creates the load from the plan and the agent's name.
    """
    plan = rendezvous.read_plan()
    index, followed = rendezvous.register_agent(), 0
    with closing(make(plan, str(index + 1))) as load:
        while True:
            order = rendezvous.wait_for_order(index)
            try:
                if order is not None:
                    _follow(rendezvous, load, order, index, clock=clock, sleep=sleep)
                    followed += 1
                elif not rendezvous.is_open():
                    return followed
            except ScaletestError:
                if not rendezvous.is_open():
                    return followed
                raise


def _follow(
    rendezvous: Rendezvous,
    load: LevelLoad,
    order: dict[str, Any],
    index: int,
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """Measure this agent's part of a step, and bring the result."""
    # all agents begin at one time of the rendezvous' clock
    offset_s = rendezvous.offset_s()
    sleep(max(0.0, order["begin_s"] - offset_s - clock()))
    late_s = clock() + offset_s - order["begin_s"]
    pace = iter(order["times"]) if "times" in order else None
    part = LoadOrder(
        order["seconds"],
        parallel=order.get("parallel", 0),
        pace=pace,
        count=order["count"],
        most_behind=order.get("most_behind", float("inf")),
        patience_s=order["patience_s"],
    )
    if (pace is None and not part.parallel) or (math.isinf(part.seconds) and not part.count):
        # a loop that keeps nothing in flight need not run: it would only poll for its end
        result = LoadResult([], seconds=1e-6, cpu=0.0, beat_s=0.0)
    else:
        result = load.measure(part, rendezvous.is_stop_requested, lambda *_: None)
    rendezvous.submit_result(
        order["number"],
        {
            "agent": index,
            "open": pace is not None,
            "late_s": late_s,
            "samples": [structs.astuple(sample) for sample in result.samples],
            "seconds": result.seconds,
            "cpu": result.cpu,
            "beat_s": result.beat_s,
            "throttled_periods": result.throttled_periods,
        },
    )


def run_agent(redis_url: str, name: str) -> None:
    """Be an agent of the rendezvous of that name until its coordinator needs it no more."""

    def make(work: dict[str, Any], agent: str) -> LevelLoad:
        kind: type[Work] = QueueWork if "queue" in work else HttpWork
        return make_load(msgspec.convert(work, kind), redis_url, agent)

    if not redis_url:
        raise UsageError(
            "an agent needs the Redis of its coordinator", hint="set SCALETEST_REDIS_URL"
        )
    with closing(connect(redis_url)) as redis:
        follow_orders(Rendezvous(redis, name), make)
