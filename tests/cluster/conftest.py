"""A real control plane for the tests, and an agent that gives pods of workers and clients real
processes.

kwok makes pods Running without running anything. The agent looks which pods of a release there are,
and starts and stops `scaletest worker` and `scaletest client` for them, with the pods' own
arguments.
"""

import json
import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import CommandFailed, ControlPlane, NotBuilt, Pool, tool
from hack.kubernetes.accounts import kubeconfig
from hack.kubernetes.watch import Watch
from scaletest.processes.guard import Guard
from tests.cluster.charts import CHART, HELMS, MAIN_HELM
from tests.cluster.lifecycles import Run, runner
from tests.conftest import eventually, missing

# The kubeconfig of a cluster to use instead of our own. Where KUBECONFIG names one that others work
# with, an empty SCALETEST_TEST_KUBECONFIG keeps the tests away from it.
OTHER = os.environ.get("SCALETEST_TEST_KUBECONFIG", os.environ.get("KUBECONFIG", ""))
KINDS = (
    "scaledobjects,scaledjobs,triggerauthentications,servicemonitors,podmonitors,prometheusrules"
)
needs_own = pytest.mark.skipif(bool(OTHER), reason="needs the nodes that hack/cluster plays")


@pytest.fixture(scope="session", autouse=True)
def guard() -> Iterator[None]:
    """What a lane started ends with it, also when it is killed: after Ctrl-C it has ten seconds,
    and planes want more.

    Every process inherits the mark by which a guard finds it.
    """
    guard = Guard()
    os.environ.update(guard.environment({}))
    # memory is cheaper here than the time that programs in Go spend on collecting garbage
    os.environ.setdefault("GOGC", "400")
    yield
    guard.close()


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with two plain nodes and two that have two devices each, and the CRDs of KEDA
    and Prometheus.

    With SCALETEST_TEST_KUBECONFIG or KUBECONFIG that cluster, as it is; where the CRDs are not
    there, they are while the tests run.
    """
    plane = ControlPlane(tmp_path_factory.mktemp("plane"))
    try:
        crds = Path(tool("crds", "crds.yaml"))
        if OTHER:
            plane.kubeconfig = Path(OTHER)
        else:
            plane.up([Pool("plain", 2, 0), Pool("intel", 2, 2)])
    except NotBuilt as error:
        plane.down()
        missing(str(error))
    except BaseException:
        plane.down()
        raise
    try:
        defined = served(plane, KINDS)
        if not defined:
            plane.kubectl("apply", "--server-side", "-f", str(crds))
            # a kind that was just defined is refused for a while
            eventually(lambda: served(plane, KINDS))
        yield plane
        if OTHER and not defined:
            plane.kubectl("delete", "-f", str(crds), "--wait=false")
    finally:
        plane.down()


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """A namespace that admits only what is restricted, and says so."""
    name = restricted(plane)
    yield name
    plane.kubectl("delete", "namespace", name, "--wait=false")


def restricted(plane: ControlPlane) -> str:
    """The name of a new such namespace."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    marks = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    plane.apply(
        [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": marks}}]
    )
    # pods are refused before the controller manager has made it
    eventually(
        lambda: plane.kubectl("-n", name, "get", "serviceaccount", "default", "--ignore-not-found")
    )
    return name


@pytest.fixture
def lifecycle(plane: ControlPlane, namespace: str, tmp_path: Path) -> Run:
    """Run `scaletest lifecycle ...` in the namespace, with output in tmp_path/out."""
    return runner(plane, namespace, tmp_path)


class Helm:
    """One Helm against the plane."""

    def __init__(self, plane: ControlPlane, program: str) -> None:
        self._plane, self._program = plane, program

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it. It must succeed."""
        line = [self._program, "--kubeconfig", str(self._plane.kubeconfig), *arguments]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done


@pytest.fixture(params=HELMS)
def helm(plane: ControlPlane, request: pytest.FixtureRequest) -> Helm:
    """Every Helm."""
    return Helm(plane, helm_program(request.param))


@pytest.fixture
def main_helm(plane: ControlPlane) -> Helm:
    """The Helm of tests that are not about Helm."""
    return Helm(plane, helm_program())


def helm_program(name: str = MAIN_HELM) -> str:
    """The path of a Helm that was built."""
    try:
        return tool(name, "helm")
    except NotBuilt as error:
        missing(str(error))


class Agent:
    """Real processes for the pods of workers in a namespace, and for the client behind its
    Service.
    """

    def __init__(self, plane: ControlPlane, namespace: str, redis_url: str) -> None:
        self._plane, self._namespace, self._url = plane, namespace, redis_url
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._client: subprocess.Popen[bytes] | None = None
        self._started: list[subprocess.Popen[bytes]] = []
        of = "labelSelector=app.kubernetes.io/component=worker"
        self._watch = Watch(
            plane, f"/api/v1/namespaces/{namespace}/pods?watch=true&{of}", self._see
        )

    def serve_client(self, service: str, queue: str, seconds: str) -> None:
        """A client on this machine behind a Service without selector: what the API server's proxy
        is to reach.
        """
        address, port = _own_address(), _free_port()
        line = [
            "client",
            "--queue",
            queue,
            "--parallel",
            "0",
            "--listen",
            f"{address}:{port}",
            "--",
            seconds,
        ]
        self._client = self._process(line, {})
        plain = {"name": service, "namespace": self._namespace}
        ports = [{"name": "http", "port": 9996, "targetPort": port, "protocol": "TCP"}]
        rows: list[dict[str, Any]] = [
            {"apiVersion": "v1", "kind": "Service", "metadata": plain, "spec": {"ports": ports}},
            # the proxy goes only to addresses of pods; this one is nobody's to start
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": plain,
                "spec": {
                    "schedulerName": "nobody",
                    "containers": [_container()],
                    "securityContext": _pod_security(),
                },
            },
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {**plain, "labels": {"kubernetes.io/service-name": service}},
                "addressType": "IPv4",
                "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
                "endpoints": [
                    {
                        "addresses": [address],
                        "conditions": {"ready": True},
                        "targetRef": {"kind": "Pod", **plain},
                    }
                ],
            },
        ]
        self._plane.apply(rows)
        status = json.dumps({"status": {"podIP": address, "podIPs": [{"ip": address}]}})
        self._plane.kubectl(
            "-n", self._namespace, "patch", "pod", service, "--subresource=status", "-p", status
        )
        eventually(lambda: _answers(address, port))

    def close(self) -> None:
        """End everything: the client first, which waits for what workers still do for it."""
        self._watch.close()
        for process in sorted(self._started, key=lambda process: process is not self._client):
            process.terminate()
            process.wait(60)

    def _see(self, kind: str, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        if kind == "DELETED" or "deletionTimestamp" in pod["metadata"]:
            if name in self._workers:
                self._workers.pop(name).terminate()
        elif pod["status"].get("phase") == "Running" and name not in self._workers:
            self._workers[name] = self._worker(pod)

    def _worker(self, pod: dict[str, Any]) -> subprocess.Popen[bytes]:
        known = {"NODE_NAME": pod["spec"]["nodeName"], "POD_NAME": pod["metadata"]["name"]}
        return self._process(pod["spec"]["containers"][0]["args"], known)

    def _process(self, line: list[str], known: dict[str, str]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "scaletest", *line],
            env={**os.environ, "SCALETEST_REDIS_URL": self._url, **known},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._started.append(process)
        return process


@pytest.fixture
def released(plane: ControlPlane, namespace: str, main_helm: Helm) -> str:
    """The chart with one worker that sleeps, as release `bench`, its client the agent's; the name
    of its namespace.
    """
    main_helm(
        "install",
        "bench",
        str(CHART),
        "-n",
        namespace,
        "--set",
        "queues.sleep.client.enabled=false",
    )
    return namespace


def kubeconfig_of(plane: ControlPlane, namespace: str, account: str, folder: Path) -> Path:
    """A kubeconfig that has no more rights than a service account."""
    return kubeconfig(plane, namespace, account, folder / f"{account}.kubeconfig")


def _container() -> dict[str, Any]:
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {"name": "client", "image": "none", "securityContext": safe}


def _pod_security() -> dict[str, Any]:
    return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def _own_address() -> str:
    """The proxy refuses loopback addresses. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _answers(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, port)) == 0


def established(plane: ControlPlane) -> None:
    """Wait until every defined kind is established. kubectl's own wait fails for a CRD without
    conditions.
    """

    def all_established() -> bool:
        for definition in json.loads(plane.kubectl("get", "crd", "-o", "json"))["items"]:
            conditions = definition.get("status", {}).get("conditions") or ()
            if ("Established", "True") not in [
                (each["type"], each["status"]) for each in conditions
            ]:
                return False
        return True

    eventually(all_established)


def served(plane: ControlPlane, kinds: str) -> bool:
    """Whether the API server knows these kinds."""
    try:
        plane.kubectl("get", kinds, "-A")
    except CommandFailed:
        return False
    return True
