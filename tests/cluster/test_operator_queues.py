"""Parts that are admitted together, with the real controllers of JobSet and Kueue beside the
control plane; the nodes are fake, and what is measured is scripted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.kubernetes import ControlPlane, NotBuilt
from hack.kubernetes.controllers import JobSets, Kueue
from scaletest.benchmarks import manifests
from scaletest.kinds.document_schemas import definitions
from scaletest.operator.benchmark_reconciler import WAITING
from tests.cluster.conftest import CHART, Helm, established, kubeconfig_of, needs_own
from tests.cluster.test_operator import ACCOUNT, Operator
from tests.conftest import eventually, missing

# helm, a control plane of its own and two controllers come first
pytestmark = [needs_own, pytest.mark.weekly(part="kueue")]
API = "kueue.x-k8s.io/v1beta1"


@pytest.fixture(scope="module", autouse=True)
def controllers(plane: ControlPlane) -> Iterator[None]:
    """Theirs and our definitions; a quota of two CPUs for all who ask Kueue."""
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(definitions()))
    with ExitStack() as running:
        try:
            for kind in (JobSets, Kueue):
                controller = kind(plane)
                running.callback(controller.down)
                controller.up()
        except NotBuilt as error:
            missing(str(error))
        established(plane)
        flavor = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": "2"}]}
        spec = {
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
        }
        rows = [
            {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": "any"}, "spec": {}},
            {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": "two"}, "spec": spec},
        ]
        plane.apply(rows)
        yield
        # what holds them back is their controller's to take away
        for resource in ("clusterqueue/two", "resourceflavor/any"):
            plane.kubectl("delete", resource, "--timeout=60s")


@pytest.fixture
def operator(
    plane: ControlPlane, namespace: str, main_helm: Helm, tmp_path: Path
) -> Iterator[Operator]:
    """One with the rights that the chart gives for it, and no others; and a queue of its
    namespace.
    """
    values = "operator.enabled=true,operator.crds=false,operator.gang={kueue}"
    main_helm("install", "bench", str(CHART), "-n", namespace, "--set", values)
    queue = {"name": "team", "namespace": namespace}
    plane.apply(
        [
            {
                "apiVersion": API,
                "kind": "LocalQueue",
                "metadata": queue,
                "spec": {"clusterQueue": "two"},
            }
        ]
    )
    operator = Operator(plane, namespace, tmp_path)
    operator.kubeconfig = kubeconfig_of(plane, namespace, ACCOUNT, tmp_path)
    operator.start()
    yield operator
    for row in operator.get("iperfs")["items"]:
        operator.kubectl("delete", "iperf", row["metadata"]["name"], "--timeout=60s")
    operator.end()
    assert "forbidden" not in (tmp_path / "log").read_text("utf-8").lower()


def gang(cpu: str = "1") -> dict[str, Any]:
    """A benchmark of two pods with a CPU each."""
    resources = {"requests": {"cpu": cpu}}
    return {"duration": 5, "gang": "kueue", "queueName": "team", "resources": resources}


def hog(operator: Operator) -> None:
    """Something of somebody else that leaves one of the two CPUs."""
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "hog",
        "image": "none",
        "resources": {"requests": {"cpu": "1"}},
        "securityContext": safe,
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    meta = {"name": "hog", "labels": {"kueue.x-k8s.io/queue-name": "team"}}
    # the label that keeps a Job's pod on a fake node from ending at once
    labels = {manifests.BENCHMARK: "hog"}
    spec = {"suspend": True, "template": {"metadata": {"labels": labels}, "spec": pod}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}
    operator.create(body)
    eventually(lambda: not operator.get("job", "hog")["spec"].get("suspend"))


def left(operator: Operator) -> list[Any]:
    """What is there of benchmarks, results excepted."""
    objects = json.loads(
        operator.kubectl(
            "get", "jobsets,jobs,pods,services", "-l", manifests.BENCHMARK, "-o", "json"
        )
    )
    return [*objects["items"], *operator.get("workloads.kueue.x-k8s.io")["items"]]


def test_a_benchmark_that_is_admitted_at_once_is_measured_and_leaves_no_object(
    operator: Operator,
) -> None:
    # given a queue with room for both parts
    operator.apply("IPerf", "one", gang())
    # expect it measured once, by parts that the controllers have made
    eventually(lambda: operator.status("iperf", "one").get("phase") in ("Completed", "Failed"))
    status = operator.status("iperf", "one")
    assert (status["phase"], status["summary"]) == ("Completed", "5.000 Gbit/s"), status
    assert {role: len(rows) for role, rows in status["pods"].items()} == {"server": 1, "client": 1}
    assert len(operator.measured()) == 1
    # and nothing left, neither of ours nor of theirs
    eventually(lambda: not left(operator))


def test_a_benchmark_in_a_full_queue_says_why_it_waits_and_blocks_no_other(
    operator: Operator,
) -> None:
    # given a quota of two, of which somebody else has one; when a benchmark wants both
    hog(operator)
    operator.apply("IPerf", "both", gang())
    # expect it Pending in its queue, and not one of its parts made
    eventually(
        lambda: "in queue team" in operator.status("iperf", "both").get("message", ""),
    )
    assert operator.status("iperf", "both")["phase"] == "Pending"
    parts = ("get", "jobs,pods", "-l", f"{manifests.BENCHMARK}=both", "-o", "name")
    assert not operator.kubectl(*parts)
    # and another, which needs no queue, measured meanwhile
    operator.apply("IPerf", "plain", {"duration": 5})
    eventually(lambda: operator.status("iperf", "plain").get("phase") == "Completed")
    assert operator.status("iperf", "both")["phase"] == "Pending"
    # when there is room
    operator.kubectl("delete", "job", "hog")
    # expect it measured
    eventually(lambda: operator.status("iperf", "both").get("phase") == "Completed")
    assert [name for name, _ in operator.measured()] == ["both", "plain"]


def test_a_waiting_benchmark_is_admitted_when_the_first_is_deleted(operator: Operator) -> None:
    # given one that has the whole quota and measures without end, and a second one
    operator.apply("IPerf", "slow", gang())
    eventually(lambda: operator.status("iperf", "slow").get("phase") == "Running")
    operator.apply("IPerf", "next", gang())
    eventually(lambda: operator.status("iperf", "next").get("message") == WAITING)
    # when the first is deleted
    operator.kubectl("delete", "iperf", "slow", "--timeout=60s")
    # expect the second measured
    eventually(lambda: operator.status("iperf", "next").get("phase") == "Completed")
    eventually(lambda: not left(operator))


def test_a_benchmark_that_never_fits_fails_at_its_limit_and_leaves_the_queue(
    operator: Operator,
) -> None:
    operator.apply("IPerf", "huge", {**gang("2"), "queueLimit": 5})
    eventually(lambda: operator.status("iperf", "huge").get("phase") == "Failed")
    status = operator.status("iperf", "huge")
    assert (status["failure"], "not admitted in 5 s" in status["message"]) == ("timed_out", True)
    eventually(lambda: not left(operator))
