"""The start of a load: of this process, or of agents here or in the pods of a Job."""

import os
import subprocess
import uuid
from collections.abc import Callable
from contextlib import ExitStack, closing

import msgspec

from scaletest.broker import EmbeddedServer, connect
from scaletest.broker.rendezvous import Rendezvous
from scaletest.cluster import connection
from scaletest.cluster.jobs import AgentJob
from scaletest.load.level_load import LevelLoad
from scaletest.model.errors import AgentLost
from scaletest.processes.children import end_all, python_module
from scaletest.processes.guard import Guard
from scaletest.runs.environment import WITHOUT_SETTINGS
from scaletest.saturation.measure.agents_load import AgentsLoad
from scaletest.saturation.measure.work import Work
from scaletest.saturation.options import AgentOptions
from scaletest.saturation.plan import SaturationPlan

# Seconds that agents have to end.
END_S = 15.0
HINT = "run it again; a signal 9 that nobody sent is the kernel's, which was out of memory"


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


def _start_processes(
    options: AgentOptions, count: int, name: str, url: str, stack: ExitStack
) -> Callable[[], None]:
    """Start agents on this machine; return what raises when one of them ended by itself."""
    guard = stack.enter_context(closing(Guard("KILL")))
    line = python_module("scaletest", "saturate", "--agent", name)
    environment = guard.environment({**os.environ, **WITHOUT_SETTINGS, "SCALETEST_REDIS_URL": url})
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
    stack.callback(end_all, processes, END_S)

    def check() -> None:
        for process in processes:
            if process.poll() is not None:
                code = process.returncode
                end = f"ended by itself with exit code {code}; its error stands above"
                if code < 0:
                    end = f"was ended by signal {-code}: one step without it says nothing"
                raise AgentLost(f"an agent {end}", hint=HINT)

    return check


def _start_job(
    options: AgentOptions, count: int, name: str, url: str, stack: ExitStack
) -> Callable[[], None]:
    """Start agents as the pods of a Job, which is deleted with the stack."""
    cluster = connection.connect(options.namespace, options.context)
    job = AgentJob(cluster, name, options.agent_jobs, count, url)
    stack.callback(job.delete)
    job.create()
    return job.check
