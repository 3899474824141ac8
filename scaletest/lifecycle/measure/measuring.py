"""Submit and sample the workloads of a run, in one process or in two, and delete them."""

import math
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from scaletest.cluster.api_calls import ApiCalls, Cluster, connect_cluster
from scaletest.cluster.bulk_objects import Objects
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.measure.sampling import Sampler, show_progress, steady_clock
from scaletest.lifecycle.measure.submitting import AllRefused, Submitter, make_tool
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.runs.environment import read_environment
from scaletest.runs.folder import LOCK, LOCKS, PLAN, SAMPLER_LOCK
from scaletest.runs.progress import Progress
from scaletest.runs.stopping import StopRequest, stop_on_signals

# Connections enough for all that is in flight.
CONNECTIONS = 300


def submit(
    plan: LifecyclePlan, store: LifecycleFolder, cluster: Cluster
) -> tuple[Counter[bool], bool]:
    """Submit the workloads.

    Returns how many were accepted (True) and refused (False), and whether it was interrupted.
    """
    with _submitter(plan, store, cluster, UNLABELLED, LOCK) as (submitter, stop):
        submitter.run()
    return submitter.count_by_accepted, stop.asked()


def sample(
    plan: LifecyclePlan,
    store: LifecycleFolder,
    progress: Progress,
    backend: dict[str, float] | None = None,
    *,
    once: bool = False,
) -> None:
    """Sample the run until every workload is done. once: list, and do not watch.

    backend: when the control plane noted each workload, by name.
    """
    stop = StopRequest()
    with store.locked(SAMPLER_LOCK), stop_on_signals(stop, unwind=True):
        sampler = Sampler(
            plan,
            store,
            ApiCalls(connect_cluster(plan.namespace, plan.context), CONNECTIONS),
            steady_clock(),
            stopping=stop.asked,
            backend=backend,
        )
        with progress.of_run(store, plan.workload), short_switch_interval():
            sampler.follow(math.inf, partial(show_progress, progress), once=once)


def measure(
    plan: LifecyclePlan,
    store: LifecycleFolder,
    cluster: Cluster,
    labels: Labels,
    *,
    timeout_s: float,
    progress: Progress,
) -> bool:
    """Submit and sample at once, and return whether that was interrupted.

    The submitter is in a thread of its own, which waits for the watches; the sampler in this one.
    Nothing is submitted without being watched: when the time is up, submitting ends too.
    """
    failure: list[BaseException] = []
    with (
        _submitter(plan, store, cluster, labels, *LOCKS) as (submitter, stop),
        progress.of_run(store, plan.workload),
    ):
        store.write(PLAN, plan.to_dict())
        sampler = Sampler(
            plan, store, ApiCalls(cluster, CONNECTIONS), steady_clock(), stopping=stop.asked
        )

        def submit_when_watched() -> None:
            try:
                sampler.watching.wait()
                if not stop.asked():
                    submitter.run()
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=submit_when_watched, name="submitter")
        thread.start()
        try:
            with short_switch_interval():
                sampler.follow(
                    timeout_s, partial(show_progress, progress), submitting=thread.is_alive
                )
        finally:
            interrupted = stop.asked()
            stop("the end of the time")
            sampler.watching.set()
            thread.join()
    # that all were refused is the run's result, and no error of it
    if failure and not isinstance(failure[0], AllRefused):
        raise failure[0]
    return interrupted


def delete_all(plan: LifecyclePlan) -> int:
    """Delete the run's objects, and return how many there were. Raises Refused, Unreachable."""
    cluster = connect_cluster(plan.namespace, plan.context)
    return delete_objects(plan, Objects(ApiCalls(cluster, CONNECTIONS)))


def delete_objects(plan: LifecyclePlan, objects: Objects) -> int:
    """Delete the run's objects, and return how many there were."""
    resource = objects.resource(plan.api_version, plan.object_kind)
    if plan.tool == "runai":
        # its command line takes no labels, so only the names are ours
        present = set(objects.list_names(resource, plan.namespace, ""))
        names = [name for name in plan.names() if name in present]
    else:
        names = objects.list_names(resource, plan.namespace, plan.label)
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
    """Yield the submitter of a plan, and what stops it, while we hold these locks of the folder."""
    stop = StopRequest()
    with stop_on_signals(stop, unwind=True):
        objects = Objects(
            ApiCalls(cluster, CONNECTIONS),
            manager=f"scaletest-{plan.run}",
            sleep=stop.wake.wait,
            stopping=stop.asked,
        )
        objects.check_namespace(plan.namespace)
        tool = make_tool(plan, objects)
        is_new = not store.exists
        store.make()
        with store.locked(*locks):
            if is_new:
                store.begin(plan, read_environment(sys.argv), labels)
            submitter = Submitter(
                plan,
                store,
                tool,
                steady_clock(),
                fresh=is_new,
                stopping=stop.asked,
                pause=stop.wake.wait,
            )
            yield submitter, stop


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Let the threads that stamp what arrives have their turn sooner.

    Each waits so long for one that computes. With Python's own 5 ms half of all stamps are 5 ms
    late while a sample is written, with 0.5 ms 0.7.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
