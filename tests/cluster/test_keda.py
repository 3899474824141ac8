"""KEDA itself, beside the control plane: it scales a release's workers from zero and back, lets go
when it must, and reads a Redis of the user's own over TLS and by way of a sentinel.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from hack.kubernetes import ControlPlane, NotBuilt, keys
from hack.kubernetes.keda import Keda
from hack.kubernetes.names import Names
from hack.kubernetes.process import free_ports
from hack.kubernetes.release import DEPLOYMENT, Release
from tests.cluster.charts import CHART
from tests.cluster.conftest import Helm, kubeconfig_of
from tests.conftest import eventually, missing, need, program
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


USER, PASSWORD = "tester", "s3cret"


@dataclass(frozen=True, slots=True)
class Own:
    """A Redis with a login and a sentinel of it, in the clear or over TLS and nothing else."""

    folder: Path
    port: int
    sentinel: int
    tls: bool

    def client(self) -> redis.Redis:
        """What people have."""
        options = {"ssl": True, "ssl_ca_certs": str(self.folder / "ca.crt")} if self.tls else {}
        return redis.Redis("localhost", self.port, username=USER, password=PASSWORD, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=[False, True], ids=["clear", "tls"])
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    program = need("redis-server", "openssl")
    own = Own(tmp_path_factory.mktemp("own"), *free_ports(2), tls=request.param)
    keys.make_server_keys(own.folder, "localhost")
    tls = [
        "tls-cert-file tls.crt",
        "tls-key-file tls.key",
        "tls-ca-cert-file ca.crt",
        "tls-auth-clients no",
        "port 0",
    ]
    tls += ["tls-replication yes"]

    def config(name: str, port: int, *lines: str) -> str:
        how = [f"tls-port {port}", *tls] if own.tls else [f"port {port}"]
        path = own.folder / name
        path.write_text("\n".join([f"dir {own.folder}", "bind 127.0.0.1", *how, *lines]) + "\n")
        return str(path)

    server = config(
        "server.conf", own.port, "user default off", f"user {USER} on >{PASSWORD} ~* &* +@all"
    )
    lines = ["sentinel resolve-hostnames yes", "sentinel announce-hostnames yes"]
    lines += [f"sentinel monitor main localhost {own.port} 1", f"sentinel auth-user main {USER}"]
    watcher = config("sentinel.conf", own.sentinel, *lines, f"sentinel auth-pass main {PASSWORD}")
    started = []
    with (own.folder / "log").open("wb") as log:
        for line in ([program, server], [program, watcher, "--sentinel"]):
            started.append(subprocess.Popen(line, cwd=own.folder, stdout=log, stderr=log))
    try:
        eventually(lambda: _answers(own.client()))
        yield own
    finally:
        for process in started:
            process.terminate()
            process.wait()


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


@pytest.mark.parametrize("how", ["host", "sentinel"])
@pytest.mark.usefixtures("keda")
def test_keda_scales_on_an_external_redis_with_and_without_tls(
    plane: ControlPlane, main_helm: Helm, namespace: str, own: Own, how: str
) -> None:
    # given the secrets that the chart's documentation asks for, and an idle queue without workers
    literal = f"--from-literal=password={PASSWORD}"
    plane.kubectl("-n", namespace, "create", "secret", "generic", "login", literal)
    plane.kubectl(
        "-n", namespace, "create", "secret", "generic", "ca", f"--from-file={own.folder}/ca.crt"
    )
    settings = [
        "redis.enabled=false",
        "externalRedis.existingSecret=login",
        f"externalRedis.username={USER}",
        *QUICK,
    ]
    if how == "host":
        settings += ["externalRedis.host=localhost", f"externalRedis.port={own.port}"]
    else:
        settings += [
            f"externalRedis.sentinel.nodes={{localhost:{own.sentinel}}}",
            "externalRedis.sentinel.service=main",
        ]
    if own.tls:
        settings += ["externalRedis.tls.enabled=true", "externalRedis.tls.existingSecret=ca"]
    example = ["-f", str(CHART / "examples" / "scale-to-zero.yaml")]
    main_helm(
        "install",
        "bench",
        str(CHART),
        "-n",
        namespace,
        *example,
        *(w for setting in settings for w in ("--set", setting)),
    )

    def scaled(condition: str) -> bool:
        rows = json.loads(
            plane.kubectl("-n", namespace, "get", "scaledobject", DEPLOYMENT, "-o", "json")
        )
        conditions = {
            shown["type"]: shown["status"] for shown in rows.get("status", {}).get("conditions", [])
        }
        return conditions.get("Ready") == "True" and conditions.get("Active") == condition

    def wanted() -> int:
        return int(
            plane.kubectl(
                "-n", namespace, "get", "deployment", DEPLOYMENT, "-o", "jsonpath={.spec.replicas}"
            )
        )

    try:
        eventually(lambda: scaled("False") and wanted() == 0)
        # when three requests wait
        own.client().rpush("rq:queue:sleep", "a", "b", "c")
        # expect workers, as many, and none when all is done
        eventually(lambda: wanted() == 3)
        own.client().delete("rq:queue:sleep")
        eventually(lambda: scaled("False") and wanted() == 0)
    finally:
        own.client().flushall()
        main_helm("uninstall", "bench", "-n", namespace, "--wait")
