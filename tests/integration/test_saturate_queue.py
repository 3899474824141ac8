"""scaletest saturate on a queue of real workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scaletest.load.level_load import LoadOrder
from scaletest.load.pace import constant
from tests.conftest import call
from tests.integration.services import check_verdict


def test_a_queue_saturates_at_the_throughput_of_its_workers(
    start: Callable[..., Any], url: str, tmp_path: Path
) -> None:
    # given four workers that sleep 0.2 s: 20 requests a second
    for _ in range(4):
        start()
    done = call(
        *(
            "saturate",
            "--queue",
            "q",
            "--redis-url",
            url,
            "--load",
            "closed",
            "--step-time",
            "2",
            "--warm",
            "1",
        ),
        *(
            "--maximum",
            "16",
            "--precision",
            "0.2",
            "--run-dir",
            str(tmp_path / "run"),
            "--format",
            "json",
        ),
        *("--wanted", "5", "--", "0.2"),
    )
    result = json.loads(done.stdout)
    check_verdict(done.returncode, result)
    # a quarter or four times as many would be that of something else
    assert 5 < result["saturation_per_s"]["value"] < 80, result
    # where answers take their time to be seen, more in flight are needed to keep four at work
    assert 4 <= result["saturation_in_flight"] <= 16
    assert result["steps"][-1]["load"] == "open"


def test_a_queue_that_nobody_serves_is_refused(url: str, queues: Any) -> None:
    done = call("saturate", "--queue", "q", "--redis-url", url)
    assert done.returncode == 2 and "has no worker" in done.stderr
    done = call("saturate", "--queue", "other", "--redis-url", url)
    assert done.returncode == 2 and "not declared" in done.stderr


def test_requests_over_the_limit_of_a_queue_are_backlog_and_not_late(
    start: Callable[..., Any], url: str
) -> None:
    # given a worker that does 20 requests a second, 100 due a second, and 10 in flight at most
    from scaletest.analysis.saturation.step import assess
    from scaletest.broker import Client, connect
    from scaletest.model.saturation import UNSENT, SaturationPlan, SaturationStep
    from scaletest.saturation.loads import QueueLoad

    start()
    load = QueueLoad(
        lambda: Client(connect(url), patience_s=60.0), "q", arguments=("0.05",), maximum=10
    )
    order = LoadOrder(3.0, pace=constant(100), patience_s=0.1)
    measured = load.measure(order, lambda: False, lambda ended, failed: None)
    # then every request that was due is on record, from when it was due
    due = sorted(sample.due_s for sample in measured.samples)
    assert due == pytest.approx([n / 100 for n in range(300)], abs=1e-6)
    assert sorted(sample.request for sample in measured.samples) == list(range(300))
    assert measured.unsent == sum(sample.outcome == UNSENT for sample in measured.samples) > 100
    step = SaturationStep(
        0, "ramp", "open", 100.0, measured.seconds, 300, 0.6, measured.cpu, measured.beat_s
    )
    judged = assess(SaturationPlan("q"), step, measured.samples)
    # 80, and more where the worker had to wait for a processor
    assert judged.growth is not None and 75 < judged.growth.value <= 100 and judged.saturated
    # and none was noticed late that had to wait for room, which is so from the time that ten are
    # seen in flight
    sent = [sample for sample in measured.samples if sample.outcome != UNSENT]
    sent.sort(key=lambda sample: sample.request)
    assert [sample.lag_s for sample in sent[20:]] == [0.0] * len(sent[20:])
