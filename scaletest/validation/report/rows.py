"""The steps of a validation as rows, made once for every form of its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from scaletest.causes.resources import StepResources
from scaletest.model.measurement import PRESSURE
from scaletest.render.numbers import NOTHING, measured, percent, significant
from scaletest.report.words import percentile
from scaletest.stats.scaling import Scaled
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.steps import Step


@dataclass(frozen=True, slots=True)
class Row:
    """A step, its state, and its nodes' work; None without enough throughput or samples."""

    step: Step
    scaled: Scaled | None
    resources: StepResources | None
    rates: Mapping[str, str]  # requests a second, and the work that any step reports, by title
    cells: Mapping[str, str]  # of short tables, by title

    def highest(self, figure: str) -> float | None:
        """Return a figure of pressure, of the node that has most of it."""
        return self.resources.highest(PRESSURE, figure) if self.resources else None

    def busiest(self, kind: str) -> float | None:
        """Return the part of the time in which the busiest disk or device was busy."""
        place = self.resources.busiest(kind) if self.resources else None
        return place.figures["busy"] if place else None


def rows_of(result: Evaluation, quantile: str) -> list[Row]:
    """Return one row for every step, in order. quantile: of wait and run times."""
    scaled_by_level = {state.workers: state for state in result.growth.scaling}
    resources = {state.workers: state for state in result.resources}
    figures = dict.fromkeys(chain.from_iterable(step.work for step in result.steps))
    rows = []
    for step in result.steps:
        scaled = scaled_by_level.get(step.level)
        # how much more the busiest of a group did than the idlest; "" where there is only one
        groups = [step.fairness.get(group) for group in ("worker", "device")]
        workers, devices = (significant(group.ratio) if group else "" for group in groups)
        # a ratio with its 90 % interval as ±: the wider side of it
        ratio_text = ""
        if step.ratio:
            ratio = step.ratio
            wider = max(ratio.high - ratio.value, ratio.value - ratio.low)
            ratio_text = measured(ratio.value, wider)
        work = {f"{figure}/s": rate_text(step, figure) for figure in figures}
        rates = {"requests/s": rate_text(step), **work}
        cells = {
            "per device": str(step.per_device),
            "workers": str(step.workers),
            **rates,
            "ratio": ratio_text,
            "speed-up": significant(scaled.speedup.value) if scaled else NOTHING,
            "efficiency": percent(scaled.efficiency.value if scaled else None, 0),
            f"wait {quantile}": percentile(step.wait, quantile),
            f"run {quantile}": percentile(step.run, quantile),
            "fair": "/".join(filter(None, (workers, devices))) or NOTHING,
            "fair workers": workers or NOTHING,
            "fair devices": devices or NOTHING,
            "memory limit": str(step.memory_hits),
            "failed": str(step.failures),
        }
        rows.append(Row(step, scaled, resources.get(step.workers), rates, cells))
    return rows


def common_quantile(steps: Sequence[Step]) -> str:
    """Return the highest percentile up to p95 that every step can report, so that rows compare."""
    distributions = [step.run for step in steps if step.run.count]
    for name in ("p95", "p90"):
        if all(getattr(times, name) for times in distributions):
            return name
    return "p50"


def rate_text(step: Step, figure: str = "") -> str:
    """Return throughput with its interval; of a figure of work, as frames/s, where one is named."""
    per_s = step.work.get(figure) if figure else step.throughput
    return measured(per_s.per_s, per_s.half_width) if per_s and per_s.per_s > 0 else NOTHING
