"""Tests of the example; a workload is a class like any other, and a kind reads and writes text."""

from __future__ import annotations

import json

import pytest
from scaletest_example.checksums import Checksums
from scaletest_example.compression import KIND, CompressionSpec, main

from scaletest.benchmarks.kinds.failure import BenchmarkFailed, Failure
from scaletest.benchmarks.kinds.kind import ExecutionSite, ToolOutput


def test_a_request_reads_the_block_as_often_as_it_wants() -> None:
    """Test the workload without a worker: it is a class like any other."""
    figures = Checksums(mebibytes=2).run(3, algorithm="blake2b")
    assert figures["bytes"] == 6 * 2**20
    assert figures["bytes_per_s"] > 0


def test_the_tool_prints_what_the_kind_reads(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Test tool and kind together: run the command of the kind here, and parse its output."""
    spec = CompressionSpec(level=1, mebibytes=2)
    (task,) = KIND.tasks(spec, ExecutionSite({}, python=("python",)))
    assert task.argv[:3] == ("python", "-m", "scaletest_example.compression")
    monkeypatch.setattr("sys.argv", list(task.argv[2:]))
    main()
    measured = KIND.parse(spec, ToolOutput(capsys.readouterr().out))
    assert set(measured.headlines) == {headline.name for headline in KIND.headlines}
    # half of it is random, which nothing compresses
    assert 1.5 < measured.headlines["ratio"] < 2.5


@pytest.mark.parametrize(
    ("output", "failure"),
    [
        (ToolOutput("", "out of memory", 1), Failure.EXIT),
        (ToolOutput("no JSON"), Failure.BAD_OUTPUT),
        (
            ToolOutput(json.dumps({"bytes": 1, "compressed_bytes": 1, "seconds": 1})),
            Failure.BAD_OUTPUT,
        ),
    ],
)
def test_output_of_no_use_is_a_failed_benchmark(output: ToolOutput, failure: Failure) -> None:
    """Test that the kind notices what a broken tool prints."""
    with pytest.raises(BenchmarkFailed) as refused:
        KIND.parse(CompressionSpec(), output)
    assert refused.value.failure is failure
