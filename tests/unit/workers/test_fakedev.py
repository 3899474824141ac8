"""Simulated devices: the law of sharing, metrics, and runs that meet in a folder."""

import os
import subprocess
import sys
import threading
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.broker.embedded import free_port
from scaletest.model import Outcome
from scaletest.model.errors import InvalidValue
from scaletest.processes.wake import Wake
from scaletest_workers.runtime import Runtime
from scaletest_workers.settings import Settings
from scaletest_workers.workloads.base import Interrupted, Result
from scaletest_workers.workloads.fakedev import (
    FOLDER_VARIABLE,
    FakeWork,
    from_words,
    meeting_folder,
    read_runs,
)
from tests.conftest import eventually


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of our own, where the runs of a worker without a device meet."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return meeting_folder() / "none"


def run(wake: Wake, *arguments: str, limit_s: float = 0.0) -> Result:
    return Runtime(Settings(command=("fakedev", *arguments)), wake).run((), limit_s)[0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", [1, 2, 4, 8]),
        ("--ceiling 3", [1, 2, 3, 3]),
        ("--contention 0.5", [1, 2 / 1.5, 4 / 2.5, 8 / 4.5]),
        ("--contention 0.1 --coherency 0.01", [1, 2 / 1.12, 4 / 1.42, 8 / 2.26]),
    ],
)
def test_throughput_follows_the_law(options: str, expected: list[float]) -> None:
    work = from_words(options.split())
    assert [runs * work.speed(runs) for runs in (1, 2, 4, 8)] == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    [
        "--contention 2",
        "--coherency x",
        "--ceiling -1",
        "--seconds -1",
        "--jitter 2",
        "--activity x",
        "--activity 101",
        "--metrics 9400",
        "--device-memory 0",
        "--unknown",
    ],
)
def test_an_impossible_simulated_device_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        from_words(text.split())


@given(st.lists(st.text(max_size=10), max_size=5))
def test_any_arguments_are_read_or_refused(arguments: list[str]) -> None:
    try:
        assert isinstance(from_words(arguments), FakeWork)
    except InvalidValue:
        pass


def test_a_simulated_run_ends_and_leaves_no_file(wake: Wake, place: Path) -> None:
    result = run(wake, "--seconds", "0.05")
    assert (result.outcome, result.figures["device_runs"]) == (Outcome.SUCCEEDED, 1)
    assert list(place.iterdir()) == []


def test_limits_and_interrupts(wake: Wake, place: Path) -> None:
    assert run(wake, "--seconds", "600", limit_s=0.05).outcome is Outcome.TIMED_OUT
    wake.set()
    with pytest.raises(Interrupted):
        run(wake, "--seconds", "600")
    assert list(place.iterdir()) == []


def in_background(wake: Wake, *arguments: str) -> threading.Thread:
    """A run that is interrupted in the end."""

    def other() -> None:
        with pytest.raises(Interrupted):
            run(wake, *arguments)

    thread = threading.Thread(target=other)
    thread.start()
    return thread


def test_memory_that_does_not_fit_fails_the_run(wake: Wake, place: Path) -> None:
    other = Wake()
    thread = in_background(other, "--seconds", "600", "--memory", "600", "--device-memory", "1000")
    eventually(lambda: read_runs(place))
    result = run(wake, "--seconds", "0", "--memory", "600", "--device-memory", "1000")
    other.set()
    thread.join()
    other.close()
    assert "out of memory: 1200 of 1000 MiB" in result.error
    assert result.figures == {"memory_limit_hits": 1}


def test_a_killed_run_is_not_counted(place: Path) -> None:
    line = [
        sys.executable,
        "-m",
        "scaletest",
        "worker",
        "--once",
        "--",
        "fakedev",
        "--seconds",
        "600",
    ]
    process = subprocess.Popen(line, env=dict(os.environ))
    eventually(lambda: read_runs(place))
    assert list(place.iterdir())
    process.kill()
    process.wait()
    assert read_runs(place) == []
    assert list(place.iterdir()) == []


def test_metrics_of_all_runs_of_a_machine_are_served(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # given runs of two workers that serve metrics at the same address
    address = f"127.0.0.1:{free_port()}"
    wake = Wake()
    runs = [in_background(wake, "--seconds", "600", "--memory", "5") for _ in range(2)]
    eventually(lambda: len(read_runs(place)) == 2)
    settings = Settings(command=("fakedev", "--metrics", address))
    with closing(Runtime(settings, wake)) as first, closing(Runtime(settings, wake)) as second:
        first.prepare()
        second.prepare()
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        node = first.node
    wake.set()
    for run_of_worker in runs:
        run_of_worker.join()
    wake.close()
    # expect what they take together, and one of them to serve
    labels = f'{{device="none",node="{node}"}}'
    assert f"scaletest_fakedev_busy_ratio{labels} 1.0\n" in text
    assert f"scaletest_fakedev_memory_used_bytes{labels} 1.048576e+07\n" in text
    assert f"scaletest_fakedev_memory_bytes{labels} " in text
    assert caplog.text.count(f"metrics are not served on {address}") == 1
