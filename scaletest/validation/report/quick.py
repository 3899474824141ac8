"""A quick look at a program in a few lines: bars, up to where it scales, and what stops it."""

import math
import shlex
from collections.abc import Iterator

from scaletest.causes.resource_texts import cores_text
from scaletest.render.numbers import format_significant, plural
from scaletest.render.text import clean_text
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.quick import QuickAnswer, cores_needed, quick_answer
from scaletest.validation.report.causes import known_limits
from scaletest.validation.report.speedup import speedup_bars

LONGEST_ERROR = 160
# Shorter requests are measured well with the default of --seconds, too.
LEAST_TOLD_S = 2.0


def quick_lines(result: Evaluation) -> Iterator[str]:
    """The whole answer, in at most 15 lines."""
    answer = quick_answer(result.steps)
    bars = speedup_bars(result)
    if result.interrupted:
        rest = "this is what was measured before" if bars else "before two steps were measured"
        yield f"interrupted: {result.interrupted}; {rest}."
    yield from (f"warning: {line}" for line in result.noticed[:1])
    yield from bars
    count = sum(step.failures for step in result.steps)
    if count:
        error = clean_text(result.failures[0].error, LONGEST_ERROR) if result.failures else ""
        yield f"{plural(count, 'request')} failed: {error}".rstrip(": ")
    if answer is not None and len(result.steps) > 1:
        yield _reached(answer, result)
        if answer.is_limited:
            yield from _stopped_by(answer, result)
    yield "This was a quick look, not a verdict. To measure it well:"
    yield f"  scaletest validate {_options(result, answer)} -- {shlex.join(result.plan.command)}"
    yield "To see charts of it: scaletest report LAST -o report.html"


def _reached(answer: QuickAnswer, result: Evaluation) -> str:
    by_workers = {step.workers: step.throughput.per_s for step in result.steps}
    first = by_workers[result.steps[0].workers]
    if not answer.is_limited:
        gain = format_significant(by_workers[answer.tried] / first)
        return (
            f"It scales up to {answer.tried} workers, the most that were tried: {gain}x the"
            " throughput of one."
        )
    beyond = _beyond(answer, result)
    gain = format_significant(by_workers[beyond] / by_workers[answer.reached])
    if answer.reached == 1:
        return f"It does not scale here: {beyond} workers bring {gain}x the throughput of one."
    return (
        f"It scales up to {answer.reached} workers here: {beyond} bring {gain}x the throughput of"
        f" {answer.reached}."
    )


def _beyond(answer: QuickAnswer, result: Evaluation) -> int:
    """The fewest workers that did not pay."""
    return min(step.workers for step in result.steps if step.workers > answer.reached)


def _stopped_by(answer: QuickAnswer, result: Evaluation) -> Iterator[str]:
    """The cause, and what to try."""
    causes = known_limits(result)
    if causes and not causes.headline:
        first = causes.causes[0]
        yield f"What stops it: {'; '.join([first.sentence, *first.evidence[:1]])}."
        yield f"  What to try: {first.remedy}."
        return
    # the CPU, where so many workers need more cores than there are
    workers = _beyond(answer, result)
    needed = cores_needed(result.resources, workers)
    if needed is None:
        yield "What stops it is not clear from so short a look."
        return
    each, cores = needed
    yield (
        f"What stops it: the CPU; a request alone uses {cores_text(each, cores)}, and"
        f" {workers} workers need {each * workers:.1f}."
    )
    yield "  What to try: more cores, or fewer threads in each program."


def _options(result: Evaluation, answer: QuickAnswer | None) -> str:
    """The options of the validation that measures this well."""
    plan = result.plan
    tried = plan.limit if answer is None else answer.tried
    limit = tried if answer and answer.is_limited else 2 * tried
    parts = [f"--limit {limit}", *seconds_option(plan.seconds)]
    if plan.device_glob:
        parts.append(f"--device-glob {shlex.quote(plan.device_glob)}")
    if plan.preset:
        parts.append(f"--preset {plan.preset}")
    return " ".join(parts)


def seconds_option(run_s: float) -> list[str]:
    """The option that tells a validation how long a request takes, where the default is far off."""
    return ["--seconds", f"{math.ceil(run_s)}s"] if run_s > LEAST_TOLD_S else []
