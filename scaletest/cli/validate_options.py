"""Options of scaletest validate that say where a run takes place, here or on Kubernetes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import click

from scaletest.model import Plan
from scaletest.model.errors import UsageError

F = TypeVar("F", bound=Callable[..., object])

# They say where a run takes place, which its plan does not hold: a resumed run needs them again.
NAMES = ("deployment", "namespace", "context", "client", "ready_timeout", "pause_autoscalers")


@dataclass(frozen=True, slots=True)
class DeploymentOptions:
    """Where on Kubernetes a run takes place; nowhere without a Deployment.

    client: svc/NAME[:PORT] or a URL; "" submits from here. ready_timeout: in seconds.
    """

    deployment: str
    namespace: str
    context: str
    client: str
    ready_timeout: float
    pause_autoscalers: bool


@dataclass(frozen=True, slots=True)
class ValidateOptions:
    """Where a validation runs, and how it is shown. Its other options are settings of the plan,
    which can also come from a file: `plans` reads them.
    """

    local: bool
    redis_url: str | None
    deployment: DeploymentOptions
    no_causes: bool
    device_metrics_url: str
    run_dir: str
    progress: str
    resume: str
    dry_run: bool
    output: str
    command: tuple[str, ...]


def deployment_options(function: F) -> F:
    """Add the options that say where on Kubernetes a run takes place."""
    for option in (
        click.option(
            "--pause-autoscalers",
            is_flag=True,
            help="Pause KEDA on the Deployment during the run, instead of refusing to run.",
        ),
        click.option(
            "--ready-timeout",
            type=float,
            default=120.0,
            show_default=True,
            metavar="S",
            help="Most seconds until the pods of a step are ready.",
        ),
        click.option(
            "--client",
            default="",
            metavar="svc/NAME[:PORT]|URL",
            help=(
                "Steer this scaletest client, a Service through the API server's proxy, or a URL. "
                "[default: submit from here, with --redis-url]"
            ),
        ),
        click.option(
            "--context",
            default="",
            metavar="NAME",
            help="Context of the kubeconfig. [default: the pod's cluster, or the current context]",
        ),
        click.option(
            "-n",
            "--namespace",
            default="",
            metavar="NAME",
            help="Namespace of Deployment and client. [default: the current one]",
        ),
        click.option(
            "--deployment",
            default="",
            metavar="NAME",
            help="Scale this Deployment of workers on Kubernetes.",
        ),
    ):
        function = option(function)
    return function


def refuse_local(plan: Plan) -> None:
    """UsageError for what only local workers can do."""
    if plan.per_device:
        raise UsageError(
            "--per-device is for local workers: the pods of a Deployment share devices as its"
            " template says",
            hint=(
                "set extraArguments: [--per-device, K] in the queue's values, validate, and compare"
                " the runs for every K with: scaletest compare"
            ),
        )
    if plan.background or plan.device_glob or plan.preset or plan.command:
        raise UsageError(
            "a command, --device-glob and background queues are for local workers",
            hint=(
                "the Deployment says what its workers run: set it there, in the values of the chart"
            ),
        )
