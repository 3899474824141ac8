"""Options of scaletest validate for a service."""

import dataclasses
from dataclasses import dataclass

import click

from scaletest.cli import options as shared
from scaletest.cli.headings import join_options, under_heading
from scaletest.cli.request_options import requests
from scaletest.model.errors import UsageError
from scaletest.model.http_options import HttpOptions

options = join_options(
    under_heading("Target"),
    click.option(
        "--service",
        default="",
        metavar="URL|svc/NAME[:PORT]",
        help=(
            "Double the replicas of the service at this address, or of this Service of a Kubernetes"
            " cluster, and load it from here."
        ),
    ),
    click.option(
        "--set-replicas",
        default="",
        metavar="'COMMAND {n}'",
        help=(
            "Set the replicas of --service with this command, which ends when they are ready; {n}"
            " is their number."
        ),
    ),
    click.option(
        "--restore-replicas",
        type=click.IntRange(0, 100_000),
        default=1,
        show_default=True,
        metavar="N",
        help="Put back this number of replicas at the end, also when scaletest is killed.",
    ),
    click.option(
        "--list-replicas",
        default="",
        metavar="COMMAND",
        help=(
            "Command that prints the addresses of the replicas, one per line: their /metrics"
            " (vLLM's names) are read, and they are loaded directly where their shares are uneven."
        ),
    ),
    under_heading("Load"),
    click.option(
        "--in-flight",
        type=click.IntRange(1, 20_000),
        metavar="N",
        help=(
            "Keep N requests in flight for each replica of --service.  [default: where twice as"
            " many bring one replica no more]"
        ),
    ),
    requests,
    under_heading("Accuracy"),
    click.option(
        "--warm-limit",
        type=shared.DURATION,
        default="2m",
        show_default=True,
        metavar="TIME",
        help="Call the replicas of --service cold if their latency still changes after this time.",
    ),
    under_heading("Verdict"),
    click.option(
        "--latency-limit",
        default="",
        metavar="'p95<2s'",
        help="Require this latency of --service at every step, e.g. 'ttft.p95<500ms'.",
    ),
)


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What is said about a service and its load."""

    service: str
    set_replicas: str
    restore_replicas: int
    list_replicas: str
    in_flight: int | None
    warm_limit: float
    latency_limit: str
    timeout_s: float
    limit: int
    scale: float
    step_time: float
    repeats: int
    thresholds: tuple[str, ...]
    http: HttpOptions


# What says something about a service alone, what also says something about workers of a queue, and
# what is about the run.
OF_SERVICE = {
    *("service", "set_replicas", "restore_replicas", "list_replicas", "in_flight", "warm_limit"),
    *("latency_limit", "timeout_s", *(field.name for field in dataclasses.fields(HttpOptions))),
}
OF_BOTH = {
    *("limit", "scale", "step_time", "repeats", "thresholds"),
    *("deployment", "namespace", "context", "pause_autoscalers", "ready_timeout"),
}
OF_RUN = {
    *("run_dir", "name", "labels", "note", "output", "form", "dry_run"),
    *(field.name for field in dataclasses.fields(shared.WatchOptions)),
}


def refuse_without_effect(service: str) -> None:
    """UsageError for an option that would have no effect with, or without, --service."""
    if service:
        shared.refuse_beside(
            "--service",
            allowed=OF_SERVICE | OF_BOTH | OF_RUN,
            hint="leave it out: it is about workers of a queue",
        )
        return
    for parameter in click.get_current_context().command.params:
        if parameter.name in OF_SERVICE and shared.is_typed(parameter.name):
            raise UsageError(
                f"{max(parameter.opts, key=len)} is for a service", hint="give --service, too"
            )
