"""Measure a lifecycle: submit, sample, do both at once, and delete what was submitted."""

import math
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from scaletest.cluster.api_calls import ApiCalls
from scaletest.cluster.bulk_objects import Objects
from scaletest.cluster.connection import Cluster, connect_cluster
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.measure import submit_tools
from scaletest.lifecycle.measure.sampling import ProgressReport, Sampler, steady_clock
from scaletest.lifecycle.measure.submitting import Submitter
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.model.errors import ScaletestError
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.runs.environment import read_environment
from scaletest.runs.folder import LOCK, LOCKS, PLAN, SAMPLER_LOCK
from scaletest.runs.progress import Progress
from scaletest.runs.stopping import StopRequest, stop_on_signals

# Connections enough for all that is in flight.
CONNECTIONS = 300
# A thread that reads a watch waits so long for one that computes before it can stamp what arrived.
# With Python's own 5 ms half of all stamps are 5 ms late while a sample is written; with this one
# 0.7 ms.
SWITCH_S = 0.0005


def submit(
    plan: LifecyclePlan, store: LifecycleFolder, cluster: Cluster
) -> tuple[Counter[bool], bool]:
    """Carry the plan out; how many were accepted, and not, and whether that was interrupted."""
    with _submitter(plan, store, cluster, UNLABELLED, LOCK) as (submitter, stop):
        submitter.run()
    return submitter.done, stop.asked()


def sample(
    plan: LifecyclePlan,
    store: LifecycleFolder,
    progress: Progress,
    backend: dict[str, float] | None = None,
    *,
    once: bool = False,
) -> None:
    """Sample the run until every workload is done. once: list, and do not watch."""
    stop = StopRequest()
    with store.locked(SAMPLER_LOCK), stop_on_signals(stop, unwind=True):
        sampler = Sampler(
            plan,
            store,
            ApiCalls(connect_cluster(plan.namespace, plan.context), CONNECTIONS),
            steady_clock(),
            stop.asked,
            backend,
        )
        with progress.of_run(store, plan.workload), attentive():
            sampler.follow(math.inf, ProgressReport(progress).tell, once=once)


def measure(
    plan: LifecyclePlan,
    store: LifecycleFolder,
    cluster: Cluster,
    labels: Labels,
    timeout_s: float,
    progress: Progress,
) -> bool:
    """Submit and sample at once; whether that was interrupted.

    The submitter is in a thread of its own, which waits for the watches; the sampler in this one.
    Nothing is submitted that nobody watches: when the time is up, submitting ends too.
    """
    failure: list[BaseException] = []
    with (
        _submitter(plan, store, cluster, labels, *LOCKS) as (submitter, stop),
        progress.of_run(store, plan.workload),
    ):
        store.write(PLAN, plan.to_dict())
        sampler = Sampler(plan, store, ApiCalls(cluster, CONNECTIONS), steady_clock(), stop.asked)

        def work() -> None:
            try:
                sampler.watching.wait()
                if not stop.asked():
                    submitter.run()
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=work, name="submitter")
        thread.start()
        try:
            with attentive():
                sampler.follow(timeout_s, ProgressReport(progress).tell, submitting=thread.is_alive)
        finally:
            interrupted = stop.asked()
            stop("the end of the time")
            sampler.watching.set()
            thread.join()
    if failure and not (isinstance(failure[0], ScaletestError) and failure[0].exit_code == 3):
        raise failure[0]
    return interrupted


def delete_all(plan: LifecyclePlan) -> int:
    """Delete the run's objects; how many there were. Raises Refused, Unreachable."""
    return delete_objects(
        plan, Objects(ApiCalls(connect_cluster(plan.namespace, plan.context), CONNECTIONS))
    )


def delete_objects(plan: LifecyclePlan, objects: Objects) -> int:
    """Delete the run's objects by its label, or by name where the tool set no label."""
    resource = objects.resource(plan.api_version, plan.object_kind)
    labelled = plan.tool != "runai"
    names = objects.list_names(resource, plan.namespace, plan.label if labelled else "")
    if not labelled:
        present = set(names)
        names = [name for name in plan.names() if name in present]
    objects.delete(resource, plan.namespace, names)
    return len(names)


@contextmanager
def _submitter(
    plan: LifecyclePlan,
    store: LifecycleFolder,
    cluster: Cluster,
    labels: Labels,
    *locks: str,
) -> Iterator[tuple[Submitter, StopRequest]]:
    """Yield what submits the plan, and what ends that, while we hold these locks of the folder."""
    stop = StopRequest()
    with stop_on_signals(stop, unwind=True):
        objects = Objects(
            ApiCalls(cluster, CONNECTIONS),
            manager=f"scaletest-{plan.run}",
            sleep=stop.wake.wait,
            stopping=stop.asked,
        )
        objects.check_namespace(plan.namespace)
        tool = submit_tools.make_tool(plan, objects)
        fresh = not store.exists
        store.make()
        with store.locked(*locks):
            if fresh:
                store.begin(plan, read_environment(sys.argv), labels)
            yield (
                Submitter(
                    plan,
                    store,
                    tool,
                    steady_clock(),
                    fresh=fresh,
                    stopping=stop.asked,
                    pause=stop.wake.wait,
                ),
                stop,
            )


@contextmanager
def attentive() -> Iterator[None]:
    """Let threads that stamp what arrives have their turn soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
