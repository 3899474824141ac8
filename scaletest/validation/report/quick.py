"""A quick look at a program in a few lines: bars, up to where it scales, and what stops it."""

import math
import shlex
from collections.abc import Iterator

from scaletest.causes.resources import cores_text
from scaletest.render.numbers import format_significant, plural
from scaletest.render.text import clean_text
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.quick import QuickAnswer, cores_needed, quick_answer
from scaletest.validation.report.words import gain_texts, speedup_bars

LONGEST_ERROR = 160


def quick_lines(result: Evaluation) -> Iterator[str]:
    """Yield the whole answer, in at most 15 lines."""
    answer = quick_answer(result.steps)
    bars = speedup_bars(result)
    if result.interrupted:
        known = "this is what was measured before" if bars else "before two steps were measured"
        yield f"interrupted: {result.interrupted}; {known}."
    yield from (f"warning: {line}" for line in result.noticed[:1])
    yield from bars
    count = sum(step.failures for step in result.steps)
    if count:
        error = clean_text(result.failures[0].error, LONGEST_ERROR) if result.failures else ""
        yield f"{plural(count, 'request')} failed: {error}".rstrip(": ")
    if answer is not None and len(result.steps) > 1:
        yield from _scaling_lines(answer, result)
    yield "This was a quick look, not a verdict. To measure it thoroughly:"
    # the options that measure this well
    plan = result.plan
    tried = plan.limit if answer is None else answer.tried
    limit = tried if answer and answer.is_limited else 2 * tried
    options = [f"--limit {limit}", *seconds_option(plan.seconds)]
    if plan.device_glob:
        options.append(f"--device-glob {shlex.quote(plan.device_glob)}")
    if plan.preset:
        options.append(f"--preset {plan.preset}")
    yield f"  scaletest validate {' '.join(options)} -- {shlex.join(plan.command)}"
    yield "To see charts of it: scaletest report LAST -o report.html"


def _scaling_lines(answer: QuickAnswer, result: Evaluation) -> Iterator[str]:
    """Yield up to where it scales, what stops it there, and what to try."""
    per_s = {step.workers: step.throughput.per_s for step in result.steps}
    if not answer.is_limited:
        gain = format_significant(per_s[answer.tried] / per_s[result.steps[0].workers])
        yield (
            f"It scales up to {answer.tried} workers, the most that were tried: {gain}x the"
            " throughput of one."
        )
        return
    # the fewest workers that did not pay
    workers = min(tried for tried in per_s if tried > answer.reached)
    gain = format_significant(per_s[workers] / per_s[answer.reached])
    if answer.reached == 1:
        yield f"It does not scale here: {workers} workers bring {gain}x the throughput of one."
    else:
        yield (
            f"It scales up to {answer.reached} workers here: {workers} bring {gain}x the"
            f" throughput of {answer.reached}."
        )
    # the cause, or the CPU where so many workers need more cores than there are
    causes = result.limits
    needed = cores_needed(result.resources, workers)
    if causes and not causes.headline:
        first = causes.causes[0]
        yield f"What stops it: {'; '.join([first.sentence, *first.evidence[:1]])}."
        yield from (f"  {line}" for line in gain_texts(result))
        yield f"  What to try: {first.remedy}."
    elif needed:
        alone, cores = needed
        yield (
            f"What stops it: the CPU; a request alone uses {cores_text(alone, cores)}, and"
            f" {workers} workers need {alone * workers:.1f}."
        )
        yield "  What to try: more cores, or fewer threads in each program."
    else:
        yield "What stops it is not clear from so short a look."


def seconds_option(run_s: float) -> list[str]:
    """Return the option that says how long a request takes, where the default is far off."""
    # shorter ones are measured well with the default, too
    return ["--seconds", f"{math.ceil(run_s)}s"] if run_s > 2.0 else []
