"""KEDA itself reads a Redis of the user's own as the chart tells it to: over TLS, and by way of a
sentinel.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from hack.kubernetes import ControlPlane, keys
from hack.kubernetes.process import free_ports
from tests.cluster.conftest import CHART, Helm
from tests.cluster.test_keda import QUICK, keda, names  # noqa: F401
from tests.conftest import eventually, need

USER, PASSWORD = "tester", "s3cret"
DEPLOYMENT = "bench-scaletest-sleep-worker"


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
    keys.serving(own.folder, "localhost")
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
