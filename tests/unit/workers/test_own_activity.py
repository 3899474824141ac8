"""Workloads that the worker does itself say where their time went, too."""

from pathlib import Path

import pytest

from scaletest.model import Outcome, State
from scaletest.processes.wake import Wake
from scaletest_workers.devices import DeviceOptions
from scaletest_workers.runtime import Runtime
from scaletest_workers.settings import Settings


def test_sleep_is_asleep_unless_it_waits_for_a_cpu(wake: Wake) -> None:
    result, run_s = Runtime(Settings(("sleep", "0.3")), wake).run((), 0.0)
    activity = result.activity
    assert activity.seconds[State.SLEEP] >= 0.2
    assert activity.seconds.get(State.NOT_OBSERVED, 0.0) < 0.01
    assert sum(activity.seconds.values()) == pytest.approx(run_s, rel=0.1)


@pytest.mark.parametrize(
    "settings", [Settings(("sleep", "0")), Settings(("sleep", "0.02"), no_causes=True)]
)
def test_replies_of_empty_or_unsampled_requests_have_no_activity(
    settings: Settings, wake: Wake
) -> None:
    result, _ = Runtime(settings, wake).run((), 0.0)
    assert (result.outcome, result.activity) == (Outcome.SUCCEEDED, None)


def test_a_simulated_device_is_what_its_requests_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wake: Wake
) -> None:
    monkeypatch.setenv("SCALETEST_FAKEDEV", str(tmp_path / "runs"))
    device = tmp_path / "card0"
    device.touch()
    command = ("fakedev", "--seconds", "1.5")
    result, _ = Runtime(Settings(command, devices=DeviceOptions(str(device))), wake).run((), 0.0)
    activity = result.activity
    assert result.outcome is Outcome.SUCCEEDED and activity is not None
    # a busy machine looks late, and lets it wait for a CPU too
    assert max(activity.seconds, key=lambda state: activity.seconds[state]) is State.DEVICE
    assert [(wait.state, wait.object) for wait in activity.waits] == [(State.DEVICE, str(device))]
