"""The worker processes of a soak test: started, killed, frozen and stopped."""

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from scaletest.broker import Queues, connect
from scaletest.broker.redis_errors import is_transient
from scaletest.model.errors import Unreachable

# Seconds that the grandchildren sleep: no other process has this number on its command line.
MARK = f"86399.{os.getpid()}"
COMMAND = ("/bin/sh", "-c", f"sleep {MARK} & exit 0")
QUIET = ("--null-input", "--null-output")
# Fails a third of the time.
FLAKY = ("/bin/sh", "-c", "test $(($(od -An -N1 -tu1 /dev/urandom) % 3)) -gt 0")
COMMANDS = {
    "sleep": (),
    "command": (*QUIET, "--", *COMMAND),
    "flaky": (*QUIET, "--with-scheduler", "--", *FLAKY),
}
# By name: workers, share of the requests, and arguments.
QUEUES = {"sleep": (5, 0.65, ("0.001",)), "command": (2, 0.2, ()), "flaky": (3, 0.15, ())}
START_S, DRAIN_S = 300.0, 120.0
# Every third worker has a heartbeat interval that is longer by this factor.
RARELY = 3.0


class AttackedWorkers:
    """The worker processes under attack."""

    def __init__(self, url: str, direct_url: str, log: Path, heartbeat_s: float) -> None:
        """`url` is the workers' way to Redis, which may fail; `direct_url` does not."""
        self._url, self._log, self._heartbeat_s = url, log, heartbeat_s
        self._queues = Queues(connect(direct_url))
        self._numbers = itertools.count()
        self._starting: dict[int, str] = {}
        self.processes: list[tuple[str, subprocess.Popen[bytes]]] = []
        for queue, (count, _, _) in QUEUES.items():
            for _ in range(count):
                self.processes.append((queue, self._start(queue)))

    @property
    def few(self) -> bool:
        """Whether half of the workers have not registered yet."""
        return 2 * len(self._unregistered()) >= len(self.processes)

    def _unregistered(self) -> list[int]:
        """List ids of living processes that have never been registered as workers.

        A registered worker that is frozen may lose its registration; it does not count.
        """
        registered: set[str] = set()
        try:
            for queue in QUEUES:
                registered.update(self._queues.worker_names(queue))
        except Exception as error:
            if not is_transient(error):
                raise
            registered = set()
        living = {process.pid for _, process in self.processes if process.poll() is None}
        self._starting = {
            pid: name
            for pid, name in self._starting.items()
            if pid in living and name not in registered
        }
        return list(self._starting)

    def kill_one(self, chance: random.Random) -> None:
        """Kill a random worker with -9 and start a new one in its place."""
        index = chance.randrange(len(self.processes))
        queue, process = self.processes[index]
        process.kill()
        process.wait()
        self.processes[index] = (queue, self._start(queue))

    def freeze_one(self, chance: random.Random) -> None:
        """Stop a random worker with SIGSTOP, and continue it after up to four heartbeats."""
        _, process = chance.choice(self.processes)
        process.send_signal(signal.SIGSTOP)
        timer = threading.Timer(
            chance.uniform(0.1, 4 * self._heartbeat_s), process.send_signal, (signal.SIGCONT,)
        )
        timer.daemon = True
        timer.start()

    def revive(self) -> int:
        """Replace workers that ended by themselves; returns their number, which should be 0.

        Workers that found no Redis when they started do not count: they exit with 7 as they should,
        and a supervisor, here this function, starts new ones.
        """
        dead = 0
        for index, (queue, process) in enumerate(self.processes):
            code = process.poll()
            if code is not None:
                dead += code != Unreachable.exit_code
                self.processes[index] = (queue, self._start(queue))
        return dead

    def stop(self) -> list[int]:
        """Terminate all workers; returns their exit codes.

        Codes of workers that found no Redis when they started are left out (see `revive`).
        """
        starting = set(self._starting)
        for _, process in self.processes:
            process.send_signal(signal.SIGCONT)
        ends = time.monotonic() + START_S
        while self._unregistered() and time.monotonic() < ends:
            time.sleep(0.2)  # a worker that is still starting cannot drain yet
        for _, process in self.processes:
            process.terminate()
        codes = []
        for _, process in self.processes:
            try:
                code = process.wait(DRAIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            if code != Unreachable.exit_code or process.pid not in starting:
                codes.append(code)
        return codes

    def _start(self, queue: str) -> subprocess.Popen[bytes]:
        line = [
            sys.executable,
            "-m",
            "scaletest",
            "worker",
            "--queue",
            queue,
            "--redis-url",
            self._url,
        ]
        number = next(self._numbers)
        name, heartbeat_s = (
            f"chaos-{number}",
            self._heartbeat_s * (RARELY if number % 3 == 0 else 1.0),
        )
        line += [
            "--name",
            name,
            "--heartbeat",
            str(heartbeat_s),
            "--max-attempts",
            "10",
            "--grace",
            "10",
        ]
        line += COMMANDS[queue]
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._starting[process.pid] = name
        return process
