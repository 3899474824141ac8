"""Measures one Redis with ten thousand workers.

What do their heartbeats cost it, how long do scripts and scrapes take, and what happens when a
tenth of them dies at once?

Simulated workers say what real ones say, word by word, because lane and heartbeat of the product
make their commands; only the waiting for answers is done by one event loop for all. Each has the
three connections of a real one, over a unix socket, since one pair of addresses has 28,000 ports,
and shares or pipelines nothing. Where a process may not open so many files, the connection for
commands is left out, on which nothing is ever said, and then as many workers as do not fit: the
first line says with how many of both the bars were tried. Beside them eight real workers serve a
queue of their own. Prints one line of JSON for each bar.
"""

import argparse
import contextlib
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

from hack.benchmarks.asides import Aside, exporter_of, ping, scrape
from hack.benchmarks.ended_rows import fill_ended
from hack.benchmarks.simulated_workers import (
    CONNECTIONS_A_WORKER,
    SCRIPTS,
    TICK_S,
    Capture,
    Loop,
    Simulated,
    script_of,
)
from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.broker.heartbeat import DEFAULT_INTERVAL_S, LEASE_INTERVALS
from scaletest.broker.scripts import script
from scaletest.model import Request

QUEUES = 20
REAL, REAL_QUEUE, REAL_SLEEP_S = 8, "real", 0.02
KILLED = STORM = 1000
STEADY_S = 30.0
# Of a real worker, and the fewest of a simulated one.
CONNECTIONS, FEWEST_CONNECTIONS = CONNECTIONS_A_WORKER, 2
# Connections of others than simulated workers, and files that Redis keeps for itself besides.
OTHER_CLIENTS, SPARE_FILES = 150, 200
SLOW_US = 5_000
MOST_CPU, MOST_SCRIPT_MS, MOST_SCRAPE_MS, MOST_AGAIN_S = 0.6, 10.0, 100.0, 15.0
MANY_QUEUES, BUCKETS, SCRAPES, MOST_SAMPLE_US = 2000, 200, 20, 15.0
# A niceness that only an administrator may give.
PREFERRED = -10


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
        worker = Simulated(
            self._loop, self._path, self._capture, name, queue, connections=self._connections
        )
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
        """Let a thousand workers take a request each and vanish.

        Every request is run again by somebody else.
        """
        with Client(connect(self._url)) as client:
            requests = [Request(client.new_id(), f"q{number % QUEUES}") for number in range(KILLED)]
            all_taken = self._hold(client, requests)
            began = time.monotonic()
            dead = [worker for worker in self._workers if worker.taken]
            for worker in dead:
                worker.kill()
            living = [worker for worker in self._workers if not worker.taken]
            again = self._loop.run_until(lambda: taken_by(living) >= KILLED, 60.0)
            seconds = time.monotonic() - began
            self._loop.run_until(lambda: False, 1.0)
            answered: set[str] = set()
            while replies := client.replies(1.0):
                answered |= {reply.id for reply in replies}
        slowest_ms, slowest = self._slowest()
        lost = {request.id for request in requests} - answered
        in_time = seconds < MOST_AGAIN_S and slowest_ms < MOST_SCRIPT_MS
        return {
            "what": "seconds until the requests of dead workers run again",
            "value": round(seconds, 1),
            "dead": len(dead),
            "lost": len(lost),
            "longest_script_ms": slowest_ms or f"under {SLOW_US / 1e3:g}",
            "script": slowest,
            "met": all_taken and again and not lost and in_time,
        }

    def _hold(self, client: Client, requests: list[Request]) -> bool:
        """Let workers take these requests, and return whether they took all.

        They keep them until heartbeats have shown all of them, as they would show long requests.
        """
        Simulated.holds = True
        for request in requests:
            client.submit_one(request)
        taken = self._loop.run_until(lambda: taken_by(self._workers) == len(requests), 60.0)
        self._loop.run_until(lambda: False, 2 * TICK_S)
        self._redis.slowlog_reset()
        Simulated.holds = False
        return taken

    def many_queues(self) -> dict[str, Any]:
        """Measure a scrape with very many declared queues, after the workers have gone."""
        for worker in self._workers:
            worker.kill()
        queues = [f"q{number}" for number in range(QUEUES, MANY_QUEUES)]
        for name in queues:
            Queues(self._redis).add(name)
        fill_ended(self._redis, queues, {350 + number: 7 * number + 1 for number in range(BUCKETS)})
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
        command, _, arguments = longest["command"].decode("utf-8", "replace").partition(" ")
        name = script_of(arguments.partition(" ")[0]) if command == "EVALSHA" else command
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


def taken_by(workers: list[Simulated]) -> int:
    """How many requests these workers took."""
    return sum(len(worker.taken) for worker in workers)


def prefer_process(pid: int) -> bool:
    """Let Redis run before the threads around it, and return whether that is permitted.

    There are hundreds of them on two cores, and a script's time would hold theirs.
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


def workers_that_fit(files: int, workers: int) -> tuple[int, int]:
    """How many workers have room, and with how many connections each."""
    room = files - SPARE_FILES
    connections = CONNECTIONS if CONNECTIONS * workers <= room else FEWEST_CONNECTIONS
    return min(workers, room // connections), connections


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=10_000)
    options = parser.parse_args()
    workers, connections = workers_that_fit(
        open_files(CONNECTIONS * options.workers + SPARE_FILES), options.workers
    )
    assert LEASE_INTERVALS * DEFAULT_INTERVAL_S < MOST_AGAIN_S
    with EmbeddedServer() as server:
        preferred = prefer_process(server.process.pid)
        bars = Bars(server, workers, connections)
        print(json.dumps({**bars.start(), "redis_runs_first": preferred}), flush=True)
        for row in bars.steady():
            print(json.dumps(row), flush=True)
        print(json.dumps(bars.die()), flush=True)
        print(json.dumps(bars.many_queues()), flush=True)


if __name__ == "__main__":
    main()
