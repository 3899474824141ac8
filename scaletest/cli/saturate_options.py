"""Options of scaletest saturate, the file that may hold them, and the plan that they make.

Flags and environment variables come before the plan file. The file's keys are the flags with
underscores, and its schema and its reader are made from the options, so that a key is described
once. The original tool's configuration file is understood too (`compat.article`). Every error names
the file, the key, what is wrong and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from scaletest.cli import complete
from scaletest.cli.options import DURATION, RATE, context, group, namespace, watch
from scaletest.compat import article
from scaletest.documents import reader
from scaletest.model.errors import UsageError
from scaletest.model.json_schema import Schema, check, closed, headed, known

NAME = "saturation-plan-file"
# What says where the file is, who reads it, or how something is shown is no setting of a run.
_NO_SETTINGS = ("file", "agent", "dry_run", "restore", "output", "form", "ui", "ui_listen")


def schema(command: click.Command) -> Schema:
    """JSON Schema of a plan file. Every key may be left out."""
    properties = {key: _schema(option) for key, option in settings(command).items()}
    schema = {
        **closed(properties, tuple(properties)),
        "description": "Settings of scaletest saturate -f.",
    }
    return headed(NAME, schema)


def settings(command: click.Command) -> dict[str, click.Parameter]:
    """The options by their keys: the flag's name with underscores."""
    return {_key(option): option for option in command.params if option.name not in _NO_SETTINGS}


def read(name: str, command: click.Command) -> dict[str, object]:
    """The settings of a plan file by the option's name; InvalidValue or UsageError names the key
    that is wrong.
    """
    label = "the plan on standard input" if name == "-" else name
    data = reader.read_file(name, label, f"give a plan file; see: config schema {NAME}")
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(
            f"{label} is no mapping of settings", hint="write KEY: VALUE, as in url: http://..."
        )
    if article.is_settings(data):
        data = article.settings(data)
    named = settings(command)
    return {
        str(named[known(key, named, label)].name): _value(named[key], value, f"{key} in {label}")
        for key, value in data.items()
    }


def _key(option: click.Parameter) -> str:
    if isinstance(option, click.Option):
        return max(option.opts, key=len).lstrip("-").replace("-", "_")
    return option.name or ""


def _many(option: click.Parameter) -> bool:
    return option.multiple if isinstance(option, click.Option) else option.nargs == -1


def _schema(option: click.Parameter) -> Schema:
    """Type, description and default of a key."""
    description = getattr(option, "help", None) or "arguments of the requests on a queue"
    kind = option.type
    if _many(option):
        types = ["string", "integer", "number"]
        return {
            "type": [*types, "array"],
            "items": {"type": types},
            "description": description,
        }
    if isinstance(kind, click.Choice):
        # its type is said too: that is what a value is checked for first
        return {
            "type": "string",
            "enum": list(kind.choices),
            "description": description,
            "default": option.default,
        }
    if isinstance(kind, click.types.BoolParamType):
        return {"type": "boolean", "description": description, "default": option.default is True}
    names: Mapping[object, str | list[str]] = {
        click.INT: "integer",
        click.FLOAT: "number",
        DURATION: ["number", "string"],
        RATE: ["number", "string"],
    }
    return {
        "type": names.get(kind, "string"),
        "description": description,
        "default": option.default,
    }


def _value(option: click.Parameter, value: object, label: str) -> object:
    """A value as click takes it. InvalidValue or UsageError unless it is of the key's type and can
    be read.
    """
    check(value, _schema(option), label)
    if _many(option):
        return list(map(str, value if isinstance(value, list) else [value]))
    try:
        option.type.convert(value, option, None)
    except (click.BadParameter, UsageError) as error:
        raise UsageError(
            f"{label}: {error.message}", hint=f"see: scaletest config schema {NAME}"
        ) from error
    return value


def _file(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Read the plan file before the other options take their defaults from it."""

    if value:
        context.default_map = {
            **(context.default_map or {}),
            **read(value, context.command),
        }
    return value


options = group(
    # the target
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
    namespace("Namespace of the Service."),
    context,
    click.option(
        "--pause-autoscalers",
        is_flag=True,
        help="Hold HPA or KEDA during the run, instead of refusing to run.",
    ),
    click.option(
        "--queue",
        shell_complete=complete.queues,
        default="",
        metavar="Q",
        help="Load a queue of scaletest's workers.",
    ),
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
        metavar="TIME",
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
    # the load
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
        metavar="TIME",
        help="Seconds of a step; more where ten requests in a row take longer.",
    ),
    click.option(
        "--warm",
        "warm_s",
        type=DURATION,
        default=2.0,
        show_default=True,
        metavar="TIME",
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
    # the search
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
        metavar="TIME",
        help="Seconds at the operating point. [default: two steps]",
    ),
    click.option(
        "--wanted",
        type=RATE,
        default=0.0,
        metavar="RATE",
        help="Requests, as in 500/s, that the service must sustain: FAIL below.",
    ),
    # load agents
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
    # tuning
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
        metavar="TIME",
        help="Most seconds until pods are ready.",
    ),
    # what is kept and shown
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
    watch,
    click.option(
        "--dry-run", is_flag=True, help="Print the plan and how long it takes, and do nothing."
    ),
    click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[URL | -- ARG...]"),
)
