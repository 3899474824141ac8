"""Load agents are started as processes of this machine or as a Job; and what each of them does."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from scaletest.broker import Client, EmbeddedServer, connect
from scaletest.broker.rendezvous import Rendezvous
from scaletest.cluster import connection
from scaletest.cluster.jobs import AgentJob
from scaletest.load.http import HttpLoad
from scaletest.load.http_call import HttpCall
from scaletest.load.level_load import LevelLoad
from scaletest.load.payloads import Payloads
from scaletest.model.errors import AgentLost, UsageError
from scaletest.model.saturation import SaturationPlan
from scaletest.saturation import agents
from scaletest.saturation.agents import AgentsLoad, described
from scaletest.saturation.loads import QueueLoad
from scaletest.saturation.options import AgentOptions
from scaletest.system.children import Guard
from scaletest.system.control_groups import raise_open_files

END_S = 15.0
HINT = "run it again; a signal 9 that nobody sent is the kernel's, which was out of memory"


def start_agents(
    options: AgentOptions, plan: SaturationPlan, work: dict[str, Any], stack: ExitStack
) -> LevelLoad:
    """The agents as one load. work: what each of them does. They end with the stack, even when we
    are killed.
    """
    url = options.redis_url or stack.enter_context(EmbeddedServer()).url
    redis = connect(url)
    stack.callback(redis.close)
    rendezvous = Rendezvous(redis, uuid.uuid4().hex[:12])
    rendezvous.open(work)
    stack.callback(rendezvous.close)
    start = _job if options.agent_jobs else _processes
    check = start(options, plan.agents, rendezvous.name, url, stack)
    load = AgentsLoad(rendezvous, plan.agents, check)
    load.wait(options.ready_timeout)
    return load


def serve(redis_url: str, name: str) -> None:
    """Be the agent of that name until its coordinator needs it no more."""

    def make(wanted: dict[str, Any], agent: str) -> LevelLoad:
        if "queue" in wanted:
            return queue_load(redis_url, wanted, agent)
        call, payloads = agents.understood(wanted)
        raise_open_files(call.connections + 64)
        return HttpLoad(call, payloads, agent=agent)

    if not redis_url:
        raise UsageError(
            "an agent needs the Redis of its coordinator", hint="set SCALETEST_REDIS_URL"
        )
    redis = connect(redis_url)
    try:
        agents.serve(Rendezvous(redis, name), make)
    finally:
        redis.close()


def http_work(call: HttpCall, payloads: Payloads, agents: int) -> dict[str, Any]:
    """What each of so many agents does to a service: the same, with its part of the connections."""
    return described(replace(call, connections=max(1, -(-call.connections // agents))), payloads)


def queue_load(url: str, wanted: dict[str, Any], agent: str = "") -> LevelLoad:
    """The load of a queue, with a client of its own in each step."""

    def client() -> Client:
        return Client(connect(url), patience_s=60.0)

    options = {**wanted, "arguments": tuple(wanted["arguments"])}
    return QueueLoad(client, agent=agent, **options)


def _processes(
    options: AgentOptions, count: int, name: str, url: str, stack: ExitStack
) -> Callable[[], None]:
    """Agents on this machine. Gives what raises when one of them ended by itself."""
    guard = Guard("KILL")
    stack.callback(guard.close)
    line = [sys.executable, "-m", "scaletest", "saturate", "--agent", name]
    environment = guard.environment({**os.environ, "SCALETEST_REDIS_URL": url})
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
    stack.callback(_end, started)

    def check() -> None:
        for process in started:
            if process.poll() is not None:
                raise AgentLost(_end_of(process.returncode), hint=HINT)

    return check


def _end_of(code: int) -> str:
    if code < 0:
        return f"an agent was ended by signal {-code}: one step without it says nothing"
    return f"an agent ended by itself with exit code {code}; its error stands above"


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    for process in started:
        process.terminate()
    for process in started:
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _job(
    options: AgentOptions, count: int, name: str, url: str, stack: ExitStack
) -> Callable[[], None]:
    """Agents as the pods of a Job, which is deleted with the stack."""
    cluster = connection.connect(options.namespace, options.context)
    job = AgentJob(cluster, name, options.agent_jobs, count, url, options.agent_cpu)
    stack.callback(job.delete)
    job.create()
    return job.check
