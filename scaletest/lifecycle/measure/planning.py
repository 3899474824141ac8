"""Make the plan of a new run from its options, or continue a stored one."""

import secrets
from dataclasses import replace

from scaletest.cluster.api_calls import ApiCalls, Busy, Cluster
from scaletest.cluster.pod_requests import parse_quantities
from scaletest.cluster.resources import NODES
from scaletest.lifecycle import kinds
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.measure import templating
from scaletest.lifecycle.measure.templating import Workloads
from scaletest.lifecycle.options import LifecycleWorkloadOptions
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.model.checks import cut_text
from scaletest.model.errors import ScaletestError, UsageError


def make_plan(options: LifecycleWorkloadOptions, namespace: str) -> LifecyclePlan:
    """Make the plan of a new run. namespace: the one of the kubeconfig."""
    if options.num_workloads is None:
        raise UsageError("the number of workloads is missing", hint="give <num_workloads> N")
    kind = kinds.find_kind(options.workload_type)
    project = options.project or (kinds.DEFAULT_PROJECT if kind.runai else "")
    resource, _, gpus = (options.num_gpus or kind.gpus).rpartition("=")
    plan = LifecyclePlan(
        run=secrets.token_hex(3),
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
    # the template says what its objects are, which may be of another kind of Run:ai than asked for
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
    """Check that a node offers the devices of a pod. Raises UsageError when none does.

    Returns a warning when the nodes may not be listed, else "".
    """
    devices = Workloads(plan).devices()
    if not devices:
        return ""
    offered: set[str] = set()
    try:
        for page in ApiCalls(cluster).pages(NODES.path(""), "list nodes"):
            for node in page["items"]:
                amounts = parse_quantities(node["status"].get("allocatable", {}))
                offered |= {name for name, amount in amounts.items() if "/" in name and amount}
                if all(amounts.get(name, 0) >= devices[name] for name in devices):
                    return ""
    except Busy:
        raise
    except ScaletestError as error:
        return f"unknown whether nodes offer the devices: {error.message}"
    wanted = " and ".join(f"{amount} {name}" for name, amount in devices.items())
    raise UsageError(
        f"no node offers {cut_text(wanted, 200)}, which a pod asks for",
        hint=f"nodes offer {cut_text(', '.join(sorted(offered)) or 'no devices', 200)}: give"
        " <num_gpus> 0 or RESOURCE=N; <force> submits all the same, for nodes that come later",
    )


def continue_plan(
    store: LifecycleFolder, options: LifecycleWorkloadOptions, typed: set[str]
) -> LifecyclePlan:
    """Return the stored plan with the pace that was typed.

    typed: names of the options on the command line. UsageError when one that is not the pace
    differs from the plan.
    """
    plan = store.plan()
    kind = kinds.find_kind(options.workload_type).name
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
                hint="give another <output_dir> for a new run, or leave the option out to resume",
            )
    return replace(
        plan,
        processes=options.num_processes if "num_processes" in typed else plan.processes,
        delay_s=options.delay if "delay" in typed else plan.delay_s,
    )
