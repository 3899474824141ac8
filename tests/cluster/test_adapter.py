"""HPAs on the exporter's metrics, through prometheus-adapter over a real Prometheus, as the
original's examples.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.kubernetes import CommandFailed, ControlPlane, NotBuilt
from hack.kubernetes.adapter import Adapter
from hack.kubernetes.keda import Keda
from hack.kubernetes.names import Names
from hack.kubernetes.release import DEPLOYMENT, EXPORTER, Release
from tests.conftest import eventually, missing, program

ROOT = Path(__file__).parents[2]
BEHAVIOR = "queues.sleep.autoscaling.behavior"
# Up in one go, whatever the HPA did seconds ago; down after 4 s.
QUICK = (
    f"{BEHAVIOR}.scaleDown.stabilizationWindowSeconds=4",
    *(
        f"{BEHAVIOR}.scaleUp.policies[0].{key}"
        for key in ("type=Pods", "value=8", "periodSeconds=1")
    ),
)
pytestmark = pytest.mark.weekly(part="prometheus-adapter")


@pytest.fixture(scope="module")
def names(plane: ControlPlane) -> Names:
    """Where Prometheus finds Services."""
    return Names(plane.folder)


@pytest.fixture(scope="module")
def adapter(plane: ControlPlane, names: Names) -> Iterator[Adapter]:
    """prometheus-adapter, for this module."""
    adapter = Adapter(plane, names)
    try:
        adapter.up()
    except NotBuilt as error:
        missing(str(error))
    try:
        yield adapter
    finally:
        adapter.down()


@pytest.mark.parametrize("example", ["hpa-prometheus-adapter", "hpa-custom"])
def test_an_hpa_scales_between_one_and_eight(
    plane: ControlPlane, names: Names, adapter: Adapter, example: str, tmp_path: Path
) -> None:
    with Release(plane, names, example, *QUICK) as release:
        adapter.scrape(release.namespace, EXPORTER)
        eventually(release.declared)
        # when 200 requests come at once
        statistics = release.burst(200, 0.4)
        # expect all of them done by up to eight workers, and one left
        assert (statistics["succeeded"], statistics["failed"]) == (200, 0)
        eventually(lambda: release.wanted == 1)
        wanted = release.history
        assert (wanted[0], max(wanted), min(wanted), wanted[-1]) == (1, 8, 1, 1)
        assert "SuccessfulRescale" in release.reasons("HorizontalPodAutoscaler")
        # and that a validation is refused unless it may hold the HPA
        line = program("validate", "--deployment", DEPLOYMENT, "-n", release.namespace)
        line += ["--redis-url", release.redis_url("client"), "--run-dir", str(tmp_path / "run")]
        environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
        refused = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
        assert refused.returncode == 2, refused.stderr
        assert "--pause-autoscalers" in refused.stderr


def test_keda_and_the_adapter_exclude_each_other(
    plane: ControlPlane, names: Names, adapter: Adapter
) -> None:
    line = ["hack/cluster", "up", "--keda", "--adapter"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2
    assert "exclude each other" in done.stderr
    with pytest.raises(
        CommandFailed, match=r"prometheus-adapter answers for external\.metrics\.k8s\.io"
    ):
        Keda(plane, names).up()
