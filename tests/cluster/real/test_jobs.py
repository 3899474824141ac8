"""Queues without a Deployment, in containers on a real node: KEDA makes Jobs for what waits, a
CronJob empties one.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from hack.kubernetes import ControlPlane, NotBuilt, tool
from hack.kubernetes.keda import Keda
from hack.kubernetes.names import Names
from hack.kubernetes.watch import Watch
from tests.cluster.charts import CHART
from tests.cluster.conftest import Helm, helm_program, restricted
from tests.cluster.real.test_release import install
from tests.conftest import eventually, missing

pytestmark = pytest.mark.timeout(900)

SCALING = "queues.long.autoscaling"
SETTINGS = (
    f"{SCALING}.pollingInterval=2",
    f"{SCALING}.maxReplicas=3",
    "queues.nightly.autoscaling.maxReplicas=2",
)


@pytest.fixture
def keda(real: ControlPlane) -> Iterator[Keda]:
    """KEDA beside the real node."""
    keda = Keda(real, Names(real.folder))
    try:
        keda.up()
    except NotBuilt as error:
        missing(str(error))
    yield keda
    keda.down()


class Jobs:
    """All Jobs of a namespace that there ever were, as they were last: KEDA deletes those that
    ended some time ago.
    """

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._rows: dict[str, dict[str, Any]] = {}
        self._watch = Watch(
            plane, f"/apis/batch/v1/namespaces/{namespace}/jobs?watch=true", self._see
        )

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.close()

    def _see(self, kind: str, job: dict[str, Any]) -> None:
        self._rows[job["metadata"]["uid"]] = job

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(self._rows.values())

    def succeeded(self, owner: str) -> bool:
        """Whether there were some of that owner's, and all succeeded without one pod that
        failed.
        """
        mine = [
            row
            for row in self.rows
            if owner in {reference["kind"] for reference in row["metadata"]["ownerReferences"]}
        ]
        assert not any(row["status"].get("failed") for row in mine), mine
        return bool(mine) and all("completionTime" in row["status"] for row in mine)


@pytest.mark.usefixtures("keda")
def test_keda_starts_jobs_for_waiting_requests(real: ControlPlane) -> None:
    helm, namespace = Helm(real, helm_program()), restricted(real)
    client = [
        "-n",
        namespace,
        "exec",
        "deployment/bench-scaletest-long-client",
        "-c",
        "client",
        "--",
        "scaletest",
    ]

    def burst(queue: str, requests: int) -> subprocess.Popen[str]:
        """Submits so many from the client's pod, and ends when all are done."""
        line = [
            "client",
            "--queue",
            queue,
            "--batch",
            str(requests),
            "--listen",
            "none",
            "--format",
            "json",
            "--",
            "0.5",
        ]
        kubectl = [tool("kubernetes", "kubectl"), f"--kubeconfig={real.kubeconfig}"]
        return subprocess.Popen(
            [*kubectl, *client, *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def done(process: subprocess.Popen[str]) -> tuple[int, int]:
        out, errors = process.communicate(timeout=300)
        assert process.returncode == 0, out + errors
        summary = json.loads(out)
        return summary["succeeded"], summary["failed"]

    def waiting(queue: str) -> int:
        line = ["queue", "show", queue, "--format", "json"]
        return int(json.loads(real.kubectl(*client, *line))["waiting"])

    # given the example: no worker anywhere
    options = [word for setting in SETTINGS for word in ("--set", setting)]
    install(helm, namespace, "-f", str(CHART / "examples" / "jobs.yaml"), *options)
    with Jobs(real, namespace) as jobs:
        # when twelve requests come at once, expect Jobs of KEDA's that do them, and end
        assert done(burst("long", 12)) == (12, 0)
        eventually(lambda: jobs.succeeded("ScaledJob"))
        # when four wait for the night, and it comes
        process = burst("nightly", 4)
        eventually(lambda: waiting("nightly") == 4)
        real.kubectl(
            "-n", namespace, "create", "job", "tonight", "--from=cronjob/bench-scaletest-nightly"
        )
        # expect the same of its Job, which ends when the queue is empty
        assert done(process) == (4, 0)
        eventually(lambda: jobs.succeeded("CronJob"))
    helm("uninstall", "bench", "-n", namespace, "--wait")
