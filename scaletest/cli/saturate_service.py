"""scaletest saturate --service: a Service of the cluster as what is loaded; what is known of it is
shown first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaletest.cli.saturate_target import Target, call, over_http
from scaletest.model.errors import UsageError

if TYPE_CHECKING:
    from scaletest.analysis.saturation.step import Assessed
    from scaletest.cluster.connection import Cluster
    from scaletest.cluster.deployment import Deployment
    from scaletest.cluster.service import AutoscalerHold, Service
    from scaletest.model.saturation import SaturationPlan

logger = logging.getLogger("scaletest.saturation")
IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def target(given: dict[str, Any], plan: SaturationPlan) -> Target:
    """Look at the Service, refuse while something scales it, change nothing yet."""
    from scaletest.cluster import tuning_backup
    from scaletest.cluster.connection import connect
    from scaletest.cluster.service import Service

    cluster = connect(given["namespace"], given["context"])
    service = Service(cluster, given["service"])
    deployment = service.deployment()
    ready, total = service.endpoints()
    lines = [
        f"service {service.reference.name}: {service.url()}, {ready} of {total} addresses are ready"
    ]
    if not ready:
        raise UsageError(
            f"no pod of service {service.reference.name} is ready", hint="look at its pods"
        )
    held = None
    if deployment is not None:
        if not given["tune"]:
            tuning_backup.refuse(deployment.name, deployment.annotations)
        held, told = scalers(cluster, deployment, given)
        lines += [f"deployment {deployment.name}: {deployment.replicas()} replicas", *told]
    made = _reached(service, given, plan, lines)
    found = over_http(given, plan, made, tuple(lines))
    replicas = deployment.replicas() if deployment else 0
    after = _logs(deployment, given["log_pattern"]) if given["log_pattern"] else found.after
    return replace(found, enter=lambda stack: enter(stack, held), replicas=replicas, after=after)


def _logs(deployment: Deployment | None, pattern: str) -> Callable[[Assessed], list[str]]:
    """After the operating point: what each pod says it took, by its log."""
    from scaletest.analysis.saturation.pod_times import compiled, from_logs
    from scaletest.model.saturation import Phase

    compiled(pattern)
    if deployment is None:
        raise UsageError(
            "no single Deployment stands behind this Service", hint="--log-pattern needs one"
        )

    def after(found: Assessed) -> list[str]:
        if found.step.phase != Phase.OPERATE:
            return []
        rows = from_logs(deployment.logs(found.step.seconds + 1.0), pattern, found.latency.mean)
        return [str(one) for one in rows] or ["the logs of the pods hold no line of --log-pattern"]

    return after


def scalers(
    cluster: Cluster, deployment: Deployment, given: dict[str, Any]
) -> tuple[AutoscalerHold | None, list[str]]:
    """Who scales the Deployment. UsageError unless it may be held: two who change one thing measure
    each other.
    """
    from scaletest.cluster.service import AutoscalerHold

    held = AutoscalerHold(cluster, deployment)
    active = held.active()
    if not active:
        return None, ["autoscaler: none is active"]
    names = ", ".join(f"{one.kind} {one.name}" for one in active)
    if not given["pause_autoscalers"]:
        raise UsageError(
            f"{names} scales {deployment.name}: a saturation point of so many pods cannot be"
            " measured",
            hint="add --pause-autoscalers: it is held for the run and put back",
        )
    return held, [f"autoscaler: {names}, held for the run"]


def enter(stack: ExitStack, held: AutoscalerHold | None) -> None:
    """Hold the autoscalers until the stack is unwound."""
    if held is None:
        return

    def release() -> None:
        for line in held.release():
            logger.error("%s", line)

    # registered first: what was held half-way is put back too
    stack.callback(release)
    held.hold()


def _reached(
    service: Service, given: dict[str, Any], plan: SaturationPlan, lines: list[str]
) -> Any:
    """Inside the cluster straight, from outside through the API server, whose own ceiling is
    told.
    """
    if IN_CLUSTER.exists() or given["agent_jobs"]:
        return call(given, plan, service.url())
    url, headers, authority = service.proxied()
    if given["token_file"] or any(
        one.lower().startswith("authorization:") for one in given["headers"]
    ):
        raise UsageError(
            "the API server's proxy keeps the Authorization header for itself",
            hint=(
                "run agents in the cluster with --agent-jobs IMAGE, or kubectl port-forward and"
                " --url"
            ),
        )
    lines.append(
        "reached through the API server: its proxy adds latency and has a ceiling of its own"
    )
    made = call(given, plan, url, headers)
    return replace(made, ca_file=made.ca_file or authority)
