"""The chart's NetworkPolicies, enforced on a real node: what needs a connection has it, and nobody
else does.
"""

import json
from collections.abc import Iterator
from functools import partial

import pytest

from hack.kubernetes import ControlPlane
from hack.kubernetes.policies import Policies
from scaletest import __version__
from tests.cluster.charts import CHART
from tests.cluster.conftest import Helm, helm_program, restricted
from tests.cluster.real.test_release import install
from tests.conftest import eventually

pytestmark = [pytest.mark.timeout(900), pytest.mark.weekly(part="policies")]

UI = "bench-scaletest-ui"
COMPONENT = "app.kubernetes.io/component"
# What only a policy answers, over IPv4 and IPv6: where nobody listens it is ECONNREFUSED.
REFUSALS, CUT = ("EHOSTUNREACH", "EACCES"), "cut"
CONNECT = """
import errno, json, socket, sys
said = {}
for target in sys.argv[1:]:
    host, _, port = target.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), 20).close()
        said[target] = "open"
    except OSError as error:
        said[target] = errno.errorcode.get(error.errno, str(error))
print(json.dumps(said))
"""


@pytest.fixture
def enforced(real: ControlPlane) -> Iterator[Policies]:
    """To be started by the test."""
    policies = Policies(real)
    yield policies
    policies.down()


class Somebody:
    """A pod that connects where it is told."""

    def __init__(self, plane: ControlPlane, namespace: str, name: str, **labels: str) -> None:
        self._plane, self._namespace, self._name = plane, namespace, name
        safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        container = {"name": "pod", "image": f"scaletest:{__version__}", "securityContext": safe}
        spec = {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{**container, "command": ["sleep", "infinity"]}],
        }
        meta = {"name": name, "namespace": namespace, "labels": labels}
        plane.apply([{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}])

    def ready(self) -> None:
        """It runs when this returns."""
        self._plane.kubectl(
            "-n",
            self._namespace,
            "wait",
            "--for=condition=Ready",
            f"pod/{self._name}",
            "--timeout=180s",
        )

    def connects(self, *targets: str) -> list[str]:
        """What each host:port answered."""
        return connects(self._plane, self._namespace, self._name, *targets)


def connects(plane: ControlPlane, namespace: str, pod: str, *targets: str) -> list[str]:
    """What each host:port answered that pod."""
    line = ["-n", namespace, "exec", pod, "--", "python3", "-c", CONNECT, *targets]
    answers = json.loads(plane.kubectl(*line))
    return [CUT if answers[target] in REFUSALS else answers[target] for target in targets]


def addresses(plane: ControlPlane, namespace: str, selector: str, port: int) -> list[str]:
    """A pod's own, of every family it has, as targets."""
    text = plane.kubectl("-n", namespace, "get", "pods", "-l", selector, "-o", "json")
    (pod,) = json.loads(text)["items"]
    return [
        f"[{address['ip']}]:{port}" if ":" in address["ip"] else f"{address['ip']}:{port}"
        for address in pod["status"]["podIPs"]
    ]


def test_network_policies_block_strangers_and_nothing_else(
    real: ControlPlane, enforced: Policies
) -> None:
    # given a release whose client and exporter are for whom we name, strangers beside it and
    # elsewhere, and guests
    helm, home, away, keda = Helm(real, helm_program()), *(restricted(real) for _ in range(3))
    peers = json.dumps([{"podSelector": {"matchLabels": {"guest": "yes"}}}])
    strangers = [
        Somebody(real, home, "stranger"),
        Somebody(real, away, "stranger", **{"scaletest/redis": "true"}),
    ]
    guest, scaler = Somebody(real, home, "guest", guest="yes"), Somebody(real, keda, "keda")
    client = Somebody(real, home, "client", client="own")
    own = json.dumps([{"podSelector": {"matchLabels": {"client": "own"}}}])
    short = [
        "--set",
        "ui.enabled=true",
        "--set-string",
        "queues.sleep.client.arguments={1}",
        "--set-json",
        f"redis.networkPolicy.from={own}",
    ]
    short += ["--set", f"redis.networkPolicy.kedaNamespace={keda}"]
    install(helm, home, "--set-json", f"networkPolicy.from={peers}", *short)
    for pod in (*strangers, guest, client, scaler):
        pod.ready()
    of = partial(addresses, real, home)
    services = [
        f"bench-redis.{home}.svc.cluster.local:6379",
        f"bench-scaletest-sleep-client.{home}.svc.cluster.local:9996",
        f"bench-scaletest-exporter.{home}.svc.cluster.local:9998",
        f"{UI}.{home}.svc.cluster.local:9995",
    ]
    redis = [services[0], *of("app.kubernetes.io/name=redis", 6379)]
    worker = of(f"{COMPONENT}=worker", 9996)[0]
    # while nobody enforces policies everybody connects: names, addresses and ports are right
    for pod in (*strangers, guest, client, scaler):
        assert pod.connects(*services, worker) == [*["open"] * 4, "ECONNREFUSED"]
        assert set(pod.connects(*redis)) == {"open"}
    # when they count
    enforced.up()
    # expect that strangers reach nothing, guests what they were let in to, and KEDA and a client of
    # ours Redis
    for pod in strangers:
        assert pod.connects(*services, worker) == [CUT] * 5
        assert set(pod.connects(*redis)) == {CUT}
    assert guest.connects(*services, worker) == [CUT, *["open"] * 3, CUT]
    assert (
        client.connects(*services, worker)
        == scaler.connects(*services, worker)
        == ["open", *[CUT] * 4]
    )
    # and that the pages reach Redis by its name, and nothing else
    reached = connects(real, home, f"deployment/{UI}", *services, worker)
    assert reached == ["open", *[CUT] * 4]
    # and that a validation has all it needs, with workers that are new: names, Redis, the API
    # server, the client
    assert (
        "PASS  every doubling up to 2 workers" in helm("test", "bench", "-n", home, "--logs").stdout
    )
    # when the release lets everybody in
    helm("upgrade", "bench", str(CHART), "-n", home, *short)
    eventually(lambda: strangers[1].connects(*services[1:]) == ["open"] * 3)
    # expect one port of each and no other, as of a client's pod that of an exporter
    ports = [
        of(f"{COMPONENT}={component}", port)[0]
        for component, port in (
            ("exporter", 9996),
            ("client", 9998),
            ("ui", 9998),
            ("worker", 9998),
        )
    ]
    assert strangers[1].connects(services[0], *ports) == [CUT] * 5
