"""scaletest saturate: what load a service or a queue can take."""

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli.headings import join_options, under_heading
from scaletest.cli.options import context, namespace_option, watch
from scaletest.cli.output import Output
from scaletest.cli.plan_settings import key_of
from scaletest.cli.quantity import DURATION, RATE
from scaletest.cli.request_options import requests
from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue, nearest_name
from scaletest.saturation.options import PlanOptions, SaturationOptions, make_plan

HELP = """\
Find the saturation point: raise the load until errors, latency or a growing backlog say so,
bisect, confirm.

\b
scaletest saturate http://127.0.0.1:8080/
scaletest saturate http://127.0.0.1:8080/score --payload request.json \\
  --latency-limit 'p95<200ms'
scaletest saturate --service svc/model:80/score -n serving --load closed
scaletest saturate --queue sleep --redis-url redis://127.0.0.1:6379/0 -- 0.1
scaletest saturate -f plan.yaml --wanted 500/s

Open load (default) raises a rate and measures from the intended start of each request; closed
load raises the number in flight. Afterwards the latency at 70 % of the saturation point is
measured.
"""

# What says where the file is, who reads it, or how something is shown is not a setting of a run.
NO_SETTINGS = frozenset(("file", "agent", "dry_run", "output", "form", "ui", "help_all"))


def read_plan_file(path: str, command: click.Command) -> dict[str, object]:
    """Return the settings of a plan file by their parameters' names, as click's default_map has.

    Its keys are options with underscores. InvalidValue for an unknown one.
    """
    # takes a while to import, and most calls have no such file
    from scaletest.documents import reader

    label = "the plan on standard input" if path == "-" else path
    form = "write one OPTION: VALUE per line, with underscores"
    settings = reader.read_file(path, label, form)
    if not isinstance(settings, dict):
        raise InvalidValue(f"{label}: expected settings", hint=form)
    parameters = {
        key_of(parameter): parameter
        for parameter in command.params
        if parameter.name not in NO_SETTINGS
    }
    defaults: dict[str, object] = {}
    for key, value in settings.items():
        parameter = parameters.get(str(key))
        if parameter is None:
            near = nearest_name(str(key).replace("-", "_"), parameters)
            raise InvalidValue(
                f"unknown setting {cut_text(str(key), limit=60)} in {label}",
                hint=f"did you mean {near}?" if near else "see: scaletest saturate --help",
            )
        takes_many = parameter.nargs == -1 or getattr(parameter, "multiple", False)
        values = value if takes_many and isinstance(value, list) else [value]
        if any(isinstance(part, list | dict) for part in values):
            raise InvalidValue(f"{key} in {label} is no single value", hint=form)
        # as the command line would give them: click checks texts only
        texts = list(map(str, values))
        if value is not None:
            defaults[str(parameter.name)] = texts if takes_many else texts[0]
    return defaults


def take_file_first(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Read the plan file before the other options take their defaults from it."""
    if value:
        context.default_map = {
            **(context.default_map or {}),
            **read_plan_file(value, context.command),
        }
    return value


ALL_OPTIONS = join_options(
    # the target
    under_heading("Run"),
    click.option(
        "-f",
        "--file",
        default="",
        metavar="PLAN",
        is_eager=True,
        callback=take_file_first,
        expose_value=False,
        help="Take settings from this YAML or JSON file, or from standard input (-).",
    ),
    under_heading("Target"),
    click.option(
        "--service",
        default="",
        metavar="svc/NAME[:PORT][/PATH]",
        help="Load this Service of a Kubernetes cluster.",
    ),
    under_heading("Kubernetes"),
    namespace_option("Look for the Service in this namespace. [default: the current one]"),
    context,
    click.option(
        "--pause-autoscalers",
        is_flag=True,
        help="Hold HPA or KEDA during the run, instead of refusing to run.",
    ),
    under_heading("Target"),
    click.option(
        "--queue",
        default="",
        metavar="Q",
        help="Load this queue of scaletest's workers.",
    ),
    click.option(
        "--redis-url",
        default="",
        envvar="SCALETEST_REDIS_URL",
        show_envvar=True,
        metavar="URL",
        help="Use the Redis at this address for --queue and --agents.",
    ),
    requests,
    under_heading("Requests"),
    click.option(
        "--server-header",
        default="",
        metavar="NAME",
        help=(
            "Read the service's own time from this header of its answers, which gives the"
            " share of queueing."
        ),
    ),
    # the load
    under_heading("Load"),
    click.option(
        "--load",
        type=click.Choice(["open", "closed"]),
        default="open",
        show_default=True,
        help="Raise the rate of requests (open), or the number of requests in flight (closed).",
    ),
    click.option(
        "--start",
        type=float,
        default=0.0,
        metavar="X",
        help=(
            "Begin at this level: requests per second, or requests in flight."
            " [default: found by the probe]"
        ),
    ),
    click.option(
        "--maximum",
        type=float,
        default=0.0,
        metavar="X",
        help="Go up to this level at most: requests per second, or requests in flight.",
    ),
    click.option(
        "--count",
        type=int,
        default=0,
        metavar="N",
        help="Measure each step with N requests, instead of for --step-time.",
    ),
    click.option(
        "--step-time",
        "step_s",
        type=DURATION,
        default="10s",
        show_default=True,
        metavar="TIME",
        help=(
            "Measure each step for this long, or longer where ten requests in a row take more time."
        ),
    ),
    click.option(
        "--warm",
        "warm_s",
        type=DURATION,
        default="2s",
        show_default=True,
        metavar="TIME",
        help="Probe first for this long, with one request at a time; 0 sends a single request.",
    ),
    click.option(
        "--max-in-flight",
        type=int,
        default=1000,
        show_default=True,
        metavar="N",
        help=(
            "Open at most N connections; further requests wait for one, and their latency"
            " includes that wait."
        ),
    ),
    # the search
    under_heading("Verdict"),
    click.option(
        "--success",
        type=float,
        default=0.99,
        show_default=True,
        metavar="P",
        help=(
            "Call a level saturated when a smaller share of its requests succeeds; 0.99 is 99 %."
        ),
    ),
    click.option(
        "--latency-limit",
        "limit",
        default="",
        metavar="'p95<200ms'",
        help="Call a level saturated when its latency breaks this limit, e.g. 'p95<200ms'.",
    ),
    under_heading("Accuracy"),
    click.option(
        "--precision",
        type=float,
        default=0.02,
        show_default=True,
        metavar="P",
        help=(
            "End the search when the saturation point is known to within this fraction; 0.02"
            " is 2 %."
        ),
    ),
    under_heading("Accuracy"),
    under_heading("Verdict"),
    click.option(
        "--wanted",
        type=RATE,
        default=0.0,
        metavar="RATE",
        help="Require that the service sustains this rate, e.g. 500/s; less is a FAIL.",
    ),
    # load agents
    under_heading("Agents"),
    click.option(
        "--agents",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Send from N processes (agents) that begin together, and merge their samples.",
    ),
    click.option(
        "--agent-jobs",
        default="",
        metavar="IMAGE",
        help="Run the agents as a Job of this image in the cluster; they need --redis-url.",
    ),
    click.option("--agent", default="", hidden=True),
    # tuning
    under_heading("Tuning"),
    click.option(
        "--tune",
        "tune",
        multiple=True,
        metavar="NAME=V,V,...",
        help=(
            "Measure these values of cpu, memory or replicas of the Deployment behind"
            " --service, or of a VARIABLE or an --argument of its program, as for its"
            " concurrency. The option may be repeated: all combinations are measured, the best"
            " for its cost is named, and the Deployment is restored."
        ),
    ),
    click.option(
        "--ready-timeout",
        type=DURATION,
        default="2m",
        show_default=True,
        metavar="TIME",
        help="Wait at most this long until the pods are ready.",
    ),
    # what is kept and shown
    under_heading("Run"),
    click.option(
        "--run-dir",
        default="",
        metavar="DIR",
        help="Keep the run in this folder. [default: a new folder below the user's data]",
    ),
    watch,
    under_heading("Run"),
    click.option(
        "--dry-run", is_flag=True, help="Print the plan and how long it will take, and do nothing."
    ),
    click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[URL | -- ARG...]"),
)


@cloup.command(
    "saturate",
    cls=shared.ManyOptionsCommand,
    common="--service --queue --load --maximum --latency-limit --wanted --ui --dry-run --output",
    help=HELP,
    epilog=(
        "Exit code 0 PASS, 3 FAIL (below --wanted), 4 INVALID. Ctrl-C once ends the step and prints"
        " what was found."
    ),
)
@ALL_OPTIONS
@shared.labels
@shared.report_output()
@shared.call_with_groups
def command(
    *,
    run: SaturationOptions,
    plan: PlanOptions,
    agent: str,
    watch: shared.WatchOptions,
    dry_run: bool,
    output: Output,
) -> int:
    """Run the command: as an agent, or to show the plan, measure, or tune."""
    # what a run needs takes a while to import, and --help needs none of it
    from scaletest.saturation.commands import saturate_run
    from scaletest.saturation.measure.agent import run_agent

    if agent:
        run_agent(run.redis_url, agent)
        return 0
    checked = make_plan(run, plan)
    if dry_run:
        saturate_run.show_plan(checked, run.tune, output)
        return 0
    if run.tune:
        return saturate_run.run_tuning(checked, run, output, watch)
    return saturate_run.run_saturation(checked, run, output, watch)
