"""Sentinels: who is asked for the master, over TLS too, and what happens when the master goes."""

import subprocess
from pathlib import Path
from typing import Any

from scaletest.broker import Client, EmbeddedServer, Queues, connect, embedded
from scaletest.load import ClosedLoop
from scaletest.model import Record, Request
from scaletest.model.errors import Unreachable
from tests.conftest import eventually, need, program, wait_for


def certificates(folder: Path) -> None:
    """An authority, a server's for 127.0.0.1 and a client's."""
    for name in ("ca", "server", "client"):
        sign = [] if name == "ca" else ["-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key"]
        extra = ["-addext", "subjectAltName=IP:127.0.0.1"] if name == "server" else []
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "1",
                "-subj",
                f"/CN={name}",
                "-keyout",
                f"{folder}/{name}.key",
                "-out",
                f"{folder}/{name}.crt",
                *extra,
                *sign,
            ],
            check=True,
            capture_output=True,
        )


def test_work_continues_after_a_failover_of_sentinel(tmp_path: Path) -> None:
    # given a master, a replica and a sentinel
    program_ = embedded.find_server()
    with EmbeddedServer(tcp=True) as master:
        port = master.url.split(":")[2].split("/")[0]
        with EmbeddedServer(tcp=True, extra=["--replicaof", "127.0.0.1", port]) as replica:
            eventually(
                lambda: connect(replica.url).info("replication").get("master_link_status") == "up"
            )
            watch, config = embedded.free_port(), tmp_path / "sentinel.conf"
            config.write_text(
                f"port {watch}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {port} 1\n"
                "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n"
            )
            with (tmp_path / "sentinel.log").open("wb") as log:
                sentinel = subprocess.Popen(
                    [program_, str(config), "--sentinel"], stdout=log, stderr=log
                )
            try:
                url = f"sentinel://127.0.0.1:{watch}/main/0"
                redis = eventually(lambda: _try(url))
                Queues(redis).add("q")
                redis.wait(1, 1000)
                eventually(lambda: "num-slaves=1" in _sentinel_state(watch))
                failover(url, master)
            finally:
                sentinel.terminate()
                sentinel.wait()


def test_a_master_is_found_through_sentinels_over_tls(tmp_path: Path) -> None:
    server_program = need("redis-server", "openssl")
    # given a master and a sentinel that speak nothing but TLS
    certificates(tmp_path)
    port, watch = embedded.free_port(), embedded.free_port()
    keys = {"cert-file": "server.crt", "key-file": "server.key", "ca-cert-file": "ca.crt"}
    tls = {f"tls-{name}": str(tmp_path / file) for name, file in keys.items()}
    tls |= {"tls-auth-clients": "no", "tls-replication": "yes"}
    extra = [word for name, value in tls.items() for word in (f"--{name}", value)]
    config = tmp_path / "sentinel.conf"
    lines = [f"{name} {value}" for name, value in tls.items()]
    lines += ["port 0", f"tls-port {watch}", f"sentinel monitor main 127.0.0.1 {port} 1"]
    config.write_text("\n".join(lines) + "\n")
    with EmbeddedServer(program=server_program, extra=["--tls-port", str(port), *extra]):
        with (tmp_path / "sentinel.log").open("wb") as log:
            sentinel = subprocess.Popen(
                [server_program, str(config), "--sentinel"], stdout=log, stderr=log
            )
        try:
            # when the URL says so
            url = f"sentinel://127.0.0.1:{watch}/main/0?ssl=true&ssl_ca_certs={tmp_path}/ca.crt"
            redis = eventually(lambda: _try(url))
            # expect both to be spoken to over TLS, by connections that are made later too
            Queues(redis).add("q")
            line = program("worker", "--queue", "q", "--burst", "--redis-url", url)
            with Client(connect(url)) as client:
                client.submit_one(Request(client.new_id(), "q", ("0",)))
                assert subprocess.run(line, check=False).returncode == 0
                assert len(wait_for(client, 1)) == 1
            # and neither without it
            assert _try(url.split("?")[0]) is None
        finally:
            sentinel.terminate()
            sentinel.wait()


def failover(url: str, master: EmbeddedServer) -> None:
    """Kill the master at work; everything is answered by way of the replica."""
    line = program("worker", "--queue", "q", "--redis-url", url, "--heartbeat", "0.5")
    worker = subprocess.Popen(line, stdin=subprocess.DEVNULL)
    records: list[Record] = []
    with Client(connect(url), patience_s=60) as client:
        loop = ClosedLoop(client, "q", records.append, arguments=("0.005",), total=300)
        loop.set_parallel(4)
        eventually(lambda: len(records) > 50)
        master.process.kill()
        master.process.wait()
        assert loop.wait_idle(120)
        loop.close()
    worker.terminate()
    assert worker.wait(60) == 0
    assert len({record.reply.id for record in records}) == 300


def _try(url: str) -> Any:
    try:
        return connect(url)
    except Unreachable:
        return None


def _sentinel_state(port: int) -> str:
    import redis

    with redis.Redis(port=port) as client:
        row = client.execute_command("SENTINEL", "MASTER", "main")
        pairs = row if isinstance(row, dict) else dict(zip(row[::2], row[1::2], strict=True))
        return " ".join(f"{_word(key)}={_word(value)}" for key, value in pairs.items())


def _word(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
