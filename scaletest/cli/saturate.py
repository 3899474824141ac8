"""scaletest saturate: what load a service or a queue can take."""

from __future__ import annotations

from dataclasses import replace

import cloup

from scaletest.cli import options as shared
from scaletest.cli import saturate_options
from scaletest.cli.output import Output
from scaletest.model.errors import UsageError
from scaletest.saturation.options import PlanOptions, SaturationOptions


@cloup.command(
    "saturate",
    epilog=(
        "Exit code 0 PASS, 3 FAIL (below --wanted), 4 INVALID. Ctrl-C once ends the step and prints"
        " what was found."
    ),
)
@saturate_options.options
@shared.labels
@shared.report_output()
@shared.grouped
def command(
    run: SaturationOptions,
    plan: PlanOptions,
    agent: str,
    watch: shared.WatchOptions,
    dry_run: bool,
    output: Output,
) -> int:
    """Find the saturation point: raise the load until errors, latency or a growing backlog say so,
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
    # what a run needs takes a while to import, and --help needs none of it
    from scaletest.cli import saturate_run
    from scaletest.saturation import agents, target

    if agent:
        agents.be_agent(run.agents.redis_url, agent)
        return 0
    run = _with_address(run)
    checked = target.plan_of(run, plan)
    if dry_run:
        saturate_run.show_plan(checked, run.tuning.tune, output)
        return 0
    if run.tuning.tune:
        return saturate_run.run_tuning(checked, run, output, watch)
    return saturate_run.run(checked, run, output, watch)


def _with_address(options: SaturationOptions) -> SaturationOptions:
    """The options with an only argument as the URL, which comes before that of a file or variable.

    Not beside --url on the command line: both cannot be meant.
    """
    if len(options.arguments) != 1 or options.queue:
        return options
    address = options.arguments[0]
    is_url_typed = shared.is_typed("url")
    for option, is_given in (("--url", is_url_typed), ("--service", options.cluster.service)):
        if is_given:
            raise UsageError(
                f"{address!r:.80} and {option} are two targets", hint="leave one of them out"
            )
    return replace(options, url=address, arguments=())
