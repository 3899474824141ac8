"""Runs of benchmarks on disk, compared with others, and the forms in which they are shown."""

import csv
import io
import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from scaletest.benchmarks.documents import BenchmarkPhase, BenchmarkResult
from scaletest.benchmarks.documents.sweep import plan_of
from scaletest.benchmarks.folder import BenchmarkFolder, StoredBenchmarks
from scaletest.benchmarks.judging.evaluation import (
    BenchmarkRun,
    evaluate_benchmarks,
    permutation_text,
)
from scaletest.benchmarks.kinds import Failure
from scaletest.benchmarks.report import benchmark_report, group_failures
from scaletest.benchmarks.run_type import RUN_TYPE
from scaletest.cli.main import run as cli
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.report import formats
from scaletest.runs.folder import RunFolder
from scaletest.runs.registry import type_of
from scaletest.stats.comparison import Comparison, Side, compare_runs
from tests.unit.golden_files import golden

SET = {
    "kind": "BenchmarkSet",
    "metadata": {"name": "net"},
    "spec": {
        "template": {"kind": "IPerf", "spec": {"duration": 1}},
        "repetitions": 2,
        "permutations": {"product": {"streams": [1, 2]}},
    },
}
NETWORK = {
    "interface": "eth0",
    "family": "IPv4",
    "mtu": 1500,
    "address": "198.18.0.2",
    "peer": "198.18.0.1",
}
HOSTILE = "<script>alert(1)</script>\x1b[31m|`=cmd`"


def stored(factor: float = 1.0, *, broken: bool = False) -> StoredBenchmarks:
    plan, _ = plan_of(SET, list)
    ended = {}
    for number, benchmark in enumerate(plan.benchmarks):
        ended[benchmark.name] = BenchmarkResult(
            benchmark.name,
            BenchmarkPhase.COMPLETED,
            {"bandwidth": factor * (1e10 + 1e8 * number), "retransmits": float(number)},
            network=NETWORK,
            started_s=1e9,
            finished_s=1e9 + 2,
        )
    if broken:
        name = plan.benchmarks[-1].name
        ended[name] = BenchmarkResult(
            name,
            BenchmarkPhase.FAILED,
            failure=Failure.BAD_OUTPUT,
            message=HOSTILE,
            lines=(HOSTILE,),
        )
    return StoredBenchmarks(plan, {"host": "node-a"}, ended, {})


def a_run(factor: float = 1.0, *, broken: bool = False) -> BenchmarkRun:
    run = stored(factor, broken=broken)
    return evaluate_benchmarks(
        run.plan, run.results, name="run", folder="/runs/run", environment=run.environment
    )


@pytest.mark.parametrize("form", formats.texts())
def test_foreign_text_does_no_harm_in_any_form(form: str) -> None:
    text = formats.render(benchmark_report(a_run(broken=True)), form)
    assert "\x1b" not in text
    if form == "html":
        assert "<script" not in text
    if form == "junit":
        root = ElementTree.fromstring(text)
        assert root.get("tests") == "5" and root.get("failures") == "2"
    if form == "json":
        data = json.loads(text)
        assert data["permutations"][1]["failed"] == 1 and len(data["benchmarks"]) == 4
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [row["streams"] for row in rows] == ["1", "1", "2", "2"]
        assert float(rows[0]["bandwidth"]) == 1e10 and rows[0]["mtu"] == "1500"


@pytest.mark.parametrize("failure", [failure for failure in Failure if failure])
def test_where_nothing_could_be_measured_the_run_is_invalid_and_does_not_fail(
    failure: Failure,
) -> None:
    # given one benchmark of four without a result
    run = stored()
    name = run.plan.benchmarks[0].name
    why = BenchmarkResult(
        name,
        BenchmarkPhase.FAILED,
        failure=failure,
        message="why",
        lines=("a", "its last words", "}"),
    )
    ended = {**run.results, name: why}
    verdict = evaluate_benchmarks(run.plan, ended, name="run", folder="/r").verdict
    # expect the tool's own words as the reason, and advice as what to do
    assert (
        "why: its last words" in verdict.reason
        and verdict.remedy
        and "its last words" not in verdict.remedy
    )
    # expect FAIL only where the tool had what it needs
    nothing = failure in ("no_device", "no_binary", "refused", "interrupted", "invalid")
    assert verdict.kind.exit_code == (4 if nothing else 3) and "why" in verdict.reason
    # and a failure counts more than what is missing
    other = run.plan.benchmarks[1].name
    ended[other] = BenchmarkResult(
        other, BenchmarkPhase.FAILED, failure=Failure.EXIT, message="broken"
    )
    assert evaluate_benchmarks(run.plan, ended, name="run", folder="/r").verdict.kind.exit_code == 3


def test_a_failure_that_brings_its_own_advice_gives_it_in_every_text() -> None:
    # given a benchmark that says itself what to do
    run = stored()
    name = run.plan.benchmarks[0].name
    why = BenchmarkResult(
        name,
        BenchmarkPhase.FAILED,
        failure=Failure.REFUSED,
        message="too large",
        remedy="choose a smaller size",
    )
    report = evaluate_benchmarks(run.plan, {**run.results, name: why}, name="run", folder="/r")
    assert report.verdict.remedy == "choose a smaller size"
    for form in set(formats.texts()) - {"brief", "csv"}:
        assert "choose a smaller size" in formats.render(benchmark_report(report), form), form


def swept(product: dict[str, list[object]], **network: object) -> BenchmarkRun:
    """A sweep of which every benchmark was measured."""
    spec = {"template": {"kind": "IPerf"}, "permutations": {"product": product}}
    plan, _ = plan_of({"kind": "BenchmarkSet", "metadata": {"name": "s"}, "spec": spec}, list)
    ended = {
        benchmark.name: BenchmarkResult(
            benchmark.name,
            BenchmarkPhase.COMPLETED,
            {"bandwidth": 1e9},
            network=network,
        )
        for benchmark in plan.benchmarks
    }
    return evaluate_benchmarks(plan, ended, name="run", folder="/run")


@pytest.mark.parametrize(
    "product", [{"hostNetwork": [True, False]}, {"hostNetwork": [True, False], "streams": [1, 2]}]
)
@pytest.mark.parametrize("form", formats.texts())
def test_values_of_permutations_are_written_as_yaml_writes_them(
    form: str, product: dict[str, list[object]]
) -> None:
    text = formats.render(benchmark_report(swept(product)), form)
    assert "True" not in text and "False" not in text
    assert "true" in text or form in ("brief", "junit")


def test_a_field_that_a_permutation_takes_back_is_null_and_others_are_as_in_the_document() -> None:
    values = {
        "mtu": None,
        "nodes": ["a", "b"],
        "pods": {"labels": {"x": "y"}},
        "bitrate": "10M",
        "duration": 3,
    }
    assert (
        permutation_text(values)
        == 'mtu null, nodes ["a", "b"], pods {"labels": {"x": "y"}}, bitrate 10M, duration 3'
    )


def test_a_sweep_over_the_mtu_has_its_own_column_beside_the_one_that_was_used() -> None:
    text = formats.render(
        benchmark_report(
            swept({"mtu": [1500, 9000], "streams": [1]}, interface="eth0", family="IPv4", mtu=9000)
        ),
        "csv",
    )
    titles = next(csv.reader(io.StringIO(text)))
    assert len(set(titles)) == len(titles)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["mtu"], row["permutation.mtu"], row["streams"]) for row in rows] == [
        ("9000", "1500", "1"),
        ("9000", "9000", "1"),
    ]


def compared(
    base: BenchmarkRun, candidate: BenchmarkRun, tolerance: float = 0.9, *, force: bool = False
) -> Comparison:
    """The comparison of two runs of benchmarks."""
    first, other = (Side(run.name, run.folder, RUN_TYPE.measures(run)) for run in (base, candidate))
    contrasted = [(other, RUN_TYPE.contrast(base, candidate))]
    return compare_runs("benchmark", first, contrasted, tolerance, force=force)


def test_two_runs_are_compared_by_permutation_and_only_where_a_side_is_better() -> None:
    comparison = compared(a_run(), a_run(0.5), tolerance=0.05)
    assert {row.base.name for row in comparison.candidates[0].deciding} == {"bandwidth"}
    assert comparison.verdict.kind.exit_code == 3
    assert compared(a_run(), a_run()).verdict.kind.exit_code == 0


def test_runs_of_different_specs_are_compared_only_by_force() -> None:
    other = json.loads(json.dumps(SET))
    other["spec"]["template"]["spec"]["duration"] = 2
    plan, _ = plan_of(other, list)
    changed = evaluate_benchmarks(plan, stored().results, name="run", folder="/r")
    comparison = compared(a_run(), changed)
    assert (
        comparison.verdict.kind.exit_code == 4
        and "duration of IPerf streams 1: 1 and 2" in comparison.verdict.reason
    )
    assert compared(a_run(), changed, force=True).verdict.kind.exit_code == 0


def test_a_run_on_disk_is_read_again_as_it_was(tmp_path: Path) -> None:
    folder = BenchmarkFolder.create(tmp_path / "r")
    before = stored(broken=True)
    folder.begin(before.plan, {"executor": "local"})
    for benchmark_result in before.results.values():
        folder.store(benchmark_result)
    read_again = folder.load()
    assert (
        read_again.results == before.results and read_again.plan.to_dict() == before.plan.to_dict()
    )
    assert read_again.environment["executor"] == "local" and type_of(folder) is RUN_TYPE
    with (folder.path / "records.jsonl").open("a") as file:
        file.write('{"name": "cut o')
    again = folder.load()
    assert again.results == before.results
    folder.rewrite_records(again)
    folder.store(next(iter(before.results.values())))
    assert folder.load().results == before.results
    (folder.path / "logs" / "net-1").mkdir(parents=True)
    (folder.path / "logs" / "net-1" / "client-0.out").write_text("log")
    assert folder.remove() and not folder.path.exists()


def test_a_run_that_holds_no_benchmarks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"kind": "other"}')
    with pytest.raises(InvalidValue, match="no run type 'other'"):
        type_of(RunFolder(tmp_path))
    with pytest.raises(UsageError, match="is not a benchmark run: it is a other run"):
        BenchmarkFolder(tmp_path).load()
    (tmp_path / "plan.json").write_text('{"kind": "benchmark", "benchmarks": [{}]}')
    with pytest.raises(UsageError, match="cannot be read"):
        BenchmarkFolder(tmp_path).load()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["bench", "run"], "nothing to run"),
        (["bench", "run", "IPref"], "no kind"),
        (["bench", "run", "IPerf", "--set", "streams"], "not KEY=VALUE"),
        (["bench", "run", "IPerf", "--set", "streams={"], "not valid YAML"),
        (["bench", "run", "gone.yaml"], "cannot be read"),
        (["bench", "run", "IPerf", "--set", "networkName=a/b"], "Multus"),
        (["bench", "run", "IPerf", "--set", "nodes=[moon]"], "no node moon"),
        (["bench", "run", "--resume", "gone"], "no run 'gone'"),
        (["bench", "explain", "Nothing"], "no kind"),
        (["bench", "explain", "BenchmarkSet"], "it sweeps a benchmark over values"),
    ],
)
def test_a_mistake_on_the_command_line_says_what_to_do(
    arguments: list[str],
    text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert cli(arguments) == 2
    assert text in capsys.readouterr().err
    assert not list(tmp_path.rglob("plan.json")), "nothing was begun"


def test_a_paused_run_is_stored_and_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # given a machine that has the tool, which is not started
    program = tmp_path / "bin" / "iperf3"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    # when
    line = ["bench", "run", "IPerf", "--repetitions", "3"]
    assert cli([*line, "--set", "paused=true"]) == 4
    # expect
    capsys.readouterr()
    assert cli(["runs", "list", "--format", "json"]) == 0
    row = json.loads(capsys.readouterr().out)[0]
    assert (row["problem"], row["workload"]) == ("", "IPerf · 3 repetitions")
    assert cli(["report", "LAST"]) == 0
    assert "INVALID  3 of 3 were not measured" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["IPerf", "Fio", "OpenFOAM", "PyTorch"])
def test_explain_names_every_field_and_number(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(["bench", "explain", kind]) == 0
    text = capsys.readouterr().out
    assert (
        "hostNetwork" in text and "numbers" in text and "apiVersion: scaletest.dev/v1alpha1" in text
    )


def test_the_chart_of_many_benchmarks_has_few_labels() -> None:
    page = formats.render(benchmark_report(swept({"duration": [*range(1, 151)]})), "html")
    assert 300 > page.count("c-tick") > 5


def test_equal_permutations_are_compared_as_one() -> None:
    spec = {"template": {"kind": "IPerf"}, "permutations": {"product": {"streams": [1, 1]}}}
    plan, _ = plan_of({"kind": "BenchmarkSet", "metadata": {"name": "s"}, "spec": spec}, list)
    ended = {
        benchmark.name: BenchmarkResult(
            benchmark.name,
            BenchmarkPhase.COMPLETED,
            {"bandwidth": 1e9 + number},
        )
        for number, benchmark in enumerate(plan.benchmarks)
    }
    run = evaluate_benchmarks(plan, ended, name="run", folder="/run")
    (row,) = compared(run, run).candidates[0].changes
    assert (len(row.base.repeats), len(row.candidate.repeats)) == (2, 2)


def test_benchmarks_that_failed_alike_are_told_once() -> None:
    # given benchmarks that all failed with another port, and one that failed otherwise
    run = stored()
    for number, name in enumerate(run.results):
        message = f"connect to 10.0.0.{number}:5201 failed" if number else "no such host"
        run.results[name] = BenchmarkResult(
            name, BenchmarkPhase.FAILED, failure=Failure.BAD_OUTPUT, message=message
        )
    report = evaluate_benchmarks(run.plan, run.results, name="run", folder="/runs/run")
    first, second = group_failures(report.failures)
    assert (len(first), len(second)) == (len(run.results) - 1, 1)
    text = formats.render(benchmark_report(report), "text")
    assert text.count("connect to 10.0.0.") == 1
    assert f"{len(first) - 1} more benchmarks alike: {first[1].name}" in text
    assert text.count("no such host") >= 1


def only(values: dict[str, float], kind: str = "Fio", **spec: Any) -> BenchmarkRun:
    """A run of a single benchmark with these numbers."""
    plan, _ = plan_of({"kind": kind, "metadata": {"name": kind.lower()}, "spec": spec}, list)
    ended = {
        benchmark.name: BenchmarkResult(benchmark.name, BenchmarkPhase.COMPLETED, values)
        for benchmark in plan.benchmarks
    }
    return evaluate_benchmarks(plan, ended, name="run", folder="/runs/run")


READ = {"readBandwidth": 1.2e9, "readIops": 275.0, "readLatency99": 0.0068}


@pytest.mark.parametrize("form", ["text", "md"])
@pytest.mark.parametrize("name", ["single", "sweep"])
def test_runs_of_benchmarks_are_told_in_words(name: str, form: str) -> None:
    run = only(READ) if name == "single" else a_run()
    golden(f"benchmark-{name}.{form}", formats.render(benchmark_report(run), form))


def test_a_page_has_words_and_keeps_names_for_thresholds_and_programs() -> None:
    page = formats.render(benchmark_report(only(READ)), "html")
    # expect the numbers in a table alone, since one point makes no chart
    assert "1.200 GB/s" in page and "<svg" not in page
    assert page.index("read latency, 99th percentile") < page.index("readLatency99")
    # the name stands in its column alone
    assert page.count("readLatency99") == 1
    sweep = formats.render(benchmark_report(swept({"streams": [1, 2]})), "html")
    assert "<h3>bandwidth</h3>" in sweep and ">Gbit/s<" in sweep and ">streams<" in sweep
    assert sweep.count("<svg ") == 1
    rows = list(csv.reader(io.StringIO(formats.render(benchmark_report(only(READ)), "csv"))))
    assert "readLatency99" in rows[0]
    data = json.loads(formats.render(benchmark_report(only(READ)), "json"))
    assert "readLatency99" in data["permutations"][0]["headlines"]
