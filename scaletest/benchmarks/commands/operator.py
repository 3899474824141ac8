"""scaletest operator: run benchmarks that are Kubernetes objects."""

import logging

import click
import cloup
import yaml

from scaletest import __version__
from scaletest.benchmarks.documents import custom_resources, kube_perftest
from scaletest.benchmarks.kinds import GROUP
from scaletest.cli import headings, output
from scaletest.cluster import api_calls, discovery, objects
from scaletest.model.errors import Unreachable, UsageError

HELP = """
Run the benchmarks and sets of a cluster. It may be killed at any moment, and goes on when it
is back.

\b
scaletest operator --crds | kubectl apply --server-side -f -
scaletest operator --namespace bench
"""


@cloup.command("operator", help=HELP)
@headings.under_heading("Kubernetes")
@click.option(
    "-n",
    "--namespace",
    multiple=True,
    metavar="NAME",
    help="Watch only this namespace; the option may be repeated. [default: all]",
)
@click.option(
    "--image", default=f"scaletest-benchmarks:{__version__}", show_default=True, metavar="IMAGE",
    help="Run benchmarks that name no container image with this one.",
)  # fmt: skip
@headings.under_heading("Server")
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), default=0, show_default=True, metavar="PORT",
    help="Serve metrics at this port; 0 serves none.",
)  # fmt: skip
@click.option(
    "--health-port", type=click.IntRange(0, 65535), default=0, show_default=True, metavar="PORT",
    help="Answer /healthz at this port; 0 answers nowhere.",
)  # fmt: skip
@headings.under_heading("Kubernetes")
@click.option(
    "--pull-policy", type=click.Choice(["Always", "IfNotPresent", "Never"]),
    help="Use this pull policy for benchmarks that name none. [default: IfNotPresent]",
)  # fmt: skip
@click.option(
    "--scheduler", default="", metavar="NAME",
    help="Let this scheduler place the pods of benchmarks that name none. [default: the cluster's]",
)  # fmt: skip
@click.option(
    "--perftest-group", type=click.Choice(kube_perftest.GROUPS),
    help="Also serve kube-perftest's benchmarks of this API group, by converting them.",
)  # fmt: skip
@headings.under_heading("Output")
@click.option(
    "--crds", is_flag=True, help="Print the CustomResourceDefinitions, and do nothing else."
)
def command(
    *,
    namespace: tuple[str, ...],
    image: str,
    metrics_port: int,
    health_port: int,
    pull_policy: str | None,
    scheduler: str,
    perftest_group: str | None,
    crds: bool,
) -> None:
    """Run the operator, or print what must be installed before it."""
    if crds:
        output.echo(
            yaml.safe_dump_all(
                custom_resources.make_definitions(perftest_group or ""), sort_keys=False
            ),
            nl=False,
        )
        return
    try:
        from scaletest.benchmarks.operator.handlers import run
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{error.name} is not installed", hint="pip install 'scaletest[operator]'"
        ) from error

    # without the definitions there is nothing to watch
    cluster = api_calls.connect_cluster()
    options = f" --perftest-group {perftest_group}" if perftest_group else ""
    for group in filter(None, (GROUP, perftest_group)):
        if group not in discovery.api_groups(cluster):
            raise Unreachable(
                f"the cluster does not define {group}",
                hint=f"scaletest operator --crds{options} | kubectl apply --server-side -f -",
            )
    logging.getLogger("scaletest.benchmarks.operator").setLevel(logging.INFO)
    run(
        objects.ObjectClient(cluster),
        image,
        namespace,
        metrics_port,
        pod_fields={"image_pull_policy": pull_policy, "scheduler_name": scheduler},
        perftest_group=perftest_group or "",
        health_port=health_port,
    )
