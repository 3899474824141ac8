"""What saturate asks an API server that is not as the tests' own clusters are: no KEDA, agents that
end, trouble.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from scaletest.cli import main
from scaletest.cluster.cadvisor import Cadvisor
from scaletest.cluster.connection import Cluster
from scaletest.cluster.deployment import Autoscaler, Deployment
from scaletest.cluster.jobs import AgentJob
from scaletest.cluster.service import AutoscalerHold, Service, limits_in_annotation
from scaletest.cluster.tuning import Tuning, TuningBackup
from scaletest.model.errors import AgentLost, InvalidValue, UsageError
from tests.unit.fake_api import Answer, api, page, thing

LABELS = {"app": "model"}
SERVICE = {"spec": {"selector": LABELS, "ports": [{"port": 80}]}}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": []}}
MODEL = thing("model", spec={"selector": {"matchLabels": LABELS}, "template": TEMPLATE})


def groups(*names: str) -> dict[str, Any]:
    return {"groups": [{"name": name, "preferredVersion": {"version": "v1"}} for name in names]}


@pytest.mark.parametrize("keda", [False, True])
def test_scaled_objects_are_listed_only_where_there_are_any(keda: bool) -> None:
    aims = thing("s", spec={"scaleTargetRef": {"name": "model"}})

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if path.endswith("/services/model"):
            return 200, {}, SERVICE
        if path == "/apis":
            return 200, {}, groups("apps", *(["keda.sh"] if keda else []))
        if path.endswith("/deployments/model"):
            return 200, {}, MODEL
        if path.endswith("/deployments"):
            return page([MODEL])
        if path.endswith("/horizontalpodautoscalers"):
            return page([])
        return (
            page([aims])
            if keda and path.endswith("/scaledobjects")
            else (404, {}, {"message": "not found"})
        )

    with api(act) as (cluster, _):
        deployment = Service(cluster, "svc/model").deployment()
        assert deployment is not None
        assert [scaler.name for scaler in deployment.scalers()] == (["s"] if keda else [])


def test_a_scaled_object_resumes_only_if_it_was_paused_by_a_killed_run() -> None:
    # given one that we paused and never resumed, and one that somebody else did
    paused = "autoscaling.keda.sh/paused"
    marks: dict[str, dict[str, str]] = {
        "ours": {paused: "true", "scaletest/held": "true"},
        "theirs": {paused: "true"},
    }

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        name = path.rsplit("/", 1)[1]
        if method == "PATCH":
            annotations = {**marks[name], **json.loads(body)["metadata"]["annotations"]}
            marks[name] = {key: value for key, value in annotations.items() if value is not None}
            return 200, {}, {}
        if name == "scaledobjects":
            return page([_aimed(each, marks[each]) for each in marks])
        return page([]) if name == "horizontalpodautoscalers" else (200, {}, MODEL)

    with api(act) as (connected, _):
        settings = client.Configuration(host=connected.client.configuration.host)
        cluster = Cluster(client.ApiClient(settings), connected.namespace)
        hold = AutoscalerHold(cluster, Deployment(cluster, "model"))
        assert [scaler.name for scaler in hold.active()] == ["ours"]
        # when it is taken over and released
        assert hold.adopt() == ["ScaledObject ours"] and hold.release() == []
    assert marks == {"ours": {}, "theirs": {paused: "true"}}


def _aimed(name: str, marks: dict[str, str]) -> dict[str, Any]:
    row = thing(name, spec={"scaleTargetRef": {"name": "model"}})
    return {**row, "metadata": {**row["metadata"], "annotations": marks}}


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

    monkeypatch.setattr("scaletest.saturation.runner.stopping", stopping)
    line = [
        "saturate",
        "--url",
        "http://127.0.0.1:1/",
        "--redis-url",
        "redis://h",
        "--run-dir",
        str(tmp_path / "run"),
    ]
    assert main.run([*line, *(["--agent-jobs", "image"] if jobs else [])]) == 2
    assert asked == [jobs]


def test_the_use_of_cpu_is_over_the_time_that_the_figures_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given figures ten seconds apart, seen with delay
    pages = [("1.0", 1000), ("1.0", 1000), ("3.0", 11000)]
    looked: list[float] = []
    cadvisor = Cadvisor(Cluster(_client(), "n"), clock=lambda: 100.0 + 2 * len(looked))

    def fetch(path: str, action: str, headers: dict[str, str]) -> Answer:
        value, at = pages[len(looked)]
        looked.append(at)
        labels = '{container="a",namespace="n",pod="p"}'
        text = (
            f"container_cpu_usage_seconds_total{labels} {value}"
            f" {at}\ncontainer_memory_working_set_bytes{labels} 5 {at}"
        )
        return 200, text.encode(), {}  # type: ignore[return-value]

    monkeypatch.setattr(cadvisor._raw, "fetch", fetch)
    assert [cadvisor.sample(["node"])["p"] for _ in pages] == [(None, 5.0), (None, 5.0), (0.2, 5.0)]


def _client() -> Any:
    with api(lambda *asked: (404, {}, {})) as (cluster, _):
        return cluster.client


def test_the_tuning_annotation_holds_only_the_settings_to_restore() -> None:
    # given a container, and another variable, image and argument list later
    container = {
        "name": "m",
        "image": "a",
        "args": ["x"],
        "env": [{"name": "A", "value": "1"}, {"name": "W"}],
    }
    before = TuningBackup.of(container, 2, "W", "2026-11-21T10:00:00.000+00:00")
    assert TuningBackup.read(before.text()) == before
    later = {
        "name": "m",
        "image": "b",
        "resources": {"limits": {"cpu": "1"}},
        "env": [{"name": "W", "value": "4"}],
    }
    assert before.restored(later) == {
        "name": "m",
        "image": "b",
        "args": ["x"],
        "env": [{"name": "W"}],
    }
    assert "2 replicas" in str(before) and "'1'" not in str(before)
    # and a variable that was not there goes
    without = TuningBackup.of({"name": "m"}, 2, "W", "now")
    assert without.restored(later) == {"name": "m", "image": "b"}


def test_another_setting_keeps_an_image_that_was_rolled_out_meanwhile() -> None:
    # given a tuning that has tried one setting, and somebody who rolls out another image
    row: dict[str, Any] = {"name": "m", "image": "a", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [row]}}
    model = thing(
        "model", spec={"selector": {"matchLabels": LABELS}, "template": template, "replicas": 2}
    )

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if method == "PATCH" and isinstance(change := json.loads(body), dict):
            model["metadata"].setdefault("annotations", {}).update(
                change["metadata"]["annotations"]
            )
        elif method == "PATCH":
            row.clear()
            row.update(
                next(operation["value"] for operation in change if operation["op"] == "replace")
            )
        return 200, {}, model

    with api(act) as (connected, _):
        settings = client.Configuration(host=connected.client.configuration.host)
        cluster = Cluster(client.ApiClient(settings), connected.namespace)
        tuning = Tuning(cluster, Deployment(cluster, "model"))
        tuning.apply({"cpu": "2", "memory": "1Gi"})
        row["image"] = "b"
        # when it tries the next
        tuning.apply({"cpu": "3"})
    # then only what is tuned is another
    assert row == {
        "name": "m",
        "image": "b",
        "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "3"}},
    }


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", "null", '{"at": 1}', TuningBackup("", "m", 1, None, ["x"]).text()[:-9]],
)
def test_an_invalid_tuning_annotation_is_an_error(text: str) -> None:
    with pytest.raises(InvalidValue, match="before-tuning"):
        TuningBackup.read(text)
    with pytest.raises(InvalidValue, match="scaletest/held"):
        limits_in_annotation(Autoscaler("HorizontalPodAutoscaler", "model", held=text or "x"))
