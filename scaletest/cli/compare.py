"""scaletest compare: whether one run is slower than another, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from scaletest.cli import options, stored
from scaletest.cli.output import echo
from scaletest.model.errors import InvalidValue

if TYPE_CHECKING:
    from scaletest.analysis.compare import StepChange, ValidationComparison


def tolerance_part(context: click.Context, parameter: click.Parameter, value: str) -> float:
    """A part of 1, written 0.03 or 3%; InvalidValue for anything else."""
    text = value.strip()
    try:
        part = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        part = -1.0
    if not 0 <= part < 1:
        raise InvalidValue(
            f"the tolerance {value!r} is no part of 1",
            hint="write 3% or 0.03, from 0 to below 100 %",
        )
    return part


@click.command("compare")
@stored.run_argument("base")
@stored.run_argument("candidate")
@click.option(
    "--tolerance",
    callback=tolerance_part,
    default="3%",
    show_default=True,
    metavar="PART",
    help="How much slower the candidate may be.",
)
@click.option("--force", is_flag=True, help="Compare even runs of different workloads.")
@options.output
def command(base: str, candidate: str, tolerance: float, force: bool, output: str) -> int:
    """Compare the throughput of two runs at every number of workers that both have.

    \b
    scaletest compare 2026-08-21T101500Z-a7c3 LAST
    scaletest compare a7c3 LAST --tolerance 1% -o json

    A run is given by its name, the end of its name, its folder, or as LAST. A step is a regression
    when its throughput differs beyond chance and by more than the tolerance.

    Exit code 0 PASS: no step is slower. 3 FAIL: one is. 4 INVALID: undecided, or the workloads
    differ.
    """
    from scaletest.analysis.compare import compare

    folders = stored.find(base), stored.find(candidate)
    found = compare(stored.side(folders[0]), stored.side(folders[1]), tolerance, force=force)
    if output == "table":
        _show(found, [folder.name for folder in folders])
    else:
        names = ("base", "candidate")
        options.show(
            {
                **found.to_dict(),
                **dict(zip(names, [str(one.path) for one in folders], strict=True)),
            },
            output,
        )
    return found.verdict.kind.exit_code


def _show(found: ValidationComparison, names: list[str]) -> None:
    echo(
        f"compare {names[0]} (base) with {names[1]} (candidate) · tolerance"
        f" {100 * found.tolerance:.3g} %"
    )
    for one in found.differences:
        echo(f"note: the plans differ in {one.field}: {one.base!r} and {one.candidate!r}")
    for label, missing in (("base", found.only_base), ("candidate", found.only_candidate)):
        if missing:
            echo(f"note: only the {label} has {', '.join(map(str, missing))} workers")
    if found.steps:
        echo(f"{'workers':>7}  {'base/s':>10}  {'candidate/s':>11}  {'ratio (95 %)':23}  result")
    for step in found.steps:
        echo(_line(step))
    if any(not step.between for step in found.steps):
        echo("note: the intervals leave out what differs from run to run; --repeats 3 brings it in")
    echo(f"{found.verdict.kind}  {found.verdict.reason}")
    if found.verdict.remedy:
        echo(f"  what to do: {found.verdict.remedy}")


def _line(step: StepChange) -> str:
    ratio = step.ratio
    shown = f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio else "n/a"
    longer = ""
    if step.run_times and step.run_times.p < 0.01:
        way = "longer" if step.run_times.larger > 0.5 else "shorter"
        longer = f"; run times tend to be {way} (p {max(step.run_times.p, 1e-9):.1g})"
    result = f"{step.change}{f': {step.reason}' if step.reason else ''}{longer}"
    return (
        f"{step.workers:>7}  {step.base_per_s:>10.3f}  {step.candidate_per_s:>11.3f}  {shown:23} "
        f" {result}"
    )
