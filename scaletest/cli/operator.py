"""scaletest operator: run benchmarks that are Kubernetes objects."""

from __future__ import annotations

import logging

import click
import yaml

from scaletest import __version__
from scaletest.cli.headings import HeadedCommand, heading
from scaletest.cli.output import echo
from scaletest.cluster.connection import connect, groups
from scaletest.cluster.objects import Documents
from scaletest.kinds.document_schemas import definitions
from scaletest.kinds.registry import GROUP, kind_of
from scaletest.model.errors import Unreachable, UsageError


@click.command("operator", cls=HeadedCommand)
@heading("Kubernetes")
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
@heading("Server")
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), default=0, show_default=True, metavar="PORT",
    help="Serve metrics at this port; 0 serves none.",
)  # fmt: skip
@click.option(
    "--health-port", type=click.IntRange(0, 65535), default=0, show_default=True, metavar="PORT",
    help="Answer /healthz at this port; 0 answers nowhere.",
)  # fmt: skip
@heading("Kubernetes")
@click.option(
    "--account", multiple=True, metavar="KIND=NAME",
    help=("Run Validation or Lifecycle benchmarks that name no service account with this"
" one; the option may be repeated."),
)  # fmt: skip
@heading("Output")
@click.option(
    "--crds", is_flag=True, help="Print the CustomResourceDefinitions, and do nothing else."
)
def command(
    namespace: tuple[str, ...],
    image: str,
    metrics_port: int,
    health_port: int,
    account: tuple[str, ...],
    crds: bool,
) -> None:
    """Run the benchmarks and sets of a cluster. It may be killed at any moment, and goes on when it
    is back.

    \b
    scaletest operator --crds | kubectl apply --server-side -f -
    scaletest operator --namespace bench
    """
    if crds:
        echo(yaml.safe_dump_all(definitions(), sort_keys=False), nl=False)
        return
    try:
        from scaletest.operator.handlers import run
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{error.name} is not installed", hint="pip install 'scaletest[operator]'"
        ) from error

    cluster = connect()
    if GROUP not in groups(cluster):
        raise Unreachable(
            f"the cluster does not know {GROUP}",
            hint="scaletest operator --crds | kubectl apply --server-side -f -",
        )
    logging.getLogger("scaletest.operator").setLevel(logging.INFO)
    run(
        Documents(cluster),
        image,
        namespace,
        metrics_port,
        accounts=_accounts(account),
        health_port=health_port,
    )


def _accounts(settings: tuple[str, ...]) -> dict[str, str]:
    accounts = {}
    for setting in settings:
        kind, sign, name = setting.partition("=")
        if not sign or not name:
            raise UsageError(
                f"--account {setting!r} is no KIND=NAME",
                hint="write it as in --account Lifecycle=tester",
            )
        accounts[kind_of(kind).name] = name
    return accounts
