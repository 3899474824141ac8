"""Ten thousand workers on one Redis: what their heartbeats cost it, how long scripts and scrapes
take, and what happens when a tenth of them dies at once.

Simulated workers say what real ones say, word by word, because lane and heartbeat of the product
make their commands; only the waiting for answers is done by one event loop for all. Each has the
three connections of a real one, over a unix socket, since one pair of addresses has 28,000 ports,
and shares or pipelines nothing. Where a process may not open so many files, the connection for
commands is left out, on which nothing is ever said, and then as many workers as do not fit: the
first line says with how many of both the bars were tried. Beside them eight real workers serve a
queue of their own. Prints one line of JSON for each bar.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import heapq
import itertools
import json
import multiprocessing
import os
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Any

import hiredis

from scaletest.broker import Client, EmbeddedServer, Queues, connect, keys
from scaletest.broker.fast_lane import Done, FastLane, Taken
from scaletest.broker.heartbeat import (
    DEFAULT_INTERVAL_S,
    LEASE_INTERVALS,
    SOONEST_LOOK_S,
    Heartbeat,
)
from scaletest.broker.memory import CONNECTIONS_A_WORKER
from scaletest.broker.retry import Retrying
from scaletest.broker.samples import SamplerLease
from scaletest.broker.scripts import script
from scaletest.model import Request

QUEUES = 20
REAL, REAL_QUEUE, REAL_SLEEP_S = 8, "real", 0.02
KILLED = STORM = 1000
TICK_S = DEFAULT_INTERVAL_S / 2
STEADY_S = 30.0
# Of a real worker: requests, heartbeats, commands.
CONNECTIONS, FEWEST_CONNECTIONS = CONNECTIONS_A_WORKER, 2
# Connections of others than simulated workers, and files that Redis keeps for itself besides.
OTHER_CLIENTS, SPARE_FILES = 150, 200
SLOW_US = 5_000
MOST_CPU, MOST_SCRIPT_MS, MOST_SCRAPE_MS, MOST_AGAIN_S = 0.6, 10.0, 100.0, 15.0
MANY_QUEUES, BUCKETS, SCRAPES, MOST_SAMPLE_US = 2000, 200, 20, 15.0
# A niceness that only an administrator may give.
PREFERRED = -10
# Whatever is run here, the most frequent first.
SCRIPTS = (
    "beat",
    "cycle",
    "reap",
    "metrics",
    "roster",
    "desert",
    "submit",
    "client_beat",
    "sample",
    "watch",
)
Words = tuple[Any, ...]


class Capture:
    """A client that keeps what it is asked to send; it answers as to an idle worker."""

    def __init__(self, real: Any) -> None:
        self.connection_pool = real.connection_pool
        self.words: Words = ()

    def evalsha(self, *words: Any) -> Any:
        self.words = ("EVALSHA", *words)
        return (1, 0, 0, 1) if script_of(words[0]) == "beat" else (0, 0, 0, None)


def script_of(digest: str) -> str:
    """The name of a script; its digest when nobody here may run it."""
    return next((name for name in SCRIPTS if script(name).digest == digest), digest)


class Conversation:
    """One connection: words go out, and whoever asked gets the answer."""

    def __init__(self, loop: Loop, path: str) -> None:
        self._loop = loop
        self._reader = hiredis.Reader()
        self._waiting: deque[Callable[[Any], None]] = deque()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.socket.setblocking(False)
        loop.selector.register(self.socket, selectors.EVENT_READ, self)

    def say(self, answered: Callable[[Any], None], *commands: Words) -> None:
        """Send commands in one packet; the answer to the last of them counts."""
        for _ in commands[1:]:
            self._waiting.append(_ignore)
        self._waiting.append(answered)
        self.socket.sendall(b"".join(hiredis.pack_command(command) for command in commands))

    def readable(self) -> None:
        self._reader.feed(self.socket.recv(65536))
        while (answer := self._reader.gets()) is not False:
            if isinstance(answer, Exception):
                raise answer
            if self._waiting:
                self._waiting.popleft()(answer)

    def close(self) -> None:
        self._loop.selector.unregister(self.socket)
        self.socket.close()


def _ignore(answer: Any) -> None:
    """The answer to a command that only prepares the next."""


class Loop:
    """Waits for all answers, and calls what is due."""

    def __init__(self) -> None:
        self.selector = selectors.EpollSelector()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self.late_s: list[float] = []

    def at(self, due: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (due, next(self._number), call))

    def run_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Go on until that is so, at most for so long; whether it is."""
        end = time.monotonic() + seconds
        while not done():
            now = time.monotonic()
            if now >= end:
                return False
            while self._due and self._due[0][0] <= now:
                due, _, call = heapq.heappop(self._due)
                self.late_s.append(now - due)
                call()
            wait = min(0.05, max(0.0, self._due[0][0] - time.monotonic())) if self._due else 0.05
            for key, _ in self.selector.select(wait):
                key.data.readable()
        return True


class Simulated:
    """One worker. holds: it keeps the requests that it takes and never ends them."""

    holds = False

    def __init__(
        self,
        loop: Loop,
        path: str,
        capture: Capture,
        name: str,
        queue: str,
        connections: int = CONNECTIONS,
    ) -> None:
        self._loop, self._capture = loop, capture
        self.name, self._queue = name, queue
        self.taken: list[Taken] = []
        self.beats = self.reaps = 0
        self._dead = False
        self._lane = FastLane(capture, name, queue, DEFAULT_INTERVAL_S, Retrying(name))  # type: ignore[arg-type]
        sampling = SamplerLease(queue, f"node-{hash(name) % 1000}", name)
        self._heartbeat = Heartbeat(capture, name, queue, details=self._details, sampling=sampling)  # type: ignore[arg-type]
        self._heartbeat._wake.close()  # the loop wakes it
        self.conversations = [Conversation(loop, path) for _ in range(connections)]
        self._main, self._beating, *commands = self.conversations
        for conversation in commands:
            conversation.say(_ignore, ("SUBSCRIBE", f"{keys.RQ}pubsub:{name}"))

    def _details(self) -> dict[str, str | int | float]:
        return {
            "successful_job_count": 0,
            "failed_job_count": 0,
            "total_working_time": 0.0,
            "hostname": "host",
            "queues": self._queue,
            "pid": 1,
            "birth": "2026-01-01T00:00:00.000000Z",
            "version": "3.0.0",
            "python_version": "3.11",
            "ip_address": "10.0.0.1",
            "node": f"node-{hash(self.name) % 1000}",
            "pod": self.name,
        }

    def start(self) -> None:
        """Register as a real one does: with a beat, then ask for work."""
        self._beat(lambda _: self._cycle(None))
        self._loop.at(time.monotonic() + TICK_S * (0.5 + hash(self.name) % 1000 / 1000), self._tick)

    def _tick(self) -> None:
        if self._dead:
            return
        self._loop.at(time.monotonic() + TICK_S, self._tick)
        self._beat(self._come_again)

    def _come_again(self, next_s: float | None) -> None:
        """Beat once more when a lease ends before the next tick."""
        if next_s is not None and next_s < TICK_S:
            self._loop.at(time.monotonic() + max(SOONEST_LOOK_S, next_s), self._look)

    def _look(self) -> None:
        if not self._dead:
            self._beat(self._come_again)

    def _beat(self, then: Callable[[float | None], None]) -> None:
        """Beat, and reap on this worker's turn. then: gets seconds until the next lease ends."""
        self._heartbeat._beat()

        def answered(row: Any) -> None:
            self.beats += 1
            if row[2]:
                self._reap(then)
            else:
                then(None)

        self._beating.say(answered, self._capture.words)

    def _reap(self, then: Callable[[float | None], None]) -> None:
        self._heartbeat._reap()

        def answered(row: Any) -> None:
            self.reaps += 1
            if row[2]:
                self._reap(then)
            else:
                then(None if row[3] is None else row[3] / 1e6)

        self._beating.say(answered, self._capture.words)

    def _cycle(self, done: Done | None) -> None:
        self._lane._next_call()
        self._main.say(self._answered, self._lane._command(done, "1"))

    def _answered(self, row: Any) -> None:
        taken = self._lane._parse(row)
        if isinstance(taken, Taken):
            self.taken.append(taken)
            if not Simulated.holds:
                reply = (
                    json.dumps({"id": taken.id, "outcome": "succeeded", "worker": self.name})[:-1]
                    + "}"
                )
                self._cycle(Done(taken, "succeeded", 0, 0, reply, False))
            else:
                self._heartbeat.hold(taken.id, taken.attempt)
            return
        self._lane._next_call()
        move = (
            "BLMOVE",
            keys.rq_queue(self._queue),
            keys.taking(self._queue),
            "LEFT",
            "RIGHT",
            str(DEFAULT_INTERVAL_S),
        )
        self._main.say(self._answered, move, self._lane._command(None, "2"))

    def kill(self) -> None:
        """Vanish without a word, once."""
        if self._dead:
            return
        self._dead = True
        for conversation in self.conversations:
            conversation.close()


class Bars:
    """The measurings, one after the other, on one server."""

    def __init__(self, server: EmbeddedServer, workers: int, connections: int) -> None:
        self._redis: Any = connect(server.url)
        self._url = server.url
        self._path = server.url.removeprefix("unix://")
        self._loop = Loop()
        self._capture = Capture(self._redis)
        self._wanted, self._connections = workers, connections
        self._workers: list[Simulated] = []

    def start(self) -> dict[str, Any]:
        """All workers, the last thousand at once: a storm of registrations."""
        self._redis.config_set("maxclients", self._connections * self._wanted + OTHER_CLIENTS)
        self._redis.config_set("slowlog-log-slower-than", SLOW_US)
        self._redis.config_set("slowlog-max-len", 10_000)
        for name in SCRIPTS[:3]:
            self._redis.script_load(script(name).text)
        for number in range(QUEUES):
            Queues(self._redis).add(f"q{number}")
        for number in range(self._wanted - STORM):
            self._add(number)
            if number % 200 == 199:
                self._loop.run_until(lambda: False, 0.2)
        gc.collect()
        gc.freeze()  # looking through all workers for garbage would keep them from beating
        pings = Aside(ping, self._url)
        began = time.monotonic()
        for number in range(self._wanted - STORM, self._wanted):
            self._add(number)
        registered = self._loop.run_until(
            lambda: all(worker.beats for worker in self._workers), 60.0
        )
        seconds = time.monotonic() - began
        ping_ms = round(statistics.quantiles(pings.stop(), n=100)[-1], 1)
        return {
            "what": "registration of 1,000 workers at once",
            "seconds": round(seconds, 2),
            "ping_ms_p99": ping_ms,
            "workers": self._wanted,
            "connections_each": self._connections,
            "met": registered,
        }

    def _add(self, number: int) -> None:
        name, queue = f"sim-{number:05}", f"q{number % QUEUES}"
        worker = Simulated(self._loop, self._path, self._capture, name, queue, self._connections)
        worker.start()
        self._workers.append(worker)

    def steady(self) -> list[dict[str, Any]]:
        """Heartbeats of all, beside eight real workers at work; what a scrape takes meanwhile."""
        Queues(self._redis).add(REAL_QUEUE)
        program = [sys.executable, "-m", "scaletest"]
        server = ["--redis-url", self._url]
        client = ["client", "--queue", REAL_QUEUE, "--parallel", str(REAL), "--listen", "none"]
        lines = [[*program, "worker", "--queue", REAL_QUEUE, *server] for _ in range(REAL)]
        lines.append([*program, *client, *server, "--", str(REAL_SLEEP_S)])
        processes = [
            subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for line in lines
        ]
        try:
            with exporter_of(self._url) as metrics:
                self._loop.run_until(
                    lambda: len(Queues(self._redis).worker_names(REAL_QUEUE)) == REAL, 60.0
                )
                self._loop.run_until(lambda: False, 5.0)
                return self._measure(metrics)
        finally:
            for process in reversed(processes):  # the client first: it waits for what is in flight
                process.terminate()
                process.wait(30)

    def _measure(self, metrics: str) -> list[dict[str, Any]]:
        self._redis.slowlog_reset()
        beats, reaps, ended = self._beats(), self._reaps(), self._ended()
        cpu_s, began = self._cpu_s(), time.monotonic()
        self._loop.late_s.clear()
        self._loop.run_until(lambda: False, STEADY_S)
        seconds = time.monotonic() - began
        cpu, beats, reaps = self._cpu_s() - cpu_s, self._beats() - beats, self._reaps() - reaps
        ended = self._ended() - ended
        slowest_ms, slowest = self._slowest()
        scrapes = Aside(scrape, metrics, SCRAPES)
        self._loop.run_until(lambda: not scrapes.alive, 60.0)
        scrape_ms = round(statistics.median(scrapes.stop()[:-1]), 1)
        late_ms = 1e3 * statistics.quantiles(self._loop.late_s, n=100)[-1]
        return [
            {
                "what": "Redis's part of a core",
                "value": round(cpu / seconds, 3),
                "beats_per_s": round(beats / seconds),
                "reaps_per_s": round(reaps / seconds, 1),
                "requests_per_s": round(ended / seconds),
                "late_ms_p99": round(late_ms, 1),
                "clients": self._redis.info("clients")["connected_clients"],
                "met": cpu / seconds < MOST_CPU,
            },
            {
                "what": "longest script, ms",
                "value": slowest_ms or f"under {SLOW_US / 1e3:g}",
                "script": slowest,
                "met": slowest_ms < MOST_SCRIPT_MS,
            },
            {
                "what": "scrape of 20 queues, ms",
                "value": scrape_ms,
                "met": scrape_ms < MOST_SCRAPE_MS,
            },
        ]

    def die(self) -> dict[str, Any]:
        """A thousand workers hold a request each and vanish: every request runs again."""
        with Client(connect(self._url)) as client:
            requests = [Request(client.new_id(), f"q{number % QUEUES}") for number in range(KILLED)]
            Simulated.holds = True
            for request in requests:
                client.submit_one(request)
            held = self._loop.run_until(
                lambda: sum(len(worker.taken) for worker in self._workers) == KILLED, 60.0
            )
            # until heartbeats have shown all of them, as they would a long request
            self._loop.run_until(lambda: False, 2 * TICK_S)
            self._redis.slowlog_reset()
            Simulated.holds = False
            began = time.monotonic()
            dead = [worker for worker in self._workers if worker.taken]
            for worker in dead:
                worker.kill()
            living = [worker for worker in self._workers if not worker.taken]
            again = self._loop.run_until(
                lambda: sum(len(worker.taken) for worker in living) >= KILLED, 60.0
            )
            seconds = time.monotonic() - began
            self._loop.run_until(lambda: False, 1.0)
            answered: set[str] = set()
            while replies := client.replies(1.0):
                answered |= {reply.id for _, reply in replies}
        slowest_ms, slowest = self._slowest()
        lost = {request.id for request in requests} - answered
        met = held and again and not lost and seconds < MOST_AGAIN_S and slowest_ms < MOST_SCRIPT_MS
        return {
            "what": "seconds until the requests of dead workers run again",
            "value": round(seconds, 1),
            "dead": len(dead),
            "lost": len(lost),
            "longest_script_ms": slowest_ms or f"under {SLOW_US / 1e3:g}",
            "script": slowest,
            "met": met,
        }

    def many_queues(self) -> dict[str, Any]:
        """The cost of a scrape with very many declared queues, after the workers have gone."""
        for worker in self._workers:
            worker.kill()
        buckets = {str(350 + number): 7 * number + 1 for number in range(BUCKETS)}
        pipe = self._redis.pipeline(transaction=False)
        for number in range(QUEUES, MANY_QUEUES):
            name = f"q{number}"
            Queues(self._redis).add(name)
            pipe.hset(keys.wait(name), mapping=buckets)
            pipe.hset(keys.run(name), mapping=buckets)
            pipe.execute()
        self._redis.slowlog_reset()
        with exporter_of(self._url) as metrics:
            *times_ms, samples = Aside(scrape, metrics, SCRAPES).stop()
        slowest_ms, slowest = self._slowest()
        sample_us = round(1e3 * statistics.median(times_ms) / samples, 1)
        met = sample_us < MOST_SAMPLE_US and slowest_ms < MOST_SCRIPT_MS
        return {
            "what": "scrape of 2,000 queues, us a sample",
            "value": sample_us,
            "samples": int(samples),
            "longest_script_ms": slowest_ms or f"under {SLOW_US / 1e3:g}",
            "script": slowest,
            "met": met,
        }

    def _slowest(self) -> tuple[float, str]:
        """Milliseconds and name of the longest command since the log was emptied, 0 for none."""
        rows = self._redis.slowlog_get(10_000)
        if not rows:
            return 0.0, ""
        longest = max(rows, key=lambda row: row["duration"])
        words = longest["command"].decode("utf-8", "replace").split()
        name = script_of(words[1]) if words[0] == "EVALSHA" else words[0]
        return longest["duration"] / 1e3, name

    def _beats(self) -> int:
        return sum(worker.beats for worker in self._workers)

    def _reaps(self) -> int:
        return sum(worker.reaps for worker in self._workers)

    def _ended(self) -> int:
        return Queues(self._redis).state(REAL_QUEUE).counters.get("succeeded", 0)

    def _cpu_s(self) -> float:
        info = self._redis.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


class Aside:
    """A function of this module in a process of its own, since ours is busy with the workers. Its
    answer is a list.
    """

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._ended = context.Event()
        self._answer, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=target, args=(theirs, self._ended, *arguments))
        self._process.start()
        theirs.close()
        assert self._answer.recv() == "begun"

    @property
    def alive(self) -> bool:
        return not self._answer.poll()

    def stop(self) -> list[float]:
        """Let it end; what it measured."""
        self._ended.set()
        rows: list[float] = self._answer.recv()
        self._process.join()
        return rows


def ping(answer: Connection, ended: Event, url: str) -> None:
    """Ask Redis all the time how long it takes to answer: milliseconds."""
    redis = connect(url)
    times_ms = []
    answer.send("begun")
    while not ended.wait(0.005):
        began = time.perf_counter()
        redis.ping()
        times_ms.append(1e3 * (time.perf_counter() - began))
    answer.send(times_ms)


def scrape(answer: Connection, ended: Event, url: str, times: int) -> None:
    """Scrape an exporter so many times: milliseconds, and last of all the number of samples."""
    times_ms = []
    samples = 0
    answer.send("begun")
    for _ in range(times):
        began = time.perf_counter()
        with urllib.request.urlopen(url) as opened:
            text = opened.read()
        times_ms.append(1e3 * (time.perf_counter() - began))
        assert b"scaletest_up 1.0" in text
        samples = sum(not line.startswith(b"#") for line in text.splitlines())
    answer.send([*times_ms, float(samples)])


@contextlib.contextmanager
def exporter_of(url: str) -> Iterator[str]:
    """An exporter; the URL of its metrics."""
    line = [
        sys.executable,
        "-m",
        "scaletest",
        "exporter",
        "--redis-url",
        url,
        "--listen",
        "127.0.0.1:0",
    ]
    exporter = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    try:
        assert exporter.stderr is not None
        yield exporter.stderr.readline().split()[-1] + "/metrics"
    finally:
        exporter.terminate()
        exporter.wait(30)


def prefer(pid: int) -> bool:
    """Let Redis run before the hundreds of threads around it, which have two cores: else a script's
    time holds theirs.

    Whether that may be done.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, pid, PREFERRED)
    except PermissionError:
        return False
    return True


def open_files(wanted: int) -> int:
    """Allow so many open files here and in children, or as many as possible; how many."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < wanted:
        with contextlib.suppress(ValueError):  # only an administrator may raise it
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
            return wanted
        wanted = most
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return wanted


def within(files: int, workers: int) -> tuple[int, int]:
    """How many workers have room, and with how many connections each."""
    room = files - SPARE_FILES
    connections = CONNECTIONS if CONNECTIONS * workers <= room else FEWEST_CONNECTIONS
    return min(workers, room // connections), connections


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=10_000)
    options = parser.parse_args()
    workers, connections = within(
        open_files(CONNECTIONS * options.workers + SPARE_FILES), options.workers
    )
    assert LEASE_INTERVALS * DEFAULT_INTERVAL_S < MOST_AGAIN_S
    with EmbeddedServer() as server:
        preferred = prefer(server.pid)
        bars = Bars(server, workers, connections)
        print(json.dumps({**bars.start(), "redis_runs_first": preferred}), flush=True)
        for row in bars.steady():
            print(json.dumps(row), flush=True)
        print(json.dumps(bars.die()), flush=True)
        print(json.dumps(bars.many_queues()), flush=True)


if __name__ == "__main__":
    main()
