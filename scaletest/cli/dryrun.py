"""scaletest validate --dry-run: what a plan does, its duration and its limits; starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scaletest.cli import options, sharing
from scaletest.cli.output import echo

if TYPE_CHECKING:
    from scaletest.model import Plan


def doubts(plan: Plan) -> list[str]:
    """What this plan cannot tell, however well it is measured."""
    from scaletest.analysis.separability import separability

    points, who = (
        (plan.per_device, "workers on each device") if plan.compares else (plan.steps, "workers")
    )
    found = separability(points, plan.parts * plan.repeats, who=who)
    lines = [] if found.separable or len(points) < 3 else [found.sentence]
    return [*lines, *sharing.doubts(plan)]


def order(plan: Plan) -> str:
    """In which order the steps are measured, in words."""
    if plan.mirrored:
        return "up and down"
    return f"{plan.repeats} times in shuffled order" if plan.repeats > 1 else "ascending"


def _longest(plan: Plan) -> str:
    """How long steps take at most, in words."""
    from scaletest.analysis.forecast import longest_s

    if plan.step_s:
        return f"{plan.step_s:g} s each"
    if plan.mirrored:
        return f"{longest_s(plan):g} s of measuring at most"
    return f"{plan.longest_s:g} s at most each"


def show(plan: Plan, form: str) -> None:
    """Print it."""
    from scaletest.analysis.forecast import SCATTERED, STEADY, forecast

    expected = [forecast(plan, spread) for spread in (STEADY, SCATTERED)]
    if form != "table":
        rows = [one.to_dict() for one in expected]
        options.show(
            {
                **plan.to_dict(),
                "steps": list(plan.steps),
                "forecast": rows,
                "warnings": doubts(plan),
            },
            form,
        )
        return
    echo(f"workload  {plan.workload}")
    echo(f"steps     {', '.join(map(str, plan.steps))} workers, {order(plan)}, {_longest(plan)}")
    aim = (
        "the best number of workers per device"
        if plan.compares
        else f"at least {plan.scale:g}x per doubling"
    )
    echo(f"wanted    {aim}, {plan.tolerate_failures} failures tolerated")
    if plan.per_device:
        numbers = ", ".join(map(str, plan.per_device))
        echo(
            f"devices   {plan.devices}, shared by {numbers} workers each, policy"
            f" {plan.device_policy}"
        )
    for text in plan.thresholds:
        echo(f"          {text}")
    for one in expected:
        widths = ", ".join(f"{width:.1%}" for width in one.half_widths)
        echo(
            f"takes     about {one.seconds:.0f} s if run times scatter by {one.spread:.1%}; "
            f"intervals of the steps then ± {widths}"
        )
    for line in doubts(plan):
        echo(f"warning   {line}")
