"""scaletest cluster check: what a validation would meet here, asked before one is tried."""

from __future__ import annotations

from typing import NamedTuple

import click

from scaletest.cli import options as shared
from scaletest.cli.output import echo
from scaletest.cluster import capacity, deployment, devices, discovery, rights, views
from scaletest.cluster.connection import Cluster, connect
from scaletest.cluster.rights import Right
from scaletest.model.visibility import visibility_gaps
from scaletest.render.text import clean


class _NodeRow(NamedTuple):
    """What the workers of a node can read to name causes. known: whether a worker's log says it."""

    node: str
    pod: str
    known: bool
    gaps: list[dict[str, str]]


class _RightRow(NamedTuple):
    """A right, whether we have it, and whether a validation needs it."""

    right: str
    allowed: bool
    needed: bool
    why: str


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
@shared.output
def check(namespace: str, context: str, deployment: str, output: str) -> int:
    """Say what a validation may do here, what the cluster has for autoscaling, and what stands in
    the way.

    \b
    scaletest cluster check -n scaletest

    Changes nothing. Exit code 7 when a right is missing without which nothing can be validated.
    """
    cluster = connect(namespace, context)
    served = discovery.groups(cluster)
    checked, lacking = _rights(cluster, discovery.KEDA in served)
    apis, allocation = discovery.metrics(cluster, served), served.get(discovery.ALLOCATION, "")
    quotas, nodes, warnings = _quotas(cluster), _causes(cluster), _warnings(cluster, deployment)
    version, has_keda = discovery.version(cluster), discovery.KEDA in served
    if output != "table":
        rights_shown = []
        for row in checked:
            rights_shown.append(
                {
                    "right": row.right,
                    "allowed": row.allowed,
                    "needed": row.needed,
                    "for": row.why,
                }
            )
        nodes_shown = None
        if nodes is not None:
            nodes_shown = [node._asdict() for node in nodes]
        document = {
            "namespace": cluster.namespace,
            "version": version,
            "rights": rights_shown,
            "apis": [api._asdict() for api in apis],
            "keda": has_keda,
            "dynamic_resource_allocation": allocation,
            "quotas": quotas,
            "causes": nodes_shown,
            "warnings": warnings,
        }
        shared.show(document, output)
    else:
        echo(f"Kubernetes {version}, namespace {cluster.namespace}")
        _show_rights(checked)
        echo("\nautoscaling and devices")
        for api in apis:
            echo(f"  {api.state:9} {api.group:26} {api.why}")
        echo(f"  {_available(has_keda):9} keda.sh")
        echo(f"  {_available(bool(allocation)):9} resource.k8s.io {allocation}")
        _show_quotas(quotas)
        _show_causes(nodes)
        for line in warnings:
            echo(f"\nwarning: {clean(line)}")
    if lacking:
        raise rights.refusal(lacking, cluster.namespace)
    return 0


def _rights(cluster: Cluster, keda: bool) -> tuple[list[_RightRow], list[Right]]:
    """A row for every right, and those that are needed and missing."""
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
        _RightRow(str(right), right not in lacking, right in needed, right.why)
        for right in needed + useful
    ]
    return rows, [right for right in lacking if right in needed]


def _quotas(cluster: Cluster) -> list[dict[str, str]] | None:
    """What every quota allows; None when we may not know."""
    if rights.missing(cluster, rights.QUOTA):
        return None
    rows = []
    for quota in capacity.quotas(cluster):
        used = quota.get("status", {}).get("used", {})
        for resource, hard in quota["spec"].get("hard", {}).items():
            rows.append(
                {
                    "quota": quota["metadata"]["name"],
                    "resource": resource,
                    "hard": hard,
                    "used": used.get(resource, "0"),
                }
            )
    return rows


def _causes(cluster: Cluster) -> list[_NodeRow] | None:
    """What the workers of each node can read for causes, and what is missing; None if unknown."""
    if rights.missing(cluster, rights.VIEWS):
        return None
    rows = []
    for node in views.views(cluster):
        gaps = visibility_gaps(node.view) if node.view else []
        rows.append(_NodeRow(node.node, node.pod, node.view is not None, gaps))
    return rows


def _warnings(cluster: Cluster, name: str) -> list[str]:
    """About what the Deployments ask for."""
    if name:
        templates = {name: deployment.Deployment(cluster, name).template}
    elif rights.missing(cluster, rights.LISTED):
        return ["the Deployments were not looked at: we may not list them; give --deployment NAME"]
    else:
        templates = deployment.templates(cluster)
    warnings = []
    for deployment_name, template in templates.items():
        warnings += devices.removed(f"deployment {deployment_name}", template["spec"])
    for deployment_name, template in templates.items():
        if views.without_causes(template["spec"]):
            warnings.append(
                f"deployment {deployment_name}: its workers have --no-causes, so no run names a"
                " cause"
            )
    return warnings


def _available(is_there: bool) -> str:
    return "available" if is_there else "absent"


def _show_rights(rows: list[_RightRow]) -> None:
    echo("\nrights")
    width = max(len(row.right) for row in rows)
    for row in rows:
        state = "yes"
        if not row.allowed:
            state = "MISSING" if row.needed else "no"
        echo(f"  {state:8} {row.right:{width}}  {row.why}")


def _show_quotas(quotas: list[dict[str, str]] | None) -> None:
    if quotas is None:
        echo("\nquotas: unknown, we may not list resourcequotas")
    for quota in quotas or ():
        echo("\nquota {quota}: {resource} {used} of {hard}".format_map(quota))


def _show_causes(nodes: list[_NodeRow] | None) -> None:
    if nodes is None:
        echo("\ncauses: unknown what the nodes show, we may not list pods or get pods/log")
        return
    if not nodes:
        echo(
            "\ncauses: unknown what the nodes show, since no worker runs; start one and look again"
        )
    for node in nodes:
        where = clean(f"causes: node {node.node}")
        if not node.known:
            echo(
                f"\n{where}: the log of {clean(node.pod)} does not say what it shows; start its"
                " pod again"
            )
        elif not node.gaps:
            echo(f"\n{where}: all can be read")
        else:
            echo(f"\n{where}: all can be read but")
        for gap in node.gaps:
            echo(clean("  {missing}: {effect}; {remedy}".format_map(gap)))
