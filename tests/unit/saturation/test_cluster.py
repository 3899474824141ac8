"""What saturate asks an API server that is not as the tests' own clusters are: agents that end,
trouble, settings that are tuned.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from scaletest.cli import main
from scaletest.cluster.changes import Changes
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.hold_autoscalers import Autoscalers
from scaletest.cluster.jobs import AgentJob
from scaletest.cluster.tuning import Tuning
from scaletest.model.errors import AgentLost, UsageError
from tests.unit.fake_api import Answer, api
from tests.unit.fake_objects import FakeObjects


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ((200, {}, {"status": {"active": 2}}), ""),
        ((200, {}, {"status": {"active": 1, "failed": 1}}), "1 agents of job"),
        ((200, {}, {"status": {"succeeded": 2}}), "2 agents of job"),
        ((404, {}, {"message": "not found"}), "was deleted"),
        ((503, {}, {"message": "busy"}), ""),
    ],
)
def test_an_agent_is_lost_when_its_pod_ended_and_not_because_the_api_server_is_busy(
    answer: Answer, problem: str
) -> None:
    with api(lambda *asked: answer) as (cluster, _):
        job = AgentJob(cluster, "m", "image", 2, "redis://h")
        if problem:
            with pytest.raises(AgentLost, match=problem):
                job.check()
        else:
            job.check()


def test_the_secret_of_agents_goes_with_their_job_also_when_nobody_deletes_it() -> None:
    created: list[dict[str, Any]] = []

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        created.append(json.loads(body))
        return 201, {}, {"metadata": {"uid": "7"}}

    with api(act) as (cluster, asked):
        AgentJob(cluster, "m", "image", 2, "redis://:secret@h").create()
    assert asked == [
        ("POST", "/apis/batch/v1/namespaces/n/jobs"),
        ("POST", "/api/v1/namespaces/n/secrets"),
    ]
    job, secret = created
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"], "uid": "7"}
    assert (
        secret["metadata"]["ownerReferences"] == [owner]
        and secret["stringData"]["url"] == "redis://:secret@h"
    )
    assert job["spec"]["ttlSecondsAfterFinished"] and "secret@" not in json.dumps(job)


@pytest.mark.parametrize("jobs", [True, False])
def test_a_second_signal_still_takes_the_agents_job_away(
    jobs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def stopping(stop: Any, *, unwind: bool) -> Any:
        asked.append(unwind)
        raise UsageError("enough was seen")

    monkeypatch.setattr("scaletest.saturation.measure.runner.stop_on_signals", stopping)
    line = [
        "saturate",
        "http://127.0.0.1:1/",
        "--redis-url",
        "redis://h",
        "--run-dir",
        str(tmp_path / "run"),
    ]
    assert main.run([*line, *(["--agent-jobs", "image"] if jobs else [])]) == 2
    assert asked == [jobs]


def test_a_setting_changes_only_what_is_tuned() -> None:
    objects = FakeObjects()
    container, other = objects.model["spec"]["template"]["spec"]["containers"]
    with objects.served() as cluster:
        deployment = Deployment(cluster, "model")
        changes = Changes(cluster, deployment)
        scalers = Autoscalers(cluster, "model")
        tuning = Tuning(cluster, deployment, scalers, changes)
        assert tuning.resources() == (0.5, 0.0)
        tuning.apply({"cpu": "2", "--workers": "4", "replicas": "3"})
        # when another image is rolled out, and the next setting is tried
        container["image"] = "b"
        tuning.apply({"cpu": "3", "--workers": "8", "replicas": "1"})
        assert container == {
            "name": "m",
            "image": "b",
            "args": ["--workers", "8"],
            "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "3"}},
        }
        assert objects.model["spec"]["replicas"] == 1 and other == {"name": "other"}
        changes.close()
    # then what was tuned is put back
    assert container["args"] == ["--workers", "1"] and container["image"] == "b"
    assert container["resources"] == {"requests": {"cpu": "500m"}}
