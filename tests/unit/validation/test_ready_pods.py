"""Which pods of a Deployment count as ready, and how long a run waits for them."""

from collections.abc import Callable

import pytest

from scaletest.cluster.answers import Busy
from scaletest.cluster.changes import Patch
from scaletest.cluster.pods import PodState
from scaletest.model.errors import WaitTimeout
from scaletest.validation.measure.deployment_target import LOOK_S, PATIENCE_S, KubernetesBackend
from tests.unit.fakes import Clock


class FakeDeployment:
    """A Deployment, its autoscalers and changes of them. Pods are ready as soon as they are asked
    for. `fail` may raise before each look at them.
    """

    name = "sleep"

    def __init__(self) -> None:
        self.wanted = 3
        self.calls: list[str] = []
        self.fail: Callable[[], None] = lambda: None
        self.made: Callable[[int], list[PodState]] = lambda count: [
            pod(f"p-{n}") for n in range(count)
        ]

    def scale(self, patch: Patch, changes: object) -> None:
        self.wanted = patch.spec["replicas"]
        self.calls.append(f"scale {self.wanted}")

    def close(self) -> None:
        self.calls.append("put back")

    def pods(self) -> list[PodState]:
        self.calls.append("pods")
        self.fail()
        return self.made(self.wanted)

    def trouble(self) -> str:
        return "pod p-0 is Pending: Unschedulable"


def pod(name: str, *, ready: bool = True, going: bool = False) -> PodState:
    return PodState(name, "node", "Running", ready, going)


@pytest.fixture
def deployment() -> FakeDeployment:
    return FakeDeployment()


@pytest.fixture
def time() -> Clock:
    return Clock(100.0)


@pytest.fixture
def backend(deployment: FakeDeployment, time: Clock) -> KubernetesBackend:
    """Waits for half a minute until pods are ready."""
    return KubernetesBackend(deployment, deployment, deployment, clock=time, ready_s=30.0)  # type: ignore[arg-type]


def be_busy() -> None:
    raise Busy("the API server is being replaced")


def test_everything_is_put_back_when_the_backend_closes(
    backend: KubernetesBackend, deployment: FakeDeployment
) -> None:
    backend.scale(1)
    backend.scale(2)
    assert backend.ready() == 2
    backend.close()
    assert deployment.calls == ["scale 1", "scale 2", "pods", "put back"]


@pytest.mark.parametrize(
    ("pods", "ready"),
    [
        ([pod("a"), pod("b")], 2),
        ([pod("a"), pod("b", ready=False)], 1),
        # one that goes may still take a request
        ([pod("a"), pod("b"), pod("c", going=True)], 0),
        ([pod("a"), pod("b", going=True)], 1),
        ([], 0),
    ],
)
def test_only_pods_that_are_ready_count_and_none_while_others_go(
    pods: list[PodState], ready: int, backend: KubernetesBackend, deployment: FakeDeployment
) -> None:
    deployment.made = lambda count: pods
    backend.scale(2)
    assert backend.ready() == ready


def test_pods_that_are_never_ready_end_the_run_with_the_reason(
    backend: KubernetesBackend, deployment: FakeDeployment, time: Clock
) -> None:
    deployment.made = lambda count: [pod("a", ready=False)]
    backend.scale(1)
    time.now += 30.0
    assert backend.ready() == 0
    time.now += 1.0
    with pytest.raises(WaitTimeout, match="0 of 1 pods of sleep are ready 30 s after") as error:
        backend.ready()
    assert "Unschedulable" in error.value.message
    assert "<ready_timeout>" in error.value.hint


def test_a_pod_that_goes_later_has_as_long_to_come_back(
    backend: KubernetesBackend, deployment: FakeDeployment, time: Clock
) -> None:
    backend.scale(1)
    assert backend.ready() == 1
    time.now += 1000.0
    assert backend.ready() == 1
    deployment.made = lambda count: []
    time.now += 20.0
    assert backend.ready() == 0
    deployment.made = lambda count: [pod("again")]
    time.now += 9.0
    assert backend.ready() == 1


def test_an_api_server_that_is_away_is_waited_for_and_then_ends_the_run(
    backend: KubernetesBackend, deployment: FakeDeployment, time: Clock
) -> None:
    backend.scale(1)
    deployment.fail = be_busy
    assert backend.ready() == 0
    deployment.fail = lambda: None
    time.now += LOOK_S
    assert backend.ready() == 1
    deployment.fail = be_busy
    time.now += PATIENCE_S
    assert backend.ready() == 1
    time.now += 1.0
    with pytest.raises(Busy):
        backend.ready()
