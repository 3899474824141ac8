"""Files of the Run:ai scale test tool."""

import json
from datetime import datetime

import pytest

from scaletest.lifecycle import runai
from scaletest.lifecycle.judging.timeline import timeline_of
from scaletest.lifecycle.records import Stamp
from scaletest.model.errors import InvalidValue
from tests.unit.lifecycles import BEGAN, submission, workload


def test_the_originals_files_are_read_and_written() -> None:
    job = workload("j-00aa11")
    job.stamps = {"created": Stamp(BEGAN + 1, BEGAN + 1.2), "submitted": Stamp(watch_s=BEGAN)}
    text = runai.write_sampled([timeline_of(job)], "p")
    row = json.loads(text)[0]
    assert list(row) == ["jobName", "jobNamespace", "projectName", *runai.FIELDS]
    assert row["workloadCreatedTimestamp"] == "2026-09-21T14:13:21.000000+00:00"
    assert row["backendJobCreatedTimestamp"] == row["workloadCreatedTimestamp"]
    back = runai.read_sampled(text)[0]
    assert back.stamps["created"] == Stamp(api_s=BEGAN + 1)
    # a time that only repeats another one is no time of its own
    assert "evicted" not in back.stamps and "backend_job_created" not in back.stamps
    written = runai.write_submitted([submission("j-00aa11"), submission("j-2", False)])
    assert list(json.loads(written)[0]) == [
        "jobName",
        "projectName",
        "jobNamespace",
        "submitTimestamp",
    ]
    assert runai.read_submitted(written) == [submission("j-00aa11")]


def test_the_originals_plotter_can_read_every_time() -> None:
    # given a workload of which only the least is known: no job, pod group, eviction or claim
    files = (
        runai.write_submitted([submission("j-00aa11")]),
        runai.write_sampled([timeline_of(workload("j-00aa11"))], "p"),
    )
    (submitted,), (sampled,) = map(json.loads, files)
    # it joins by these two, and reads each field called so, cut to whole seconds
    for key in ("jobName", "projectName"):
        assert submitted[key] == sampled[key]
    times = [at for row in (submitted, sampled) for key, at in row.items() if "Time" in key]
    assert len(times) == 11
    for at in times:
        cut, _, zone = at.replace("T", " ").partition(".")
        assert zone.endswith("+00:00")
        assert datetime.strptime(cut, "%Y-%m-%d %H:%M:%S").year == 2026


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '[{"jobName": 3}]', '[{"jobName": "a"}]'])
def test_foreign_files_of_the_original_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        runai.read_submitted(text)
