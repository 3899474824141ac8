"""What scaletest worker --once prints: the result of one request, and where its time went."""

from collections.abc import Iterator

from scaletest.cli.output import Output
from scaletest.model import Outcome
from scaletest.processes.orphans import adopt_orphans
from scaletest.render.numbers import format_seconds
from scaletest.report.time_spent import activity_lines, align_fact
from scaletest_workers.runtime import SingleRun, run_once
from scaletest_workers.settings import Settings


def show_single_run(settings: Settings, arguments: tuple[str, ...], output: Output) -> int:
    """Run the workload once as a worker does, and print the result; return 5 when it failed.

    arguments: those of the request.
    """
    adopt_orphans()
    run = run_once(settings, arguments)
    output.show(run.to_dict(), result_lines(run))
    return 0 if run.result.outcome is Outcome.SUCCEEDED else 5


def result_lines(run: SingleRun) -> Iterator[str]:
    """Yield outcome, figures and where the time went, for people."""
    result = run.result
    code = "" if result.exit_code is None else f", exit code {result.exit_code}"
    yield f"{result.outcome.value.replace('_', ' ')} after {format_seconds(run.run_s)}{code}"
    # a benchmark's framed result is for programs
    figures = {name: value for name, value in result.figures.items() if name != "result"}
    for name, value in {"error": result.error, "device": result.device, **figures}.items():
        if name in figures or value:
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            yield align_fact(name, text)
    if result.activity is None:
        yield "where the time went is not known: nothing was sampled"
    else:
        yield from activity_lines(result.activity, run.run_s, run.own_memory)
