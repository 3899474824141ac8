"""The whole evaluation of a run's records as one value; pure, so stored runs are judged alike."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis import failures
from scaletest.analysis.background import BackgroundStep, summarise_background
from scaletest.analysis.busy_machine import busy_before
from scaletest.analysis.cause import Causes
from scaletest.analysis.causes import attribute
from scaletest.analysis.device_sharing import Sharing, sharing
from scaletest.analysis.evidence import supported
from scaletest.analysis.failures import FailureGroup
from scaletest.analysis.growth import Growth, growth
from scaletest.analysis.interference import Interference, interferences
from scaletest.analysis.judge import failed_doubling, judge
from scaletest.analysis.law import Choice
from scaletest.analysis.law_interval import Chance
from scaletest.analysis.resources import StepResources, began, resources
from scaletest.analysis.run_warnings import changed_evenly, warnings
from scaletest.analysis.steps import Rows, Step, course_of, summarise
from scaletest.analysis.thresholds import ThresholdResult, evaluate_thresholds
from scaletest.model import Measurement, NodeSample, Plan, Record, Verdict, VerdictKind
from scaletest.model.wire import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of a validation. elapsed_s: wall seconds of the whole run.

    trend_per_s: by which part of its speed the machine changed every second of a mirrored run; 0
    where none is certain. causes: what limits it; None where no request reports where its time
    went. resources: of the steps that have samples of nodes; disturbed: disturbances of the run, by
    these. noticed: warnings from before the run.
    """

    plan: Plan
    steps: list[Step]
    growth: Growth
    thresholds: tuple[ThresholdResult, ...]
    failures: list[FailureGroup]
    background: list[BackgroundStep]
    warnings: list[str]
    verdict: Verdict
    interrupted: str
    elapsed_s: float
    sharing: Sharing | None = None
    trend_per_s: float = 0.0
    causes: Causes | None = None
    resources: Sequence[StepResources] = ()
    disturbed: Sequence[Interference] = ()
    noticed: Sequence[str] = ()

    @property
    def law(self) -> Choice | None:
        """The law of growth; None for fewer than four steps."""
        return self.growth.choice

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, schema version 1."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "validation",
            "plan": self.plan.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
            **self.growth.to_dict(),
            "sharing": self.sharing.to_dict() if self.sharing else None,
            "thresholds": [threshold.to_dict() for threshold in self.thresholds],
            "failures": [group.to_dict() for group in self.failures],
            "background": [step.to_dict() for step in self.background],
            "warnings": self.warnings,
            "noticed": list(self.noticed),
            "verdict": self.verdict.to_dict(),
            "interrupted": self.interrupted,
            "elapsed_s": self.elapsed_s,
            "trend_per_s": self.trend_per_s,
            "causes": self.causes.to_dict() if self.causes else None,
            "resources": [step.to_dict() for step in self.resources],
            "interference": [spell.to_dict() for spell in self.disturbed],
        }


def evaluate(
    plan: Plan,
    measurements: Sequence[Measurement],
    records: Rows,
    chance: Chance,
    background: Sequence[Record] = (),
    *,
    interrupted: str = "",
    elapsed_s: float = 0.0,
    noticed: Sequence[str] = (),
    samples: Sequence[NodeSample] = (),
    damaged: str = "",
) -> Evaluation:
    """Judge what was measured so far. chance: seeded, for the bootstrap. background: records of
    other queues.

    noticed: warnings from before the run. samples: of the nodes, while it lasted. damaged: why some
    are missing.
    """
    steps = summarise(plan, measurements, records)
    grown = growth(steps, chance)
    thresholds = evaluate_thresholds(plan, steps, grown.coefficients)
    shared = sharing(plan, steps)
    missed = any(threshold.kind is VerdictKind.FAIL for threshold in thresholds)
    used, odd = resources(steps, records, samples)
    throttled = {
        step.workers: part for step in used if (part := step.throttled_periods) is not None
    }
    grew = attribute(
        steps, failed_doubling(plan, steps), records, chance, missed=missed, throttled=throttled
    )
    causes = supported(grew, used)
    disturbed = interferences(steps, records, samples)
    before = noticed or busy_before(samples, began(records))
    trend_per_s = course_of(plan, [step.samples for step in steps]).per_s
    return Evaluation(
        plan=plan,
        steps=steps,
        growth=grown,
        thresholds=thresholds,
        failures=failures.group(itertools.chain.from_iterable(records.values())),
        background=summarise_background(plan, measurements, background),
        warnings=[
            *before,
            *missing_samples(damaged),
            *warnings(steps, disturbed),
            *changed_evenly(trend_per_s),
            *odd,
        ],
        verdict=judge(plan, steps, interrupted, thresholds, shared, causes, disturbed),
        interrupted=interrupted,
        elapsed_s=elapsed_s,
        sharing=shared,
        trend_per_s=trend_per_s,
        causes=causes,
        resources=used,
        disturbed=disturbed,
        noticed=noticed,
    )


def missing_samples(damaged: str) -> list[str]:
    """A warning where samples of the nodes could not be read: causes are told without them."""
    return [f"samples of the nodes are missing: {damaged}"] if damaged else []
