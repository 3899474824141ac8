"""scaletest saturate --service: a Service of the cluster as what is loaded; what is known of it is
shown first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from scaletest.analysis.saturation.pod_times import compiled, from_logs
from scaletest.analysis.saturation.step import Assessed
from scaletest.cli.saturate_http import Target, call, over_http
from scaletest.cli.saturate_options import SaturateOptions
from scaletest.cluster import tuning_backup
from scaletest.cluster.connection import Cluster, connect
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.service import AutoscalerHold, Service
from scaletest.load.http_call import HttpCall
from scaletest.model.errors import UsageError
from scaletest.model.saturation import Phase, SaturationPlan

logger = logging.getLogger("scaletest.saturation")
IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


def service_target(options: SaturateOptions, plan: SaturationPlan) -> Target:
    """Look at the Service, refuse while something scales it, change nothing yet."""
    cluster = connect(options.cluster.namespace, options.cluster.context)
    service = Service(cluster, options.cluster.service)
    deployment = service.deployment()
    ready, total = service.endpoints()
    lines = [
        f"service {service.reference.name}: {service.url()}, {ready} of {total} addresses are ready"
    ]
    if not ready:
        raise UsageError(
            f"no pod of service {service.reference.name} is ready", hint="look at its pods"
        )
    hold = None
    if deployment is not None:
        if not options.tuning.tune:
            tuning_backup.refuse(deployment.name, deployment.annotations)
        hold, notes = scalers(cluster, deployment, options.cluster.pause_autoscalers)
        lines += [f"deployment {deployment.name}: {deployment.replicas()} replicas", *notes]
    http_call = _reached(service, options, plan, lines)
    target = over_http(options, plan, http_call, tuple(lines))
    replicas = deployment.replicas() if deployment else 0
    pattern = options.cluster.log_pattern
    return replace(
        target,
        enter=lambda stack: enter(stack, hold),
        replicas=replicas,
        after=_logs(deployment, pattern) if pattern else target.after,
    )


def _logs(deployment: Deployment | None, pattern: str) -> Callable[[Assessed], list[str]]:
    """After the operating point: what each pod says it took, by its log."""
    compiled(pattern)
    if deployment is None:
        raise UsageError(
            "no single Deployment stands behind this Service", hint="--log-pattern needs one"
        )

    def after(assessed: Assessed) -> list[str]:
        if assessed.step.phase != Phase.OPERATE:
            return []
        rows = from_logs(
            deployment.logs(assessed.step.seconds + 1.0), pattern, assessed.latency.mean
        )
        return list(map(str, rows)) or ["the logs of the pods hold no line of --log-pattern"]

    return after


def scalers(
    cluster: Cluster, deployment: Deployment, may_pause: bool
) -> tuple[AutoscalerHold | None, list[str]]:
    """Who scales the Deployment. UsageError unless it may be held: two who change one thing measure
    each other.
    """
    hold = AutoscalerHold(cluster, deployment)
    active = hold.active()
    if not active:
        return None, ["autoscaler: none is active"]
    names = ", ".join(f"{scaler.kind} {scaler.name}" for scaler in active)
    if not may_pause:
        raise UsageError(
            f"{names} scales {deployment.name}: a saturation point of so many pods cannot be"
            " measured",
            hint="add --pause-autoscalers: it is held for the run and put back",
        )
    return hold, [f"autoscaler: {names}, held for the run"]


def enter(stack: ExitStack, hold: AutoscalerHold | None) -> None:
    """Hold the autoscalers until the stack is unwound."""
    if hold is None:
        return

    def release() -> None:
        for line in hold.release():
            logger.error("%s", line)

    # registered first: what was held half-way is put back too
    stack.callback(release)
    hold.hold()


def _reached(
    service: Service, options: SaturateOptions, plan: SaturationPlan, lines: list[str]
) -> HttpCall:
    """Inside the cluster straight, from outside through the API server, whose own ceiling is
    told.
    """
    if IN_CLUSTER.exists() or options.agents.agent_jobs:
        return call(options.http, plan, service.url())
    url, headers, authority = service.proxied()
    if options.http.token_file or any(
        header.lower().startswith("authorization:") for header in options.http.headers
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
    http_call = call(options.http, plan, url, headers)
    return replace(http_call, ca_file=http_call.ca_file or authority)
