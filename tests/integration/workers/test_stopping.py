"""Workers are told to stop at any moment of their lives: before they serve, while they take a
request, while Redis is away. The idle end soon, the others wait, nothing is lost.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.client import PubSub
from rq.serializers import JSONSerializer

from scaletest.broker import Client, EmbeddedServer, Queues, connect, keys
from scaletest_workers.worker import Worker, rq_serving
from tests.conftest import (
    Gate,
    check_books,
    children_of,
    eventually,
    missing,
    need,
    processes_with,
    program,
    submit,
    wait_for,
)
from tests.integration.conftest import Launch, workers

BEATS = 20
# One try in two seconds while twenty heartbeats fail, five a second; the defect made thousands.
MANY = 100
# A process of its own namespace of processes, as the first one of a container: the kernel does
# nothing there at a signal without a handler.
FIRST = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
# Stands for a package that the program imports, and takes until nobody writes to it any more.
SLOW_IMPORT = "open({!r}).read()\nraise SystemExit(9)\n"
# Stands for one whose import is told to stop in a finaliser, where Python only prints exceptions.
TOLD_IN_FINALISER = """
import signal
class Lock:
    def __del__(self): signal.raise_signal(signal.SIGTERM)
Lock()
raise SystemExit(9)
"""
# Takes minutes to get ready.
SLOW_TO_PREPARE = """
import time
class Workload:
    def __init__(self): time.sleep(600)
    def run(self): pass
"""


@pytest.fixture
def own() -> Iterator[EmbeddedServer]:
    """A server of the test's own, to be maltreated; what it acknowledged survives that."""
    with EmbeddedServer(append_only=True, tcp=True, extra=("--appendfsync", "always")) as server:
        Queues(connect(server.url)).add("q")
        yield server


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What the workers say."""
    return tmp_path / "workers.log"


@pytest.fixture
def launch(own: EmbeddedServer, tmp_path: Path) -> Iterator[Launch]:
    """Start workers that nothing but what is tested ends: an hour of grace, an hour for an answer
    of Redis.
    """
    with workers(f"{own.url}?socket_timeout=3600", tmp_path) as launch:

        def run(name: str, *arguments: str) -> subprocess.Popen[bytes]:
            process = launch(name, "--grace", "3600", "--heartbeat", "0.4", *arguments)
            redis = connect(own.url)
            eventually(lambda: name in Queues(redis).worker_names("q"))
            redis.close()
            return process

        yield run


@pytest.fixture
def client(own: EmbeddedServer) -> Iterator[Client]:
    """A client that outlasts what is done to the server."""
    with Client(connect(own.url), patience_s=120) as client:
        yield client


@pytest.fixture
def usual_client(url: str) -> Iterator[Client]:
    """A client of the server that tests share."""
    with Client(connect(url)) as client:
        yield client


def blocks(redis: Any) -> bool:
    """Whether a worker waits for a request."""
    return any(row["cmd"] == "blmove" and "b" in row["flags"] for row in redis.client_list())


def with_package(folder: Path, name: str, source: str) -> dict[str, str]:
    """Write a package, and return the environment of a program that imports it before any other of
    that name.
    """
    (folder / f"{name}.py").write_text(source)
    return {**os.environ, "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}


def test_the_first_process_of_a_container_ends_at_a_signal_while_it_still_imports(
    tmp_path: Path,
) -> None:
    need("unshare")
    if os.geteuid() != 0:
        missing("root, who can make a first process")
    # given a worker that is the first process and imports
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    environment = with_package(tmp_path, "click", SLOW_IMPORT.format(str(pipe)))
    outer = subprocess.Popen([*FIRST, *program("worker")], env=environment)
    with pipe.open("w"):  # as soon as it reads
        (inner,) = children_of(outer.pid)
        # when it is told to stop
        os.kill(inner, signal.SIGTERM)
        # expect that it does, as anywhere else
        assert outer.wait(120) == 128 + signal.SIGTERM


def test_a_signal_in_a_finaliser_ends_a_worker_that_imports(tmp_path: Path) -> None:
    environment = with_package(tmp_path, "rq", TOLD_IN_FINALISER)
    assert subprocess.run(program("worker"), env=environment, check=False).returncode == 0


def test_a_worker_whose_workload_still_gets_ready_ends_at_once(
    start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    slow = tmp_path / f"slow_{os.getpid()}.py"
    slow.write_text(SLOW_TO_PREPARE)
    worker = start("--workload", f"{slow}:Workload", wait=False)
    eventually(lambda: len(processes_with(slow.name)) == 2)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(120) == 0
    assert processes_with(slow.name) == []


def test_a_request_that_comes_with_the_signal_goes_back_at_once(
    usual_client: Client, start: Callable[..., subprocess.Popen[bytes]], queues: Queues, redis: Any
) -> None:
    # given a worker that waits for a request, and gets no processor
    told = start("--name", "told")
    eventually(lambda: blocks(redis))
    told.send_signal(signal.SIGSTOP)
    # when Redis gives it one, and it is told to stop before it can see that
    name = submit(usual_client, "0")
    eventually(lambda: queues.state("q").running == 1)
    told.send_signal(signal.SIGTERM)
    told.send_signal(signal.SIGCONT)
    # expect it not to begin the request, which is nobody's now, and was never tried
    assert told.wait(120) == 0
    check_books(queues, waiting=1, running=0)
    start("--name", "other")
    reply = wait_for(usual_client, 1)[name]
    assert (reply.worker, reply.attempts) == ("other", 1)


def test_no_request_waits_for_the_lease_of_a_worker_that_was_told_to_stop(
    usual_client: Client, start: Callable[..., subprocess.Popen[bytes]], queues: Queues
) -> None:
    # given one worker that stays, and a request for it and each that will not
    start()
    chance = random.Random(35)
    moments_s = [chance.uniform(0.0, 1.0) for _ in range(16)]
    names = []
    # when workers begin and are told to stop, at any moment from their start to their work
    for moment_s in moments_s:
        names += [submit(usual_client, "0.02") for _ in range(10)]
        worker = start(wait=False)
        with suppress(subprocess.TimeoutExpired):
            worker.wait(moment_s)
        worker.send_signal(signal.SIGTERM)
        # expect the end of each: before the worker has a handler the kernel ends it
        assert worker.wait(120) in (0, -signal.SIGTERM)
    # expect that nobody had to take a request back after them
    replies = wait_for(usual_client, len(names))
    assert {reply.attempts for reply in replies.values()} == {1}
    state = queues.state("q")
    assert (state.counters["succeeded"], state.waiting, state.balance) == (len(names), 0, 0)
    assert "requeued" not in state.counters


def test_an_idle_worker_ends_without_a_redis_that_hangs(
    own: EmbeddedServer, client: Client, launch: Launch, log: Path
) -> None:
    # given a request aside, and a worker that has delivered another one and now waits
    redis = connect(own.url)
    caught = submit(client, "0")
    redis.lmove(keys.rq_queue("q"), "aside", "LEFT", "RIGHT")
    worker = launch("first")
    delivered = submit(client, "0")
    assert wait_for(client, 1)[delivered].ok
    eventually(lambda: blocks(redis))
    # when Redis hangs at the moment when it has moved the request to the worker and not told it,
    # and the worker must go
    redis.lmove("aside", keys.taking("q"), "LEFT", "RIGHT")
    os.kill(own.process.pid, signal.SIGSTOP)
    worker.send_signal(signal.SIGTERM)
    # expect an end that waited for no answer of the lane's, nor for RQ's last words
    assert worker.wait(120) == 0
    logged = log.read_text()
    assert "other workers will clean up after it" in logged
    assert "Traceback" not in logged
    # and, when Redis goes on, that another worker gets the request, and nothing of the first one is
    # left
    os.kill(own.process.pid, signal.SIGCONT)
    launch("second")
    assert wait_for(client, 1)[caught].ok
    queues = Queues(redis)
    eventually(lambda: queues.worker_names("q") == ["second"])
    eventually(lambda: redis.smembers("rq:workers") == {b"rq:worker:second"})
    assert redis.llen(keys.taking("q")) == 0
    eventually(lambda: queues.state("q").running == 0)
    check_books(queues, succeeded=2, waiting=0)


def test_a_worker_of_a_paused_queue_ends_without_a_redis_that_hangs(
    own: EmbeddedServer, launch: Launch
) -> None:
    redis = connect(own.url)
    Queues(redis).pause("q")
    worker = launch("first")
    eventually(lambda: redis.hget("rq:worker:first", "answer") == b"paused")
    os.kill(own.process.pid, signal.SIGSTOP)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(120) == 0
    os.kill(own.process.pid, signal.SIGCONT)  # so that it can be stopped


class Refuser:
    """In the place of a Redis that is gone: takes connections, and ends each at its first command.
    Counts them.
    """

    def __init__(self, port: int) -> None:
        self.commands: Counter[bytes] = Counter()
        self._listener = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Refuser:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            with caller:
                caller.settimeout(60)
                try:
                    self._converse(caller)
                except OSError:
                    pass

    def _converse(self, caller: socket.socket) -> None:
        while received := caller.recv(65536):
            greetings = received.count(b"SETINFO")
            if not greetings:
                self.commands[received.split(b"\r\n")[2]] += 1
                return
            caller.sendall(b"+OK\r\n" * greetings)


def test_a_worker_that_finishes_a_request_does_not_flood_a_missing_redis_with_retries(
    own: EmbeddedServer, client: Client, launch: Launch, gate: Gate, log: Path
) -> None:
    # given a worker that runs a request
    redis = connect(own.url)
    worker = launch("first", "--", *gate.command)
    name = submit(client)
    eventually(lambda: gate.reached)
    # when Redis goes and the worker is told to stop
    own.process.kill()
    own.process.wait()
    with Refuser(redis.connection_pool.connection_kwargs["port"]) as refuser:
        worker.send_signal(signal.SIGTERM)
        eventually(lambda: refuser.commands[b"EVALSHA"] >= BEATS)
        # expect as many tries as of one that works on
        assert refuser.commands[b"SUBSCRIBE"] < MANY, refuser.commands
    # and the result of the request, once Redis is back
    own.start()
    gate.open()
    assert wait_for(client, 1)[name].ok
    assert worker.wait(120) == 0
    assert "Traceback" not in log.read_text()
    assert Queues(redis).state("q").balance == 0


def test_only_the_thread_for_commands_closes_its_channel(
    redis: Any, queues: Queues, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a worker that stops
    closed_by: list[threading.Thread] = []
    real = PubSub.close

    def close(self: PubSub) -> None:
        closed_by.append(threading.current_thread())
        real(self)

    monkeypatch.setattr(PubSub, "close", close)
    worker = Worker(
        ["q"],
        serializer=JSONSerializer,
        connection=connect(url),
        serving=replace(rq_serving({}), heartbeat_s=600.0),
    )
    worker.work(burst=True, logging_level="CRITICAL")
    # expect the main thread not to close it at the same time
    assert eventually(lambda: closed_by) == [worker.pubsub_thread]
