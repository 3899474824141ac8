"""A lifecycle is measured: the plan of its options, submitting, sampling, both at once, and the
deletion of what was submitted.
"""

from __future__ import annotations

import math
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from scaletest.cluster.answers import Busy
from scaletest.cluster.api_calls import Raw
from scaletest.cluster.bulk_objects import Objects
from scaletest.cluster.connection import Cluster, connect
from scaletest.cluster.pod_requests import quantity
from scaletest.cluster.resources import NODES
from scaletest.lifecycle import kinds
from scaletest.lifecycle.folder import LifecycleFolder, new_run
from scaletest.lifecycle.measure import submitting, templating
from scaletest.lifecycle.measure.sampling import ProgressReport, Sampler, steady
from scaletest.lifecycle.measure.submitting import Submitter, Tool
from scaletest.lifecycle.measure.templating import Workloads
from scaletest.lifecycle.stamps import LifecyclePlan
from scaletest.model.checks import cut
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.runs.environment import environment
from scaletest.runs.folder import LOCK, LOCKS, PLAN, SAMPLER_LOCK
from scaletest.runs.progress import Progress
from scaletest.runs.stopping import StopRequest, stopping

# Connections enough for all that is in flight.
CONNECTIONS = 300
# A thread that reads a watch waits so long for one that computes before it can stamp what arrived.
# With Python's own 5 ms half of all stamps are 5 ms late while a sample is written; with this one
# 0.7 ms.
SWITCH_S = 0.0005


@dataclass(frozen=True, slots=True)
class LifecycleWorkloadOptions:
    """The workloads that are submitted, and how fast. Times are in seconds."""

    workload_type: str
    num_workloads: int | None
    num_processes: int
    delay: float
    num_workers: int
    num_gpus: str | None
    pvc: bool
    image: str
    run_seconds: str | None
    template: Path | None
    until: str | None
    namespace: str
    context: str
    tool: str
    event_times: bool
    force: bool
    project: str


def plan_of(options: LifecycleWorkloadOptions, namespace: str) -> LifecyclePlan:
    """The plan of a new run. namespace: the kubeconfig's."""
    if options.num_workloads is None:
        raise UsageError("how many workloads is not said", hint="give <num_workloads> N")
    kind = kinds.find(options.workload_type)
    project = options.project or (kinds.DEFAULT_PROJECT if kind.runai else "")
    resource, _, gpus = (options.num_gpus or kind.gpus).rpartition("=")
    plan = LifecyclePlan(
        run=new_run(),
        workload_type=kind.name,
        count=options.num_workloads,
        namespace=options.namespace or (f"runai-{project}" if project else namespace),
        project=project,
        processes=options.num_processes,
        delay_s=options.delay,
        workers=options.num_workers,
        gpus=gpus,
        resource=resource or kinds.DEFAULT_RESOURCE,
        image=options.image,
        seconds=options.run_seconds or kind.seconds,
        pvc=options.pvc,
        until=options.until or kind.until,
        tool=options.tool,
        context=options.context,
        event_times=options.event_times,
        template=templating.text_of(kind.name, options.template),
        template_file=str(options.template or ""),
    )
    # what the template says its objects are; it may be of another kind of Run:ai
    workloads = Workloads(plan)
    own_name = f"runai-{workloads.kind.removesuffix('Workload').lower()}"
    if workloads.of_runai and own_name != kind.name and own_name in kinds.KINDS:
        raise UsageError(
            f"the template is a {workloads.kind} of Run:ai, not {options.workload_type}",
            hint=f"give <workload_type> {own_name}",
        )
    if options.template and not (kind.runai and workloads.of_runai):
        plan = replace(plan, workload_type="custom")
    return replace(plan, api_version=workloads.api_version, object_kind=workloads.kind)


def check_devices(plan: LifecyclePlan, cluster: Cluster) -> str:
    """Refuse pods that no node can hold: UsageError when none offers the devices of a pod.

    Returns a warning when the nodes may not be listed, else "".
    """
    wanted = Workloads(plan).devices()
    if not wanted:
        return ""
    offered: set[str] = set()
    try:
        for page in Raw(cluster).pages(NODES.path(""), "list nodes"):
            for node in page["items"]:
                amounts = node["status"].get("allocatable", {})
                offered |= {name for name in amounts if "/" in name and quantity(amounts[name])}
                if all(quantity(amounts.get(name, 0)) >= wanted[name] for name in wanted):
                    return ""
    except Busy:
        raise
    except ScaletestError as error:
        return f"whether nodes offer the devices is not known: {error.message}"
    names = " and ".join(f"{amount} {name}" for name, amount in wanted.items())
    raise UsageError(
        f"no node offers {cut(names, 200)}, which a pod asks for",
        hint=f"nodes offer {cut(', '.join(sorted(offered)) or 'no devices', 200)}: give <num_gpus>"
        " 0 or RESOURCE=N; <force> submits all the same, for nodes that come later",
    )


def continued(
    store: LifecycleFolder, options: LifecycleWorkloadOptions, typed: set[str]
) -> LifecyclePlan:
    """The stored plan with the pace that was typed. typed: names of options on the command line.

    UsageError when another typed option differs from it.
    """
    plan = store.plan()
    kind = kinds.find(options.workload_type).name
    gpus = plan.gpus if plan.resource == kinds.DEFAULT_RESOURCE else f"{plan.resource}={plan.gpus}"
    for name, value, stored in (
        ("context", options.context, plan.context),
        ("image", options.image, plan.image),
        ("namespace", options.namespace, plan.namespace),
        ("num_gpus", options.num_gpus, gpus),
        ("num_workers", options.num_workers, plan.workers),
        ("num_workloads", options.num_workloads, plan.count),
        ("project", options.project, plan.project),
        ("pvc", options.pvc, plan.pvc),
        ("run_seconds", options.run_seconds, plan.seconds),
        ("tool", options.tool, plan.tool),
        # a template's kind is not the type of workload
        ("workload_type", kind, kind if plan.template_file else plan.workload_type),
    ):
        if name in typed and value != stored:
            raise UsageError(
                f"{store.path} holds run {plan.run} with {name.replace('_', ' ')} {stored}, not"
                f" {value}",
                hint="give another <output_dir> for a new run, or leave the option out to go on",
            )
    return replace(
        plan,
        processes=options.num_processes if "num_processes" in typed else plan.processes,
        delay_s=options.delay if "delay" in typed else plan.delay_s,
    )


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
    with store.locked(SAMPLER_LOCK), stopping(stop, unwind=True):
        raw = Raw(connect(plan.namespace, plan.context), CONNECTIONS)
        sampler = Sampler(plan, store, raw, steady(), stop.asked, backend)
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
        sampler = Sampler(plan, store, Raw(cluster, CONNECTIONS), steady(), stop.asked)

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
    """Delete the run's objects; how many there were."""
    raw = Raw(connect(plan.namespace, plan.context), CONNECTIONS)
    return submitting.delete_all(plan, Objects(raw))


@contextmanager
def _submitter(
    plan: LifecyclePlan,
    store: LifecycleFolder,
    cluster: Cluster,
    labels: Labels,
    *locks: str,
) -> Iterator[tuple[Submitter, StopRequest]]:
    """Who submits the plan, and what ends that, while we hold these locks of the folder."""
    stop = StopRequest()
    with stopping(stop, unwind=True):
        tool = _tool(plan, Raw(cluster, CONNECTIONS), stop)
        fresh = not store.exists
        store.make()
        with store.locked(*locks):
            if fresh:
                store.begin(plan, environment(sys.argv), labels)
            submitter = Submitter(
                plan,
                store,
                tool,
                steady(),
                fresh=fresh,
                stopping=stop.asked,
                pause=stop.wake.wait,
            )
            yield submitter, stop


def _tool(plan: LifecyclePlan, raw: Raw, stop: StopRequest) -> Tool:
    """Submits the plan's workloads. Raises without namespace, kind or program."""
    objects = Objects(
        raw, manager=f"scaletest-{plan.run}", sleep=stop.wake.wait, stopping=stop.asked
    )
    objects.check_namespace(plan.namespace)
    if plan.tool == "runai":
        return submitting.runai(plan)
    workloads = Workloads(plan)
    objects.resource(workloads.api_version, workloads.kind)
    if plan.tool == "kubectl":
        return submitting.kubectl(plan, workloads)
    return lambda name: objects.apply(workloads.make(name), plan.namespace)


@contextmanager
def attentive() -> Iterator[None]:
    """Let threads that stamp what arrives have their turn soon."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
