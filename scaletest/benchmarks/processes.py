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
from scaletest.kinds import parsing
from scaletest.kinds.kind import BenchmarkFailed, Failure, Task, ToolOutput
from scaletest.model import Activity
from scaletest.model.secrets import without_secrets
from scaletest.system.guard import Guard
from scaletest.system.sampler import ProgramWatch, RequestSampler
from scaletest.system.waiting import end_group, exited, wait_child

GRACE_S = 3.0
LOOK_S = 0.02
# What is read of a log; more than any tool of ours writes.
MOST_BYTES = 64 * 1024 * 1024
_LISTENING = "0A"


class Process:
    """One running program. watch: of where its time goes, None when nobody asks."""

    def __init__(
        self, name: str, program: str, popen: subprocess.Popen[bytes], logs: Path, watch: ProgramWatch | None = None
    ) -> None:
        self.name = name
        self.program = program
        self.popen = popen
        self.watch = watch
        self._logs = logs

    def output(self) -> ToolOutput:
        """What it wrote so far, and how it ended; 0 while it runs."""
        out, err = (_read(self._logs / f"{self.name}.{end}") for end in ("out", "err"))
        return ToolOutput(out, err, self.popen.returncode or 0)

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


class _Looks:
    """The watches of all that runs, as one: whoever waits for one program looks at the others too."""

    def __init__(self, running: Sequence[Process]) -> None:
        self._running = running

    @property
    def due(self) -> float:
        """When to look next."""
        return min((one.watch.due for one in self._running if one.watch), default=float("inf"))

    def look(self) -> None:
        """Look at those whose time has come."""
        now = time.monotonic()
        for one in self._running:
            if one.watch and one.watch.due <= now:
                one.watch.look()

    def ended(self) -> None:
        """One of them has ended, and is about to be reaped."""
        for one in self._running:
            if one.watch and exited(one.popen):
                one.watch.ended()


class Processes:
    """All of one benchmark. `until`: the monotonic time at which it must be over.

    activities: where the time of what has ended went, by name; empty without a sampler.
    """

    def __init__(
        self, logs: Path, until: float, environment: Mapping[str, str], sampler: RequestSampler | None = None
    ) -> None:
        self.activities: dict[str, Activity] = {}
        self._sampler = sampler
        self._logs = logs
        self._until = until
        self._guard = Guard("KILL")
        self._environment = self._guard.environment(without_secrets(environment))
        self._running: list[Process] = []
        self._looks = _Looks(self._running)

    def start(self, name: str, argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Process:
        """Start a program. Raises Failed when it cannot be."""
        program = _program(argv)
        watch = self._sampler.begin() if self._sampler else None
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
            raise BenchmarkFailed(Failure.NO_BINARY, f"{program} cannot be started: {error.strerror}") from error
        if watch:
            watch.start(popen.pid)
        process = Process(name, program, popen, self._logs, watch)
        self._running.append(process)
        return process

    def finish(self, process: Process) -> ToolOutput:
        """Wait for its end and take it from the list. Raises Failed when the time is over."""
        ended = wait_child(process.popen, self._until, watch=self._looks)
        self._end(process)
        if not ended:
            lines = parsing.last_lines(process.output())
            raise BenchmarkFailed(Failure.TIMED_OUT, f"{process.program} did not end in time", lines)
        return process.output()

    def wait_ready(self, process: Process, task: Task) -> None:
        """Wait until a server is as its task says. Raises Failed when it ends instead, or the time is over."""
        while not process.ready(task):
            if exited(process.popen):
                process.popen.wait()
                output = process.output()
                parsing.ended_well(output, process.program)
                raise BenchmarkFailed(
                    Failure.EXIT, f"{process.program} ended before it was ready", parsing.last_lines(output)
                )
            if time.monotonic() >= self._until:
                lines = parsing.last_lines(process.output())
                raise BenchmarkFailed(Failure.TIMED_OUT, f"{process.program} was not ready in time", lines)
            time.sleep(LOOK_S)
            self._looks.look()

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
                self._end(self._running[-1])
        finally:
            self._guard.close()

    def _end(self, process: Process) -> None:
        usage = end_group(process.popen, GRACE_S, self._looks)
        self._running.remove(process)
        activity = process.watch.close(usage) if process.watch else None
        if activity is not None:
            self.activities[process.name] = activity


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
