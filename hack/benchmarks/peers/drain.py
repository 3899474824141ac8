"""One peer under measurement: fill, drain, round trips.

Everything is read from Redis, nothing from the peer.

The window of a drain opens when the first percent and what a worker may hold ahead are gone, and
closes at the last percent, so that neither start-up nor prefetch counts. One look is one command;
INFO is read at both ends only. Every process is started here in a group of its own, and only those
groups are ended.
"""

import json
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from hack.benchmarks.peers.catalogue import ADAPTERS, Peer
from hack.benchmarks.peers.machine import busy_s, ours_s
from scaletest.broker import EmbeddedServer
from scaletest.processes.guard import Guard

LOOK_S = 0.03
STALLED_S = 60.0
FILL_TIMEOUT_S = 180.0
_EDGE = 0.01
# Workers of a fleet may come alive at different moments; that part of the queue does not count.
_FLEET_EDGE = 0.1
_HELD = "peers:held"


class Failed(Exception):
    """A peer that did not do what it should, with the end of its log."""


@dataclass(slots=True)
class Look:
    """Redis at one moment; `counts` is read at both ends only."""

    at: float
    done: int
    counts: dict[str, float] = field(default_factory=dict)


class Bench:
    """Runs a peer's adapter and worker against one server."""

    def __init__(
        self, redis: Any, server: EmbeddedServer, peer: Peer, programs: Path, guard: Guard
    ) -> None:
        self._redis, self._server, self._peer, self._programs = redis, server, peer, programs
        self._placeholders = {"bin": str(programs), "url": server.url}
        extra = {
            "PEER_URL": server.url,
            "PYTHONPATH": str(ADAPTERS),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._environment = guard.environment({**os.environ, **peer.environment, **extra})

    def single(self, count: int, trips: int) -> dict[str, float]:
        """One worker: figures of the drain and, by the same worker, seconds of the round trip."""
        self._fill(count)
        base = self._number()
        with tempfile.TemporaryFile() as log:
            workers = self._start(1, log)
            try:
                row = self._watch(count, base, workers, log, _EDGE)
                if trips and self._peer.trips:
                    self._settle(count, base, workers, log)
                    row |= self._trips(trips)
            finally:
                _end(workers)
        return row

    def fleet(self, workers: int, count: int) -> dict[str, float]:
        """Jobs a second of several workers on one queue, which starts when all wait for it."""
        self._fill(count)
        self._redis.rename(self._peer.queue, _HELD)
        with tempfile.TemporaryFile() as log:
            processes = self._start(workers, log)
            try:
                self._until(lambda: self._ask(self._peer.registered) >= workers, processes, log)
                time.sleep(0.5)
                self._redis.rename(_HELD, self._peer.queue)
                row = self._watch(count, count, processes, log, _FLEET_EDGE)
            finally:
                _end(processes)
        return row

    def _fill(self, count: int) -> None:
        self._redis.flushall()
        self._adapter("fill", count)

    def _trips(self, count: int) -> dict[str, float]:
        seconds = sorted(json.loads(self._adapter("trips", count)))
        return {
            "p50_s": seconds[len(seconds) // 2],
            "p99_s": seconds[min(len(seconds) - 1, len(seconds) * 99 // 100)],
        }

    def _adapter(self, action: str, count: int) -> str:
        command = [str(self._programs / "python"), str(self._peer.adapter), action, str(count)]
        result = subprocess.run(
            command,
            env=self._environment,
            cwd=ADAPTERS,
            capture_output=True,
            text=True,
            timeout=FILL_TIMEOUT_S,
            check=False,
        )
        if result.returncode:
            raise Failed(f"{self._peer.name} {action}: {result.stderr[-1500:]}")
        return result.stdout

    def _start(self, workers: int, log: IO[bytes]) -> list[subprocess.Popen[bytes]]:
        command = [word.format(**self._placeholders) for word in self._peer.work]
        return [
            subprocess.Popen(
                command,
                env=self._environment,
                cwd=ADAPTERS,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            for _ in range(workers)
        ]

    def _watch(
        self,
        count: int,
        base: int,
        workers: list[subprocess.Popen[bytes]],
        log: IO[bytes],
        edge: float,
    ) -> dict[str, float]:
        """Figures between the first look and the last that count."""
        opens, closes = count * edge + self._peer.ahead, count * (1 - edge)
        first = self._wait(opens, base, workers, log)
        looks = [0]
        last = self._wait(closes, base, workers, log, looks)
        jobs, seconds = last.done - first.done, last.at - first.at
        if jobs < count / 4:
            raise Failed(f"{self._peer.name}: {count} jobs were gone before they could be measured")
        spent = {key: (value - first.counts[key]) / jobs for key, value in last.counts.items()}
        spent["commands"] -= looks[0] / jobs
        # below zero by a tick or two: the machine and its processes are not read at once
        foreign = max(0.0, spent.pop("foreign_us") * jobs / seconds / 1e6)
        return {"per_s": jobs / seconds, "seconds": seconds, "foreign_cores": foreign, **spent}

    def _wait(
        self,
        done: float,
        base: int,
        workers: list[subprocess.Popen[bytes]],
        log: IO[bytes],
        looks: list[int] | None = None,
    ) -> Look:
        """Return the first look at which so many are done."""
        last = Look(0.0, 0)

        def reached() -> bool:
            nonlocal last
            last = self._look(base)
            if looks:
                looks[0] += 1
            return last.done >= done

        self._until(reached, workers, log)
        last.counts = self._counts([worker.pid for worker in workers])
        return last

    def _settle(
        self, count: int, base: int, workers: list[subprocess.Popen[bytes]], log: IO[bytes]
    ) -> None:
        """Wait until the queue is empty and the worker rests."""
        self._until(lambda: self._look(base).done >= count, workers, log)
        time.sleep(0.3)

    def _until(self, reached: Any, workers: list[subprocess.Popen[bytes]], log: IO[bytes]) -> None:
        deadline = time.monotonic() + STALLED_S
        while not reached():
            if time.monotonic() > deadline:
                raise Failed(f"{self._peer.name} stands still: {_tail(log)}")
            if any(worker.poll() for worker in workers):
                raise Failed(f"a worker of {self._peer.name} ended: {_tail(log)}")
            time.sleep(LOOK_S)

    def _look(self, base: int) -> Look:
        number = self._number()
        return Look(time.monotonic(), number - base if self._peer.done else base - number)

    def _number(self) -> int:
        return self._ask(self._peer.done or self._peer.left)

    def _ask(self, command: tuple[str, ...]) -> int:
        return int(self._redis.execute_command(*command))

    def _counts(self, sessions: list[int]) -> dict[str, float]:
        """Return what the server and strangers used so far. Calls in scripts count as commands."""
        info = self._redis.info("cpu", "stats", "commandstats")
        return {
            "redis_us": (float(info["used_cpu_user"]) + float(info["used_cpu_sys"])) * 1e6,
            "commands": float(
                sum(row["calls"] for name, row in info.items() if name.startswith("cmdstat_"))
            ),
            "bytes": float(info["total_net_input_bytes"] + info["total_net_output_bytes"]),
            "foreign_us": (busy_s() - ours_s([self._server.process.pid, *sessions])) * 1e6,
        }


def _end(workers: list[subprocess.Popen[bytes]]) -> None:
    """Kill the groups that were started here; the server is emptied next."""
    for worker in workers:
        try:
            os.killpg(worker.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        worker.wait()


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read()[-1500:].decode(errors="replace")
