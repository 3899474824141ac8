"""Redis misbehaves in every way that we know of, in the middle of the work: nothing is lost,
nothing comes twice.
"""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from hack.proxy import Link, Proxy, port_of
from scaletest.broker import Client, EmbeddedServer, Queues, connect, embedded
from scaletest.broker.redis_errors import is_transient
from scaletest.broker.retrying import Retrying
from scaletest.load import ClosedLoop
from scaletest.model import Record, Request
from scaletest.model.errors import Unreachable
from tests.conftest import call, check_books, eventually, missing, need, program, wait_for
from tests.integration.broker.test_sentinel import certificates
from tests.integration.conftest import workers

TOTAL = 400


@pytest.fixture
def own() -> Iterator[EmbeddedServer]:
    """A server of the test's own, to be maltreated."""
    with EmbeddedServer(append_only=True, tcp=True) as server:
        Queues(connect(server.url)).add("q")
        yield server


def spin(redis: Any) -> None:
    """Keep the server busy with a script, for others BUSY."""
    other = connect(f"redis://127.0.0.1:{redis.connection_pool.connection_kwargs['port']}/0")

    def run() -> None:
        try:
            other.eval("while true do end", 0)
        except (ResponseError, RedisConnectionError):
            pass
        other.close()

    redis.config_set("lua-time-limit", 20)  # its name in every version
    threading.Thread(target=run, daemon=True).start()
    eventually(lambda: busy(redis))


def busy(redis: Any) -> bool:
    """Whether a script keeps the server from answering; one that has not begun cannot be killed."""
    try:
        redis.ping()
    except ResponseError:
        return True
    return False


def breaks_snapshots(redis: Any) -> None:
    """MISCONF: the last snapshot failed, so the server takes no writes."""
    redis.config_set("save", "3600 1")
    folder = Path(redis.config_get("dir")["dir"]) / "dump.rdb"
    folder.mkdir()
    (folder / "x").touch()
    redis.bgsave()
    eventually(lambda: redis.info("persistence")["rdb_last_bgsave_status"] == "err")


def mends_snapshots(redis: Any) -> None:
    """Let snapshots succeed again."""
    redis.config_set("save", "")
    shutil.rmtree(Path(redis.config_get("dir")["dir"]) / "dump.rdb")


FAULTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "cut": (lambda r: r.client_kill_filter(_type="normal", skipme=True), lambda r: None),
    "scripts flushed": (lambda r: r.script_flush(), lambda r: None),
    "paused": (lambda r: r.client_pause(700, all=True), lambda r: None),
    "out of memory": (
        lambda r: r.config_set("maxmemory", 1),
        lambda r: r.config_set("maxmemory", 0),
    ),
    "read only": (lambda r: r.replicaof("127.0.0.1", 1), lambda r: r.replicaof("NO", "ONE")),
    "busy": (spin, lambda r: r.script_kill()),
    "misconf": (breaks_snapshots, mends_snapshots),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_request_is_answered_once_after_a_fault(
    name: str, own: EmbeddedServer, tmp_path: Path
) -> None:
    # given a worker and a client at work
    begin, end = FAULTS[name]
    redis = connect(own.url)
    with at_work(own, tmp_path) as (loop, records):
        eventually(lambda: len(records) > TOTAL // 6)
        # when the fault comes and goes
        begin(redis)
        time.sleep(
            0.5
        )  # for the fault to be met: it is what is tested, nothing waits for it to be over
        end(redis)
        # expect every request answered once
        assert loop.wait_idle(120)
        check(records, loop, redis)


# Shorter than the workers' leases, and longer.
@pytest.mark.parametrize(
    ("number", "seconds"), [(signal.SIGKILL, 0.5), (signal.SIGKILL, 2.0), (signal.SIGTERM, 2.0)]
)
def test_every_request_is_answered_once_after_a_restart_of_redis(
    own: EmbeddedServer, tmp_path: Path, number: int, seconds: float
) -> None:
    with at_work(own, tmp_path) as (loop, records):
        eventually(lambda: len(records) > TOTAL // 6)
        if number == signal.SIGKILL:
            own.process.kill()
            own.process.wait()
        else:
            os.kill(own.process.pid, number)
            own.process.wait()
        time.sleep(seconds)  # the outage itself
        own.start()
        assert loop.wait_idle(120)
        check(records, loop, connect(own.url))


@contextmanager
def at_work(server: EmbeddedServer, folder: Path) -> Iterator[tuple[ClosedLoop, list[Record]]]:
    """One worker process and one loop of TOTAL short requests."""
    records: list[Record] = []
    with (
        workers(server.url, folder) as launch,
        Client(connect(server.url), patience_s=60) as client,
    ):
        worker = launch("w", "--heartbeat", "0.5")
        loop = ClosedLoop(client, "q", records.append, arguments=("0.002",), total=TOTAL)
        with closing(loop):
            loop.set_parallel(8)
            yield loop, records
        assert worker.poll() is None, "the worker ended by itself"
        worker.terminate()
        assert worker.wait(60) == 0
    text = (folder / "workers.log").read_text()
    assert "Traceback" not in text, text[-3000:]


def check(records: list[Record], loop: ClosedLoop, redis: Any) -> None:
    """Every request once, all succeeded, books balanced."""
    assert len({record.reply.id for record in records}) == len(records) == TOTAL
    assert all(record.ok for record in records)
    queues = Queues(redis)
    eventually(lambda: queues.state("q").running == 0)
    check_books(queues, succeeded=TOTAL)
    assert queues.check("q") == []


@pytest.mark.slow
def test_a_redis_that_lost_everything_ends_the_load_with_an_error(tmp_path: Path) -> None:
    # given a server without persistence and a client with a request in flight
    with EmbeddedServer(tcp=True) as server:
        Queues(connect(server.url)).add("q")
        client = Client(connect(server.url), patience_s=20)
        loop = ClosedLoop(client, "q", lambda _: None)
        loop.set_parallel(1)
        eventually(lambda: Queues(connect(server.url)).state("q").waiting == 1)
        # when it is restarted, and so forgets that the queue was declared
        server.process.kill()
        server.process.wait()
        server.start()
        # expect the loop to end with an error that says so
        eventually(lambda: loop._failure)
        with pytest.raises(Exception, match="not declared"):
            loop.check()
        client.close()


def test_only_transient_errors_are_retried() -> None:
    passing = [
        "OOM command not allowed when used memory > 'maxmemory'",
        "READONLY You can't write",
        "MISCONF x",
    ]
    passing += [
        "Command # 1 (XADD) of pipeline caused error: BUSY Redis is busy",
        "NOREPLICAS x",
        "UNBLOCKED force",
    ]
    assert all(is_transient(ResponseError(text)) for text in passing)
    assert not any(
        is_transient(ResponseError(text)) for text in ["ERR unknown", "WRONGTYPE x", "STALECALL x"]
    )
    assert not is_transient(ValueError("BUSY"))


def test_retries_wait_longer_each_time_and_end_when_patience_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scaletest.broker.retrying.random.random", lambda: 1.0)
    now, waits = [0.0], []

    def sleep(seconds: float) -> bool:
        waits.append(seconds)
        now[0] += seconds
        return False

    def fail() -> None:
        raise RedisConnectionError("gone")

    retrying = Retrying("test", patience_s=10, sleep=sleep, clock=lambda: now[0])
    with pytest.raises(Unreachable, match="we waited 1"):
        retrying.run(fail)
    assert waits[:4] == [0.05, 0.1, 0.2, 0.4]
    assert max(waits) == 2.0


# -- other ways to a server
# --------------------------------------------------------------------------------------------------


def test_a_worker_runs_as_an_acl_user_without_the_right_to_unblock(tmp_path: Path) -> None:
    with EmbeddedServer(tcp=True) as server:
        admin = connect(server.url)
        Queues(admin).add("q")
        if admin.info("server")["redis_version"].startswith("6."):
            pytest.skip("Redis 6.2 cannot forbid one subcommand")
        admin.acl_setuser("tester", enabled=True, passwords=["+s3cret"], keys=["*"], channels=["*"],
                          commands=["+@all", "-client|unblock"])  # fmt: skip
        url = server.url.replace("redis://", "redis://tester:s3cret@")
        with pytest.raises(Unreachable, match="rejects the login") as caught:
            connect(server.url.replace("redis://", "redis://tester:wrong@"))
        assert "wrong" not in caught.value.message
        with Client(connect(url)) as client:
            client.submit_one(Request(client.new_id(), "q", ("0",)))
            burst = subprocess.run(
                program("worker", "--queue", "q", "--burst", "--redis-url", url), check=False
            )
            assert burst.returncode == 0
            assert len(wait_for(client, 1)) == 1


def has_tls(program: str) -> bool:
    """Whether it was built with TLS, by which line of a configuration it names: it stops at the
    first that is wrong.
    """
    lines = "tls-auth-clients no\nmaxmemory no\n"
    tried = subprocess.run(
        [program, "-"], input=lines, text=True, capture_output=True, timeout=280, check=False
    )
    return "tls-auth-clients" not in tried.stdout + tried.stderr


def test_a_worker_connects_over_tls_with_a_client_certificate(tmp_path: Path) -> None:
    server_program = need("redis-server", "openssl")
    if not has_tls(server_program):
        missing("a redis-server with TLS")
    certificates(tmp_path)
    port = embedded.free_port()
    extra = ["--tls-port", str(port), "--tls-cert-file", f"{tmp_path}/server.crt", "--tls-key-file"]
    extra += [f"{tmp_path}/server.key", "--tls-ca-cert-file", f"{tmp_path}/ca.crt"]
    with EmbeddedServer(program=server_program, extra=extra):
        url = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={tmp_path}/ca.crt"
        with pytest.raises(Unreachable):
            connect(url)
        url += f"&ssl_certfile={tmp_path}/client.crt&ssl_keyfile={tmp_path}/client.key"
        Queues(connect(url)).add("q")
        with Client(connect(url)) as client:
            client.submit_one(Request(client.new_id(), "q", ("0",)))
            assert (
                subprocess.run(
                    program("worker", "--queue", "q", "--burst", "--redis-url", url), check=False
                ).returncode
                == 0
            )
            assert len(wait_for(client, 1)) == 1


def test_a_worker_waits_for_a_redis_that_breaks_its_first_connections(own: EmbeddedServer) -> None:
    broken: list[Link] = []

    def break_three(link: Link, chunk: bytes, from_server: bool) -> None:
        if from_server and len(broken) < 3:
            broken.append(link)
            raise ConnectionResetError

    with Proxy(port_of(own.url), break_three) as proxy:
        done = call("worker", "--queue", "q", "--burst", "--redis-url", proxy.url)
    assert (done.returncode, len(broken)) == (0, 3), done.stderr
    assert "Redis is away" in done.stderr and "Redis is back" in done.stderr
