"""The verdict on results of load tools: ratios, their intervals, and what files cannot answer."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scaletest.model import VerdictKind
from scaletest.validation.imported.importing import make_plan
from scaletest.validation.imported.judging import ImportedEvaluation, evaluate_results
from scaletest.validation.imported.reading import read_results
from scaletest.validation.imported.result import ToolResult
from tests.unit.validation.imported import samples
from tests.unit.validation.imported.test_reading import write

Change = Callable[[ToolResult], ToolResult]


def results(
    per_s: dict[int, float], repeats: int = 3, noise: float = 0.01, seed: int = 1
) -> list[ToolResult]:
    """Runs of vLLM with 32 in flight for each replica."""
    chance = random.Random(seed)
    return [
        ToolResult(
            count=count,
            repeat=repeat,
            tool="vllm",
            file=f"{count}-{repeat}.json",
            requests_per_s=(rate := mean * math.exp(chance.gauss(0, noise))),
            tokens_per_s=128 * rate,
            successes=6400.0 * count,
            errors=0.0,
            in_flight=32.0 * count,
            input_tokens=512.0,
            output_tokens=128.0,
        )
        for count, mean in per_s.items()
        for repeat in range(repeats)
    ]


def judge(rows: list[ToolResult], axis: str = "replicas", **changes: Any) -> ImportedEvaluation:
    options = {"measure": changes.pop("measure", None), "scale": changes.pop("scale", None)}
    plan = replace(make_plan(rows, axis, **options), **changes)
    return evaluate_results(plan, rows, random.Random(1))


def test_replicas_that_double_pass() -> None:
    # ray#53356: 4.73 to 4.36 requests/s for each of 8 replicas, 92 %
    result = judge(results({1: 4.73, 2: 9.2, 4: 17.9, 8: 34.9}))
    assert result.verdict.kind is VerdictKind.PASS
    assert result.steps[-1].scaled.efficiency.value == pytest.approx(0.92, abs=0.02)


def test_a_limit_in_front_fails() -> None:
    result = judge(results({1: 10.0, 2: 19.8, 4: 25.0}))
    assert result.verdict.kind is VerdictKind.FAIL
    assert "2 -> 4 replicas" in result.verdict.reason


def test_one_run_each_gives_ratios_and_no_verdict(tmp_path: Path) -> None:
    # TensorRT-LLM's table of tensor parallelism on B200
    path = tmp_path / "tp.csv"
    path.write_text("n,throughput\n1,11253\n2,17868\n4,24945\n8,27471\n")
    rows = read_results(path, "replicas")
    result = judge(rows)
    ratios = [step.ratio.value for step in result.steps[1:] if step.ratio]
    assert ratios == pytest.approx([1.59, 1.40, 1.10], abs=0.005)
    assert result.verdict.kind is VerdictKind.INVALID
    assert "fewer than 3 runs" in result.verdict.reason
    # nothing is wanted of more devices inside one replica
    parallel = judge(rows, axis="tensor-parallel")
    assert "nothing is judged" in parallel.verdict.reason


def test_runs_that_are_all_the_same_have_no_interval() -> None:
    # copies of one run, or rates that were rounded: nothing is known of their scatter
    result = judge(results({1: 10.0, 2: 20.0}, noise=0.0))
    assert result.verdict.kind is VerdictKind.INVALID
    assert "fewer than 3 runs that differ" in result.verdict.reason


def test_thresholds_decide_too() -> None:
    rows = results({1: 10.0, 2: 19.0})
    met = judge(rows, axis="tp", thresholds=("efficiency(2)>=0.9",))
    assert met.verdict.kind is VerdictKind.PASS
    missed = judge(rows, thresholds=("ratio>=1.99",))
    assert missed.verdict.kind is VerdictKind.FAIL
    unknown = judge(
        [replace(row, requests_per_s=None) for row in rows[:3]] + rows[3:],
        thresholds=("ratio>=0.1",),
    )
    assert unknown.thresholds[0].kind is VerdictKind.INVALID
    absent = judge(rows, thresholds=("throughput(8)>=1",))
    assert absent.verdict.kind is VerdictKind.INVALID


def test_tokens_are_judged_where_answers_differ_in_length() -> None:
    rows = [
        replace(row, output_tokens=128.0 if row.count == 1 else 64.0)
        for row in results({1: 10.0, 2: 39.0})
    ]
    rows = [
        replace(row, tokens_per_s=(row.requests_per_s or 0.0) * (row.output_tokens or 0.0))
        for row in rows
    ]
    result = judge(rows)
    assert result.plan.measure == "tokens"
    assert result.verdict.kind is VerdictKind.PASS
    assert "answers have 64 to 128 tokens" in judge(rows, measure="requests").verdict.reason


@pytest.mark.parametrize(
    ("change", "reason", "remedy"),
    [
        (
            lambda row: replace(row, in_flight=32.0),
            "requests in flight for each of the replicas differ, from 16 to 32",
            "for each: --max-concurrency 32 at 1, --max-concurrency 64 at 2",
        ),
        (
            lambda row: replace(row, input_tokens=512.0 / row.count),
            "prompts have 256 to 512 tokens",
            "prompts of the same length",
        ),
        (
            lambda row: replace(row, model=f"llama-{row.count}"),
            "different models: llama-1, llama-2",
            "one model",
        ),
        (
            lambda row: replace(row, tool="vllm" if row.count == 1 else "sglang"),
            "different tools",
            "one tool",
        ),
        (
            # llm-d-router#1290: the best throughput had 4,767 failures
            lambda row: replace(row, successes=10_000.0, errors=4767.0 * (row.count == 2)),
            "4767 of 14767 requests failed, and 1% are tolerated",
            "failures are fast",
        ),
        (
            lambda row: replace(row, successes=1000.0, errors=0.0),
            "31 requests for each one in flight",
            "send at least --num-prompts 1600",
        ),
        (
            lambda row: replace(row, offered_per_s=100.0 * row.count, late_s=0.05),
            "sent requests 50 ms late",
            "client processes",
        ),
        (
            lambda row: replace(
                row, in_flight=None, offered_per_s=row.requests_per_s, late_s=0.0002
            ),
            "all requests of an open load were served",
            "--max-concurrency 32 at 1",
        ),
    ],
)
def test_what_files_cannot_answer_is_invalid(change: Change, reason: str, remedy: str) -> None:
    verdict = judge([change(row) for row in results({1: 10.0, 2: 19.8})]).verdict
    assert verdict.kind is VerdictKind.INVALID
    assert reason in verdict.reason
    assert remedy in verdict.remedy


@pytest.mark.parametrize(
    ("tool", "option"),
    [
        ("guidellm", "--profile kind=concurrent,streams=64"),
        ("aiperf", "--concurrency 64"),
        ("inference-perf", "load.stages with concurrency_level: 64"),
        ("gone", "64 in flight"),
    ],
)
def test_a_remedy_is_an_option_of_the_tool(tool: str, option: str) -> None:
    rows = [replace(row, tool=tool, in_flight=32.0) for row in results({1: 10.0, 2: 19.8})]
    assert f"{option} at 2" in judge(rows).verdict.remedy


def test_warnings_leave_the_verdict_alone() -> None:
    rows = [replace(row, tool="aiperf", seed=7.0, levels=3) for row in results({1: 10.0, 2: 19.8})]
    result = judge(rows)
    assert result.verdict.kind is VerdictKind.PASS
    assert any("prompts of one seed were sent more than once" in line for line in result.warnings)
    assert any("give each run a --random-seed of its own" in line for line in result.warnings)
    assert any("3 levels of load" in line for line in result.warnings)


@pytest.mark.parametrize(("ratio", "wrong"), [(1.95, "FAIL"), (1.8, "FAIL"), (1.6, "PASS")])
def test_three_repeats_of_2_percent_noise_seldom_give_a_wrong_verdict(
    ratio: float, wrong: str
) -> None:
    # docs/statistics.md has the rates of 1,000 sets each
    verdicts = [
        judge(results({1: 10.0, 2: 10.0 * ratio}, noise=0.02, seed=seed)).verdict.kind
        for seed in range(300)
    ]
    assert verdicts.count(VerdictKind(wrong)) <= 0.05 * 300 + 3 * math.sqrt(300 * 0.05 * 0.95)


def test_an_aggregate_that_does_not_tell_its_scatter_has_no_interval(tmp_path: Path) -> None:
    rows = []
    for count, per_s in ((1, 1.0), (2, 1.96)):
        document = samples.aiperf_aggregate(per_s, 5, 0.01)
        del document["metrics"]["request_throughput_avg"]["cv"]
        rows += read_results(write(tmp_path / f"n{count}.json", document), "replicas")
    assert judge(rows).verdict.kind is VerdictKind.INVALID


def test_an_aggregate_of_five_runs_has_an_interval(tmp_path: Path) -> None:
    rows = []
    for count, per_s in ((1, 1.0), (2, 1.96)):
        path = write(tmp_path / f"n{count}.json", samples.aiperf_aggregate(per_s, 5, 0.01))
        rows += read_results(path, "replicas")
    result = judge(rows)
    assert result.verdict.kind is VerdictKind.PASS
    assert result.steps[0].repeats == 5


def test_price_of_a_million_tokens() -> None:
    result = judge(results({1: 10.0, 2: 20.0}, noise=0.0001), price=3.6)
    # 3.6 an hour / 1280 tokens a second
    assert result.steps[0].price_per_million == pytest.approx(3.6 / 3600 / 1280 * 1e6, rel=1e-3)
