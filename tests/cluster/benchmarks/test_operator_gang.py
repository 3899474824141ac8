"""Parts that are admitted together, on fake nodes: the objects against Volcano's definitions, and
its scheduler, which places their pods.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.kubernetes import ControlPlane, NotBuilt, tool
from hack.kubernetes.volcano import Volcano
from scaletest.benchmarks.documents import benchmark
from scaletest.benchmarks.documents.custom_resources import make_definitions
from scaletest.benchmarks.objects import gang_scheduling, manifests
from scaletest.cluster.resources import JOBS
from tests.cluster.benchmarks.test_operator import ACCOUNT, Operator
from tests.cluster.charts import CHART
from tests.cluster.conftest import Helm, established, kubeconfig_of, needs_own
from tests.conftest import eventually, missing

pytestmark = needs_own
QUEUE_API = "scheduling.volcano.sh/v1beta1"
GANG = {"gang": "volcano", "queueName": "fast"}


@pytest.fixture(scope="module", autouse=True)
def defined(plane: ControlPlane) -> None:
    """Our definitions."""
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(make_definitions()))
    established(plane)


@pytest.fixture(scope="module")
def admitters(plane: ControlPlane) -> Iterator[None]:
    """Theirs, while tests need them."""
    try:
        file = tool("crds", "gang.yaml")
    except NotBuilt as error:
        missing(str(error))
    plane.kubectl("apply", "--server-side", "-f", file)
    established(plane)
    yield
    # whoever comes next may define them anew
    plane.kubectl("delete", "-f", file, "--ignore-not-found", "--timeout=60s")


@pytest.fixture
def operator(
    plane: ControlPlane, namespace: str, main_helm: Helm, tmp_path: Path
) -> Iterator[Operator]:
    """One with the rights that the chart gives for it, and no others."""
    values = "operator.enabled=true,operator.crds=false,operator.volcano=true"
    main_helm("install", "bench", str(CHART), "-n", namespace, "--set", values)
    operator = Operator(plane, namespace, tmp_path)
    operator.kubeconfig = kubeconfig_of(plane, namespace, ACCOUNT, tmp_path)
    operator.start()
    yield operator
    for row in operator.get("iperfs")["items"]:
        operator.kubectl("delete", "iperf", row["metadata"]["name"], "--timeout=60s")
    operator.end()
    assert "forbidden" not in (tmp_path / "log").read_text("utf-8").lower()


def test_without_the_scheduler_a_benchmark_fails_at_once_with_the_reason(
    operator: Operator,
) -> None:
    # given a cluster without their definitions
    operator.apply("IPerf", "one", GANG)
    eventually(lambda: operator.status("iperf", "one").get("phase") == "Failed")
    status = operator.status("iperf", "one")
    assert status["failure"] == "refused" and "needs Volcano" in status["message"]
    assert not benchmark_objects(operator, "pods") and not operator.get("jobs")["items"]


@pytest.mark.parametrize("kind", ["IPerf", "MPIPingPong", "Fio"])
def test_the_api_server_accepts_every_object_of_a_gang(
    plane: ControlPlane, namespace: str, admitters: None, kind: str
) -> None:
    iperf = benchmark.read_benchmark({"kind": kind, "metadata": {"name": "one"}, "spec": GANG})
    owner = {
        "apiVersion": "scaletest.dev/v1alpha1",
        "kind": kind,
        "name": "one",
        "uid": "0b5e",
        "controller": True,
    }
    group = gang_scheduling.pod_group(iperf, owner)
    jobs = gang_scheduling.make_jobs(iperf, owner, "image")
    for resource, body in [(gang_scheduling.POD_GROUPS, group), *((JOBS, job) for job in jobs)]:
        kinds = {"apiVersion": resource.api.removeprefix("/apis/"), "kind": resource.kind}
        plane.kubectl(
            "create",
            "-n",
            namespace,
            "--dry-run=server",
            "--validate=strict",
            "-f",
            "-",
            stdin=json.dumps({**body, **kinds}),
        )


@pytest.fixture
def volcano(plane: ControlPlane) -> Iterator[None]:
    """Volcano's own scheduler, and a queue beside its default one."""
    scheduler = Volcano(plane)
    try:
        scheduler.up()
        established(plane)
        queue = {"apiVersion": QUEUE_API, "kind": "Queue", "metadata": {"name": "fast"}}
        plane.apply([{**queue, "spec": {"weight": 1, "reclaimable": True}}])
        yield
    except NotBuilt as error:
        missing(str(error))
    finally:
        scheduler.down()


@pytest.mark.weekly(part="volcano")
def test_volcano_places_all_parts_of_a_benchmark_or_none(
    plane: ControlPlane, volcano: None, operator: Operator
) -> None:
    # given parts of which one alone fits on the nodes; when they are asked for
    nodes = json.loads(plane.kubectl("get", "nodes", "-o", "json"))["items"]
    most = max(int(node["status"]["allocatable"]["cpu"]) for node in nodes)
    requests = {"requests": {"cpu": str(most)}}
    huge = {"server": {"resources": requests}, "client": {"nodeSelector": {"no": "where"}}}
    operator.apply("IPerf", "huge", {"duration": 5, **huge, **GANG})
    # expect none placed, and Volcano's reason
    eventually(lambda: "all 2 pods: " in operator.status("iperf", "huge").get("message", ""))
    pods = benchmark_objects(operator, "pods")
    assert len(pods) == 2 and not any("nodeName" in pod["spec"] for pod in pods)
    # and another, which fits, measured meanwhile, and nothing of it left
    operator.apply("IPerf", "one", {"duration": 5, **GANG})
    eventually(lambda: operator.status("iperf", "one").get("phase") == "Completed")
    operator.kubectl("delete", "iperf", "huge", "--timeout=60s")
    eventually(
        lambda: (
            not operator.get("podgroups.scheduling.volcano.sh,jobs")["items"]
            and not benchmark_objects(operator, "pods,services")
        )
    )


def benchmark_objects(operator: Operator, kinds: str) -> list[Any]:
    """What is there of benchmarks, beside what the chart has made."""
    objects = json.loads(operator.kubectl("get", kinds, "-l", manifests.BENCHMARK, "-o", "json"))[
        "items"
    ]
    return list(objects)
