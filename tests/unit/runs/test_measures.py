"""The measures of each run type, of runs that are kept as test data."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from scaletest.runs.registry import type_of
from scaletest.stats.measure import Measure
from tests.unit.kept_runs import KEPT_RUNS, unpack

EXAMPLES = {
    "validation-lock": ("throughput", "ratio", "efficiency", "run.p50", "wait.p50", "failures"),
    "saturation-open": ("capacity", "goodput", "latency.p95", "failures"),
    "benchmark-sweep": (),
    "lifecycle-burst": ("total_ready.mean", "total_ready.p50", "lost"),
}


@pytest.fixture
def measured(tmp_path: Path) -> Callable[[str], list[Measure]]:
    """The measures of a run of the test data."""

    def measures(name: str) -> list[Measure]:
        folder = unpack(name, tmp_path)
        return list(type_of(folder).measures(type_of(folder).judge(folder)))

    return measures


@pytest.mark.parametrize("name", KEPT_RUNS)
def test_each_measure_of_a_run_stands_there_once_and_lies_in_its_interval(
    measured: Callable[[str], list[Measure]], name: str
) -> None:
    measures = measured(name)
    places = [(measure.name, *sorted(measure.where.items())) for measure in measures]
    assert len(set(places)) == len(places)
    for measure in measures:
        estimate = measure.estimate
        assert math.isfinite(estimate.value)
        assert estimate.low <= estimate.value <= estimate.high


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_run_has_the_measures_of_its_type(
    measured: Callable[[str], list[Measure]], name: str
) -> None:
    measures = measured(name)
    assert {measure.name for measure in measures} >= set(EXAMPLES[name])
    assert measures
