"""A validation on Kubernetes waits until KEDA lets go, and lets it go on whatever happens."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import pytest

from scaletest.cluster.deployment import PodState
from scaletest.cluster.service import RELEASE_S
from scaletest.model.errors import WaitTimeout
from scaletest.validation.deployment import KubernetesBackend


class Scaled:
    """A Deployment whose HPA KEDA takes away after so many looks; the calls in order."""

    name = "workers"

    def __init__(self, looks: int) -> None:
        self._looks = looks
        self.calls: list[str] = []
        self.now = 0.0

    def replicas(self) -> int:
        return 3

    def scale(self, replicas: int) -> None:
        self.calls.append(f"scale {replicas}")

    def pods(self) -> list[PodState]:
        return []

    def pause(self, scaled_object: str, paused: bool) -> None:
        self.calls.append(f"pause {scaled_object} {paused}")

    def released(self, scaled_object: str) -> bool:
        self.calls.append("look")
        self._looks -= 1
        return self._looks <= 0

    def trouble(self) -> str:
        return ""

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def backend(scaled: Scaled) -> KubernetesBackend:
    return KubernetesBackend(scaled, pause=("so",), clock=lambda: scaled.now, sleep=scaled.sleep)


def test_scaling_waits_until_keda_is_paused() -> None:
    scaled = Scaled(looks=3)
    kubernetes = backend(scaled)
    kubernetes.scale(1)
    kubernetes.scale(2)
    kubernetes.close()
    assert scaled.calls == [
        *("pause so True", "look", "look", "look", "scale 1", "scale 2"),
        *("scale 3", "pause so False"),
    ]


def test_pausing_gives_up_when_keda_goes_on_and_removes_its_annotation() -> None:
    scaled = Scaled(looks=10**6)
    kubernetes = backend(scaled)
    with pytest.raises(WaitTimeout, match="its HPA is still there"):
        kubernetes.scale(1)
    kubernetes.close()
    assert scaled.now == RELEASE_S
    assert scaled.calls[-1] == "pause so False"
    assert "scale 1" not in scaled.calls


class Slow(Scaled):
    """One whose answer to being scaled to two is given up by a signal, and comes when the number is
    being put back.
    """

    def __init__(self) -> None:
        super().__init__(looks=0)
        self.interrupted, self.given_up = threading.Event(), threading.Event()

    def scale(self, replicas: int) -> None:
        if replicas == 2:
            main = threading.main_thread().ident
            assert main
            # again: one that comes just before it waits does not wake the main thread
            while not self.interrupted.wait(0.05):
                signal.pthread_kill(main, signal.SIGUSR1)
            assert self.given_up.wait(120)
        super().scale(replicas)


def test_a_change_that_was_given_up_is_put_back_after_it_happened() -> None:
    # given a second Ctrl-C while the API server still works on a change
    def leave(number: int, frame: FrameType | None) -> None:
        if not deployment.interrupted.is_set():
            deployment.interrupted.set()
            raise SystemExit(130)

    deployment = Slow()
    before = signal.signal(signal.SIGUSR1, leave)
    backend = KubernetesBackend(deployment)
    try:
        with pytest.raises(SystemExit):
            backend.scale(2)
    finally:
        signal.signal(signal.SIGUSR1, before)
    # when the number is put back
    deployment.given_up.set()
    backend.close()
    # expect that it is the last word
    assert deployment.calls == ["scale 2", "scale 3"]
