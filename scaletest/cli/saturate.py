"""scaletest saturate: what load a service or a queue can take."""

from __future__ import annotations

import click

from scaletest.cli import options as shared
from scaletest.cli import saturate_options
from scaletest.cli.saturate_options import SaturateOptions


@click.command(
    "saturate",
    epilog=(
        "Exit code 0 PASS, 3 FAIL (below --wanted), 4 INVALID, 7 also when the database of --sql"
        " lacks steps at the end. Ctrl-C once ends the step and prints what was found."
    ),
)
@saturate_options.options
@shared.output
@shared.typed(SaturateOptions)
def command(options: SaturateOptions) -> int:
    """Find the saturation point: raise the load until errors, latency or a growing backlog say so,
    bisect, confirm.

    \b
    scaletest saturate http://127.0.0.1:8080/
    scaletest saturate --url https://HOST/score --method POST --payload one.json \\
      --token-file key --warm 3m
    scaletest saturate --service svc/model:80/score -n NAMESPACE --load closed
    scaletest saturate --queue transcode --redis-url redis://HOST -- ARG
    scaletest saturate -f plan.yaml --wanted 500

    Open load (default) raises a rate and measures from the intended start of each request; closed
    load raises the number in flight. Afterwards the latency at 70 % of the saturation point is
    measured.
    """
    # what a run needs takes a while to import, and --help needs none of it
    from scaletest.cli import saturate_run, saturate_tune

    if options.agents.agent:
        return saturate_run.serve_agent(options)
    if options.restore:
        return saturate_tune.restore(options.cluster)
    options = saturate_run.with_address(options, url_typed=shared.is_typed("url"))
    plan = saturate_run.plan_of(options)
    if options.dry_run:
        saturate_run.show_plan(plan, options)
        return 0
    if options.tuning.tune:
        return saturate_tune.tune(plan, options)
    return saturate_run.saturate(plan, options)
