"""Benchmarks as objects on a real node: iperf3 runs in pods, and what it measured is in the status."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.kubernetes import ControlPlane, NotBuilt, Pool
from scaletest.benchmarks.kubernetes import stored
from scaletest.cluster.connection import connect
from scaletest.cluster.objects import Objects
from scaletest.kinds.crd import definitions
from tests.cluster.conftest import restricted
from tests.conftest import eventually, missing, program

ROOT = Path(__file__).parents[2]
IMAGES = ("benchmarks", "pause")


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with one real node that has the image of the tools, and our definitions."""
    made = ControlPlane(tmp_path_factory.mktemp("real"))
    try:
        made.up([Pool("plain", 1, 0)], real=True, images=archives())
        made.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(definitions()))
        made.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        yield made
    except NotBuilt as error:
        missing(str(error))
    finally:
        made.down()


def archives() -> list[Path]:
    """The images as they are now, or those of a folder that SCALETEST_IMAGES names. Raises NotBuilt."""
    if given := os.environ.get("SCALETEST_IMAGES"):
        return [Path(given) / f"{name}.tar" for name in IMAGES]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "scaletest" / "images" / "archives"
    line = [ROOT / "hack" / "images", "--archive", folder, *IMAGES]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotBuilt(f"hack/images: {done.stderr[-1000:]}")
    return [folder / f"{name}.tar" for name in IMAGES]


@pytest.fixture
def namespace(real: ControlPlane, tmp_path: Path) -> Iterator[str]:
    """A restricted namespace with an operator of its own, which is a process of this machine."""
    name = restricted(real)
    environment = {**os.environ, "KUBECONFIG": str(real.kubeconfig)}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(program("operator", "--namespace", name), env=environment, stdout=log, stderr=log)
    yield name
    process.terminate()
    process.wait(60)


def get(real: ControlPlane, namespace: str, what: str) -> Any:
    return json.loads(real.kubectl("-n", namespace, "get", what, "-o", "json"))["items"]


@pytest.mark.timeout(900)
def test_a_set_of_iperf_is_measured_by_real_pods(
    real: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given 3 x 2 benchmarks
    spec = {
        "template": {"kind": "IPerf", "spec": {"duration": 1}},
        "permutations": {"product": {"streams": [1, 2, 4]}},
        "repetitions": 2,
    }
    body = {"apiVersion": "scaletest.dev/v1alpha1", "kind": "BenchmarkSet", "spec": spec,
            "metadata": {"name": "sweep", "namespace": namespace}}  # fmt: skip
    real.apply([body])

    def status() -> dict[str, Any]:
        return dict(get(real, namespace, "benchmarksets")[0].get("status", {}))

    eventually(lambda: "finishedAt" in status(), 600)
    # expect each measured, and the network that was used
    rows = {one["metadata"]["name"]: one for one in get(real, namespace, "iperfs")}
    assert (status()["succeeded"], status()["count"]) == (6, 6), [one["status"] for one in rows.values()]
    monkeypatch.setenv("KUBECONFIG", str(real.kubeconfig))
    objects = Objects(connect())
    for number in range(1, 7):
        one = rows[f"sweep-{number}"]
        ended = stored(objects, namespace, one["metadata"]["name"], one["metadata"]["uid"])
        assert ended is not None and ended.headlines["bandwidth"] > 1e6
        # the tool's own report says the same
        assert ended.headlines["bandwidth"] == ended.result["end"]["sum_received"]["bits_per_second"]
        assert len(ended.result["streams"]) == one["spec"]["streams"] == [1, 1, 2, 2, 4, 4][number - 1]
        assert one["status"]["network"]["interface"] == "eth0"
        assert one["status"]["summary"] in real.kubectl("-n", namespace, "get", "iperf", one["metadata"]["name"])
    # and when the set is deleted nothing is left
    real.kubectl("-n", namespace, "delete", "benchmarkset", "sweep", "--timeout=60s")
    eventually(lambda: not get(real, namespace, "iperfs,jobs,pods,services"), 120)
