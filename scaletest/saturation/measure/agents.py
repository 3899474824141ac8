"""Several load agents as one load: a step is divided, begun together, and its samples are merged.

Percentiles come from all samples. Intended starts are dealt in turn, so all agents together follow
exactly the pace of a single one. Agents are processes of this machine, or the pods of a Job.
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import structs

from scaletest.broker import Client, EmbeddedServer, connect
from scaletest.broker.connection import REDIS_ERRORS
from scaletest.broker.rendezvous import Rendezvous
from scaletest.cluster import connection
from scaletest.cluster.jobs import AgentJob
from scaletest.load.http import HttpLoad
from scaletest.load.http_call import HttpCall
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult
from scaletest.load.payloads import Payloads
from scaletest.model.attempt import Attempt
from scaletest.model.errors import AgentLost, ScaletestError, Unreachable, UsageError, WaitTimeout
from scaletest.observe.control_groups import raise_open_files
from scaletest.processes.children import Guard, end_all, python_module
from scaletest.runs.environment import WITHOUT_SETTINGS
from scaletest.saturation.judging.forecast import HEAD_START_S
from scaletest.saturation.measure.loads import QueueLoad
from scaletest.saturation.options import AgentOptions
from scaletest.saturation.plan import SaturationPlan

JOIN_S = 60.0
LATE_S = 30.0
LOOK_S = 0.05
END_S = 15.0
HINT = "run it again; a signal 9 that nobody sent is the kernel's, which was out of memory"


class AgentsLoad:
    """The load of all agents, for the coordinator. check: raises when an agent ended by itself."""

    def __init__(
        self,
        rendezvous: Rendezvous,
        agents: int,
        check: Callable[[], None] = lambda: None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rendezvous, self._agents, self._check = rendezvous, agents, check
        self._clock, self._sleep = clock, sleep
        self._number = 0

    def wait(self, patience_s: float = JOIN_S) -> None:
        """Wait until all agents have joined. Raises WaitTimeout."""
        deadline = self._clock() + patience_s
        while self._rendezvous.joined() < self._agents:
            self._check()
            if self._clock() > deadline:
                raise WaitTimeout(
                    f"{self._rendezvous.joined()} of {self._agents} agents came within"
                    f" {patience_s:.0f} s",
                    hint=(
                        "can they reach the Redis of <redis_url>? Is there room for the pods of"
                        " a Job? Look at their logs"
                    ),
                )
            self._sleep(LOOK_S)

    def measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        """See LevelLoad. Raises Unreachable when the Redis of the rendezvous is gone."""
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
        begin_s = self._clock() + self._rendezvous.offset_s() + HEAD_START_S
        self._rendezvous.order(
            [
                {**part, "number": self._number, "begin_s": begin_s}
                for part in _dealt(order, self._agents)
            ]
        )
        deadline = self._clock() + HEAD_START_S + LATE_S + order.patience_s
        deadline += order.seconds if not order.count else 86_400.0
        results: list[dict[str, Any]] = []
        while len(results) < self._agents:
            if stopping():
                self._rendezvous.stop()
            result = self._rendezvous.brought(self._number)
            if result is None:
                self._look()
                if self._clock() > deadline:
                    left = self._agents - len(results)
                    raise AgentLost(
                        f"{left} of {self._agents} agents did not bring their results",
                        hint="look whether they live",
                    )
                continue
            results.append(result)
            tell(sum(len(part["samples"]) for part in results), 0)
        return merged(results, self._agents)

    def _look(self) -> None:
        try:
            self._check()
        except AgentLost:
            self._rendezvous.alive()  # raises when agents ended because Redis is gone
            raise

    def close(self) -> None:
        """End the rendezvous; agents end by themselves."""
        self._rendezvous.close()


def _dealt(order: LoadOrder, agents: int) -> list[dict[str, Any]]:
    """The order of each agent: its part of the load."""
    whole: dict[str, Any] = {
        "seconds": math.inf if order.count else order.seconds,
        "patience_s": order.patience_s,
    }
    if order.pace is None:
        # an agent that keeps nothing in flight could not send its part of the count
        busy = min(agents, order.parallel)
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
    parts = [times[index::agents] for index in range(agents)]
    behind = order.most_behind / agents
    return [
        {**whole, "times": part, "count": order.count and len(part), "most_behind": behind}
        for part in parts
    ]


def _part(whole: int, agents: int, index: int) -> int:
    return whole // agents + (index < whole % agents)


def merged(results: Sequence[dict[str, Any]], agents: int) -> LoadResult:
    """All samples with distinct numbers; of each figure of the tester that of its worst agent."""
    samples = []
    for result in results:
        index, late_s = int(result["agent"]), max(0.0, float(result["late_s"]))
        for row in result["samples"]:
            sample = Attempt(*row)
            # under closed load nothing was due before the agent began
            due_s = sample.due_s if result["open"] else sample.due_s + late_s
            samples.append(
                structs.replace(
                    sample,
                    request=sample.request * agents + index,
                    due_s=due_s,
                    noticed_s=sample.noticed_s + late_s,
                    sent_s=sample.sent_s + late_s,
                    ended_s=sample.ended_s + late_s,
                )
            )
    return LoadResult(
        samples,
        max(float(result["seconds"]) for result in results),
        max(float(result["cpu"]) for result in results),
        max(float(result["beat_s"]) for result in results),
        max(float(result["throttled_s"]) for result in results),
        sum(int(result["unsent"]) for result in results),
        throttled_periods=max(float(result.get("throttled_periods", 0.0)) for result in results),
    )


@dataclass(frozen=True, slots=True)
class HttpWork:
    """What this process, or each agent, does to a service."""

    call: HttpCall
    bodies: list[bytes | None]

    def make_load(self, redis_url: str, agent: str = "") -> LevelLoad:
        """Make the load that does it. UsageError when it may not open so many connections."""
        # as many sockets as requests are in flight, and some for everything else
        sockets = self.call.connections + 64
        if raise_open_files(sockets) < sockets:
            raise UsageError(
                f"this process may not open {self.call.connections} connections",
                hint="raise ulimit -n, or give <max_in_flight>",
            )
        return HttpLoad(self.call, Payloads(self.bodies), agent=agent)


@dataclass(frozen=True, slots=True)
class QueueWork:
    """What this process, or each agent, does to a queue."""

    queue: str
    arguments: tuple[str, ...]
    time_limit_s: float
    maximum: int

    def make_load(self, redis_url: str, agent: str = "") -> LevelLoad:
        """Make the load that does it, with a client of its own in each step."""

        def client() -> Client:
            return Client(connect(redis_url), patience_s=60.0)

        return QueueLoad(
            client,
            self.queue,
            arguments=self.arguments,
            time_limit_s=self.time_limit_s,
            maximum=self.maximum,
            agent=agent,
        )


Work = HttpWork | QueueWork


def serve(
    rendezvous: Rendezvous,
    make: Callable[[dict[str, Any], str], LevelLoad],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Follow orders as an agent until the rendezvous ends; returns how many there were.

    make: creates the load from the plan and the agent's name.
    """
    plan = rendezvous.plan()
    index, done = rendezvous.join(), 0
    with closing(make(plan, str(index + 1))) as load:
        while True:
            order = rendezvous.next_order(index)
            try:
                if order is not None:
                    _follow(rendezvous, load, order, index, clock, sleep)
                    done += 1
                elif not rendezvous.alive():
                    return done
            except ScaletestError:
                if not rendezvous.alive():
                    return done
                raise


def _follow(
    rendezvous: Rendezvous,
    load: LevelLoad,
    order: dict[str, Any],
    index: int,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    offset_s = rendezvous.offset_s()
    sleep(max(0.0, order["begin_s"] - offset_s - clock()))
    late_s = clock() + offset_s - order["begin_s"]
    pace = iter(order["times"]) if "times" in order else None
    mine = LoadOrder(
        order["seconds"],
        parallel=order.get("parallel", 0),
        pace=pace,
        count=order["count"],
        most_behind=order.get("most_behind", float("inf")),
        patience_s=order["patience_s"],
    )
    # a loop that keeps nothing in flight need not run: it would only poll for its end
    idle = (pace is None and not mine.parallel) or (math.isinf(mine.seconds) and not mine.count)
    result = (
        LoadResult([], 1e-6, 0.0, 0.0, 0.0, 0)
        if idle
        else load.measure(mine, rendezvous.stopped, lambda *_: None)
    )
    rendezvous.bring(
        order["number"],
        {
            "agent": index,
            "open": pace is not None,
            "late_s": late_s,
            "samples": [structs.astuple(sample) for sample in result.samples],
            "seconds": result.seconds,
            "cpu": result.cpu,
            "beat_s": result.beat_s,
            "throttled_s": result.throttled_s,
            "throttled_periods": result.throttled_periods,
            "unsent": result.unsent,
        },
    )


def start_load(
    options: AgentOptions, plan: SaturationPlan, work: Work, stack: ExitStack
) -> LevelLoad:
    """Make the load of this process, or start agents and take them as one.

    Agents end with the stack, even when we are killed.
    """
    if plan.agents == 1 and not options.agent_jobs:
        return work.make_load(options.redis_url)
    url = options.redis_url or stack.enter_context(EmbeddedServer()).url
    redis = stack.enter_context(closing(connect(url)))
    rendezvous = stack.enter_context(closing(Rendezvous(redis, uuid.uuid4().hex[:12])))
    rendezvous.open(msgspec.to_builtins(work))
    start = _start_job if options.agent_jobs else _start_processes
    check = start(options, plan.agents, rendezvous.name, url, stack)
    load = AgentsLoad(rendezvous, plan.agents, check)
    load.wait(options.ready_timeout)
    return load


def be_agent(redis_url: str, name: str) -> None:
    """Be an agent of the rendezvous of that name until its coordinator needs it no more."""

    def make(wanted: dict[str, Any], agent: str) -> LevelLoad:
        kind: type[Work] = QueueWork if "queue" in wanted else HttpWork
        return msgspec.convert(wanted, kind).make_load(redis_url, agent)

    if not redis_url:
        raise UsageError(
            "an agent needs the Redis of its coordinator", hint="set SCALETEST_REDIS_URL"
        )
    with closing(connect(redis_url)) as redis:
        serve(Rendezvous(redis, name), make)


def _start_processes(
    options: AgentOptions, count: int, name: str, url: str, stack: ExitStack
) -> Callable[[], None]:
    """Agents on this machine. Gives what raises when one of them ended by itself."""
    guard = stack.enter_context(closing(Guard("KILL")))
    line = python_module("scaletest", "saturate", "--agent", name)
    environment = guard.environment({**os.environ, **WITHOUT_SETTINGS, "SCALETEST_REDIS_URL": url})
    started = [
        subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        for _ in range(count)
    ]
    stack.callback(end_all, started, END_S)

    def check() -> None:
        for process in started:
            if process.poll() is not None:
                raise AgentLost(_end_of(process.returncode), hint=HINT)

    return check


def _end_of(code: int) -> str:
    if code < 0:
        return f"an agent was ended by signal {-code}: one step without it says nothing"
    return f"an agent ended by itself with exit code {code}; its error stands above"


def _start_job(
    options: AgentOptions, count: int, name: str, url: str, stack: ExitStack
) -> Callable[[], None]:
    """Agents as the pods of a Job, which is deleted with the stack."""
    cluster = connection.connect(options.namespace, options.context)
    job = AgentJob(cluster, name, options.agent_jobs, count, url)
    stack.callback(job.delete)
    job.create()
    return job.check
