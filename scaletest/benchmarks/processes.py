"""The processes of one benchmark on this machine: started, watched until a deadline, all gone at the end.

A guard ends them when we die. What they write goes into files, so that no pipe can fill up, and the logs can be kept.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from scaletest.archive.private import open_private
from scaletest.kinds import reading
from scaletest.kinds.kind import Failed, Failure, Output, Task
from scaletest.model.secrets import without_secrets
from scaletest.system.guard import Guard
from scaletest.system.waiting import end_group, exited, wait_child

GRACE_S = 3.0
LOOK_S = 0.02
# What is read of a log; more than any tool of ours writes.
MOST_BYTES = 64 * 1024 * 1024
_LISTENING = "0A"


class Process:
    """One running program."""

    def __init__(self, name: str, program: str, popen: subprocess.Popen[bytes], logs: Path) -> None:
        self.name = name
        self.program = program
        self.popen = popen
        self._logs = logs

    def output(self) -> Output:
        """What it wrote so far, and how it ended; 0 while it runs."""
        out, err = (_read(self._logs / f"{self.name}.{end}") for end in ("out", "err"))
        return Output(out, err, self.popen.returncode or 0)

    def ready(self, task: Task) -> bool:
        """Whether it is as its task says that it is when it is ready."""
        if task.port:
            return self.listens(task.port)
        return task.ready_text in self.output().text

    def listens(self, port: int) -> bool:
        """Whether this very process listens on that TCP port, in its network namespace."""
        wanted = f":{port:04X}"
        found = set()
        for name in ("tcp", "tcp6"):
            for line in _read(Path(f"/proc/{self.popen.pid}/net/{name}")).splitlines()[1:]:
                words = line.split()
                if len(words) > 9 and words[1].endswith(wanted) and words[3] == _LISTENING:
                    found.add(f"socket:[{words[9]}]")
        return bool(found & _open_files(self.popen.pid))


class Processes:
    """All of one benchmark. `until`: the monotonic time at which it must be over."""

    def __init__(self, logs: Path, until: float, environment: Mapping[str, str]) -> None:
        self._logs = logs
        self._until = until
        self._guard = Guard("KILL")
        self._environment = self._guard.environment(without_secrets(environment))
        self._running: list[Process] = []

    def start(self, name: str, argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Process:
        """Start a program. Raises Failed when it cannot be."""
        program = _program(argv)
        try:
            with (
                open_private(self._logs / f"{name}.out", "ab") as out,
                open_private(self._logs / f"{name}.err", "ab") as err,
            ):
                popen = subprocess.Popen(
                    list(argv),
                    cwd=folder,
                    env={**self._environment, **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
        except OSError as error:
            raise Failed(Failure.NO_BINARY, f"{program} cannot be started: {error.strerror}") from error
        process = Process(name, program, popen, self._logs)
        self._running.append(process)
        return process

    def finish(self, process: Process) -> Output:
        """Wait for its end and take it from the list. Raises Failed when the time is over."""
        ended = wait_child(process.popen, self._until)
        end_group(process.popen, GRACE_S)
        self._running.remove(process)
        if not ended:
            lines = reading.last_lines(process.output())
            raise Failed(Failure.TIMED_OUT, f"{process.program} did not end in time", lines)
        return process.output()

    def wait_ready(self, process: Process, task: Task) -> None:
        """Wait until a server is as its task says. Raises Failed when it ends instead, or the time is over."""
        while not process.ready(task):
            if exited(process.popen):
                process.popen.wait()
                output = process.output()
                reading.ended_well(output, process.program)
                raise Failed(Failure.EXIT, f"{process.program} ended before it was ready", reading.last_lines(output))
            if time.monotonic() >= self._until:
                lines = reading.last_lines(process.output())
                raise Failed(Failure.TIMED_OUT, f"{process.program} was not ready in time", lines)
            time.sleep(LOOK_S)

    def dead(self) -> list[Process]:
        """Those that ended by themselves."""
        found = [one for one in self._running if exited(one.popen)]
        for one in found:
            one.popen.wait()
        return found

    def close(self) -> None:
        """End all, the last first."""
        try:
            while self._running:
                end_group(self._running.pop().popen, GRACE_S)
        finally:
            self._guard.close()


def _program(argv: Sequence[str]) -> str:
    """The tool's name behind nsenter and taskset."""
    words = list(argv)
    if "--" in words and words[0] == "nsenter":
        words = words[words.index("--") + 1 :]
    if words[0] == "taskset":
        words = words[3:]
    return Path(words[0]).name


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _open_files(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.add(str(Path(entry.path).readlink()))
    return found
