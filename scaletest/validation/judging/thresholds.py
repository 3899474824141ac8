"""The thresholds of a validation: what was measured at each step, and whether they hold.

Their intervals:

    ratio                          of the step's ratio (90 %, one-sided 95 % at the end that counts)
    efficiency, throughput         95 %, from the two throughputs by the log delta method, or the
                                   step's own
    wait.p95 and the like          95 % by order statistics, of all successful requests of the step
    failures                       exact counts
    figures.NAME                   95 % by Student's t, or as for wait.p95
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from scaletest.model.threshold import PERCENTILES, Threshold, parse_step_threshold
from scaletest.render.numbers import plural
from scaletest.stats.estimate import Estimate, exact_estimate
from scaletest.stats.percentiles import Distribution, Percentile, samples_needed, summarise_samples
from scaletest.stats.repetitions import summarise_repetitions
from scaletest.stats.scaling import scaling_over
from scaletest.stats.thresholds import Measured, ThresholdResult, judge_threshold
from scaletest.validation.judging.steps import Step
from scaletest.validation.judging.stopping import Stop
from scaletest.validation.plan import Plan


def evaluate_thresholds(plan: Plan, steps: Sequence[Step]) -> tuple[ThresholdResult, ...]:
    """Return one result for each of the plan's thresholds, in their order."""
    by_workers = {step.workers: step for step in steps}
    results = []
    for text in plan.thresholds:
        threshold = parse_step_threshold(text, plan.steps)
        measure, named = threshold.measure, threshold.workers
        if measure == "failures" and named is None:
            # of the whole run: while steps are missing only a refuted bound counts
            failures = _count_failures(threshold, steps)
            holds = failures.estimate and threshold.holds(failures.estimate.value)
            if holds and by_workers.keys() != {*plan.steps}:
                failures = Measured(None, "not every step was measured", "run it to the end")
            places = [failures]
        else:
            # of the step that is named, or of every step that has it: the first one has no ratio
            levels = plan.steps if named is None else (named,)
            if measure == "ratio" and len(levels) > 1:
                levels = levels[1:]
            places = []
            for workers in levels:
                measured = Measured(None, "not measured", "run it to the end")
                if workers in by_workers:
                    measured = _measure(threshold, by_workers[workers], steps)
                place = plural(workers, "worker") if named is None else ""
                places.append(replace(measured, workers=workers, place=place))
        results.append(judge_threshold(threshold, places))
    return tuple(results)


def _measure(threshold: Threshold, step: Step, steps: Sequence[Step]) -> Measured:
    """Return what was measured at a step, or why that is unknown."""
    measure = threshold.measure
    if measure == "failures":
        return _count_failures(threshold, [step])
    if any(sample.measurement.stop == Stop.ENDED for sample in step.samples):
        return Measured(None, "the measurement was cut short", "run it to the end")
    if "." in measure:
        return _measure_values(threshold, step)
    # what follows rests on throughput: on that of the step, and of the one it is compared with
    bases = {"efficiency": steps[0], "ratio": steps[max(0, steps.index(step) - 1)]}
    for compared in (step, bases.get(measure, step)):
        workers = plural(compared.workers, "worker")
        if not compared.sound:
            return Measured(None, f"{workers}: not steady, or too few requests to tell")
        # a change of the machine cancels in a ratio only with the pass down
        if len(compared.samples) < 2 and measure != "throughput":
            return Measured(
                None, f"{workers}: the descending pass was not measured", "run it to the end"
            )
    if measure == "throughput":
        return Measured(step.throughput.estimate)
    if measure == "efficiency":
        return Measured(scaling_over(step.rate, steps[0].rate).efficiency)
    if step.ratio:
        return Measured(Estimate(step.ratio.value, step.ratio.low, step.ratio.high))
    return Measured(
        None, "there is no step before it with a throughput", "name a later step, or raise <limit>"
    )


def _measure_values(threshold: Threshold, step: Step) -> Measured:
    """Return a percentile of times or of a figure of the workload, or the mean of a figure."""
    name = threshold.figure
    if not name:
        times = threshold.measure.partition(".")[0]
        return _estimate_percentile(getattr(step, times), threshold.percentile)
    values = []
    for record in chain.from_iterable(sample.counted for sample in step.samples):
        value = record.reply.figures.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            values.append(float(value))
    if not values:
        return Measured(
            None, f"no request reported a number as {name}", "let the workload return it"
        )
    if threshold.percentile:
        return _estimate_percentile(summarise_samples(values), threshold.percentile)
    # a figure may lie below 0, which a rate or a time does not
    mean = summarise_repetitions(values)
    return Measured(Estimate(mean.mean, mean.mean - mean.half_width, mean.mean + mean.half_width))


def _estimate_percentile(times: Distribution, name: str) -> Measured:
    """Return a percentile with its interval; where unknown, the reason names the requests needed.

    name: of the percentile, such as p99.9.
    """
    percentile: Percentile | None = getattr(times, name.replace(".", "_"))
    needed = samples_needed(PERCENTILES[name])
    if percentile is not None:
        if percentile.low is not None and percentile.high is not None:
            return Measured(Estimate(percentile.value, percentile.low, percentile.high))
        # with fewer than twice the requests that the value itself needs there may be no interval
        needed *= 2
    return Measured(None, f"{name} needs {needed} requests, there are {times.count}")


def _count_failures(threshold: Threshold, steps: Sequence[Step]) -> Measured:
    """Return how many requests failed, or which part of all."""
    failed = sum(step.failures for step in steps)
    ended = failed + sum(step.run.count for step in steps)
    if threshold.share and not ended:
        return Measured(None, "no request ended")
    return Measured(exact_estimate(failed / ended if threshold.share else float(failed)))
