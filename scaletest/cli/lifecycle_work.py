"""Shared by commands of `scaletest lifecycle`: cluster, submitter and sampler, and their end."""

from __future__ import annotations

import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from scaletest.analysis.lifecycle.books import LifecycleProgress
from scaletest.cli import lifecycle_options as own
from scaletest.cli.output import echo
from scaletest.cluster.connection import Cluster, connect
from scaletest.cluster.objects import Objects
from scaletest.cluster.raw import Raw
from scaletest.lifecycle import cleanup, tools
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.sampling import Sampler, steady
from scaletest.lifecycle.submitting import Submitter, Tool
from scaletest.model.errors import ScaletestError
from scaletest.report.lifecycle.progress import ProgressPrinter

CONNECTIONS = 300
# A thread that reads a watch waits so long for one that computes before it can stamp what arrived.
# With Python's own 5 ms half of all stamps are 5 ms late while a sample is written; with this one
# 0.7 ms.
SWITCH_S = 0.0005


def prepare(plan: LifecyclePlan, raw: Raw, context: str, stop: threading.Event) -> Tool:
    """The submitter of the plan's workloads. Raises without namespace, kind or program."""
    objects = Objects(raw, manager=f"scaletest-{plan.run}", stop=stop)
    objects.namespace(plan.namespace)
    if plan.tool == "runai":
        return tools.runai(plan)
    workloads = own.workloads_of(plan)
    objects.resource(workloads.api_version, workloads.kind)
    if plan.tool == "kubectl":
        return tools.kubectl(plan, workloads, context)
    return tools.Api(plan, objects, workloads)


def submit_all(
    plan: LifecyclePlan, store: LifecycleFolder, tool: Tool, stop: threading.Event, *, fresh: bool
) -> Counter[bool]:
    """Carry the plan out; how many were accepted, and not. fresh: the plan was made just now."""
    submitter = Submitter(plan, store, tool, steady(), fresh=fresh, stop=stop)
    submitter.run()
    return submitter.done


def follow(
    plan: LifecyclePlan,
    store: LifecycleFolder,
    context: str,
    stop: threading.Event,
    timeout_s: float,
    tell: Callable[[LifecycleProgress], None],
    backend: dict[str, float] | None = None,
    *,
    once: bool = False,
) -> bool:
    """Sample the run; whether every workload was done in time."""
    sampler = Sampler(plan, store, raw(connect(plan.namespace, context)), steady(), stop, backend)
    with attentive():
        return sampler.follow(timeout_s, tell, once=once)


def run_all(
    plan: LifecyclePlan,
    store: LifecycleFolder,
    tool: Tool,
    raw: Raw,
    timeout_s: float,
    stop: threading.Event,
    tell: Callable[[LifecycleProgress], None],
    *,
    fresh: bool,
) -> bool:
    """The submitter in a thread of its own, which waits for the watches; the sampler in this one.

    Nothing is submitted that nobody watches: when the time is up, submitting ends too. Whether
    `stop` was set before.
    """
    failure: list[BaseException] = []
    sampler = Sampler(plan, store, raw, steady(), stop)

    def work() -> None:
        try:
            sampler.watching.wait()
            if not stop.is_set():
                submit_all(plan, store, tool, stop, fresh=fresh)
        except BaseException as error:
            failure.append(error)

    submitter = threading.Thread(target=work, name="submitter")
    submitter.start()
    try:
        with attentive():
            sampler.follow(timeout_s, tell, submitting=submitter.is_alive)
    finally:
        interrupted = stop.is_set()
        stop.set()
        sampler.watching.set()
        submitter.join()
    if failure and not (isinstance(failure[0], ScaletestError) and failure[0].exit_code == 3):
        raise failure[0]
    return interrupted


def delete_all(plan: LifecyclePlan, context: str) -> int:
    """Delete the run's objects; how many there were."""
    return cleanup.delete_all(plan, Objects(raw(connect(plan.namespace, context))))


def raw(cluster: Cluster) -> Raw:
    """Connections enough for all that is in flight."""
    return Raw(cluster, CONNECTIONS)


@contextmanager
def attentive() -> Iterator[None]:
    """Let threads that stamp what arrives have their turn soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM once: end in order, and keep what there is. Twice: end now."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise SystemExit(128 + number)
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def telling() -> Iterator[Callable[[LifecycleProgress], None]]:
    """Live progress: one line that changes on a terminal, else one every ten seconds."""
    teller = ProgressPrinter()
    try:
        yield teller.tell
    finally:
        teller.close()


def say(line: str) -> None:
    """To standard error."""
    echo(line, err=True)
