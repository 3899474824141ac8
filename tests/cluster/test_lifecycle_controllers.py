"""Lifecycles of JobSets and PyTorchJobs, whose real controllers run beside the control plane; the
nodes are fake.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.kubernetes import ControlPlane, NotBuilt
from hack.kubernetes.controllers import Controller, JobSets, PyTorchJobs
from tests.cluster.conftest import needs_own
from tests.cluster.lifecycles import Run, run_json, step
from tests.conftest import eventually, missing

pytestmark = needs_own


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """A plain one: the init containers that the training operator adds are not `restricted`."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    plane.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    eventually(
        lambda: plane.kubectl("-n", name, "get", "serviceaccount", "default", "--ignore-not-found")
    )
    yield name
    plane.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def controller(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Controller]:
    """The one that the test names."""
    controller: Controller = request.param(plane)
    try:
        controller.up()
    except NotBuilt as error:
        missing(str(error))
    yield controller
    controller.down()


@pytest.mark.parametrize(
    ("controller", "kind", "pods"),
    [
        pytest.param(JobSets, "jobset", 6, marks=pytest.mark.weekly(part="jobset")),
        pytest.param(
            PyTorchJobs, "pytorchjob", 9, marks=pytest.mark.weekly(part="training-operator")
        ),
    ],
    indirect=["controller"],
)
def test_workloads_of_other_controllers_are_measured_until_they_finish(
    controller: Controller,
    lifecycle: Run,
    kind: str,
    pods: int,
    tmp_path: Path,
    plane: ControlPlane,
    namespace: str,
) -> None:
    result = run_json(lifecycle, "-t", kind, "-n", "3", "--num-workers", "2", "-p", "2")
    books = result["books"]
    assert (books["submitted"], books["measured"], books["balanced"]) == (3, 3, True)
    assert result["verdict"]["kind"] == "PASS"
    assert result["throughput"]["pods"] == pods
    for name in ("created", "first_pod_created", "scheduled", "ready", "total_finished"):
        measured = step(result, name)
        assert (measured["seconds"]["count"], measured["missing"], measured["sources"]) == (
            3,
            0,
            {"watch": 3},
        ), name
    if kind == "jobset":
        assert step(result, "job_created")["seconds"]["count"] == 3
    # its controller says that it is done, and when; no pod too many, or of somebody else
    rows = [
        json.loads(row) for row in (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    ]
    ended = [row["stamps"]["finished"] for row in rows if row["record"] == "workload"]
    assert len(ended) == 3 and all("api_s" in stamp for stamp in ended)
    pods_left = plane.kubectl("-n", namespace, "get", "pods", "-o", "name").split()
    assert len(pods_left) == sum(row["record"] == "pod" for row in rows) == pods
