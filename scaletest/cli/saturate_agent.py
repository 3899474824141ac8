"""Load agents of scaletest saturate: started as processes of this machine or as a Job, and what
each of them does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scaletest.model.errors import AgentLost, UsageError

if TYPE_CHECKING:
    from scaletest.load.http_call import HttpCall
    from scaletest.load.level_load import LevelLoad
    from scaletest.load.payloads import Payloads
    from scaletest.model.saturation import SaturationPlan

END_S = 15.0
HINT = "run it again; a signal 9 that nobody sent is the kernel's, which was out of memory"


def together(
    given: dict[str, Any], plan: SaturationPlan, wanted: dict[str, Any], stack: ExitStack
) -> LevelLoad:
    """The agents as one load. wanted: what each of them does. They end with the stack, even when we
    are killed.
    """
    from scaletest.broker import EmbeddedServer, connect
    from scaletest.broker.rendezvous import Rendezvous
    from scaletest.saturation.agents import AgentsLoad

    url = given["redis_url"] or stack.enter_context(EmbeddedServer()).url
    redis = connect(url)
    stack.callback(redis.close)
    rendezvous = Rendezvous(redis, uuid.uuid4().hex[:12])
    rendezvous.open(wanted)
    stack.callback(rendezvous.close)
    start = _jobs if given["agent_jobs"] else _processes
    check = start(given, plan, rendezvous.name, url, stack)
    load = AgentsLoad(rendezvous, plan.agents, check)
    load.wait(given["ready_timeout"])
    return load


def serve(given: dict[str, Any]) -> int:
    """Be an agent."""
    from scaletest.broker import connect
    from scaletest.broker.rendezvous import Rendezvous
    from scaletest.load.http import HttpLoad
    from scaletest.saturation import agents
    from scaletest.system.effort import raise_open_files

    def make(wanted: dict[str, Any], name: str) -> LevelLoad:
        if "queue" in wanted:
            return queue_load(given["redis_url"], wanted, name)
        call, payloads = agents.understood(wanted)
        raise_open_files(call.connections + 64)
        return HttpLoad(call, payloads, agent=name)

    if not given["redis_url"]:
        raise UsageError(
            "an agent needs the Redis of its coordinator", hint="set SCALETEST_REDIS_URL"
        )
    redis = connect(given["redis_url"])
    try:
        agents.serve(Rendezvous(redis, given["agent"]), make)
    finally:
        redis.close()
    return 0


def over_http(call: HttpCall, payloads: Payloads, agents: int) -> dict[str, Any]:
    """What each of so many agents does to a service: the same, with its part of the connections."""
    from dataclasses import replace

    from scaletest.saturation.agents import described

    return described(replace(call, connections=max(1, -(-call.connections // agents))), payloads)


def queue_load(url: str, wanted: dict[str, Any], agent: str = "") -> LevelLoad:
    """The load of a queue, with a client of its own in each step."""
    from scaletest.broker import Client, connect
    from scaletest.saturation.queue import QueueLoad

    def client() -> Client:
        return Client(connect(url), patience_s=60.0)

    options = {**wanted, "arguments": tuple(wanted["arguments"])}
    return QueueLoad(client, agent=agent, **options)


def _processes(
    given: dict[str, Any], plan: SaturationPlan, name: str, url: str, stack: ExitStack
) -> Any:
    """Agents on this machine. Gives what raises when one of them ended by itself."""
    from scaletest.system.guard import Guard

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
        for _ in range(plan.agents)
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


def _jobs(
    given: dict[str, Any], plan: SaturationPlan, name: str, url: str, stack: ExitStack
) -> Any:
    """Agents as the pods of a Job, which is deleted with the stack."""
    from scaletest.cluster.connection import connect
    from scaletest.cluster.jobs import AgentJob

    cluster = connect(given["namespace"], given["context"])
    job = AgentJob(cluster, name, given["agent_jobs"], plan.agents, url, given["agent_cpu"])
    stack.callback(job.delete)
    job.create()
    return job.check
