"""A soak under attack: real Redis with AOF, 8 workers, 2 clients, and every second something dies.

Every second a random worker is killed with -9 and replaced, another is frozen for a while, and a random connection is
cut. No worker is, while half of them are still starting: a machine may be slower at that than one in a second. Redis is
killed with -9 twice and shut down once, at a quarter, half and three quarters of the way. A quarter of the requests are
real commands with a grandchild each. At the end every request must have exactly one reply, the books must balance, and
no process of any workload may be left.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.broker.connection import transient
from scaletest.load import ClosedLoop
from scaletest.model import Record
from scaletest.model.errors import Unreachable

MARK = f"86399.{os.getpid()}"  # the grandchildren's sleep: nothing else on the machine has it, no other soak either
COMMAND = ("/bin/sh", "-c", f"sleep {MARK} & exit 0")
QUEUES = {"sleep": (6, 0.75, ("0.001",)), "command": (2, 0.25, ())}
START_S, DRAIN_S = 300.0, 120.0
CLIENTS = 2
IN_FLIGHT = 32


@dataclass(slots=True)
class Tally:
    """What one client saw."""

    outcomes: dict[str, int] = field(default_factory=dict)
    repeated: int = 0
    longest_s: float = 0.0

    def add(self, record: Record) -> None:
        outcome = record.reply.outcome.value
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.repeated += record.reply.attempts > 1
        self.longest_s = max(self.longest_s, record.total_s)


class Workers:
    """The worker processes under attack."""

    def __init__(self, url: str, log: Path, heartbeat_s: float) -> None:
        self._url, self._log, self._heartbeat_s = url, log, heartbeat_s
        self._queues = Queues(connect(url))
        self._numbers = itertools.count()
        self._starting: dict[int, str] = {}
        self.processes: list[tuple[str, subprocess.Popen[bytes]]] = []
        for queue, (count, _, _) in QUEUES.items():
            for _ in range(count):
                self.processes.append((queue, self._start(queue)))

    @property
    def few(self) -> bool:
        """Whether half of them have not registered yet."""
        return 2 * len(self._unregistered()) >= len(self.processes)

    def _unregistered(self) -> list[int]:
        """Ids of living processes that were never seen as workers; who is frozen may have been forgotten since."""
        try:
            there = {name for queue in QUEUES for name in self._queues.worker_names(queue)}
        except Exception as error:
            if not transient(error):
                raise
            there = set()
        living = {process.pid for _, process in self.processes if process.poll() is None}
        self._starting = {pid: name for pid, name in self._starting.items() if pid in living and name not in there}
        return list(self._starting)

    def kill_one(self, chance: random.Random) -> None:
        """-9 for one, and a new one in its place."""
        index = chance.randrange(len(self.processes))
        queue, process = self.processes[index]
        process.kill()
        process.wait()
        self.processes[index] = (queue, self._start(queue))

    def freeze_one(self, chance: random.Random) -> None:
        """STOP for one, CONT after up to four heartbeats."""
        _, process = chance.choice(self.processes)
        process.send_signal(signal.SIGSTOP)
        timer = threading.Timer(chance.uniform(0.1, 4 * self._heartbeat_s), process.send_signal, (signal.SIGCONT,))
        timer.daemon = True
        timer.start()

    def revive(self) -> int:
        """Replace workers that ended by themselves; how many did, which is a defect.

        Not those that met no Redis when they started: they say so with 7, and we, their supervisor, start new ones.
        """
        dead = 0
        for index, (queue, process) in enumerate(self.processes):
            code = process.poll()
            if code is not None:
                dead += code != Unreachable.exit_code
                self.processes[index] = (queue, self._start(queue))
        return dead

    def stop(self) -> list[int]:
        """TERM for all; their exit codes."""
        for _, process in self.processes:
            process.send_signal(signal.SIGCONT)
        ends = time.monotonic() + START_S
        while self._unregistered() and time.monotonic() < ends:
            time.sleep(0.2)  # one that was started, or frozen at its start, just now cannot drain before it can read
        for _, process in self.processes:
            process.terminate()
        codes = []
        for _, process in self.processes:
            try:
                codes.append(process.wait(DRAIN_S))
            except subprocess.TimeoutExpired:
                process.kill()
                codes.append(process.wait())
        return codes

    def _start(self, queue: str) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", "scaletest", "worker", "--queue", queue, "--redis-url", self._url]
        name = f"chaos-{next(self._numbers)}"
        line += ["--name", name, "--heartbeat", str(self._heartbeat_s), "--max-attempts", "10", "--grace", "10"]
        if queue == "command":
            line += ["--null-input", "--null-output", "--", *COMMAND]
        with self._log.open("ab") as log:
            made = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self._starting[made.pid] = name
        return made


class Attack:
    """What happens every second, and to Redis at its marks."""

    def __init__(self, server: EmbeddedServer, workers: Workers, seed: int) -> None:
        self._server, self._workers = server, workers
        self._chance = random.Random(seed)
        self._redis: Any = connect(server.url)
        self.marks = [(0.25, self._crash), (0.5, self._shut_down), (0.75, self._crash)]
        self.counts = {"kills": 0, "freezes": 0, "cuts": 0, "redis_kills": 0, "redis_shutdowns": 0, "ended": 0}

    def second(self) -> None:
        """One second's worth."""
        self.counts["ended"] += self._workers.revive()
        if not self._workers.few:
            self._workers.kill_one(self._chance)
            self._workers.freeze_one(self._chance)
            self.counts["kills"] += 1
            self.counts["freezes"] += 1
        try:
            victims = [row["id"] for row in self._redis.client_list() if row.get("name") != "attack"]
            if victims:
                self._redis.client_kill_filter(_id=self._chance.choice(victims))
                self.counts["cuts"] += 1
        except Exception as error:
            if not transient(error):
                raise

    def at(self, share: float) -> None:
        """Strike Redis when its mark is reached."""
        if self.marks and share >= self.marks[0][0]:
            self.marks.pop(0)[1]()

    def _crash(self) -> None:
        say("Redis is killed with -9")
        self._server.kill()
        self.counts["redis_kills"] += 1
        time.sleep(1.0)
        self._server.start()

    def _shut_down(self) -> None:
        say("Redis is shut down")
        os.kill(self._server.pid, signal.SIGTERM)
        self._server.join()
        self.counts["redis_shutdowns"] += 1
        time.sleep(3.0)
        self._server.start()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--heartbeat", type=float, default=2.0, help="the workers' interval in seconds")
    parser.add_argument("--longest", type=float, default=3600.0, help="give up after so many seconds")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("scaletest").setLevel(logging.ERROR)
    folder = Path(tempfile.mkdtemp(prefix="scaletest-chaos-"))
    with EmbeddedServer(append_only=True, tcp=True) as server:
        queues = Queues(connect(server.url))
        for queue in QUEUES:
            queues.add(queue)
        result = soak(server, queues, folder / "workers.log", options)
    print(json.dumps(result))
    say(f"{result['verdict']}  {result['reason']}  (workers' log: {folder / 'workers.log'})")
    return 0 if result["verdict"] == "PASS" else 3


def soak(server: EmbeddedServer, queues: Queues, log: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The whole soak; its result."""
    began = time.monotonic()
    workers = Workers(server.url, log, options.heartbeat)
    attack = Attack(server, workers, options.seed)
    tallies: list[Tally] = []
    loops: list[tuple[ClosedLoop, Client]] = []
    for queue, (_, share, arguments) in QUEUES.items():
        for _ in range(CLIENTS):
            tally, client = Tally(), Client(connect(server.url))
            total = int(options.requests * share / CLIENTS)
            loop = ClosedLoop(client, queue, tally.add, arguments=arguments, time_limit_s=60.0, total=total)
            loop.set_parallel(IN_FLIGHT)
            tallies.append(tally)
            loops.append((loop, client))
    wanted = sum(int(options.requests * share / CLIENTS) * CLIENTS for _, share, _ in QUEUES.values())
    while (done := finished(tallies)) < wanted and time.monotonic() - began < options.longest:
        time.sleep(1.0)
        attack.at(done / wanted)
        attack.second()
        if attack.counts["kills"] % 10 == 0:
            say(f"{time.monotonic() - began:5.0f} s  {done} of {wanted}")
    elapsed = time.monotonic() - began
    attack.counts["ended"] += workers.revive()
    for loop, client in loops:
        loop.close()
        client.close()
    codes = workers.stop()
    result = {
        "schema_version": 1,
        "kind": "chaos",
        "requests": wanted,
        "lost": wanted - finished(tallies),
        "late_duplicates_dropped": sum(loop.duplicates for loop, _ in loops),
        "resubmitted": sum(loop.resubmitted for loop, _ in loops),
        "executed_again": sum(tally.repeated for tally in tallies),
        "longest_s": max(tally.longest_s for tally in tallies),
        "outcomes": {key: sum(t.outcomes.get(key, 0) for t in tallies) for t in tallies for key in t.outcomes},
        "attack": attack.counts,
        "worker_exit_codes": sorted(set(codes)),
        "elapsed_s": elapsed,
        "books": {name: books(queues, name) for name in QUEUES},
        "processes_left": len(left_over()),
    }
    return {**result, **judge(result)}


def finished(tallies: list[Tally]) -> int:
    """Replies handed over so far."""
    return sum(sum(tally.outcomes.values()) for tally in tallies)


def books(queues: Queues, name: str) -> dict[str, int]:
    """A queue's counters and whether they balance."""
    state = queues.state(name)
    return {**state.counters, "waiting": state.waiting, "running": state.running, "balance": state.balance}


def judge(result: dict[str, Any]) -> dict[str, str]:
    """PASS, or what is wrong."""
    wrong = []
    if result["lost"]:
        wrong.append(f"{result['lost']} requests without a reply")
    if result["outcomes"] != {"succeeded": result["requests"]}:
        wrong.append(f"outcomes are {result['outcomes']}")
    for name, row in result["books"].items():
        if row["balance"] or row["waiting"] or row["running"]:
            wrong.append(f"the books of {name} do not balance: {row}")
        ended = sum(row.get(key, 0) for key in ("succeeded", "failed", "timed_out", "client_gone", "purged"))
        if ended != row["submitted"]:
            wrong.append(f"{name} counted {ended} ends of {row['submitted']} requests")
    if sum(row["submitted"] for row in result["books"].values()) != result["requests"]:
        wrong.append("a request was counted twice or never")
    if result["processes_left"]:
        wrong.append(f"{result['processes_left']} processes of workloads are left")
    if result["attack"]["ended"]:
        wrong.append(f"{result['attack']['ended']} workers ended by themselves")
    if result["worker_exit_codes"] != [0]:
        wrong.append(f"workers ended with {result['worker_exit_codes']}")
    return {"verdict": "FAIL", "reason": "; ".join(wrong)} if wrong else {"verdict": "PASS", "reason": "nothing lost"}


def left_over() -> list[str]:
    """Processes with our mark in their command line, after they had two seconds to end."""
    time.sleep(2.0)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if MARK.encode() in (entry / "cmdline").read_bytes() and int(entry.name) != os.getpid():
                found.append(entry.name)
        except OSError:
            continue
    return found


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
