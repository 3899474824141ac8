"""scaletest cluster check: what a validation would meet here, asked before one is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import options
from scaletest.cli.output import echo

if TYPE_CHECKING:
    from scaletest.cluster.connection import Cluster
    from scaletest.cluster.rights import Right


@click.command("check")
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    help="Namespace of the workers. [default: the current one]",
)
@click.option(
    "--context",
    default="",
    metavar="NAME",
    help="Context of the kubeconfig. [default: the pod's cluster, or the current context]",
)
@click.option(
    "--deployment",
    default="",
    metavar="NAME",
    help="Check this Deployment. [default: all, if they may be listed]",
)
@options.output
def check(namespace: str, context: str, deployment: str, output: str) -> int:
    """Say what a validation may do here, what the cluster has for autoscaling, and what stands in
    the way.

    \b
    scaletest cluster check -n scaletest

    Changes nothing. Exit code 7 when a right is missing without which nothing can be validated.
    """
    from scaletest.cli.deployment import forbidden
    from scaletest.cluster import discovery
    from scaletest.cluster.connection import connect

    cluster = connect(namespace, context)
    served = discovery.groups(cluster)
    rows, lacking = _rights(cluster, discovery.KEDA in served)
    quotas, warnings = _quotas(cluster), _warnings(cluster, deployment)
    found = {
        "namespace": cluster.namespace,
        "version": discovery.version(cluster),
        "rights": rows,
        "apis": [one._asdict() for one in discovery.metrics(cluster, served)],
        "keda": discovery.KEDA in served,
        "dynamic_resource_allocation": served.get(discovery.ALLOCATION, ""),
        "quotas": quotas,
        "causes": _causes(cluster),
        "warnings": warnings,
    }
    if output == "table":
        _show(found)
    else:
        options.show(found, output)
    if lacking:
        raise forbidden(lacking, cluster.namespace)
    return 0


def _rights(cluster: Cluster, keda: bool) -> tuple[list[dict[str, Any]], list[Right]]:
    """A row for every right, and those that are needed and missing."""
    from scaletest.cluster import rights

    needed = (*rights.NEEDED, rights.PROXY, *((rights.KEDA, rights.PAUSE) if keda else ()))
    useful = (
        *rights.EXPLAIN,
        *rights.QUOTA,
        *rights.LISTED,
        *rights.CAPACITY,
        *rights.SLICES,
        *rights.CLASSES,
    )
    lacking = rights.missing(cluster, needed + useful)
    rows = [
        {"right": str(one), "allowed": one not in lacking, "needed": one in needed, "for": one.why}
        for one in needed + useful
    ]
    return rows, [one for one in lacking if one in needed]


def _quotas(cluster: Cluster) -> list[dict[str, str]] | None:
    """What every quota allows; None when we may not know."""
    from scaletest.cluster import capacity, rights

    if rights.missing(cluster, rights.QUOTA):
        return None
    return [
        {
            "quota": row["metadata"]["name"],
            "resource": key,
            "hard": hard,
            "used": used.get(key, "0"),
        }
        for row in capacity.quotas(cluster)
        for used in [row.get("status", {}).get("used", {})]
        for key, hard in row["spec"].get("hard", {}).items()
    ]


def _causes(cluster: Cluster) -> list[dict[str, Any]] | None:
    """What the workers of each node can read for causes, and what is missing; None if unknown."""
    from scaletest.cluster import rights, views
    from scaletest.model.visibility import visibility_gaps

    if rights.missing(cluster, rights.VIEWS):
        return None
    return [
        {
            "node": one.node,
            "pod": one.pod,
            "known": one.view is not None,
            "gaps": visibility_gaps(one.view) if one.view else [],
        }
        for one in views.views(cluster)
    ]


def _warnings(cluster: Cluster, name: str) -> list[str]:
    """About what the Deployments ask for."""
    from scaletest.cluster import deployment, devices, rights, views

    if name:
        templates = {name: deployment.Deployment(cluster, name).template}
    elif rights.missing(cluster, rights.LISTED):
        return ["the Deployments were not looked at: we may not list them; give --deployment NAME"]
    else:
        templates = deployment.templates(cluster)
    removed = [
        line
        for one, template in templates.items()
        for line in devices.removed(f"deployment {one}", template["spec"])
    ]
    silent = [one for one, template in templates.items() if views.without_causes(template["spec"])]
    return removed + [
        f"deployment {one}: its workers have --no-causes, so no run names a cause" for one in silent
    ]


def _show(found: dict[str, Any]) -> None:
    from scaletest.render.text import clean

    allocation = found["dynamic_resource_allocation"]
    echo(f"Kubernetes {found['version']}, namespace {found['namespace']}")
    echo("\nrights")
    width = max(len(row["right"]) for row in found["rights"])
    for row in found["rights"]:
        state = "yes" if row["allowed"] else "MISSING" if row["needed"] else "no"
        echo(f"  {state:8} {row['right']:{width}}  {row['for']}")
    echo("\nautoscaling and devices")
    for api in found["apis"]:
        echo(f"  {api['state']:9} {api['group']:26} {api['why']}")
    echo(f"  {'available' if found['keda'] else 'absent':9} keda.sh")
    echo(f"  {'available' if allocation else 'absent':9} resource.k8s.io {allocation}")
    if found["quotas"] is None:
        echo("\nquotas: unknown, we may not list resourcequotas")
    for row in found["quotas"] or ():
        echo(f"\nquota {row['quota']}: {row['resource']} {row['used']} of {row['hard']}")
    _show_causes(found["causes"])
    for line in found["warnings"]:
        echo(f"\nwarning: {clean(line)}")


def _show_causes(nodes: list[dict[str, Any]] | None) -> None:
    from scaletest.render.text import clean

    if nodes is None:
        echo("\ncauses: unknown what the nodes show, we may not list pods or get pods/log")
        return
    if not nodes:
        echo(
            "\ncauses: unknown what the nodes show, since no worker runs; start one and look again"
        )
    for row in nodes:
        where = clean(f"causes: node {row['node']}")
        if not row["known"]:
            echo(
                f"\n{where}: the log of {clean(row['pod'])} does not say what it shows; start its"
                " pod again"
            )
        elif not row["gaps"]:
            echo(f"\n{where}: all can be read")
        else:
            echo(f"\n{where}: all can be read but")
        for gap in row["gaps"]:
            echo(clean(f"  {gap['missing']}: {gap['effect']}; {gap['remedy']}"))
