"""Pods that ask for devices which no node offers are refused at once."""

from pathlib import Path

import pytest

from scaletest.cli.main import run
from scaletest.cluster.api_calls import Busy
from scaletest.lifecycle.commands import lifecycle_run
from scaletest.lifecycle.measure.planning import check_devices
from scaletest.lifecycle.measure.templating import text_of
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.model.errors import UsageError
from tests.unit.fake_api import Act, Answer, api, page, status
from tests.unit.lifecycles import plan


def asking(gpus: str, resource: str = "nvidia.com/gpu") -> LifecyclePlan:
    return plan(template=text_of("job", None), gpus=gpus, resource=resource)


def nodes(*amounts: str) -> Act:
    """An API server with a node, in a page of its own, for each amount of GPUs."""
    rows = [{"status": {"allocatable": {"cpu": "4", "nvidia.com/gpu": text}}} for text in amounts]

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        assert path == "/api/v1/nodes"
        number = int(query.get("continue", "0"))
        return page([rows[number]], token=str(number + 1) if number + 1 < len(rows) else "")

    return act


def refusing(code: int) -> Act:
    return lambda *asked: (code, {}, status(code, "no"))


def test_one_node_that_offers_them_is_enough() -> None:
    with api(nodes("0", "8")) as (cluster, asked):
        assert check_devices(asking("8"), cluster) == ""
        assert len(asked) == 2


def test_without_devices_no_node_is_looked_at() -> None:
    with api(nodes("8")) as (cluster, asked):
        assert check_devices(asking("0"), cluster) == ""
        assert asked == []


@pytest.mark.parametrize(
    ("amounts", "gpus", "resource", "offered"),
    [
        # two nodes of 8 have 16, but a pod is on one of them
        (("8", "8"), "16", "nvidia.com/gpu", "nodes offer nvidia.com/gpu:"),
        (("8", "8"), "1", "gpu.intel.com/xe", "nodes offer nvidia.com/gpu:"),
        (("0",), "1", "nvidia.com/gpu", "nodes offer no devices"),
    ],
)
def test_devices_that_no_node_offers_are_refused(
    amounts: tuple[str, ...], gpus: str, resource: str, offered: str
) -> None:
    with (
        api(nodes(*amounts)) as (cluster, _),
        pytest.raises(UsageError, match=f"no node offers {gpus} {resource}") as caught,
    ):
        check_devices(asking(gpus, resource), cluster)
    hint = caught.value.hint or ""
    assert offered in hint and "<num_gpus> 0" in hint and "<force>" in hint


def test_without_the_right_to_list_nodes_there_is_a_warning() -> None:
    with api(refusing(403)) as (cluster, _):
        warning = check_devices(asking("1"), cluster)
    assert "unknown whether nodes offer the devices: not allowed to list nodes" in warning


def test_an_api_server_that_does_not_answer_is_no_warning() -> None:
    with api(refusing(503)) as (cluster, _), pytest.raises(Busy):
        check_devices(asking("1"), cluster)


@pytest.mark.parametrize("command", ["submit", "run"])
def test_nothing_is_begun_when_no_node_offers_them(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, asked_of = tmp_path / "out", ("-n", "1", "-g", "1", "--output-dir")
    with api(nodes("0")) as (cluster, asked):
        monkeypatch.setattr(lifecycle_run, "connect_cluster", lambda *where: cluster)
        assert run(["lifecycle", command, *asked_of, str(out)]) == 2
        assert [path for _, path in asked] == ["/api/v1/nodes?limit=500"]
        assert "no node offers 1 nvidia.com/gpu" in capsys.readouterr().err
        # with --force nobody looks
        run(["lifecycle", command, *asked_of, str(out), "--force"])
        assert len([path for _, path in asked if "nodes" in path]) == 1


@pytest.mark.parametrize("command", ["submit", "run"])
def test_pods_ask_for_no_device_unless_told(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["lifecycle", command, "-n", "1", "--dry-run", "--output-dir", str(tmp_path / "out")]
    assert run(line) == 0
    assert "nvidia.com/gpu" not in capsys.readouterr().out
    assert run([*line, "-g", "1"]) == 0
    assert "nvidia.com/gpu: 1" in capsys.readouterr().out.replace("'", "")
