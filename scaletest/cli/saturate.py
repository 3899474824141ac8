"""scaletest saturate: what load a service or a queue can take. Puts target, load and archive
together.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import options, saturate_options, stored
from scaletest.cli.output import echo
from scaletest.cli.stopping import stopping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scaletest.analysis.saturation.forecast import SaturationForecast
    from scaletest.cli.saturate_target import Target
    from scaletest.model.saturation import SaturationPlan
    from scaletest.saturation.folder import SaturationFolder
    from scaletest.saturation.runner import ProgressListener, Runner, StepStore


@click.command(
    "saturate",
    epilog=(
        "Exit code 0 PASS, 3 FAIL (below --wanted), 4 INVALID, 7 also when the database of --sql"
        " lacks steps at the end. Ctrl-C once ends the step and prints what was found."
    ),
)
@saturate_options.options
@options.output
def command(**given: Any) -> int:
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
    if given["agent"]:
        from scaletest.cli.saturate_agent import serve

        return serve(given)
    if given["restore"]:
        from scaletest.cli.saturate_tune import restore

        return restore(given)
    plan = saturate_options.plan(given)
    if given["dry_run"]:
        _show_plan(plan, given)
        return 0
    if given["tune"]:
        from scaletest.cli.saturate_tune import tune

        return tune(plan, given)
    return _saturate(plan, given)


def _saturate(plan: SaturationPlan, given: dict[str, Any]) -> int:
    from rich.console import Console

    from scaletest.archive.environment import environment
    from scaletest.cli.saturate_sql import Database
    from scaletest.cli.saturate_target import target
    from scaletest.report import progress
    from scaletest.runs.folder import RunFolder
    from scaletest.runs.places import new_path
    from scaletest.saturation.folder import SaturationFolder

    with ExitStack() as before:
        found = target(given, plan)
        saturate_options.prepare_originals(given)
        path = new_path(os.environ, given["run_dir"])
        teller = progress.choose(
            Console(stderr=True, highlight=False), plain=given["progress"] == "plain"
        )
        before.callback(teller.close)
        database = Database(given, plan, path.name, teller.step)
        before.callback(database.close)
        database.open()
        folder = SaturationFolder(RunFolder.create(path))
        before.callback(folder.forget_empty)
        before.enter_context(folder.files.locked())
        folder.files.begin(plan, environment(saturate_options.public(sys.argv)))
        code = _measure(plan, given, found, (folder, database), teller)
        lacking = database.finish(folder)
        teller.close()
        show(given["output"], folder)
        saturate_options.originals(given, folder)
        return lacking or code


def _measure(
    plan: SaturationPlan,
    given: dict[str, Any],
    found: Target,
    stores: tuple[SaturationFolder, StepStore],
    teller: ProgressListener,
) -> int:
    """The run, up to its result on disk; its exit code."""
    from scaletest.analysis.saturation.evaluation import conclude
    from scaletest.analysis.saturation.sequence import SaturationSequence
    from scaletest.model.errors import AgentLost
    from scaletest.report.saturation.run import with_noticed
    from scaletest.runs.folder import RESULT
    from scaletest.saturation.runner import Runner
    from scaletest.saturation.watched import Watched

    ends: list[str] = []
    runner: Runner | None = None

    def stop(why: str) -> None:
        ends.append(why)
        if runner is not None:
            runner.stop(why)

    with stopping(stop, unwind=bool(given["service"] or given["agent_jobs"])) as stack:
        for line in found.shown:
            teller.step(line)
        lines = list(found.shown)
        noticed: list[str] = []
        look = _look(found) if found.is_here else tuple
        try:
            load = found.set_up(stack)
            if not (given["no_causes"] or given["agent_jobs"]):
                load = Watched(load, found.servers, found.port)
            runner = Runner(
                plan, load, stores, teller, between=lambda one: lines.extend(found.after(one))
            )
            if ends:
                runner.stop(ends[0])
            noticed += look()
            for line in noticed:
                teller.step(f"warning: {line}")
            found.probe(load)
            result = runner.run()
        except AgentLost as error:
            result = conclude(SaturationSequence(plan), lost=error.message)  # before the first step
        said = {"lines": lines, **({"replicas": found.replicas} if found.replicas else {})}
        extra = {"extra": said} if lines else {}
        document = {**with_noticed(result, noticed).to_dict(), "noticed": noticed, **extra}
        stores[0].files.write(RESULT, document)
    lost = runner.lost if runner else None
    return lost.exit_code if lost else result.verdict.kind.exit_code


def _look(target: Target) -> Callable[[], list[str]]:
    """Warnings of what keeps this machine busy beside the tester and the service."""
    from scaletest.load import busy_check
    from scaletest.system.cores import own_used_s, used_s

    servers = target.servers()
    return busy_check.of_this_machine(lambda: own_used_s() + used_s(servers)).warnings


def show(form: str, folder: SaturationFolder) -> None:
    """Print the run in the form that was asked for."""
    from scaletest.report.saturation.run import read
    from scaletest.runs.places import default_root

    run = read(folder, default_root(os.environ))
    if form == "table":
        from scaletest.report.saturation.report import saturation_report

        stored.show(saturation_report(run))
    else:
        options.show(
            {
                **run.result.to_dict(),
                "folder": run.folder,
                **({"extra": run.extra} if run.extra else {}),
            },
            form,
        )


def _show_plan(plan: SaturationPlan, given: dict[str, Any]) -> None:
    from scaletest.analysis.saturation import tuning
    from scaletest.analysis.saturation.forecast import forecast
    from scaletest.model.saturation import Mode

    tuned = len(tuning.settings(given["tune"]))
    expected = forecast(plan).times(max(1, tuned))
    if given["output"] != "table":
        row = expected.to_dict()
        options.show(
            {**plan.to_dict(), "longest_s": row["longest_s"], "forecast": row}, given["output"]
        )
        return
    echo(f"target    {plan.target}")
    first = f"{plan.start:g}" if plan.start else "found by the probe"
    echo(
        f"load      {plan.load}, {plan.mode}: from {first} to {plan.highest:g} {plan.unit} at most"
    )
    length = f"{plan.count} requests" if plan.count else f"{plan.step_s:g} s"
    number = (
        f"{expected.most}"
        if plan.mode == Mode.SWEEP
        else f"usually {expected.steps}, {expected.most} at most"
    )
    echo(f"steps     {length} each, {number}")
    if tuned:
        echo(f"settings  {tuned}, all this for each")
    for line in _takes(plan, expected, bool(tuned)):
        echo(line)
    if plan.wanted:
        echo(f"wanted    {plan.wanted:g} requests/s")


def _takes(plan: SaturationPlan, expected: SaturationForecast, tuned: bool) -> Iterator[str]:
    """How long it takes, and what makes it longer."""
    from scaletest.analysis.saturation.sequence import LONGEST, MOST_AGAIN

    if expected.usual_s is None or expected.longest_s is None:
        yield "takes     as long as so many requests take in each step; nobody knows that before"
    else:
        when = f"if requests are fast{' and pods ready at once' if tuned else ''}"
        yield (
            f"takes     about {expected.usual_s:.0f} s, {expected.longest_s:.0f} s at most, {when}"
        )
    if plan.limit:
        yield (
            f"limit     {plan.limit}: a step that does not decide it is extended, up to {LONGEST}"
            " times as long"
        )
    yield f"again     a step in which the tester was late, up to {MOST_AGAIN} times"
