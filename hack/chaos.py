"""A soak test with injected failures: real Redis with AOF, 10 workers and 6 clients.

Every second a random worker is killed with -9 and replaced, another is frozen for a while, a random
connection is closed, and one between a worker and Redis silently stops carrying data. Workers are
spared while half of them are still starting, since a slow machine may need more than a second to
start one. Every few seconds Redis's wall clock is set, by up to years and in both directions, and
all processors are kept busy for a while. Redis is killed with -9 twice and shut down once, at a
quarter, half and three quarters of the requests, and in between all connections of the clients go
silent. A fifth of the requests are real commands with a grandchild process each; others are
delayed, fail a third of the time, and are retried until they succeed. At the end every request must
have exactly one reply and one success, the counters must balance, and no process of any workload
may be left.
"""

import argparse
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hack.chaos_workers import MARK, QUEUES, AttackedWorkers
from hack.compiler import NoCompiler
from hack.proxy import Proxy, port_of
from hack.wall_clock import WallClock
from scaletest.broker import Client, EmbeddedServer, Queues, connect, embedded
from scaletest.broker.redis_errors import is_transient
from scaletest.load import ClosedLoop
from scaletest.model import Record, Request
from scaletest.model.record import AT_ONCE, Schedule

# Every how many seconds Redis's clock is set, and by how many at most; every how many seconds the
# processors are kept busy, and for how long.
CLOCK_EVERY, CLOCK_MOST_S = 7, (30, 3600, 10**6, 10**8)
STARVE_EVERY, STARVE_S = 15, 3.0
COUNTS = (
    "kills",
    "freezes",
    "cuts",
    "silences",
    "client_silences",
    "clock_steps",
    "starvations",
    "redis_kills",
    "redis_shutdowns",
    "ended",
)
# When requests of queue `flaky` run.
RETRIED = Schedule(delay_s=0.5, retries=1000, intervals_s=(1, 0, 1, 0))
CLIENTS = 2
IN_FLIGHT = 32


class RetryingClient(Client):
    """Has requests of queue `flaky` delayed and retried."""

    def submit(self, requests: Sequence[Request], **options: Any) -> int:
        schedule = RETRIED if requests[0].queue == "flaky" else AT_ONCE
        return super().submit([replace(row, schedule=schedule) for row in requests], **options)


@dataclass(slots=True)
class Tally:
    """Counts of the replies that one client received."""

    outcomes: dict[str, int] = field(default_factory=dict)
    repeated: int = 0
    longest_s: float = 0.0
    shortest_wait_s: float = 0.0

    def add(self, record: Record) -> None:
        outcome = record.reply.outcome.value
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        self.repeated += record.reply.attempts > 1
        self.longest_s = max(self.longest_s, record.total_s)
        self.shortest_wait_s = min(self.shortest_wait_s, record.reply.wait_s)


@dataclass(frozen=True, slots=True)
class Field:
    """The server and the proxies under attack.

    clock: None where it cannot be set, with the reason.
    """

    server: EmbeddedServer
    for_workers: Proxy
    for_clients: Proxy
    clock: WallClock | None
    reason: str


class Attack:
    """Injects failures: some every second, those of Redis at certain shares of the requests."""

    def __init__(self, field: Field, workers: AttackedWorkers, seed: int) -> None:
        self._field, self._server, self._workers = field, field.server, workers
        self._chance = random.Random(seed)
        self._redis: Any = connect(field.server.url)
        self._seconds = 0
        self._busy: list[subprocess.Popen[bytes]] = []
        self.marks = [(0.25, self._crash), (0.4, self._silence_clients), (0.5, self._shut_down)]
        self.marks += [(0.6, self._silence_clients), (0.75, self._crash)]
        self.counts = dict.fromkeys(COUNTS, 0)

    def second(self) -> None:
        """Inject the failures of one second."""
        self._seconds += 1
        self.counts["ended"] += self._workers.revive()
        self.counts["silences"] += self._field.for_workers.silence_one(self._chance)
        if self._field.clock is not None and self._seconds % CLOCK_EVERY == 0:
            most_s = self._chance.choice(CLOCK_MOST_S)
            self._field.clock.set(self._chance.randint(-most_s, most_s))
            self.counts["clock_steps"] += 1
        if self._seconds % STARVE_EVERY == 0:
            self._starve()
        if not self._workers.few:
            self._workers.kill_one(self._chance)
            self._workers.freeze_one(self._chance)
            self.counts["kills"] += 1
            self.counts["freezes"] += 1
        self._cut_connection()

    def _cut_connection(self) -> None:
        try:
            connections = self._redis.client_list()
            victims = [
                connection["id"] for connection in connections if connection.get("name") != "attack"
            ]
            if victims:
                self._redis.client_kill_filter(_id=self._chance.choice(victims))
                self.counts["cuts"] += 1
        except Exception as error:
            if not is_transient(error):
                raise

    def end(self) -> None:
        """Wait for the processes that keep the processors busy."""
        for process in self._busy:
            process.wait()

    def at(self, share: float) -> None:
        """Inject the next failure of Redis or the clients at its mark of finished requests."""
        if self.marks and share >= self.marks[0][0]:
            self.marks.pop(0)[1]()

    def _starve(self) -> None:
        """Keep twice as many processes busy as there are processors, for a while."""
        self.end()
        line = ["timeout", str(STARVE_S), "sh", "-c", "while :; do :; done"]
        self._busy = [subprocess.Popen(line) for _ in range(2 * (os.cpu_count() or 1))]
        self.counts["starvations"] += 1

    def _silence_clients(self) -> None:
        say("the clients' connections go silent")
        self.counts["client_silences"] += self._field.for_clients.silence()

    def _crash(self) -> None:
        say("Redis is killed with -9")
        self._server.process.kill()
        self._server.process.wait()
        self.counts["redis_kills"] += 1
        time.sleep(1.0)
        self._server.start()

    def _shut_down(self) -> None:
        say("Redis is shut down")
        os.kill(self._server.process.pid, signal.SIGTERM)
        self._server.process.wait()
        self.counts["redis_shutdowns"] += 1
        time.sleep(3.0)
        self._server.start()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument(
        "--heartbeat", type=float, default=2.0, help="the workers' interval in seconds"
    )
    parser.add_argument(
        "--longest", type=float, default=3600.0, help="give up after so many seconds"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("scaletest").setLevel(logging.ERROR)
    folder = Path(tempfile.mkdtemp(prefix="scaletest-chaos-"))
    with field_in(folder) as field:
        queues = Queues(connect(field.server.url))
        for queue in QUEUES:
            queues.add(queue)
        report = soak(field, queues, folder / "workers.log", options)
    print(json.dumps(report))
    say(f"{report['verdict']}  {report['reason']}  (workers' log: {folder / 'workers.log'})")
    return 0 if report["verdict"] == "PASS" else 3


@contextmanager
def field_in(folder: Path) -> Iterator[Field]:
    """Start a server with two proxies before it; its clock can be set if there is a C compiler."""
    clock, reason = None, ""
    try:
        clock = WallClock(embedded.find_server(), folder)
    except NoCompiler as error:
        reason = str(error)
        say(reason)
    program = clock.program if clock else None
    with EmbeddedServer(append_only=True, tcp=True, program=program) as server:
        port = port_of(server.url)
        with Proxy(port) as for_workers, Proxy(port) as for_clients:
            yield Field(server, for_workers, for_clients, clock, reason)


def soak(field: Field, queues: Queues, log: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run the whole soak and return its result."""
    began = time.monotonic()
    workers = AttackedWorkers(field.for_workers.url, field.server.url, log, options.heartbeat)
    attack = Attack(field, workers, options.seed)
    loads = start_loads(field, options.requests)
    requests = sum(load.total for load in loads)
    while (done := count_replies(loads)) < requests and time.monotonic() - began < options.longest:
        time.sleep(1.0)
        attack.at(done / requests)
        attack.second()
        if attack.counts["kills"] % 10 == 0:
            say(f"{time.monotonic() - began:5.0f} s  {done} of {requests}")
    elapsed = time.monotonic() - began
    attack.counts["ended"] += workers.revive()
    attack.end()
    for load in loads:
        load.loop.close()
        load.client.close()
    codes = workers.stop()
    report = {
        "schema_version": 1,
        "kind": "chaos",
        "requests": requests,
        "lost": requests - count_replies(loads),
        "late_duplicates_dropped": sum(load.loop.duplicates for load in loads),
        "resubmitted": sum(load.loop.resubmitted for load in loads),
        "executed_again": sum(load.tally.repeated for load in loads),
        "longest_s": max(load.tally.longest_s for load in loads),
        "shortest_wait_s": min(load.tally.shortest_wait_s for load in loads),
        "outcomes": count_outcomes(loads),
        "attack": attack.counts,
        "clock_not_set": field.reason,
        "worker_exit_codes": sorted(set(codes)),
        "elapsed_s": elapsed,
        "books": {name: read_books(queues, name) for name in QUEUES},
        "processes_left": len(left_over()),
    }
    return {**report, **judge(report)}


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """One client, its load and its tally. total: requests that it submits."""

    client: Client
    loop: ClosedLoop
    tally: Tally
    total: int


def start_loads(field: Field, requests: int) -> list[ClientLoad]:
    """Start the clients, which share the requests."""
    loads = []
    for queue, (_, share, arguments) in QUEUES.items():
        for _ in range(CLIENTS):
            tally, client = Tally(), RetryingClient(connect(field.for_clients.url))
            total = int(requests * share / CLIENTS)
            loop = ClosedLoop(
                client, queue, tally.add, arguments=arguments, time_limit_s=60.0, total=total
            )
            loop.set_parallel(IN_FLIGHT)
            loads.append(ClientLoad(client, loop, tally, total))
    return loads


def count_replies(loads: list[ClientLoad]) -> int:
    """Count the replies so far."""
    return sum(sum(load.tally.outcomes.values()) for load in loads)


def count_outcomes(loads: list[ClientLoad]) -> dict[str, int]:
    """Count the replies of all clients by outcome."""
    counts: dict[str, int] = {}
    for load in loads:
        for outcome, count in load.tally.outcomes.items():
            counts[outcome] = counts.get(outcome, 0) + count
    return counts


def read_books(queues: Queues, name: str) -> dict[str, int]:
    """Read a queue's counters and their balance, which should be 0."""
    state = queues.state(name)
    return {
        **state.counters,
        "waiting": state.waiting,
        "running": state.running,
        "balance": state.balance,
    }


def judge(report: dict[str, Any]) -> dict[str, str]:
    """Give the verdict and its reason."""
    wrong = []
    if report["lost"]:
        wrong.append(f"{report['lost']} requests without a reply")
    if report["outcomes"] != {"succeeded": report["requests"]}:
        wrong.append(f"outcomes are {report['outcomes']}")
    wrong += wrong_books(report)
    if report["shortest_wait_s"] < 0:
        wrong.append(f"a request waited for {report['shortest_wait_s']} s")
    if report["processes_left"]:
        wrong.append(f"{report['processes_left']} processes of workloads are left")
    if report["attack"]["ended"]:
        wrong.append(f"{report['attack']['ended']} workers ended by themselves")
    if report["worker_exit_codes"] != [0]:
        wrong.append(f"workers ended with {report['worker_exit_codes']}")
    return (
        {"verdict": "FAIL", "reason": "; ".join(wrong)}
        if wrong
        else {"verdict": "PASS", "reason": "nothing lost"}
    )


def wrong_books(report: dict[str, Any]) -> list[str]:
    """List the faults in the counters of the queues."""
    wrong = []
    for name, counts in report["books"].items():
        if counts["balance"] or counts["waiting"] or counts["running"]:
            wrong.append(f"the counters of {name} do not balance: {counts}")
        ended = sum(
            counts.get(key, 0)
            for key in ("succeeded", "failed", "timed_out", "client_gone", "purged")
        )
        if ended != counts["submitted"]:
            wrong.append(f"{name} counted {ended} ends of {counts['submitted']} requests")
    # each attempt that failed was submitted again
    books = report["books"].values()
    if sum(row["submitted"] - row.get("failed", 0) for row in books) != report["requests"]:
        wrong.append("a request was counted twice or never")
    return wrong


def left_over() -> list[str]:
    """List processes with the mark in their command line, after they had two seconds to end."""
    time.sleep(2.0)
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                MARK.encode() in (folder / "cmdline").read_bytes()
                and int(folder.name) != os.getpid()
            ):
                processes.append(folder.name)
        except OSError:
            continue
    return processes


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
