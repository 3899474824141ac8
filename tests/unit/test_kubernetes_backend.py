"""Workers as pods: who counts as ready, patience with the API server, and everything put back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scaletest.cluster.connection import Busy, Refused
from scaletest.cluster.deployment import PodState
from scaletest.model.errors import ScaletestError, WaitTimeout
from scaletest.validation.deployment import LOOK_S, PATIENCE_S, RESTORE_TRIES, KubernetesBackend


class FakeDeployment:
    """Pods are ready as soon as they are asked for. `fail` may raise before each call, by name."""

    name = "sleep"

    def __init__(self, replicas: int = 3) -> None:
        self.wanted = replicas
        self.calls: list[str] = []
        self.fail: Callable[[str], None] = lambda call: None
        self.made: Callable[[int], list[PodState]] = lambda count: [
            pod(f"p-{n}") for n in range(count)
        ]

    def _call(self, text: str) -> None:
        self.calls.append(text)
        self.fail(text)

    def replicas(self) -> int:
        return self.wanted

    def scale(self, replicas: int) -> None:
        self._call(f"scale {replicas}")
        self.wanted = replicas

    def pods(self) -> list[PodState]:
        self._call("pods")
        return self.made(self.wanted)

    def pause(self, scaled_object: str, paused: bool) -> None:
        self._call(f"{'pause' if paused else 'resume'} {scaled_object}")

    def released(self, scaled_object: str) -> bool:
        return True

    def trouble(self) -> str:
        return "pod p-0 is Pending: Unschedulable"


def pod(name: str, *, ready: bool = True, going: bool = False) -> PodState:
    return PodState(name, "node", "Running", ready, going)


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def backend_of(
    deployment: FakeDeployment, time: Time | None = None, **options: object
) -> KubernetesBackend:
    time = time or Time()
    return KubernetesBackend(deployment, clock=time, sleep=time.sleep, **options)  # type: ignore[arg-type]


def busy(times: int, call: str = "") -> Callable[[str], None]:
    """Raises Busy for the first calls."""
    left = [times]

    def fail(text: str) -> None:
        if text.startswith(call) and left[0]:
            left[0] -= 1
            raise Busy("the API server is being replaced")

    return fail


def test_replicas_and_pauses_are_restored_when_the_backend_closes() -> None:
    deployment = FakeDeployment(3)
    backend = backend_of(deployment, pause=("a", "b"))
    backend.scale(1)
    backend.scale(2)
    assert backend.ready() == 2
    backend.close()
    backend.close()
    assert deployment.calls == [
        "pause a",
        "pause b",
        "scale 1",
        "scale 2",
        "pods",
        "scale 3",
        "resume b",
        "resume a",
    ]


def test_a_setting_that_was_never_changed_is_not_restored() -> None:
    deployment = FakeDeployment(3)
    backend_of(deployment, pause=("a",)).close()
    assert deployment.calls == []


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
    pods: list[PodState], ready: int
) -> None:
    deployment = FakeDeployment()
    deployment.made = lambda count: pods
    backend = backend_of(deployment)
    backend.scale(2)
    assert backend.ready() == ready


def test_pods_are_looked_at_twice_a_second_at_most() -> None:
    deployment, time = FakeDeployment(), Time()
    backend = backend_of(deployment, time)
    backend.scale(2)
    for _ in range(5):
        backend.ready()
    assert deployment.calls.count("pods") == 1
    time.now += LOOK_S
    backend.ready()
    assert deployment.calls.count("pods") == 2


def test_pods_that_are_never_ready_end_the_run_with_the_reason() -> None:
    deployment, time = FakeDeployment(), Time()
    deployment.made = lambda count: [pod("a", ready=False)]
    backend = backend_of(deployment, time, ready_s=30.0)
    backend.scale(1)
    time.now += 30.0
    assert backend.ready() == 0
    time.now += 1.0
    with pytest.raises(WaitTimeout, match="0 of 1 pods of sleep are ready 30 s after") as error:
        backend.ready()
    assert "Unschedulable" in error.value.message
    assert "--ready-timeout" in error.value.hint


def test_a_pod_that_goes_later_has_as_long_to_come_back() -> None:
    deployment, time = FakeDeployment(), Time()
    backend = backend_of(deployment, time, ready_s=30.0)
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


def test_an_api_server_that_is_away_is_waited_for() -> None:
    deployment, time = FakeDeployment(), Time()
    deployment.fail = busy(RESTORE_TRIES)
    backend = backend_of(deployment, time)
    backend.scale(1)
    assert deployment.wanted == 1
    deployment.fail = busy(1, "pods")
    assert backend.ready() == 0
    time.now += LOOK_S
    assert backend.ready() == 1


def test_an_api_server_that_stays_away_ends_the_run() -> None:
    deployment, time = FakeDeployment(), Time()
    backend = backend_of(deployment, time)
    backend.scale(1)
    backend.ready()
    deployment.fail = busy(1000)
    time.now += PATIENCE_S
    assert backend.ready() == 1
    time.now += 1.0
    with pytest.raises(Busy):
        backend.ready()
    with pytest.raises(Busy):
        backend.scale(2)


def test_a_pause_without_an_answer_is_taken_back() -> None:
    deployment = FakeDeployment(2)
    deployment.fail = busy(RESTORE_TRIES + 1, "pause")
    backend = backend_of(deployment, pause=("a",))
    with pytest.raises(Busy):
        backend.scale(1)
    backend.close()
    assert deployment.calls[-2:] == ["scale 2", "resume a"]


def test_a_setting_that_cannot_be_restored_is_reported_and_the_rest_is_restored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(text: str) -> None:
        if text == "scale 5":
            raise Refused("no more")

    deployment = FakeDeployment(5)
    backend = backend_of(deployment, pause=("a",))
    backend.scale(1)
    deployment.fail = fail
    backend.close()
    assert "restore --replicas=5 yourself" in caplog.text
    assert deployment.calls[-1] == "resume a"


def test_a_refusal_is_not_repeated() -> None:
    def fail(text: str) -> None:
        raise Refused("it is immutable")

    deployment = FakeDeployment()
    deployment.fail = fail
    backend = backend_of(deployment)
    with pytest.raises(ScaletestError, match="immutable"):
        backend.scale(1)
    assert deployment.calls == ["scale 1"]
