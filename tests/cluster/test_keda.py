"""KEDA itself, beside the control plane: it scales a release's workers from zero and back, and lets
go when it must.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import ControlPlane, NotBuilt
from hack.kubernetes.keda import Keda
from hack.kubernetes.names import Names
from hack.kubernetes.release import DEPLOYMENT, Release
from tests.cluster.conftest import kubeconfig_of
from tests.conftest import eventually, missing, program
from tests.integration.services import check_verdict

SCALING = "queues.sleep.autoscaling"
# Looks every 2 s, down after 4 s, to nothing after 5 s: a real queue wants longer ones.
QUICK = (
    f"{SCALING}.pollingInterval=2",
    f"{SCALING}.cooldownPeriod=5",
    f"{SCALING}.behavior.scaleDown.stabilizationWindowSeconds=4",
)


@pytest.fixture(scope="module")
def names(plane: ControlPlane) -> Names:
    """Where KEDA finds Services."""
    return Names(plane.folder)


@pytest.fixture(scope="module")
def keda(plane: ControlPlane, names: Names) -> Iterator[Keda]:
    """KEDA, for this module."""
    keda = Keda(plane, names)
    try:
        keda.up()
    except NotBuilt as error:
        missing(str(error))
    try:
        yield keda
    finally:
        keda.down()


@pytest.mark.parametrize(
    ("example", "settings"),
    [
        ("scale-to-zero", ()),
        ("keda-exporter", (f"{SCALING}.minReplicas=0", f"{SCALING}.exporter.window=5")),
    ],
)
def test_a_burst_scales_from_zero_and_back(
    plane: ControlPlane, names: Names, keda: Keda, example: str, settings: tuple[str, ...]
) -> None:
    with Release(plane, names, example, *QUICK, *settings) as release:
        # given no worker, and a queue that can be submitted to all the same
        eventually(lambda: release.wanted == 0 and release.declared())
        earlier = len(release.history)
        # when 200 requests come at once
        statistics = release.burst(200, 0.2)
        # expect all of them done, by more and more workers, and none left afterwards
        assert (statistics["succeeded"], statistics["failed"]) == (200, 0)
        eventually(lambda: release.wanted == 0)
        wanted = release.history[earlier:]
        assert wanted[0] == 1
        assert 4 <= max(wanted) <= 8
        assert wanted[-1] == 0
        # and that KEDA and its HPA say so
        reasons = release.reasons("ScaledObject", "HorizontalPodAutoscaler")
        assert {
            "KEDAScaleTargetActivated",
            "KEDAScaleTargetDeactivated",
            "SuccessfulRescale",
        } <= reasons


def scaled_object(release: Release) -> dict[str, Any]:
    return dict(release.pods.get("scaledobject", DEPLOYMENT))


def paused(release: Release) -> bool:
    conditions = scaled_object(release).get("status", {}).get("conditions", [])
    return any(
        condition["type"] == "Paused" and condition["status"] == "True" for condition in conditions
    )


def test_a_validation_pauses_keda_and_resumes_it(
    plane: ControlPlane, names: Names, keda: Keda, tmp_path: Path
) -> None:
    with Release(plane, names, "keda-redis", *QUICK) as release:
        # given that KEDA keeps one worker, and a validation with the chart's own rights
        eventually(lambda: release.pods.get("hpa")["items"] and release.declared())
        config = kubeconfig_of(plane, release.namespace, "bench-scaletest-validate", tmp_path)
        line = program(
            "validate", "--deployment", DEPLOYMENT, "-n", release.namespace, "--limit", "2"
        )
        line += [
            "--seconds",
            "0.2",
            "--scale",
            "1.5",
            "--step-time",
            "12",
            "--run-dir",
            str(tmp_path / "run"),
        ]
        line += ["--redis-url", release.redis_url("client"), "--format", "json"]
        options: dict[str, Any] = {"env": {**os.environ, "KUBECONFIG": str(config)}, "text": True}
        # when it may not pause, expect an error that names the way
        refused = subprocess.run(line, capture_output=True, check=False, **options)
        assert refused.returncode == 2, refused.stderr
        assert "--pause-autoscalers" in refused.stderr
        # when it may
        running = subprocess.Popen(
            [*line, "--pause-autoscalers"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        # expect that KEDA says it is paused and has taken its HPA away,
        eventually(
            lambda: running.poll() is not None or (release.wanted == 2 and paused(release)), 90
        )
        assert running.poll() is None, running.communicate()
        assert release.pods.get("hpa")["items"] == []
        out, errors = running.communicate(timeout=280)
        # that nobody else scaled meanwhile,
        assert running.returncode in (0, 4), out + errors
        check_verdict(running.returncode, json.loads(out))
        assert [step["workers"] for step in json.loads(out)["steps"]] == [1, 2]
        # and that afterwards it scales again
        assert "annotations" not in scaled_object(release)["metadata"] or not any(
            "paused" in key for key in scaled_object(release)["metadata"]["annotations"]
        )
        eventually(lambda: not paused(release) and release.pods.get("hpa")["items"])
        assert release.wanted == 1
