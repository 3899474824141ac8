import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.cli.cluster import cause_lines
from scaletest.cluster import inventory, rights
from scaletest.cluster.rights import Right
from scaletest.model.visibility import MARK, Visibility, visibility_gaps
from scaletest.observe.visibility import read_visibility
from tests.unit.fake_api import Answer, api

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


def test_a_written_line_of_visibility_is_read_back() -> None:
    assert Visibility.from_line(ALL.to_line()) == ALL


@given(st.text(max_size=60))
def test_any_other_log_line_gives_no_visibility(text: str) -> None:
    assert Visibility.from_line(text) is None
    assert Visibility.from_line(MARK + text) is None
    assert Visibility.from_line(MARK + json.dumps({"times": text})) is None


def pod(name: str, node: str, *arguments: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [{"name": "main", "args": list(arguments)}]},
    }


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> list[Right]:
    """Rights that we do not have."""
    rows: list[Right] = []
    monkeypatch.setattr(
        rights,
        "missing_rights",
        lambda cluster, wanted: [permission for permission in rows if permission in wanted],
    )
    return rows


def answering(pods: list[dict[str, Any]], logs: dict[str, str]) -> Any:
    """An API server with these pods and logs."""

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        name = path.split("/")[-2]
        if path.endswith("/log"):
            return (200, {}, iter([logs[name].encode()])) if name in logs else (404, {}, {})
        return 200, {}, {"items": pods}

    return act


@pytest.mark.usefixtures("lacking")
def test_visibility_is_read_from_one_worker_of_each_node() -> None:
    pods = [
        pod("c", "node-2", "client", "--queue", "q"),
        pod("d", "node-2", "worker", "--queue", "q"),
        pod("a", "node-1", "worker", "--queue", "q"),
        pod("b", "node-1", "worker", "--queue", "q"),
    ]
    # the beginning of one log is gone
    logs = {"a": "a request\n", "b": f"hello\n{ALL.to_line()}\nmore\n", "d": ""}
    with api(answering(pods, logs)) as (cluster, asked):
        assert inventory.causes(cluster) == [
            inventory.NodeRow("node-1", "b", True, []),
            inventory.NodeRow("node-2", "d", False, []),
        ]
    assert not any("/pods/c/log" in path for _, path in asked)


@pytest.mark.parametrize(
    ("logs", "shown"),
    [
        ({"a": ALL.to_line()}, "causes: node node-1: all can be read\n"),
        (
            {"a": dataclasses.replace(ALL, pressure=False).to_line()},
            "causes: node node-1: all can be read but\n  pressure: nothing confirms",
        ),
        ({}, "causes: node node-1: the log of a does not say what it shows; start its pod again"),
    ],
)
@pytest.mark.usefixtures("lacking")
def test_the_cluster_check_shows_the_visibility_of_nodes(logs: dict[str, str], shown: str) -> None:
    with api(answering([pod("a", "node-1", "worker")], logs)) as (cluster, _):
        text = "\n".join(cause_lines(inventory.causes(cluster)))
    assert shown in f"{text}\n"


def test_the_cluster_check_names_what_it_cannot_know(lacking: list[Right]) -> None:
    with api(answering([], {})) as (cluster, _):
        lines = [*cause_lines(inventory.causes(cluster))]
        lacking.append(rights.VIEWS[1])
        lines += cause_lines(inventory.causes(cluster))
    shown = "\n".join(lines)
    assert "since no worker runs" in shown and "we may not list pods or get pods/log" in shown


def test_an_option_of_the_workload_named_like_ours_does_not_count() -> None:
    assert inventory.without_causes(pod("a", "n", "worker", "--no-causes", "--", "run")["spec"])
    assert not inventory.without_causes(pod("a", "n", "worker", "--", "run", "--no-causes")["spec"])
