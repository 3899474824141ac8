"""Warnings of a saturation run, which decide nothing."""

from scaletest.render.numbers import plural
from scaletest.saturation.judging.point import proven_rate
from scaletest.saturation.judging.sequence import SaturationSequence, search_steps
from scaletest.saturation.judging.step import FEWEST, level_text
from scaletest.saturation.judging.tester import machine_full
from scaletest.saturation.plan import Phase

# The backlog of a level that held may have grown by this many times the bracket's width; 5 s can
# show 2 % at best.
WIDE, NARROWEST = 2.0, 0.02


def warnings_of(course: SaturationSequence, *, is_known: bool) -> list[str]:
    """Return the warnings of a run. is_known: whether there is a saturation point."""
    steps, operating = search_steps(course), course.operating
    lines = [*(_imprecision(course) if is_known else ()), *_lateness(course)]
    if operating and operating.tester:
        lines.append(f"the latency at {operating.step.level:.4g}/s is unknown: {operating.tester}")
    # other programs took the cores of a service on the tester's machine
    for step in steps:
        around = step.step.around
        full = machine_full(around) if step.saturated and around and around.service else ""
        if full and around and around.others > around.service:
            lines.append(f"{full} while the service was saturated: alone it may hold more")
            break
    few = sum(step.few for step in steps)
    if few:
        count = plural(few, "step")
        lines.append(f"{count} had fewer than {FEWEST} requests: raise <step_time>, or <start>")
    if operating and operating.saturated and not operating.tester:
        lines.append(f"even the operating point was saturated: {operating.saturated}")
    # the first level that held although Kubernetes warned about its pods
    for step in steps:
        if step.step.pods and step.step.pods.events and not step.saturated:
            lines.append(
                f"{level_text(step.step)} held, but pods were in trouble:"
                f" {step.step.pods.events[0]}; give them more CPU, memory or concurrency"
            )
            break
    if course.warm and course.warm.errors:
        lines.append(f"some requests of the probe failed: {', '.join(course.warm.errors)}")
    return lines


def _imprecision(course: SaturationSequence) -> list[str]:
    """Warn under open load of a wide bracket, or an imprecise lower end."""
    bracket = course.bracket
    if not (bracket and bracket.low and bracket.high and course.plan.open):
        return []
    lines = []
    wide, precision = bracket.high / bracket.low - 1, course.plan.precision
    if wide > precision * 1.5:
        lines.append(
            f"the bracket is {wide:.1%} wide: give a <start> nearer to it for a narrower one"
        )
    grown = 1 - proven_rate(course, bracket.low) / bracket.low
    if grown > WIDE * max(precision, NARROWEST):  # so the level may be beyond saturation
        lines.append(
            f"at the saturation point the backlog may still have grown by {grown:.1%} of the rate:"
            " raise <step_time>"
        )
    return lines


def _lateness(course: SaturationSequence) -> list[str]:
    """Say how many steps were measured again since the tester was late.

    A late operating point has a warning of its own.
    """
    late = [step for step in course.steps if step.tester]
    again = late
    if course.operating and course.operating.tester:
        again = [step for step in late if step.step.phase != Phase.OPERATE]
    if not again or (course.bracket and course.bracket.unfit):
        return []
    reasons = [machine_full(step.step.around) for step in late if step.step.around]
    reason = next((f" ({reason})" for reason in reasons if reason), "")
    return [f"in {len(again)} steps the tester itself was late{reason}; they were measured again"]
