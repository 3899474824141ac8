"""Start a load: that of this process, or of agents here or in a Job's pods, which act as one.

A step is divided, begun together, and its samples are merged. Percentiles come from all samples.
Intended starts are dealt in turn, so all agents together follow exactly the pace of a single one.
"""

import itertools
import math
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import Any

import msgspec
from msgspec import structs

from scaletest.broker import EmbeddedServer, connect
from scaletest.broker.redis_errors import REDIS_ERRORS
from scaletest.broker.rendezvous import Rendezvous
from scaletest.cluster import api_calls
from scaletest.cluster.jobs import AgentJob
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult, NoteProgress
from scaletest.model.attempt import Attempt
from scaletest.model.errors import AgentLost, Unreachable, WaitTimeout
from scaletest.processes.children import end_all, python_module
from scaletest.processes.guard import Guard
from scaletest.saturation.judging.forecast import HEAD_START_S
from scaletest.saturation.measure.agent import Work, make_load
from scaletest.saturation.options import SaturationOptions
from scaletest.saturation.plan import SaturationPlan

# Seconds that agents have to bring their results after a step, and to end.
RESULTS_LIMIT_S = 30.0
END_LIMIT_S = 15.0
# Between two looks whether they have come.
CHECK_EVERY_S = 0.05
HINT = "run it again; a signal 9 that nobody sent is the kernel's, which was out of memory"


def start_load(
    options: SaturationOptions, plan: SaturationPlan, work: Work, stack: ExitStack
) -> LevelLoad:
    """Make the load of this process, or start agents and take them as one.

    Agents end with the stack, even when we are killed.
    """
    if plan.agents == 1 and not options.agent_jobs:
        return make_load(work, options.redis_url)
    url = options.redis_url or stack.enter_context(EmbeddedServer()).url
    redis = stack.enter_context(closing(connect(url)))
    rendezvous = stack.enter_context(closing(Rendezvous(redis, uuid.uuid4().hex[:12])))
    rendezvous.publish_plan(msgspec.to_builtins(work))
    if options.agent_jobs:
        # the pods of a Job, which is deleted with the stack
        cluster = api_calls.connect_cluster(options.namespace, options.context)
        job = AgentJob(cluster, rendezvous.name, options.agent_jobs, plan.agents, url)
        stack.callback(job.delete)
        job.create()
        check = job.check
    else:
        check = _start_processes(plan.agents, rendezvous.name, url, stack)
    load = AgentsLoad(rendezvous, plan.agents, check)
    load.wait(options.ready_timeout)
    return load


def _start_processes(count: int, name: str, url: str, stack: ExitStack) -> Callable[[], None]:
    """Start agents on this machine; return what raises when one of them ended by itself."""
    guard = stack.enter_context(closing(Guard("KILL")))
    line = python_module("scaletest", "saturate", "--agent", name)
    environment = guard.environment({**os.environ, "SCALETEST_REDIS_URL": url})
    processes = [
        subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        for _ in range(count)
    ]
    stack.callback(end_all, processes, END_LIMIT_S)

    def check() -> None:
        for process in processes:
            if process.poll() is not None:
                code = process.returncode
                end = f"ended by itself with exit code {code}; its error is above"
                if code < 0:
                    end = f"was ended by signal {-code}: one step without it says nothing"
                raise AgentLost(f"an agent {end}", hint=HINT)

    return check


class AgentsLoad:
    """The load of all agents, for the coordinator."""

    def __init__(
        self,
        rendezvous: Rendezvous,
        agents: int,
        check: Callable[[], None] = lambda: None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take so many agents as one. check: raises when an agent ended by itself."""
        self._rendezvous, self._agents, self._check = rendezvous, agents, check
        self._clock, self._sleep = clock, sleep
        self._number = 0

    def wait(self, patience_s: float) -> None:
        """Wait until all agents have joined. Raises WaitTimeout."""
        deadline = self._clock() + patience_s
        while self._rendezvous.count_agents() < self._agents:
            self._check()
            if self._clock() > deadline:
                raise WaitTimeout(
                    f"{self._rendezvous.count_agents()} of {self._agents} agents joined within"
                    f" {patience_s:.0f} s",
                    hint=(
                        "can they reach the Redis of <redis_url>? Is there room for the pods of"
                        " a Job? Look at their logs"
                    ),
                )
            self._sleep(CHECK_EVERY_S)

    def measure(
        self,
        order: LoadOrder,
        stopping: Callable[[], bool],
        note_progress: NoteProgress,
    ) -> LoadResult:
        """Measure one step; see `LevelLoad.measure`. Unreachable when the agents' Redis is gone."""
        try:
            # give each agent its part
            self._number += 1
            begin_s = self._clock() + self._rendezvous.offset_s() + HEAD_START_S
            parts = _divide_order(order, self._agents)
            self._rendezvous.give_orders(
                [{**part, "number": self._number, "begin_s": begin_s} for part in parts]
            )
            # wait for all results
            deadline = self._clock() + HEAD_START_S + RESULTS_LIMIT_S + order.patience_s
            deadline += order.seconds if not order.count else 86_400.0
            results: list[dict[str, Any]] = []
            while len(results) < self._agents:
                if stopping():
                    self._rendezvous.request_stop()
                result = self._rendezvous.wait_for_result(self._number)
                if result is not None:
                    results.append(result)
                    note_progress(sum(len(part["samples"]) for part in results), 0)
                    continue
                try:
                    self._check()
                except AgentLost:
                    self._rendezvous.is_open()  # raises when agents ended because Redis is gone
                    raise
                if self._clock() > deadline:
                    left = self._agents - len(results)
                    raise AgentLost(
                        f"{left} of {self._agents} agents did not deliver their results",
                        hint="check that they are running",
                    )
        except REDIS_ERRORS as error:
            raise Unreachable(
                f"the Redis of the agents went away: {error}", hint="check that it is running"
            ) from error
        return merge_results(results, self._agents)

    def close(self) -> None:
        """End the rendezvous; agents end by themselves."""
        self._rendezvous.close()


def _divide_order(order: LoadOrder, agents: int) -> list[dict[str, Any]]:
    """Return the order of each agent: its part of the load."""
    common: dict[str, Any] = {
        "seconds": math.inf if order.count else order.seconds,
        "patience_s": order.patience_s,
    }
    if order.pace is None:
        # an agent that keeps nothing in flight could not send its part of the count
        busy = min(agents, order.parallel)
        return [
            {
                **common,
                "parallel": _share_of(order.parallel, agents, index),
                "count": _share_of(order.count, busy, index) if index < busy else 0,
            }
            for index in range(agents)
        ]
    # intended starts are dealt in turn
    times = list(
        itertools.takewhile(
            lambda due_s: due_s < order.seconds, itertools.islice(order.pace, order.count or None)
        )
    )
    return [
        {
            **common,
            "times": times[index::agents],
            "count": order.count and len(times[index::agents]),
            "most_behind": order.most_behind / agents,
        }
        for index in range(agents)
    ]


def _share_of(whole: int, agents: int, index: int) -> int:
    """Return the part of an agent; the first ones get what cannot be divided."""
    return whole // agents + (index < whole % agents)


def merge_results(results: Sequence[dict[str, Any]], agents: int) -> LoadResult:
    """Merge results: all samples, and of each figure of the tester that of its worst agent."""
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

    def worst(figure: str) -> float:
        return max(float(result[figure]) for result in results)

    return LoadResult(
        samples,
        worst("seconds"),
        worst("cpu"),
        worst("beat_s"),
        throttled_periods=worst("throttled_periods"),
    )
