import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaletest.cli import serving
from scaletest.model.visibility import Visibility, visibility_gaps
from scaletest.observe.visibility import read_visibility

ALL = Visibility(
    times=True,
    calls=True,
    functions=True,
    locks=True,
    pressure=True,
    cgroup=2,
    devices={"/dev/dri/renderD128": "i915"},
    counters=("i915",),
)


def test_everything_about_a_child_process_is_readable_on_this_machine(tmp_path: Path) -> None:
    visible = read_visibility(tmp_path, tmp_path, tmp_path)
    assert (visible.times, visible.locks, visible.cgroup, visible.devices) == (True, True, 0, {})
    # where Yama hides the calls, the functions stay
    assert visible.calls or visible.functions


def test_devices_are_listed_with_their_drivers(tmp_path: Path) -> None:
    (tmp_path / "dri").mkdir()
    for name in ("dri/renderD128", "dri/renderD129", "nvidia0", "nvidiactl"):
        (tmp_path / name).touch()
    driver = tmp_path / "drivers" / "xe"
    driver.mkdir(parents=True)
    (tmp_path / "renderD128" / "device").mkdir(parents=True)
    (tmp_path / "renderD128" / "device" / "driver").symlink_to(driver)
    visible = read_visibility(tmp_path, tmp_path, tmp_path)
    assert [(Path(path).name, driver) for path, driver in visible.devices.items()] == [
        ("renderD128", "xe"),
        ("renderD129", ""),
        ("nvidia0", "nvidia"),
    ]
    assert "xe" in visible.counters


@pytest.mark.parametrize(
    ("version", "name"), [(2, "cgroup.controllers"), (1, "cpu,cpuacct"), (0, "other")]
)
def test_the_version_of_control_groups(tmp_path: Path, version: int, name: str) -> None:
    (tmp_path / name).mkdir()
    assert read_visibility(tmp_path, tmp_path, tmp_path).cgroup == version


def test_full_visibility_has_no_gaps() -> None:
    assert visibility_gaps(ALL) == []


@pytest.mark.parametrize(
    ("change", "missing", "effect"),
    [
        ({"times": False}, "times of threads", "no cause is named"),
        ({"calls": False}, "system calls", "may have no name"),
        ({"calls": False, "functions": False}, "system calls and kernel functions", "not observed"),
        ({"locks": False}, "/proc/locks", "holder"),
        ({"pressure": False}, "pressure", "nothing confirms"),
        ({"cgroup": 1}, "control groups of version 2", "its CPU limit is known"),
        ({"cgroup": 0}, "control groups", "limits of containers"),
        (
            {"devices": {"/dev/nvidia0": "nvidia"}},
            "counters of /dev/nvidia0 (nvidia)",
            "stays unknown",
        ),
        (
            {"devices": {"/dev/dri/renderD128": ""}},
            "counters of /dev/dri/renderD128 (unknown driver)",
            "stays unknown",
        ),
    ],
)
def test_each_missing_source_names_its_effect_and_remedy(
    change: dict[str, Any], missing: str, effect: str
) -> None:
    (gap,) = visibility_gaps(dataclasses.replace(ALL, **change))
    assert gap["missing"] == missing and effect in gap["effect"] and gap["remedy"]


@pytest.mark.parametrize(("no_causes", "lines"), [(False, 1), (True, 0)])
def test_a_worker_in_a_cluster_logs_what_its_node_hides(
    no_causes: bool, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr(
        serving, "read_visibility", lambda: dataclasses.replace(ALL, pressure=False)
    )
    monkeypatch.setattr(serving, "run_worker", lambda *arguments: None)
    queue = SimpleNamespace(tally=None, announce=None, live_row=lambda: None, sum_up=lambda: None)
    monkeypatch.setattr(serving, "ServedQueue", lambda *arguments: queue)
    settings: Any = SimpleNamespace(
        command=(), program="", devices=SimpleNamespace(device_index=None), no_causes=no_causes
    )
    monkeypatch.setattr(serving.before_run, "check_program", lambda *arguments: None)
    serving.serve_and_report(SimpleNamespace(), settings)  # type: ignore[arg-type]
    assert capsys.readouterr().err.count("causes: no pressure: nothing confirms") == lines
