"""The chart's pages on a real node: they show queues, and only read the runs of a volume."""

import base64
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import CommandFailed, ControlPlane
from scaletest import __version__
from tests.cluster.charts import CHART
from tests.cluster.conftest import Helm, helm_program, restricted
from tests.cluster.real.test_release import START_S, Release, install
from tests.conftest import eventually
from tests.unit import made_runs as runs

UI, PORT = "bench-scaletest-ui", 9995
PODS = "app.kubernetes.io/component=ui"
# Where runs lie, below the mount.
STORED = "scaletest/runs"
UNPACK = f"mkdir -p /volume/{STORED} && base64 -d | tar -xz -C /volume/{STORED}"


def volume_and_writer(namespace: str) -> list[dict[str, Any]]:
    """A claim of a volume, and a pod that can write to it as the user of the image."""
    container = {
        "name": "writer",
        "image": f"scaletest:{__version__}",
        "command": ["sleep", "infinity"],
        "env": [{"name": "XDG_DATA_HOME", "value": "/volume"}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "runs", "mountPath": "/volume"}],
    }
    pod = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {
            "runAsNonRoot": True,
            "fsGroup": 10001,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "runs", "persistentVolumeClaim": {"claimName": "runs"}}],
    }
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}}
    return [
        {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
        for kind, name, spec in (
            ("PersistentVolumeClaim", "runs", claim),
            ("Pod", "writer", pod),
        )
    ]


def container_status(pages: Release) -> dict[str, Any]:
    """The state of the only container of the pages."""
    (pod,) = json.loads(pages.kubectl("get", "pods", "-l", PODS, "-o", "json"))["items"]
    return dict(pod["status"]["containerStatuses"][0])


def page(pages: Release, path: str) -> str:
    """A page; "" while its Service has no address yet, which comes after its pod is ready."""
    try:
        return pages.proxy(UI, PORT, path)
    except CommandFailed:
        return ""


@pytest.mark.timeout(900)
def test_pages_show_queues_and_the_runs_of_a_volume(real: ControlPlane, tmp_path: Path) -> None:
    # given a run in a volume
    helm, namespace = Helm(real, helm_program()), restricted(real)
    pages = Release(real, namespace, tmp_path)
    run = runs.stored(tmp_path / "first", runs.LIMITED, runs.limited_steps())
    packed_run = io.BytesIO()
    with tarfile.open(fileobj=packed_run, mode="w:gz") as archive_of_run:
        archive_of_run.add(run.path, "first")
    real.apply(volume_and_writer(namespace))
    pages.kubectl("wait", "--for=condition=Ready", "pod/writer", f"--timeout={START_S:.0f}s")
    packed = base64.b64encode(packed_run.getvalue()).decode()
    write = ("-n", namespace, "exec", "-i", "writer", "--", "sh", "-c", UNPACK)
    real.kubectl(*write, stdin=packed)
    # when the chart shows pages of it
    archive = f"ui.archive.existingClaim=runs,ui.archive.subPath={STORED}"
    install(helm, namespace, "--set", f"ui.enabled=true,{archive}")
    # expect the queue, read as a user of Redis who changes nothing, and the run
    eventually(lambda: page(pages, "/readyz") == '{"status": "ok"}')
    assert "<html" in page(pages, "/")
    eventually(lambda: "/runs/first" in page(pages, "/runs"))
    assert "<svg" in page(pages, "/runs/first")
    # and neither a token in their pod nor a file that they can write
    touch = ("exec", f"deployment/{UI}", "--", "touch")
    for path in ("/archive/new", "/new"):
        with pytest.raises(CommandFailed, match="Read-only file system"):
            pages.kubectl(*touch, path)
    with pytest.raises(CommandFailed, match="No such file"):
        pages.kubectl("exec", f"deployment/{UI}", "--", "ls", "/var/run/secrets/kubernetes.io")
    # when the volume is taken from them, and given back
    helm("upgrade", "bench", str(CHART), "-n", namespace, "--set", "ui.enabled=true", "--wait")
    without = eventually(lambda: page(pages, "/runs"))
    helm("rollback", "bench", "1", "-n", namespace, "--wait")
    # expect that they say so, and then show it again
    assert "ui.archive" in without and "/runs/first" not in without
    eventually(lambda: "/runs/first" in page(pages, "/runs"))
    # when Redis goes
    pages.kubectl("scale", "statefulset", "bench-redis", "--replicas=0")
    eventually(lambda: not container_status(pages)["ready"])
    # expect that they are not started again for it, and are ready when it is back
    pages.kubectl("scale", "statefulset", "bench-redis", "--replicas=1")
    eventually(lambda: container_status(pages)["ready"], START_S)
    assert container_status(pages)["restartCount"] == 0
