"""scaletest validate --dry-run: what a plan will do, how long it takes, and what it cannot tell. Nothing is started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from scaletest.cli import options, sharing

if TYPE_CHECKING:
    from scaletest.model import Plan


def doubts(plan: Plan) -> list[str]:
    """What this plan cannot tell, however well it is measured."""
    from scaletest.analysis.separable import separability

    points, who = (plan.per_device, "workers on each device") if plan.compares else (plan.steps, "workers")
    found = separability(points, plan.repeats, who=who)
    lines = [] if found.separable or len(points) < 3 else [found.sentence]
    return [*lines, *sharing.doubts(plan)]


def show(plan: Plan, form: str) -> None:
    """Print it."""
    from scaletest.analysis.forecast import SCATTERED, STEADY, forecast

    expected = [forecast(plan, spread) for spread in (STEADY, SCATTERED)]
    if form != "table":
        rows = [one.to_dict() for one in expected]
        options.show({**plan.to_dict(), "steps": list(plan.steps), "forecast": rows, "warnings": doubts(plan)}, form)
        return
    click.echo(f"workload  {plan.workload}")
    click.echo(f"steps     {', '.join(map(str, plan.steps))} workers, {plan.longest_s:g} s at most each")
    aim = "the best number of workers per device" if plan.compares else f"at least {plan.scale:g}x per doubling"
    click.echo(f"wanted    {aim}, {plan.tolerate_failures} failures tolerated")
    if plan.per_device:
        numbers = ", ".join(map(str, plan.per_device))
        click.echo(f"devices   {plan.devices}, shared by {numbers} workers each, policy {plan.device_policy}")
    for text in plan.thresholds:
        click.echo(f"          {text}")
    for one in expected:
        widths = ", ".join(f"{width:.1%}" for width in one.half_widths)
        click.echo(
            f"takes     about {one.seconds:.0f} s if run times scatter by {one.spread:.1%}; "
            f"intervals of the steps then ± {widths}"
        )
    for line in doubts(plan):
        click.echo(f"warning   {line}")
