"""Why files of load tools cannot tell how throughput grows: what differs between them. Pure."""

from collections.abc import Callable, Iterator, Sequence

from scaletest.render.numbers import format_percent, format_seconds, format_significant
from scaletest.stats.verdict_order import Ground, Rank
from scaletest.validation.imported.formats import FORMATS, Format
from scaletest.validation.imported.plan import TOKENS, ImportedPlan
from scaletest.validation.imported.result import ToolResult

# Relative differences between steps that chance and rounding explain.
SAME_LOAD, SAME_LENGTH = 0.01, 0.05
# Requests for each that is in flight: with fewer, start and end of a run are more than 2 % of it.
LEAST_TURNS = 50
# The first format of each tool tells its options; those of a tool that is not there are words.
BY_TOOL = {form.tool: form for form in reversed(FORMATS)}
NO_OPTIONS = Format("", (), {})
# A client that sends later than this measures itself (inference-perf's documentation).
CLIENT_LATE_S = 0.01
# Open load that is served as it was asked for shows no capacity.
SERVED_SHARE = 0.98
# In flight for each replica, where the files do not say what would keep one busy.
USUAL_IN_FLIGHT = 32.0


def find_doubts(plan: ImportedPlan, results: Sequence[ToolResult]) -> Iterator[Ground]:
    """Yield why these results cannot answer."""
    yield from _different_sources(results)
    if plan.scale:
        yield from _different_loads(plan, results)
    yield from _different_lengths(plan, results)
    for result in results:
        yield from _faults_of_file(plan, result)


def warnings_of(results: Sequence[ToolResult]) -> list[str]:
    """Return what should be known of the results, and leaves the verdict alone."""
    warnings = []
    for result in results:
        if result.levels > 1:
            level = format_significant(result.in_flight or result.offered_per_s or 0.0)
            warnings.append(
                f"{result.file} has {result.levels} levels of load; the one with the highest"
                f" throughput counts ({level})"
            )
    seeds = [result.seed for result in results if result.seed is not None]
    if len(set(seeds)) < len(seeds):
        option = BY_TOOL.get(results[0].tool, NO_OPTIONS).new_prompts_option
        warnings.append(
            "prompts of one seed were sent more than once, so a prefix cache may have served them:"
            f" {option}"
        )
    return warnings


def _different_sources(results: Sequence[ToolResult]) -> Iterator[Ground]:
    """Yield tools or models that differ: throughput and latencies mean something else then."""
    tools = {result.tool for result in results}
    models = {result.model for result in results} - {""}
    for name, found in (("tools", tools), ("models", models)):
        if len(found) > 1:
            yield _doubt(
                f"the files are of different {name}: {', '.join(sorted(found))}",
                "measure all steps with one tool, and one model",
            )


def _different_loads(plan: ImportedPlan, results: Sequence[ToolResult]) -> Iterator[Ground]:
    """Yield loads that do not show whether capacity doubles."""

    def keep_in_flight(of_one: float) -> str:
        option = BY_TOOL.get(results[0].tool, NO_OPTIONS).in_flight_option
        counts = sorted({result.count for result in results})
        options = ", ".join(
            f"{option.format(f'{of_one * count:.0f}')} at {count}" for count in counts
        )
        return f"keep as many in flight for each: {options}"

    in_flight = _ends_of(results, lambda result: _quotient(result.in_flight, result.count))
    if in_flight and in_flight[1] > in_flight[0] * (1 + SAME_LOAD):
        yield _doubt(
            f"requests in flight for each of the {plan.axis} differ, from {in_flight[0]:g} to"
            f" {in_flight[1]:g}",
            keep_in_flight(in_flight[1]),
        )
    served = [_quotient(result.requests_per_s, result.offered_per_s) for result in results]
    if served and all(share is not None and share >= SERVED_SHARE for share in served):
        yield _doubt(
            "all requests of an open load were served, so its rate was measured and no capacity",
            keep_in_flight(USUAL_IN_FLIGHT),
        )


def _different_lengths(plan: ImportedPlan, results: Sequence[ToolResult]) -> Iterator[Ground]:
    """Yield lengths of prompts that differ, and of answers where requests are judged."""
    prompts = _ends_of(results, lambda result: result.input_tokens)
    if prompts and prompts[1] > prompts[0] * (1 + SAME_LENGTH):
        yield _doubt(
            f"prompts have {prompts[0]:.0f} to {prompts[1]:.0f} tokens on average",
            "give all steps prompts of the same length",
        )
    answers = _ends_of(results, lambda result: result.output_tokens)
    if plan.measure != TOKENS and answers and answers[1] > answers[0] * (1 + SAME_LENGTH):
        yield _doubt(
            f"answers have {answers[0]:.0f} to {answers[1]:.0f} tokens on average",
            "fix their length, or judge <measure> tokens",
        )


def _faults_of_file(plan: ImportedPlan, result: ToolResult) -> Iterator[Ground]:
    """Yield why the throughput of a file is not that of the service."""
    errors = result.errors or 0.0
    ended = errors + (result.successes or 0.0)
    if ended and errors / ended > plan.tolerate_failures:
        yield _doubt(
            f"{result.file}: {errors:g} of {ended:g} requests failed, and"
            f" {format_percent(plan.tolerate_failures, 0)} are tolerated",
            "find out why they failed, and measure again: failures are fast and free capacity",
        )
    turns = _quotient(ended, result.in_flight)
    form = BY_TOOL.get(result.tool, NO_OPTIONS)
    if form.includes_ends and turns is not None and turns < LEAST_TURNS:
        requests = f"{LEAST_TURNS * (result.in_flight or 0.0):.0f}"
        yield _doubt(
            f"{result.file}: {turns:.0f} requests for each one in flight, so start and end of the"
            " run weigh more with more in flight",
            f"send at least {form.longer_option.format(requests)}",
        )
    # in closed load requests wait in the client on purpose
    is_open = result.offered_per_s is not None
    if is_open and result.late_s is not None and result.late_s > CLIENT_LATE_S:
        yield _doubt(
            f"{result.file}: the client sent requests {format_seconds(result.late_s)} late",
            "run more client processes, or on a machine of their own",
        )


def _doubt(reason: str, remedy: str) -> Ground:
    return Ground(Rank.NOT_THE_SUBJECT, reason, remedy)


def _quotient(number: float | None, divisor: float | None) -> float | None:
    """Return a number over another; None where one is unknown, or the other is 0."""
    return number / divisor if number is not None and divisor else None


def _ends_of(
    results: Sequence[ToolResult], figure: Callable[[ToolResult], float | None]
) -> tuple[float, float] | None:
    """Return the least and the largest of a figure; None where no file has it."""
    known = [value for result in results if (value := figure(result)) is not None]
    return (min(known), max(known)) if known else None
