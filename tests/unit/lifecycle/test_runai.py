"""Workloads of Run:ai as its scale test tool submits them: templates, placeholders, the command
line, and its files.
"""

import json
import shlex
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from scaletest.cli.main import run
from scaletest.lifecycle import kinds, runai
from scaletest.lifecycle.judging.timeline import timeline_of
from scaletest.lifecycle.measure.submitting import make_tool
from scaletest.lifecycle.measure.templating import RUNAI_PLACEHOLDERS, Workloads, text_of
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import Stamp
from scaletest.model.errors import InvalidValue
from tests.unit.lifecycles import BEGAN, plan, submission, workload

# The command line of Run:ai talks to the cluster itself.
NO_OBJECTS: Any = None
TYPES = [name for name, kind in kinds.KINDS.items() if kind.runai]
SCHEMA = json.loads(
    (Path(__file__).parents[2] / "data" / "runai" / "workloads.schema.json").read_text()
)
FITS = jsonschema.Draft202012Validator(SCHEMA).is_valid
# A template with the placeholders of the original, and a field that somebody added.
ORIGINAL = """
apiVersion: run.ai/v2alpha1
kind: DistributedWorkload
metadata:
  creationTimestamp: null
  labels: {PreviousJob: "true"}
  name: JOB_NAME_PLACEHOLDER
  namespace: runai-PROJECT_PLACEHOLDER
spec:
  name: {value: JOB_NAME_PLACEHOLDER}
  command: {value: 'sh -c "echo $HOME JOB_NAME_PLACEHOLDER"'}
  gpu: {value: "NUM_GPUS"}
  workers: {value: NUM_WORKERS_PLACEHOLDER}
  nodePools: {value: fast}
status: {}
"""


def runai_plan(kind: str, **more: Any) -> LifecyclePlan:
    template = more.pop("template", text_of(kind, None))
    project = {"project": "p", "namespace": "runai-p"}
    return plan(workload_type=kind, seconds="infinity", template=template, **project, **more)


def first(*arguments: str) -> list[str]:
    """The command line that submits the first workload."""
    return ["lifecycle", "submit", "-n", "1", "--dry-run", "-o", "nowhere", *arguments]


@pytest.mark.parametrize("pvc", [False, True])
@pytest.mark.parametrize("kind", TYPES)
def test_the_objects_have_the_shape_of_the_originals_templates(kind: str, pvc: bool) -> None:
    body = Workloads(runai_plan(kind, workers=7, gpus="0.5", pvc=pvc)).make("j-00aa11")
    assert FITS(body), body
    assert body["spec"]["command"] == {"value": "sleep infinity"}
    if kind == "runai-distributed":
        spec = body["spec"]
        assert (spec["jobType"], spec["pyTorchJob"]) == ("PyTorchJob", {"values": {}})
        assert spec["runPolicy"] == {"values": {"cleanPodPolicy": {"value": "None"}}}
        assert spec["workers"] == {"value": 7}


def test_placeholders_of_the_original_are_filled() -> None:
    original = runai_plan("runai-distributed", template=ORIGINAL, workers=7, gpus="2")
    body = Workloads(original).make("j-00aa11")
    assert (body["metadata"]["name"], body["metadata"]["namespace"]) == ("j-00aa11", "runai-p")
    assert body["metadata"]["labels"]["PreviousJob"] == "true"
    assert body["spec"] == {
        "name": {"value": "j-00aa11"},
        "command": {"value": 'sh -c "echo $HOME j-00aa11"'},
        "gpu": {"value": "2"},
        "workers": {"value": 7},
        "nodePools": {"value": "fast"},
    }


@pytest.mark.parametrize("name", ["QUEUE_PLACEHOLDER", "NUM_GPUS_PLACEHOLDER"])
def test_other_placeholders_are_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidValue, match=f"placeholder {name}") as caught:
        Workloads(runai_plan("runai-distributed", template=ORIGINAL.replace("fast", f"a-{name}-b")))
    assert caught.value.hint and all(known in caught.value.hint for known in RUNAI_PLACEHOLDERS)


def test_a_variable_called_like_a_placeholder_passes_through_elsewhere() -> None:
    text = "apiVersion: v1\nkind: Pod\nspec: {containers: [{env: [{name: NUM_GPUS, value: '2'}]}]}"
    body = Workloads(plan(template=text)).make("j-1")
    assert body["spec"]["containers"][0]["env"] == [{"name": "NUM_GPUS", "value": "2"}]


@pytest.mark.parametrize("kind", [*kinds.KINDS])
def test_a_dry_run_of_every_type_prints_its_object(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    for command in ("submit", "run"):
        options = ["-t", kind, "-n", "1", "--dry-run", "--output-dir", str(tmp_path / "out")]
        assert run(["lifecycle", command, *options]) == 0
        body = yaml.safe_load(capsys.readouterr().out)
        assert body["metadata"]["labels"]["scaletest/workload"] == body["metadata"]["name"]
        if kind in TYPES:
            assert (body["spec"]["gpu"], body["spec"]["command"]) == (
                {"value": "1"},
                {"value": "sleep infinity"},
            )
    assert not (tmp_path / "out").exists()


def test_run_seconds_end_the_workloads_of_runai(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(first("-t", "runai-training", "--run-seconds", "2m", "-g", "0.25")) == 0
    spec = yaml.safe_load(capsys.readouterr().out)["spec"]
    assert (spec["command"]["value"], spec["gpu"]["value"]) == ("sleep 120", "0.25")


def test_a_template_of_the_original_needs_the_type_of_its_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "distributed.yaml"
    file.write_text(ORIGINAL)
    assert run(first("-t", "distributed", "--template", str(file))) == 2
    assert "give --workload-type runai-distributed" in capsys.readouterr().err
    assert run(first("-t", "runai-distributed", "--template", str(file))) == 0
    body = yaml.safe_load(capsys.readouterr().out)
    assert body["metadata"]["namespace"] == "runai-project-0"


@pytest.mark.parametrize(
    ("kind", "verbs"),
    [
        ("runai-training", "training standard submit"),
        ("runai-distributed", "training pytorch submit"),
        ("runai-interactive", "workspace submit"),
    ],
)
def test_the_command_line_of_runai_is_of_version_2(
    kind: str, verbs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(first("-t", kind, "--tool", "runai", "-g", "0.5")) == 0
    line = shlex.split(capsys.readouterr().out)
    assert " ".join(line[1:]).startswith(f"{verbs} j-")
    assert line[0] == "runai" and line[-3:] == ["--", "sleep", "infinity"]
    assert line[line.index("--gpu-request-type") + 1] == "portion"
    assert ("--workers" in line) == (kind == "runai-distributed")


@pytest.fixture
def failing_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a `runai` on the PATH that fails with this error."""

    def install(error: str) -> None:
        program = tmp_path / "runai"
        program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{error}\nEND\nexit 1\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    return install


def test_an_error_of_several_lines_is_told_in_one(failing_program: Callable[[str], None]) -> None:
    failing_program("Error: no project p\n\nUsage:\n  runai training")
    submit = make_tool(runai_plan("runai-training", tool="runai"), NO_OBJECTS)
    assert submit("j-000001").reason == "Error: no project p Usage: runai training"


@pytest.mark.parametrize(
    ("kind", "gpus", "wanted"),
    [
        ("job", "2", {"nvidia.com/gpu": 2}),
        ("job", "0", {}),
        ("runai-training", "0.5", {"nvidia.com/gpu": 1}),
        ("runai-distributed", "0", {}),
        ("job", "nan", {}),
    ],
)
def test_devices_that_a_pod_asks_for(kind: str, gpus: str, wanted: dict[str, int]) -> None:
    workloads = Workloads(runai_plan(kind, gpus=gpus))
    assert workloads.devices() == {name: Decimal(count) for name, count in wanted.items()}


def test_the_originals_files_are_read_and_written() -> None:
    job = workload("j-00aa11")
    job.stamps = {"created": Stamp(BEGAN + 1, BEGAN + 1.2), "submitted": Stamp(watch_s=BEGAN)}
    text = runai.write_sampled([timeline_of(job)], "p")
    row = json.loads(text)[0]
    assert list(row) == ["jobName", "jobNamespace", "projectName", *runai.SAMPLED_FIELDS]
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
