"""The options of scaletest saturate, where they come from, and the plan that they make.

Flags and environment variables come before a plan file (`saturate_file`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import click

from scaletest.cli.durations import DURATION
from scaletest.model.saturation import SaturationPlan

F = TypeVar("F", bound=Callable[..., object])


def _file(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Read the plan file before the other options take their defaults from it."""
    # a file may be the original tool's, and what reads that is not needed for --help
    from scaletest.cli import saturate_file

    if value:
        context.default_map = {
            **(context.default_map or {}),
            **saturate_file.read(value, context.command),
        }
    return value


def options(function: F) -> F:
    """Add all of them, in the order of the help."""
    for option in reversed((*TARGET, *LOAD, *SEARCH, *AGENTS, *TUNE, *OUTPUT)):
        function = option(function)
    return function


TARGET = (
    click.option(
        "-f",
        "--file",
        default="",
        metavar="PLAN",
        is_eager=True,
        callback=_file,
        expose_value=False,
        help="Take settings from a YAML or JSON file, also the original tool's; -: from stdin.",
    ),
    click.option("--url", default="", metavar="URL", help="Load this HTTP service."),
    click.option(
        "--service",
        default="",
        metavar="svc/NAME[:PORT][/PATH]",
        help="Load a Service of the cluster.",
    ),
    click.option("-n", "--namespace", default="", metavar="NAME", help="Namespace of the Service."),
    click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig."),
    click.option(
        "--pause-autoscalers",
        is_flag=True,
        help="Hold HPA or KEDA during the run, instead of refusing to run.",
    ),
    click.option("--queue", default="", metavar="Q", help="Load a queue of scaletest's workers."),
    click.option(
        "--redis-url",
        default="",
        envvar="SCALETEST_REDIS_URL",
        show_envvar=True,
        metavar="URL",
        help="The Redis of --queue and --agents.",
    ),
    click.option(
        "--method",
        default="",
        metavar="NAME",
        help="HTTP method. [default: GET, POST with a payload]",
    ),
    click.option(
        "--payload", default="", metavar="FILE", help="Body of every request, the same each time."
    ),
    click.option(
        "--payload-provider",
        default="",
        metavar="NAME[:ARG]",
        help="Bodies in turn: file, folder, lines, or a plug-in of the group scaletest.payloads.",
    ),
    click.option(
        "-H", "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="HTTP headers."
    ),
    click.option(
        "--token-file", default="", metavar="FILE", help="Send its content as bearer token."
    ),
    click.option(
        "--ca-file", default="", metavar="FILE", help="PEM file of the service's authority."
    ),
    click.option(
        "--client-name",
        default="scaletest",
        show_default=True,
        metavar="NAME",
        help="User-Agent, and name in the results.",
    ),
    click.option(
        "--http2",
        is_flag=True,
        help="HTTP/2 through httpx; one process reaches about a sixth of HTTP/1.1.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=DURATION,
        default=30.0,
        show_default=True,
        metavar="S",
        help="Time limit of every request.",
    ),
    click.option(
        "--retries",
        type=int,
        default=0,
        show_default=True,
        metavar="N",
        help="Further attempts of a failed request; each is recorded.",
    ),
    click.option(
        "--server-header",
        default="",
        metavar="NAME",
        help="Answer header with the service's own time, for the queueing share.",
    ),
    click.option(
        "--pod-header", default="", metavar="NAME", help="Answer header with the pod's name."
    ),
    click.option(
        "--log-pattern",
        default="",
        metavar="REGEX",
        help=(
            "With --service: the service's own time, in ms, as group 1 of a line of the pods' logs."
        ),
    ),
)

LOAD = (
    click.option(
        "--load",
        type=click.Choice(["open", "closed"]),
        default="open",
        show_default=True,
        help="open: a rate; closed: a number in flight.",
    ),
    click.option(
        "--mode",
        type=click.Choice(["search", "sweep"]),
        default="search",
        show_default=True,
        help="search: ramp, bisect, confirm; sweep: --start to --maximum by --increment.",
    ),
    click.option(
        "--poisson/--steady", default=True, show_default=True, help="Start at random, or evenly."
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of --poisson."
    ),
    click.option(
        "--start",
        type=float,
        default=0.0,
        metavar="X",
        help="First level: requests a second, or in flight. [default: found by the probe]",
    ),
    click.option("--maximum", type=float, default=0.0, metavar="X", help="Highest level."),
    click.option(
        "--factor",
        type=float,
        default=2.0,
        show_default=True,
        metavar="X",
        help="Factor between the levels of the ramp.",
    ),
    click.option(
        "--increment", type=float, default=0.0, metavar="X", help="Increment of a sweep or ramp."
    ),
    click.option(
        "--count",
        type=int,
        default=0,
        metavar="N",
        help="A step is N requests instead of --step-time.",
    ),
    click.option(
        "--step-time",
        "step_s",
        type=DURATION,
        default=10.0,
        show_default=True,
        metavar="S",
        help="Seconds of a step; more where ten requests in a row take longer.",
    ),
    click.option(
        "--warm",
        "warm_s",
        type=DURATION,
        default=2.0,
        show_default=True,
        metavar="S",
        help="Probe first with one request at a time, as in 3m; 0: a single call.",
    ),
    click.option(
        "--max-in-flight",
        type=int,
        default=1000,
        show_default=True,
        metavar="N",
        help="Most connections; further requests wait for one, and their latency includes that.",
    ),
)

SEARCH = (
    click.option(
        "--success",
        type=float,
        default=0.99,
        show_default=True,
        metavar="P",
        help="Part of the requests that must succeed.",
    ),
    click.option(
        "--latency-limit",
        "limit",
        default="",
        metavar="'p95<200ms'",
        help="Levels with a higher latency are saturated too.",
    ),
    click.option(
        "--precision",
        type=float,
        default=0.02,
        show_default=True,
        metavar="P",
        help="Relative width of the bracket at which the search ends.",
    ),
    click.option(
        "--most-steps",
        type=int,
        default=12,
        show_default=True,
        metavar="N",
        help="Most steps of the search, before it is confirmed.",
    ),
    click.option(
        "--confirm",
        type=int,
        default=2,
        show_default=True,
        metavar="N",
        help="Measure the bracket's ends again, up to N times, until most say the same.",
    ),
    click.option(
        "--repeats",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Measure every level of a sweep this often.",
    ),
    click.option(
        "--share",
        type=float,
        default=0.7,
        show_default=True,
        metavar="P",
        help="Operating point, as a part of the saturation point.",
    ),
    click.option(
        "--operate-time",
        "operate_s",
        type=DURATION,
        default=0.0,
        metavar="S",
        help="Seconds at the operating point. [default: two steps]",
    ),
    click.option(
        "--wanted",
        type=float,
        default=0.0,
        metavar="R",
        help="Requests a second that the service must sustain: FAIL below.",
    ),
)

AGENTS = (
    click.option(
        "--agents",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Send from N processes that begin together, and merge their samples.",
    ),
    click.option(
        "--agent-jobs",
        default="",
        metavar="IMAGE",
        help="Run the agents as a Job of this image in the cluster; they need --redis-url.",
    ),
    click.option(
        "--agent-cpu",
        default="1",
        show_default=True,
        metavar="CPU",
        help="CPU request of each pod of that Job, as in 500m; with too little, agents send late.",
    ),
    click.option("--agent", default="", hidden=True),
)

TUNE = (
    click.option(
        "--tune",
        "tune",
        multiple=True,
        metavar="NAME=V,V,...",
        help=(
            "Measure settings of the Deployment behind --service: cpu, memory, concurrency,"
            " replicas. May be repeated; all combinations are measured, the best for its cost is"
            " named, and the Deployment is restored."
        ),
    ),
    click.option(
        "--restore",
        is_flag=True,
        help=(
            "Restore the Deployment behind --service and its autoscaler after a "
            "run that was killed, and end."
        ),
    ),
    click.option(
        "--concurrency-env",
        default="",
        metavar="NAME",
        help="Variable that holds the pod's concurrency.",
    ),
    click.option(
        "--concurrency-arg",
        default="",
        metavar="NAME",
        help="Argument that holds the pod's concurrency, as in --workers.",
    ),
    click.option(
        "--container", default="", metavar="NAME", help="Container to tune. [default: the first]"
    ),
    click.option(
        "--ready-timeout",
        type=DURATION,
        default=120.0,
        show_default=True,
        metavar="S",
        help="Most seconds until pods are ready.",
    ),
)

OUTPUT = (
    click.option(
        "--sql",
        default="",
        metavar="FILE|URL",
        help="Also write samples to SQLite, or to PostgreSQL by URL.",
    ),
    click.option(
        "--original-csv",
        default="",
        metavar="DIR",
        help="Append history.csv, timing.csv and scaling.csv as the original tool does.",
    ),
    click.option(
        "--run-dir",
        default="",
        metavar="DIR",
        help="Where the run is kept. [default: the user's data]",
    ),
    click.option(
        "--no-causes",
        is_flag=True,
        help="Do not sample what this machine, and a service on it, do during the run.",
    ),
    click.option(
        "--progress",
        type=click.Choice(["auto", "plain"]),
        default="auto",
        show_default=True,
        help="Live line, or plain lines.",
    ),
    click.option(
        "--dry-run", is_flag=True, help="Print the plan and how long it takes, and do nothing."
    ),
    click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[URL | -- ARG...]"),
)


@dataclass(frozen=True, slots=True)
class PlanOptions(SaturationPlan):
    """The settings of a plan, of which `plan_of` makes one when the target is known."""

    target: str = field(default="", init=False)


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """A Service of the cluster as what is loaded."""

    service: str
    namespace: str
    context: str
    pause_autoscalers: bool
    log_pattern: str


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """What requests are over HTTP."""

    method: str
    payload: str
    payload_provider: str
    headers: tuple[str, ...]
    token_file: str
    ca_file: str
    http2: bool
    server_header: str
    pod_header: str


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Where load agents run, whose number is the plan's; `agent` is the name of one that shall be
    served.
    """

    agent_jobs: str
    agent_cpu: str
    agent: str


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """Settings of the Deployment that are measured, and where its pods have them."""

    tune: tuple[str, ...]
    concurrency_env: str
    concurrency_arg: str
    container: str


@dataclass(frozen=True, slots=True)
class SaturateOptions:
    """All options of scaletest saturate."""

    url: str
    cluster: ServiceOptions
    queue: str
    redis_url: str
    http: HttpOptions
    plan: PlanOptions
    agents: AgentOptions
    tuning: TuneOptions
    restore: bool
    ready_timeout: float
    sql: str
    original_csv: str
    run_dir: str
    no_causes: bool
    progress: str
    dry_run: bool
    arguments: tuple[str, ...]
    output: str
