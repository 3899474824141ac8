"""scaletest cluster: what is done with Kubernetes from the command line."""

from __future__ import annotations

import signal
import threading
from itertools import chain

import click

from scaletest.broker.connection import connect, explained
from scaletest.broker.snapshot import snapshot
from scaletest.cli import options as shared
from scaletest.cli.clustercheck import check
from scaletest.cli.clusterdevices import list_devices
from scaletest.cli.output import echo
from scaletest.cluster.deletion import DeletionCosts, costs
from scaletest.cluster.pod_annotations import PodAnnotations
from scaletest.model import checks
from scaletest.model.errors import Unreachable


@click.group("cluster")
def command() -> None:
    """Work with a Kubernetes cluster."""


command.add_command(check)
command.add_command(list_devices)


@command.command("deletion-cost")
@shared.redis_url()
@click.option(
    "--namespace",
    default="",
    metavar="NAME",
    help="Namespace of the workers' pods. [default: the current one]",
)
@click.option(
    "--context",
    default="",
    metavar="NAME",
    help="Context of the kubeconfig. [default: the pod's cluster, or the current context]",
)
@click.option(
    "--interval",
    type=float,
    default=2.0,
    show_default=True,
    metavar="S",
    help="Seconds between two checks.",
)
@click.option(
    "--rate",
    type=float,
    default=10.0,
    show_default=True,
    metavar="N",
    help="Write to at most N pods a second.",
)
@click.option("--once", is_flag=True, help="Write once, for every worker, and exit.")
def deletion_cost(
    redis_url: str, namespace: str, context: str, interval: float, rate: float, once: bool
) -> None:
    """Let a Deployment that shrinks take idle workers first.

    Keeps controller.kubernetes.io/pod-deletion-cost of every worker's pod: 0 when idle, and the
    higher the longer its request runs. Workers must know their pod's name: in a pod that is the
    host name, else worker --pod-env. Needs the right to patch pods.
    """
    checks.seconds(interval, "interval", maximum=3600.0, zero=False)
    checks.number(rate, "rate", maximum=1e6)
    redis = connect(redis_url)
    keeper = DeletionCosts(PodAnnotations(namespace, context), float("inf") if once else rate)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    trouble = ""
    while not stop.is_set():
        try:
            with explained(redis_url):
                queues = snapshot(redis).queues
            written = keeper.update(costs(chain.from_iterable(queue.workers for queue in queues)))
            trouble = ""
        except Unreachable as error:
            if once or not error.message.startswith("Redis"):
                raise
            if not trouble:
                echo(f"warning: {error.message}; trying again", err=True)
            trouble = error.message
        if once:
            echo(f"{written} pods written")
            if keeper.left:
                raise Unreachable(
                    f"{keeper.left} pods could not be written", hint="try again later"
                )
            return
        stop.wait(interval)
