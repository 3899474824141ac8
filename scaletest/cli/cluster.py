"""scaletest cluster: what a cluster allows, and putting back what a run changed."""

from collections.abc import Iterator

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli.output import Output, echo
from scaletest.cluster import hold_autoscalers, inventory, rights
from scaletest.cluster.api_calls import connect_cluster
from scaletest.model.errors import Unreachable
from scaletest.model.wording import as_options
from scaletest.render.text import clean_text


@cloup.group("cluster")
def command() -> None:
    """Work with a Kubernetes cluster."""


@command.command("check")
@shared.under_heading("Kubernetes")
@shared.namespace_option("Check rights in this namespace. [default: that of the kubeconfig]")
@shared.context
@shared.under_heading("Target")
@click.option(
    "--deployment",
    default="",
    metavar="NAME",
    help="Also check how many workers of this Deployment fit.",
)
@shared.under_heading("Output")
@shared.output()
def check(namespace: str, context: str, deployment: str, output: Output) -> int:
    """Check what a validation may do here, how many workers fit, and what stands in the way.

    \b
    scaletest cluster check -n scaletest --deployment scaletest-sleep-worker

    Without the right to list nodes and pods in the whole cluster, how many fit is unknown.

    Changes nothing. Exit code 7 when a right is missing without which nothing can be validated.
    """
    allowance = inventory.read_allowance(connect_cluster(namespace, context), deployment)
    output.show(allowance.to_dict(), allowance_lines(allowance))
    if allowance.lacking:
        raise rights.refusal(allowance.lacking, allowance.namespace)
    return 0


@command.command("restore")
@shared.under_heading("Kubernetes")
@shared.namespace_option("Look for the Deployment in this namespace. [default: the current one]")
@shared.context
@shared.under_heading("Target")
@click.option(
    "--deployment",
    required=True,
    metavar="NAME",
    help="Put back this Deployment and what scales it.",
)
def restore(namespace: str, context: str, deployment: str) -> None:
    """Put back what a run that was killed left changed.

    \b
    scaletest cluster restore -n scaletest --deployment scaletest-sleep-worker

    That is the number of pods, settings of saturate --tune, and autoscalers that are held. Each of
    these objects says in an annotation what it was. Not for a run that still goes on: it puts back
    everything itself.
    """
    remedies = hold_autoscalers.restore(connect_cluster(namespace, context), deployment)
    if not remedies:
        echo(f"deployment {deployment} and what scales it: there is nothing to put back")
    for title, remedy in remedies.items():
        echo(clean_text(f"{title}: {remedy or 'put back'}"))
    if any(remedies.values()):
        raise Unreachable("not everything could be put back", hint="see above")


def allowance_lines(allowance: inventory.ClusterAllowance) -> Iterator[str]:
    """Yield what the cluster allows, for people."""
    yield f"Kubernetes {allowance.version}, namespace {allowance.namespace}"
    yield "\nrights"
    width = max(len(row.right) for row in allowance.rights)
    for row in allowance.rights:
        answer = "MISSING" if row.needed else "no"
        if row.allowed:
            answer = "yes"
        yield f"  {answer:8} {row.right:{width}}  {as_options(row.why)}"
    # how many workers fit
    room = allowance.room
    if room is not None:
        where = f"\nroom: deployment {room.deployment}"
        if room.room is None:
            yield f"{where}: unknown how many workers fit"
        else:
            placed = f", {room.placed} of them placed already" if room.placed else ""
            yield f"{where}: {room.room} workers fit{placed}; limited by {room.limited_by}"
    for line in allowance.warnings:
        yield f"\nwarning: {clean_text(as_options(line))}"
