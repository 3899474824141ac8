"""Simulated devices: the law of sharing, activity, metrics, and runs that meet in a folder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.kinds.fakedev import (
    ActivityPhase,
    Annotated,
    FakeWork,
    Use,
    annotated,
    exposition,
    from_words,
)
from scaletest.model import Outcome
from scaletest.model.errors import InvalidValue
from scaletest.system.wake import Wake
from tests.conftest import eventually
from workers.runtime import Runtime, Settings
from workers.workloads.base import Interrupted, Result
from workers.workloads.fakedev import (
    FOLDER_VARIABLE,
    PODINFO_VARIABLE,
    all_uses,
    folder,
    server,
    uses,
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of our own, where the runs of a worker without a device meet."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return folder() / "none"


def run(wake: Wake, *arguments: str, limit_s: float = 0.0) -> Result:
    return Runtime(Settings(command=("fakedev", *arguments)), wake).run((), limit_s)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("linear", [1, 2, 4, 8]),
        ("capped:3", [1, 2, 3, 3]),
        ("amdahl:0.5", [1, 2 / 1.5, 4 / 2.5, 8 / 4.5]),
        ("usl:0.1:0.01", [1, 2 / 1.12, 4 / 1.42, 8 / 2.26]),
    ],
)
def test_throughput_follows_the_law(text: str, expected: list[float]) -> None:
    law = from_words(["--law", text]).law
    assert [runs * law.speed(runs) for runs in (1, 2, 4, 8)] == pytest.approx(expected)


def test_simulated_activity_goes_through_its_phases() -> None:
    work = from_words(["--activity", "98:1:5,20:0:0"])
    assert work.phases == (ActivityPhase(98, 1, 5), ActivityPhase(20, 0, 0))
    assert [work.activity(at, 1.0) for at in (0, 4.9, 5, 99)] == [99, 99, 20, 20]
    assert from_words(["--activity", "50:0:1"]).activity(7, 0) == 50


@pytest.mark.parametrize(
    "text",
    [
        "--law cubic",
        "--law capped:0",
        "--law usl:1",
        "--law linear:1",
        "--seconds -1",
        "--jitter 2",
        "--activity x",
        "--activity 1:2:3:4",
        "--device-memory 0",
        "--failure-rate nan",
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


def test_metrics_have_the_names_of_the_vendors_exporters() -> None:
    rows = [
        Use("/dev/fake0", 60, 100, 1000, "n1", "p1"),
        Use("/dev/fake0", 70, 200, 1000, "n1", 'p"2'),
    ]
    text = exposition(rows)
    assert 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-fake-0",device="/dev/fake0"' in text
    assert 'pod="p\\"2"} 100' in text
    values = {
        line.split("{")[0]: float(line.split()[-1])
        for line in text.splitlines()
        if not line.startswith("#")
    }
    assert values["DCGM_FI_DEV_FB_USED"] == 300
    assert values["DCGM_FI_DEV_FB_FREE"] == 700
    assert values["xpum_engine_group_ratio"] == 1
    assert values["xpum_memory_used_bytes"] == 300 * 2**20
    assert values["gpu_free_vram"] == 700
    assert exposition([]) == ""


def test_a_simulated_run_ends_and_leaves_no_file(wake: Wake, place: Path) -> None:
    result = run(wake, "--seconds", "0.05")
    assert (result.outcome, result.figures["device_runs"]) == (Outcome.SUCCEEDED, 1)
    assert list(place.iterdir()) == []


def test_failures_limits_and_interrupts(wake: Wake, place: Path) -> None:
    assert run(wake, "--seconds", "0", "--failure-rate", "1").outcome is Outcome.FAILED
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
    eventually(lambda: uses(place))
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
    eventually(lambda: uses(place))
    assert list(place.iterdir())
    process.kill()
    process.wait()
    assert uses(place) == []
    assert list(place.iterdir()) == []


def test_metrics_are_served(place: Path) -> None:
    wake = Wake()
    worker = in_background(wake, "--seconds", "600", "--memory", "5")
    eventually(lambda: any(use.activity > 0 for use in all_uses(folder())))
    with server("127.0.0.1", 0, ["nvidia"]) as metrics_server:
        thread = threading.Thread(target=metrics_server.serve_forever)
        thread.start()
        with urllib.request.urlopen(
            f"http://127.0.0.1:{metrics_server.server_address[1]}/metrics", timeout=60
        ) as answer:
            text = answer.read().decode()
        metrics_server.shutdown()
        thread.join()
    wake.set()
    worker.join()
    wake.close()
    assert "DCGM_FI_DEV_FB_USED{" in text
    assert "xpum" not in text


# -- annotations
# --------------------------------------------------------------------------------------------------

# as the downward API writes them, with others' around
ANNOTATIONS = (
    'kubernetes.io/config="a \\"quoted\\"'
    ' one"\nrun.ai/simulated-gpu-utilization="20-35"\ngpu-fraction="0.5"\n'
)


def test_annotations_of_the_fake_gpu_operator_are_read() -> None:
    annotation = annotated(ANNOTATIONS)
    assert annotation == Annotated((20, 35), 0.5)
    assert [annotation.activity(98, chance) for chance in (-1, 0, 1)] == [20, 27.5, 35]
    assert annotation.memory_mib(100, 16384) == 8192
    assert annotated('run.ai/simulated-gpu-utilization="7"').activity(98, 1) == 7
    nothing = annotated('other="1"\n')
    assert (nothing.activity(98, 1), nothing.memory_mib(100, 1000)) == (98, 100)


@pytest.mark.parametrize(
    "value", ["high", "101", "-5", "35-20", "1-2-3", "", "nan", "1e999", "\\x41"]
)
def test_an_annotation_that_is_no_number_is_reported_by_name(value: str) -> None:
    with pytest.raises(InvalidValue, match="simulated-gpu-utilization"):
        annotated(f'run.ai/simulated-gpu-utilization="{value}"')


@given(st.text(max_size=60))
def test_any_file_of_annotations_is_read_or_refused(text: str) -> None:
    try:
        assert isinstance(annotated(text), Annotated)
        assert isinstance(annotated(f"gpu-fraction={text}"), Annotated)
    except InvalidValue:
        pass


def test_annotations_drive_what_the_exporter_says(
    wake: Wake, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a pod with annotations, and a run in it
    podinfo = tmp_path / "podinfo"
    podinfo.mkdir()
    (podinfo / "annotations").write_text(
        'run.ai/simulated-gpu-utilization="40"\ngpu-fraction="0.25"\n'
    )
    (podinfo / "namespace").write_text("bench")
    monkeypatch.setenv(PODINFO_VARIABLE, str(podinfo))
    other = Wake()
    thread = in_background(other, "--seconds", "600", "--device-memory", "1000")
    try:
        eventually(lambda: [use.activity for use in uses(place)] == [40])
        text = exposition(uses(place), ["nvidia"])
        assert 'namespace="bench"' in text
        values = {
            line.split("{")[0]: float(line.split()[-1])
            for line in text.splitlines()
            if line[0] != "#"
        }
        assert values == {
            "DCGM_FI_DEV_GPU_UTIL": 40,
            "DCGM_FI_DEV_FB_USED": 250,
            "DCGM_FI_DEV_FB_FREE": 750,
        }
        # when somebody changes them, expect the new ones; nonsense changes nothing
        (podinfo / "annotations").write_text('run.ai/simulated-gpu-utilization="80"\n')
        eventually(lambda: [use.activity for use in uses(place)] == [80])
        (podinfo / "annotations").write_text('run.ai/simulated-gpu-utilization="much"\n')
        refused = run(wake, "--seconds", "0")
        assert (refused.outcome, "'much' (write it as 20 or 20-35)" in refused.error) == (
            Outcome.FAILED,
            True,
        )
    finally:
        other.set()
        thread.join()
        other.close()


def test_a_device_that_drifts_gets_slower_every_second() -> None:
    work = from_words(("--seconds", "1", "--drift", "-0.001", "--law", "amdahl:1"))
    assert work.speed(1, 0.0) == 1.0
    assert work.speed(2, 0.0) == 0.5
    assert work.speed(1, 100.0) == pytest.approx(0.905, abs=0.001)
    for wrong in ("1", "nan", "x"):
        with pytest.raises(InvalidValue):
            from_words(("--drift", wrong))
