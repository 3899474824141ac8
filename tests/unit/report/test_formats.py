"""Every format shows every type of run; a format is a module, which nothing else lists."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scaletest.benchmarks.report import benchmark_report
from scaletest.lifecycle.report.report import lifecycle_report
from scaletest.lifecycle.run_type import LifecycleRun
from scaletest.model import Verdict, VerdictKind
from scaletest.render.blocks import Block, Table, Text
from scaletest.render.contents import Case, Head, Report, Section, Sheet
from scaletest.report import formats
from scaletest.saturation.report.report import saturation_report
from scaletest.stats.thresholds import ThresholdResult
from scaletest.validation.report.report import validation_report
from tests.unit import lifecycles
from tests.unit import made_runs as runs
from tests.unit.benchmarks import test_report as test_benchmark_report
from tests.unit.saturation import test_report as test_saturation_report

HOSTILE = "<script>\x1b[31m|=cmd`\n"


BLOCKS: list[Block] = [Table([HOSTILE, "n"], [[HOSTILE, "1"]], texts=(0,)), Text([HOSTILE])]
# The least that a run type must give.
TOY = Report(
    Head(f"toy {HOSTILE}", Verdict(VerdictKind.FAIL, HOSTILE, HOSTILE), "/runs/toy"),
    summary=lambda: BLOCKS,
    comment=lambda: BLOCKS,
    sections=lambda: [Section(HOSTILE, BLOCKS)],
    sheet=lambda: Sheet(["name", "time_s"], [[HOSTILE, 1 / 3], [None, 2]]),
    cases=lambda: [Case(HOSTILE, VerdictKind.FAIL, HOSTILE, 0.5)],
    data=lambda: {"name": HOSTILE},
)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """A report of each type of run."""
    lifecycle = lifecycles.of(lifecycles.workload("j-1"), lifecycles.workload("j-2"))
    return {
        "validation": validation_report(runs.make("fail", tmp_path_factory.mktemp("runs"))),
        "saturation": saturation_report(test_saturation_report.example_run()),
        "lifecycle": lifecycle_report(
            LifecycleRun("", "/runs/l", lifecycle, title="lifecycle of 2 Jobs")
        ),
        "benchmark": benchmark_report(test_benchmark_report.a_run()),
        "toy": TOY,
    }


@pytest.mark.parametrize("form", formats.texts())
@pytest.mark.parametrize("run_type", ["validation", "saturation", "lifecycle", "benchmark", "toy"])
def test_every_format_shows_every_type_of_run(
    reports: dict[str, Report], run_type: str, form: str
) -> None:
    report = reports[run_type]
    text = formats.render(report, form)
    assert text.endswith("\n")
    assert all(character.isprintable() or character in "\r\n" for character in text)
    if form in ("brief", "html", "md", "text"):
        assert report.head.word in text
    if form == "json":
        json.loads(text)
    if form == "junit":
        # beside the parts of a run, its verdict and its thresholds
        expected = 1 + len(report.cases()) + len(report.head.thresholds)
        assert len(ElementTree.fromstring(text).findall(".//testcase")) == expected
    if form == "csv":
        assert len(text.splitlines()) == 1 + len(report.sheet().rows)
    if form == "html":
        assert "<script" not in text


def test_a_brief_report_is_one_line(reports: dict[str, Report]) -> None:
    line = formats.render(reports["lifecycle"], "brief")
    assert line == "PASS  lifecycle of 2 Jobs: 2 of 2 workloads reached finished\n"


@pytest.mark.parametrize("form", ["html", "md", "text"])
def test_a_fail_of_an_interrupted_run_says_that_it_was_interrupted(
    tmp_path: Path, form: str
) -> None:
    run = runs.make("fail", tmp_path)
    run = replace(run, result=replace(run.result, interrupted="SIGTERM"))
    assert "interrupted: SIGTERM; the verdict rests on" in formats.render(
        validation_report(run), form
    )


def test_times_of_benchmarks_keep_their_fractions_and_cases_their_kind() -> None:
    run = test_benchmark_report.a_run()
    name, first = next(iter(run.results.items()))
    later = replace(first, started_s=1795384790.6362808)
    report = benchmark_report(replace(run, results={**run.results, name: later}))
    assert "1795384790.6362808" in formats.render(report, "csv")
    suite = ElementTree.fromstring(formats.render(report, "junit"))
    assert {case.get("classname") for case in suite.iter("testcase")} == {"net", "IPerf"}


def test_a_duration_below_zero_is_a_number_in_a_sheet_and_a_formula_is_none() -> None:
    toy = replace(TOY, sheet=lambda: Sheet(["value"], [["-0.000012"], ["-1+cmd"], ["=1"]]))
    assert formats.render(toy, "csv").split() == ["value", "-0.000012", "'-1+cmd", "'=1"]


def test_a_terminal_shows_what_is_not_met_before_what_is(reports: dict[str, Report]) -> None:
    bounds = [ThresholdResult(f"t{number}>1", VerdictKind.PASS, "2") for number in range(12)]
    bounds[-1] = replace(bounds[-1], kind=VerdictKind.FAIL)
    toy = reports["toy"]
    lines = formats.render(
        replace(toy, head=replace(toy.head, thresholds=bounds)), "text"
    ).splitlines()
    shown = [line for line in lines if line.startswith("threshold ")]
    assert shown[0].startswith("threshold ✗ t11>1")
    assert len(shown) < len(bounds)
    assert any("more thresholds" in line for line in lines)


def test_the_times_of_test_cases_add_up_to_that_of_the_run(reports: dict[str, Report]) -> None:
    for report in reports.values():
        root = ElementTree.fromstring(formats.render(report, "junit"))
        cases = sum(float(case.attrib["time"]) for case in root.findall(".//testcase"))
        parts = sum(case.seconds for case in report.cases())
        assert cases == pytest.approx(max(report.head.elapsed_s, parts), abs=0.01)
