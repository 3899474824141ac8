"""Lifecycles on a real control plane, small: kwok's pods start and end at once."""

import csv
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import ControlPlane, tool
from scaletest.lifecycle.measure.templating import text_of
from scaletest.runs.folder import RECORDS
from tests.cluster.conftest import established
from tests.cluster.lifecycles import Run, report_of, run_json, step
from tests.conftest import eventually, program
from tests.integration.ui.test_ui import eventually_shown, page

RECORDER = Path(__file__).parents[1] / "lifecycle_recorder.py"


def with_in_pods(kind: str, key: str, value: Any) -> str:
    """The template of a kind whose pods have this field too."""
    field = f"      {key}: {json.dumps(value)}\n"
    return text_of(kind, None).replace("      containers:\n", f"{field}      containers:\n")


def test_jobs_are_measured_until_they_finish(lifecycle: Run, tmp_path: Path) -> None:
    # 11 is no multiple of the bursts: the original would submit 8 (defect 4)
    result = run_json(lifecycle, "-n", "11", "-p", "4", "--threshold", "failed<=0")
    books = result["books"]
    assert (books["submitted"], books["measured"]) == (11, 11)
    assert result["verdict"]["kind"] == "PASS"
    # sub-second values from the watch, for every step of every job
    for name in ("accepted", "created", "scheduled", "ready", "total_finished"):
        measured = step(result, name)
        assert (measured["seconds"]["count"], measured["missing"], measured["sources"]) == (
            11,
            0,
            {"watch": 11},
        ), name
    out = tmp_path / "out"
    assert (out / "general.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (out / "report.html").read_text()
    assert len(json.loads((out / "submitted.json").read_text())) == 11
    assert len(json.loads((out / "sampled.json").read_text())) == 11
    rows = list(csv.DictReader((out / "times.csv").read_text().splitlines()))
    assert len(rows) == 11 and all(None not in row for row in rows)


@pytest.mark.parametrize(
    ("kind", "workers", "pods", "until"),
    [
        ("distributed", 3, 9, "finished"),
        ("interactive", 2, 6, "ready"),
        ("pod", 1, 3, "ready"),
    ],
)
def test_every_builtin_kind_of_workload_is_measured(
    lifecycle: Run, kind: str, workers: int, pods: int, until: str
) -> None:
    result = run_json(
        lifecycle,
        "-t",
        kind,
        "-n",
        "3",
        "--num-workers",
        str(workers),
        "--until",
        until,
        "--delete",
        "-p",
        "2",
    )
    assert result["books"]["measured"] == 3
    assert result["throughput"]["pods"] == pods


def test_a_kind_without_a_type_is_measured_by_a_template(lifecycle: Run, tmp_path: Path) -> None:
    text = text_of("deployment", None).replace("kind: Deployment", "kind: StatefulSet")
    text = text.replace("replicas:", 'serviceName: "{{ name }}"\n  replicas:')
    (tmp_path / "set.yaml").write_text(text)
    arguments = ["--template", "set.yaml", "-n", "3", "--num-workers", "2", "--until", "ready"]
    result = run_json(lifecycle, *arguments, "--delete")
    assert (result["books"]["measured"], result["throughput"]["pods"]) == (3, 6)


def test_workloads_submitted_by_one_process_are_measured_repeatedly_by_another(
    lifecycle: Run, tmp_path: Path
) -> None:
    submitter = subprocess.Popen(
        program(
            "lifecycle", "submit", "-n", "12", "-p", "4", "--delay", "600", "-g", "0", "-o", "out"
        ),
        cwd=tmp_path,
        env=lifecycle.environment,  # type: ignore[attr-defined]
    )
    out = tmp_path / "out"
    eventually(
        lambda: (
            (out / "submissions.jsonl").exists()
            and (out / "submissions.jsonl").read_text().count("\n") > 2
        )
    )
    # when a sample and a plot are made meanwhile: of what there is at one moment, and of what grows
    submitter.send_signal(signal.SIGSTOP)
    try:
        lifecycle("sample", "-o", "out", "-t", "training")
        during = report_of(lifecycle, "out")
    finally:
        submitter.send_signal(signal.SIGCONT)
    assert during["books"]["not_tried"] > 0
    lifecycle("sample", "-o", "out", "-t", "training")
    lifecycle("plot", "-o", "out", "--skip-errors", "--plot", "general")
    submitter.send_signal(signal.SIGTERM)
    assert submitter.wait(60) == 130
    lifecycle("submit", "-o", "out", "-g", "0", "--delay", "0")
    lifecycle("sample", "-o", "out", "--follow")
    result = report_of(lifecycle, "out")
    assert result["books"]["measured"] == 12
    # a second submit on the folder submits nothing more (defect 14)
    again = lifecycle("submit", "-o", "out", "-g", "0")
    assert "12 of 12 submitted" in again.stderr


def test_defect_13_workloads_that_end_between_two_samples_are_counted(
    lifecycle: Run, plane: ControlPlane, namespace: str
) -> None:
    lifecycle("submit", "-n", "4", "-g", "0", "-o", "out")

    def done() -> bool:
        return plane.kubectl("-n", namespace, "get", "jobs", "--no-headers").count("1/1") == 4

    eventually(done)
    lifecycle("sample", "-o", "out")
    plane.kubectl("-n", namespace, "delete", "jobs", "--all", "--wait")
    lifecycle("sample", "-o", "out")
    result = report_of(lifecycle, "out")
    assert (result["books"]["measured"], result["books"]["lost"]) == (4, 0)


def test_workloads_that_are_deleted_before_their_end_are_lost(
    lifecycle: Run, plane: ControlPlane, namespace: str
) -> None:
    # given Jobs that nobody can schedule
    nobody_has = ("-g", "nobody.has/this=1", "-o", "out")
    assert "no node offers 1 nobody" in lifecycle("submit", "-n", "3", *nobody_has, code=2).stderr
    lifecycle("submit", "-n", "3", *nobody_has, "--force")
    lifecycle("sample", "-o", "out")
    plane.kubectl("-n", namespace, "delete", "jobs", "--all", "--wait")
    lifecycle("sample", "-o", "out")
    result = report_of(lifecycle, "out")
    assert (result["books"]["measured"], result["books"]["lost"]) == (0, 3)


def test_an_interrupted_submit_is_resumed(
    lifecycle: Run, plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    line = program(
        "lifecycle", "submit", "-n", "30", "-p", "3", "--delay", "0.2", "-g", "0", "-o", "out"
    )
    killed = subprocess.Popen(line, cwd=tmp_path, env=lifecycle.environment)  # type: ignore[attr-defined]
    eventually(
        lambda: (
            (out / "submissions.jsonl").exists()
            and (out / "submissions.jsonl").read_text().count("\n") > 5
        )
    )
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    # and the last answer was being written
    text = (out / "submissions.jsonl").read_text()
    (out / "submissions.jsonl").write_text(text[: text.rstrip("\n").rfind("\n") + 20])
    lifecycle("submit", "-g", "0", "-o", "out", "-p", "10")
    # then there are exactly thirty, and the one whose answer was lost has no invented time
    names = plane.kubectl("-n", namespace, "get", "jobs", "-o", "name").split()
    assert len(names) == len(set(names)) == 30
    rows = [json.loads(line) for line in (out / "submissions.jsonl").read_text().splitlines()]
    assert len({row["name"] for row in rows if row["accepted"]}) == 30
    assert sum(row["submitted_s"] is None for row in rows) >= 1


def test_an_interrupted_run_keeps_its_records_and_is_resumed(
    lifecycle: Run, tmp_path: Path
) -> None:
    arguments = [
        "run",
        "-n",
        "20",
        "-p",
        "2",
        "--delay",
        "0.5",
        "-g",
        "0",
        "--output-dir",
        "out",
        "--format",
        "json",
    ]
    arguments += ["--delete"]  # at its end, not when it is interrupted
    process = subprocess.Popen(
        program("lifecycle", *arguments),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env=lifecycle.environment,  # type: ignore[attr-defined]
    )
    log = tmp_path / "out" / "submissions.jsonl"
    eventually(lambda: log.exists() and log.read_text().count("\n") > 4)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 4
    result = json.loads(out)
    assert "interrupted" in result["verdict"]["reason"]
    assert result["books"]["not_tried"] > 0
    again = json.loads(lifecycle(*arguments).stdout)
    assert (again["books"]["submitted"], again["books"]["measured"]) == (20, 20)
    # another number of workloads would be another run
    assert "not 21" in lifecycle("run", "-n", "21", "--output-dir", "out", code=2).stderr


def test_nothing_is_submitted_when_the_time_is_up(
    lifecycle: Run, plane: ControlPlane, namespace: str
) -> None:
    books = run_json(lifecycle, "-n", "500", "-p", "1", "--delay", "0.5", "--timeout", "3", code=4)[
        "books"
    ]
    assert books["not_tried"] > 400
    assert (
        len(plane.kubectl("-n", namespace, "get", "jobs", "-o", "name").split())
        == books["submitted"]
    )


def test_rejections_are_counted_with_reasons(
    lifecycle: Run, plane: ControlPlane, namespace: str
) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": namespace},
    }
    plane.apply([{**quota, "spec": {"hard": {"count/jobs.batch": "5"}}}])
    # until its use is known a quota refuses nothing
    used = ("-n", namespace, "get", "resourcequota", "few", "-o", "jsonpath={.status.used}")
    eventually(lambda: plane.kubectl(*used))
    result = run_json(lifecycle, "-n", "8", "-p", "1", code=3)
    books = result["books"]
    assert (books["submitted"], books["rejected"]) == (5, 3)
    assert "exceeded quota: few" in next(iter(books["rejections"]))
    # more room: the same folder goes on with those that had none
    plane.kubectl("-n", namespace, "delete", "resourcequota", "few")
    assert run_json(lifecycle)["books"]["measured"] == 8


def test_jobs_of_another_run_are_not_adopted(
    lifecycle: Run, plane: ControlPlane, namespace: str
) -> None:
    # given a Job of somebody else by one of our names
    lifecycle("submit", "-n", "2", "-g", "0", "-o", "out")
    first = plane.kubectl("-n", namespace, "get", "jobs", "-o", "name").split()
    theirs = json.loads(
        Path(lifecycle.environment["KUBECONFIG"]).parent.joinpath("out/plan.json").read_text()
    )  # type: ignore[attr-defined]
    other = Path(lifecycle.environment["KUBECONFIG"]).parent / "other"  # type: ignore[attr-defined]
    other.mkdir()
    image = {**theirs, "image": "elsewhere"}
    (other / "plan.json").write_text(json.dumps({**image, "run": theirs["run"]}))
    done = lifecycle("submit", "-o", "other", "-g", "0", code=3)
    assert "0 of 2 submitted, 2 rejected" in done.stderr or "accepted" in done.stderr
    assert plane.kubectl("-n", namespace, "get", "jobs", "-o", "name").split() == first


def test_delete_removes_every_workload_of_the_run(
    lifecycle: Run, plane: ControlPlane, namespace: str
) -> None:
    lifecycle("submit", "-n", "5", "-g", "0", "-o", "out")
    plane.kubectl("-n", namespace, "create", "configmap", "mine")
    assert "cannot ask without a terminal" in lifecycle("delete", "-o", "out", code=2).stderr
    assert "5 Jobs of run" in lifecycle("delete", "-o", "out", "--yes").stdout
    eventually(lambda: not plane.kubectl("-n", namespace, "get", "jobs,pods", "-o", "name"))
    assert "configmap/mine" in plane.kubectl("-n", namespace, "get", "configmap", "-o", "name")


def test_claims_are_bound_and_measured(
    lifecycle: Run, plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    name = f"fast-{namespace}"
    volumes = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{name}-{index}"},
            "spec": {
                "capacity": {"storage": "1Mi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": name,
                "hostPath": {"path": "/nowhere"},
            },
        }
        for index in range(3)
    ]
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    plane.apply([{**kind, "provisioner": "kubernetes.io/no-provisioner"}, *volumes])
    template = tmp_path / "claims.yaml"
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": name,
        "resources": {"requests": {"storage": "1Mi"}},
    }
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    template.write_text(with_in_pods("job", "volumes", [volume]))
    result = run_json(lifecycle, "-n", "3", "--template", str(template), "--event-times")
    assert result["books"]["measured"] == 3
    bound = step(result, "pvc_bound")
    assert bound["seconds"]["count"] == 3
    assert bound["sources"] == {"watch": 3}  # the API does not say when


def test_devices_are_allocated_and_measured(
    lifecycle: Run, plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    # given four devices on two nodes, published by their driver, and a template of claims for one
    # of them
    expression = {"expression": "device.driver == 'gpu.intel.com'"}
    group = {"apiVersion": "resource.k8s.io/v1"}
    request = {"name": "gpu", "exactly": {"deviceClassName": f"gpu-{namespace}"}}
    meta = {"name": "gpus", "namespace": namespace}
    plane.apply(
        [
            {
                **group,
                "kind": "DeviceClass",
                "metadata": {"name": f"gpu-{namespace}"},
                "spec": {"selectors": [{"cel": expression}]},
            },
            {
                **group,
                "kind": "ResourceClaimTemplate",
                "metadata": meta,
                "spec": {"spec": {"devices": {"requests": [request]}}},
            },
        ]
    )
    # when three Indexed Jobs of two pods want them, which is more than there are
    claims = [{"name": "device", "resourceClaimTemplateName": "gpus"}]
    template = tmp_path / "devices.yaml"
    template.write_text(with_in_pods("indexed-job", "resourceClaims", claims))
    result = run_json(lifecycle, "--template", str(template), "--num-workers", "2", "-n", "3")
    # expect that the scheduler gave each pod its device, and what the watch of claims saw
    assert (result["books"]["measured"], result["throughput"]["pods"]) == (3, 6)
    assert step(result, "claim_allocated")["sources"] == {"watch": 3}  # the API does not say when
    of_pods = step(result, "pod_claim_allocated")["seconds"]
    assert of_pods["count"] == 6 and of_pods["min"] >= 0
    # and only on nodes that have such devices
    out = Path(lifecycle.environment["KUBECONFIG"]).parent / "out"  # type: ignore[attr-defined]
    rows = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert {row["node"] for row in rows if row["record"] == "pod"} <= {"intel-0", "intel-1"}
    plane.kubectl("delete", "deviceclass", f"gpu-{namespace}")


def test_workloads_are_submitted_with_kubectl(lifecycle: Run) -> None:
    folder = Path(tool("kubernetes", "kubectl")).parent
    on_path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    result = run_json(lifecycle, "-n", "3", "--tool", "kubectl", "-p", "3", **on_path)
    assert result["books"]["measured"] == 3


RUNAI = """#!{python}
import json, subprocess, sys
with open("{log}", "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
training = "DistributedWorkload" if sys.argv[2] == "pytorch" else "TrainingWorkload"
kind = {{"training": training}}.get(sys.argv[1], "InteractiveWorkload")
name = sys.argv[sys.argv.index("submit") + 1]
spec = {{"name": {{"value": name}}}}
body = {{"apiVersion": "run.ai/v2alpha1", "kind": kind, "metadata": {{"name": name}}, "spec": spec}}
namespace = "runai-" + sys.argv[sys.argv.index("-p") + 1]
line = ["{kubectl}", "--kubeconfig", "{config}", "-n", namespace, "apply", "-f", "-"]
sys.exit(subprocess.run(line, input=json.dumps(body), text=True).returncode)
"""


class RunaiController:
    """Plays Run:ai, as far as its objects go: a job, a pod group and pods for each workload,
    labelled as it does.
    """

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane, self._namespace = plane, namespace
        self._done: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _live(self) -> None:
        kinds = "trainingworkloads,distributedworkloads,interactiveworkloads"
        while not self._stop.wait(0.3):
            rows = json.loads(
                self._plane.kubectl("-n", self._namespace, "get", kinds, "-o", "json")
            )["items"]
            for row in rows:
                name = row["spec"]["name"]["value"]
                if name not in self._done:
                    self._done.add(name)
                    self._make(name, row)

    def _make(self, name: str, row: dict[str, Any]) -> None:
        distributed = row["kind"] == "DistributedWorkload"
        count = int(row["spec"].get("workers", {}).get("value", 0)) + 1 if distributed else 1

        def meta(suffix: str = "") -> dict[str, Any]:
            return {
                "name": name + suffix,
                "namespace": self._namespace,
                "labels": {"release": name},
            }

        version, kind = (
            ("kubeflow.org/v1", "PyTorchJob") if distributed else ("run.ai/v1", "RunaiJob")
        )
        safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        spec = {
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "c", "image": "none", "securityContext": safe}],
        }
        pods = [
            {"apiVersion": "v1", "kind": "Pod", "metadata": meta(f"-{index}"), "spec": spec}
            for index in range(count)
        ]
        group = {
            "apiVersion": "scheduling.run.ai/v1",
            "kind": "PodGroup",
            "metadata": meta("-group"),
            "spec": {},
        }
        self._plane.apply(
            [{"apiVersion": version, "kind": kind, "metadata": meta(), "spec": {}}, *pods, group]
        )


def crd(group: str, version: str, kind: str) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    versions = [{"name": version, "served": True, "storage": True, "schema": schema}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }


@pytest.fixture
def runai(plane: ControlPlane, namespace: str) -> Iterator[str]:
    """A project of a scripted Run:ai; its name."""
    rows = [
        crd("run.ai", "v2alpha1", kind)
        for kind in ("TrainingWorkload", "DistributedWorkload", "InteractiveWorkload")
    ]
    rows += [crd("run.ai", "v1", "RunaiJob"), crd("kubeflow.org", "v1", "PyTorchJob")]
    plane.apply([*rows, crd("scheduling.run.ai", "v1", "PodGroup")])
    established(plane)
    project = f"p-{namespace}"
    home = f"runai-{project}"
    plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}])
    eventually(
        lambda: plane.kubectl("-n", home, "get", "serviceaccount", "default", "--ignore-not-found")
    )
    eventually(
        lambda: (
            "trainingworkloads"
            in plane.kubectl("api-resources", "--api-group=run.ai", "--cached=false")
        )
    )
    controller = RunaiController(plane, home)
    yield project
    controller.close()
    plane.kubectl("delete", "namespace", home, "--wait=false")


@pytest.mark.parametrize(("kind", "pods"), [("runai-training", 4), ("runai-distributed", 16)])
def test_workloads_of_runai_are_measured(
    lifecycle: Run, runai: str, kind: str, pods: int, tmp_path: Path
) -> None:
    arguments = ["-t", kind, "--project", runai, "-n", "4", "--num-workers", "3", "-p", "2"]
    result = run_json(lifecycle, *arguments)
    assert result["books"]["measured"] == 4
    assert result["throughput"]["pods"] == pods
    for name in ("job_created", "pod_group_created", "decided", "total_decided"):
        assert step(result, name)["seconds"]["count"] == 4, name
    rows = json.loads((tmp_path / "out" / "sampled.json").read_text())
    assert {row["projectName"] for row in rows} == {runai}


def test_defect_10_the_runai_command_line_gets_every_option(
    lifecycle: Run, plane: ControlPlane, runai: str, tmp_path: Path
) -> None:
    log, path = tmp_path / "calls", tmp_path / "runai"
    kubectl = tool("kubernetes", "kubectl")
    path.write_text(
        RUNAI.format(python=sys.executable, log=log, kubectl=kubectl, config=plane.kubeconfig)
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    on_path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    arguments = [
        "--tool",
        "runai",
        "--project",
        runai,
        "-n",
        "2",
        "--num-workers",
        "5",
        "--force",
    ]
    lifecycle(
        "submit",
        "-t",
        "runai-distributed",
        *arguments,
        "-g",
        "0.5",
        "--pvc",
        "-o",
        "a",
        "--image",
        "x; rm -rf /",
        **on_path,
    )
    lifecycle("submit", "-t", "runai-interactive", *arguments, "-o", "b", **on_path)
    first, _, last, _ = [json.loads(line) for line in log.read_text().splitlines()]
    assert first[:3] == ["training", "pytorch", "submit"]
    assert first[first.index("--workers") + 1] == "5"
    assert first[first.index("--gpu-portion-request") + 1] == "0.5"
    assert first[first.index("-i") + 1] == "x; rm -rf /"  # no shell reads it
    claim = first[first.index("--new-pvc") + 1].split(",")
    assert {f"claimname={first[3]}", "path=/path-new", "ephemeral"} <= set(claim)
    assert last[:2] == ["workspace", "submit"]
    lifecycle("sample", "-o", "a", "--follow")
    result = report_of(lifecycle, "a")
    assert result["books"]["measured"] == 2


def test_stamps_agree_with_an_independent_recorder(
    lifecycle: Run, plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    line = [sys.executable, str(RECORDER), str(plane.kubeconfig), namespace]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as recorder:
        assert recorder.stdin and recorder.stdout and recorder.stdout.readline() == "ready\n"
        run_json(lifecycle, "-n", "20", "-p", "5", "--delay", "1")
        recorder.stdin.close()
        witnessed = {(uid, name) for uid, name, _ in map(json.loads, recorder.stdout)}
    # expect that each of us saw what the other saw, whenever that was
    rows = [
        json.loads(row) for row in (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    ]
    ours = {
        (row["uid"], name)
        for row in rows
        if row["record"] == "pod"
        for name in ("created", "scheduled", "ready", "finished")
        if "watch_s" in row["stamps"].get(name, {})
    }
    assert ours == witnessed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-n", "3", "--template", "unknown.yaml"), "does not define JobSet"),
        (("-n", "3", "--namespace", "nowhere"), "cannot read namespace nowhere: not found"),
        ((), "the number of workloads is missing"),  # defect 3
        (("-n", "3", "--template", "nothing.yaml"), "the template nothing.yaml cannot be read"),
    ],
)
def test_impossible_options_are_refused_before_anything_is_submitted(
    lifecycle: Run, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    unknown = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
    (tmp_path / "unknown.yaml").write_text(unknown)
    assert message in lifecycle("submit", "-o", "out", *arguments, code=2).stderr


def test_the_report_of_a_lifecycle_fills_up_on_its_page(lifecycle: Run, tmp_path: Path) -> None:
    log = tmp_path / "log"
    line = ["run", "-n", "24", "-p", "2", "--delay", "2s", "-g", "0", "--output-dir", "out"]
    with log.open("w") as file:
        process = subprocess.Popen(
            program("lifecycle", *line, "--ui", "--output", "report.html"),
            cwd=tmp_path,
            env=lifecycle.environment,  # type: ignore[attr-defined]
            stderr=file,
        )
    try:
        url = eventually(lambda: "".join(re.findall(r"watch it at (\S+)", log.read_text())))
        records = tmp_path / "out" / RECORDS
        eventually(lambda: records.exists() and records.read_text().count("\n") > 2)
        # while the command does nothing more, expect the report of what is measured
        process.send_signal(signal.SIGSTOP)
        text = eventually_shown(lambda: "On the way to" in (text := page(url)) and text)
        assert "Pods over time" in text and "of 24 workloads" in text
        assert "it is still being measured" in text
        process.send_signal(signal.SIGCONT)
        assert process.wait(280) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
    assert "<svg" in (tmp_path / "report.html").read_text()
    assert "the page of the run is closed" in log.read_text()
