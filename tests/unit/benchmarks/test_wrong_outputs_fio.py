"""Outputs of fio that are not what the spec asks for: none gives a number."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from scaletest.benchmarks.kinds.failure import Failure
from tests.unit.tool_outputs import FIO, fio_report, parse, refused


def test_two_fio_workers_on_one_host_are_counted_as_two() -> None:
    report = fio_report(("198.18.0.1", 8765), ("198.18.0.1", 8766))
    single = fio_report(("198.18.0.1", 8765))
    measured = parse("Fio", {**FIO, "numWorkers": 2}, json.dumps(report))
    alone = parse("Fio", FIO, json.dumps(single))
    assert measured.headlines["readBandwidth"] == 2 * alone.headlines["readBandwidth"]
    assert "readLatency99" in alone.headlines and "readLatency99" not in measured.headlines
    assert [row["port"] for row in measured.result["jobs"]][:2] == [8765, 8766]


@pytest.mark.parametrize(
    ("spec", "workers", "message"),
    [
        # one too many, one too few, one twice
        ({}, [("198.18.0.1", 8765), ("198.18.0.2", 8765)], "2 workers instead of 1"),
        ({}, [("198.18.0.1", 8765), ("198.18.0.1", 8766)], "2 workers instead of 1"),
        ({"numWorkers": 3}, [("198.18.0.1", 8765), ("198.18.0.2", 8765)], "2 workers instead of 3"),
        ({"numWorkers": 2}, [("198.18.0.1", 8765), ("198.18.0.1", 8765)], "1 workers instead of 2"),
        (
            {},
            [("198.18.0.1", 8765), ("198.18.0.1", 8765)],
            "neither once nor once for each of its 1 jobs",
        ),
        # something else than what was asked for, or not as long
        ({"rw": "randread"}, [("198.18.0.1", 8765)], "writes with rw randread"),
        ({"runtime": "4s"}, [("198.18.0.1", 8765)], "3.001 s instead of 4 s"),
    ],
)
def test_fio_reports_of_other_workers_or_work_are_refused(
    spec: dict[str, Any], workers: Sequence[tuple[str, int]], message: str
) -> None:
    assert message in refused("Fio", {**FIO, **spec}, json.dumps(fio_report(*workers))).message


@pytest.mark.parametrize(
    "changes",
    [
        {"read/total_ios": 0, "read/io_bytes": 0, "read/bw_bytes": 0, "read/iops": 0},
        {"read/bw_bytes": 0},
        {"write/lat_ns/mean": 0},
        {"read/clat_ns/percentile/99.000000": -1},
        {"read/iops": -1},
    ],
)
def test_a_fio_report_without_what_was_measured_is_refused(changes: dict[str, int]) -> None:
    report = fio_report(("198.18.0.1", 8765))
    for path, value in changes.items():
        *parents, name = path.split("/")
        row = report["client_stats"][0]
        for parent in parents:
            row = row[parent]
        row[name] = value
    assert refused("Fio", FIO, json.dumps(report)).failure is Failure.BAD_OUTPUT


@pytest.mark.parametrize(("side", "name"), [("read", "bw_bytes"), ("write", "iops")])
def test_a_rate_of_fio_that_is_not_that_of_its_counts_is_refused(side: str, name: str) -> None:
    report = fio_report(("198.18.0.1", 8765))
    report["client_stats"][0][side][name] *= 2
    assert refused("Fio", FIO, json.dumps(report)).failure is Failure.BAD_OUTPUT


def test_a_sum_of_fio_that_is_not_that_of_its_workers_is_refused() -> None:
    report = fio_report(("198.18.0.1", 8765), ("198.18.0.2", 8765))
    report["client_stats"][-1]["read"]["io_bytes"] *= 2
    assert "add up to" in refused("Fio", {**FIO, "numWorkers": 2}, json.dumps(report)).message
    doubled = fio_report(("198.18.0.1", 8765), ("198.18.0.2", 8765))
    doubled["client_stats"].append(doubled["client_stats"][-1])
    assert "2 times" in refused("Fio", {**FIO, "numWorkers": 2}, json.dumps(doubled)).message
