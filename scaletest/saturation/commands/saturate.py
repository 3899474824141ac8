"""scaletest saturate: what load a service or a queue can take."""

import cloup

from scaletest.cli import options as shared
from scaletest.cli.output import Output
from scaletest.saturation.commands import saturate_options
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


@cloup.command(
    "saturate",
    help=HELP,
    epilog=(
        "Exit code 0 PASS, 3 FAIL (below --wanted), 4 INVALID. Ctrl-C once ends the step and prints"
        " what was found."
    ),
)
@saturate_options.options
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
        run_agent(run.agents.redis_url, agent)
        return 0
    checked = make_plan(run, plan)
    if dry_run:
        saturate_run.show_plan(checked, run.tune, output)
        return 0
    if run.tune:
        return saturate_run.run_tuning(checked, run, output, watch)
    return saturate_run.run_saturation(checked, run, output, watch)
