"""scaletest autoscale: simulate autoscaling rules under a load, and find a good one."""

from pathlib import Path

import click
import cloup

from scaletest.capacity.autoscale.load import PATTERNS, SimulationOptions
from scaletest.capacity.autoscale.rule import CHANGES, RULES
from scaletest.cli import options as shared
from scaletest.cli.headings import ManyOptionsCommand, under_heading
from scaletest.cli.output import Output

# The load, the run times, and how pods come and go: SimulationOptions.
simulation_options = shared.join_options(
    under_heading("Load"),
    shared.duration("--seconds", default="60s", help="Let a request run this long, on average."),
    click.option(
        "--variation",
        type=float,
        default=0.3,
        show_default=True,
        metavar="SHARE",
        help=(
            "Spread the run times: their standard deviation is this share of their mean;"
            " with 0 all are the same."
        ),
    ),
    click.option(
        "--run",
        default="",
        metavar="RUN",
        help="Draw the run times of requests from the records of this stored run instead.",
    ),
    click.option(
        "--pattern",
        type=click.Choice(PATTERNS),
        default="poisson",
        show_default=True,
        help="Let requests come in this pattern.",
    ),
    click.option(
        "--rate",
        type=shared.RATE_WITH_UNIT,
        default="2/min",
        show_default=True,
        metavar="RATE",
        help="Let requests come at this mean rate; it needs its unit.",
    ),
    shared.duration("--duration", default="30m", help="Let requests come for this long."),
    click.option(
        "--trace",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Let requests come at the times in this file instead, in seconds, one per line.",
    ),
    under_heading("Pods"),
    click.option(
        "--min-workers",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Let the rule ask for at least N replicas.",
    ),
    click.option(
        "--max-workers",
        type=int,
        default=10,
        show_default=True,
        metavar="N",
        help="Let the rule ask for at most N replicas.",
    ),
    shared.duration(
        "--pod-start",
        default="20s",
        help="Let a pod need this long from its creation until it is ready.",
    ),
    shared.duration(
        "--grace", default="30s", help="Give a pod that is deleted this long to finish its request."
    ),
    under_heading("Accuracy"),
    click.option(
        "--seed",
        metavar="N",
        type=int,
        default=1,
        show_default=True,
        help="Use this seed for random numbers; the same seed gives the same run.",
    ),
)


@cloup.command(
    "autoscale",
    cls=ManyOptionsCommand,
    common="--seconds --rate --pattern --duration --max-workers --run --rule"
    " --wait-target --output",
)
@simulation_options
@under_heading("Autoscaling")
@shared.duration(
    "--wait-target",
    default="30s",
    help="Look for a rule by which 95 % of the requests wait no longer than this.",
)
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help=(
        f"Simulate this rule instead, one of {', '.join(RULES)}; its keys are"
        f" {', '.join(CHANGES)}. The option may be repeated, to compare rules."
    ),
)
@under_heading("Output")
@shared.output("text", "json", "yaml", "html", "md", "csv", "png")
@shared.progress
@shared.call_with_groups
def command(
    simulation: SimulationOptions,
    wait_target_s: float,
    rules: tuple[str, ...],
    output: Output,
    progress: str,
) -> int:
    """Search for a good autoscaling rule, or simulate rules side by side.

    Without --rule it is the cheapest rule that keeps a wait target and kills no request, as YAML
    for the chart; else the rules that are given are compared, and the best is named.

    \b
    scaletest autoscale --seconds 4m --rate 2/min --wait-target 1m
    scaletest autoscale --run LAST --rate 30/min --max-workers 32 \\
      --output rule.yaml
    scaletest autoscale --rule demand:down_window=60,target=2 \\
      --rule desired:window=300 --output rules.html

    HPA and KEDA are simulated as they compute, with pods that start slowly and drain, on a virtual
    clock. Cost is pod seconds. With --min-workers 0 the rules are KEDA's. Exit code 3 when no rule
    keeps the target; then the best of them is printed.
    """
    # what a simulation needs takes a while to import, and --help needs none of it
    from scaletest.capacity.commands import autoscale_run

    if rules:
        return autoscale_run.compare_rules(simulation, rules, output, progress)
    return autoscale_run.search_rule(simulation, wait_target_s, output, progress)
