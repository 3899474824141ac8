"""Processes of one benchmark on this machine: started, watched until a deadline, ended.

A guard process ends them when this process dies. Their output goes into files, so that no pipe can
fill up and the logs can be kept.
"""

import contextlib
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from scaletest.benchmarks.kinds import parsing
from scaletest.benchmarks.kinds.failure import BenchmarkFailed, Failure
from scaletest.benchmarks.kinds.kind import Task, ToolOutput
from scaletest.model import Activity
from scaletest.model.masking import without_secrets
from scaletest.observe.sampler import ProgramWatch, RequestSampler
from scaletest.processes.children import end_group, has_exited, wait_child
from scaletest.processes.guard import Guard
from scaletest.runs.private_files import open_private

GRACE_S = 3.0
LOOK_S = 0.02
# Bytes of a log that are read; more than any of the tools writes.
MOST_BYTES = 64 * 1024 * 1024
_LISTENING = "0A"  # state of a socket in /proc/net/tcp


class Process:
    """One running program."""

    def __init__(
        self,
        name: str,
        program: str,
        popen: subprocess.Popen[bytes],
        logs: Path,
        watch: ProgramWatch | None = None,
    ) -> None:
        self.name = name
        self.program = program
        self.popen = popen
        self.watch = watch  # samples where its time goes; None without sampling
        self._logs = logs

    def output(self) -> ToolOutput:
        """Return its output so far and its exit code, 0 while it runs."""
        out, err = (_read(self._logs / f"{self.name}.{end}") for end in ("out", "err"))
        return ToolOutput(out, err, self.popen.returncode or 0)

    def ready(self, task: Task) -> bool:
        """Check whether it listens on its task's port, or has printed its task's text."""
        return self.listens(task.port) if task.port else task.ready_text in self.output().text

    def listens(self, port: int) -> bool:
        """Check whether this very process listens on that TCP port, in its network namespace."""
        sockets = set()
        for name in ("tcp", "tcp6"):
            for line in _read(Path(f"/proc/{self.popen.pid}/net/{name}")).splitlines()[1:]:
                columns = line.split()
                if (
                    len(columns) > 9
                    and columns[1].endswith(f":{port:04X}")
                    and columns[3] == _LISTENING
                ):
                    sockets.add(f"socket:[{columns[9]}]")
        files = set()
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{self.popen.pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    files.add(str(descriptor.readlink()))
        return bool(sockets & files)


class _CombinedWatch:
    """Watches of all running programs: waiting for one program samples the others too."""

    def __init__(self, running: Sequence[Process]) -> None:
        self._running = running

    @property
    def due(self) -> float:
        """The monotonic time of the next sample."""
        return min(
            (process.watch.due for process in self._running if process.watch), default=float("inf")
        )

    @property
    def end_handles(self) -> list[int]:
        """Descriptors that tell of the ends of their descendants."""
        return [
            handle
            for process in self._running
            if process.watch
            for handle in process.watch.end_handles
        ]

    def note_ends(self, handles: Sequence[int]) -> None:
        """Take in that descendants have ended."""
        for process in self._running:
            if process.watch:
                process.watch.note_ends(handles)

    def look(self) -> None:
        """Sample the programs whose time has come."""
        now = time.monotonic()
        for process in self._running:
            if process.watch and process.watch.due <= now:
                process.watch.look()

    def ended(self) -> None:
        """Close the watches of programs that have ended and are about to be reaped."""
        for process in self._running:
            if process.watch and has_exited(process.popen):
                process.watch.ended()


class Processes:
    """All processes of one benchmark."""

    def __init__(
        self,
        logs: Path,
        until: float,
        environment: Mapping[str, str],
        sampler: RequestSampler | None = None,
    ) -> None:
        """Begin without any; `until` is the monotonic time at which all must have ended."""
        # where the time of ended programs went, by name; empty without a sampler
        self.activities: dict[str, Activity] = {}
        self._sampler = sampler
        self._logs = logs
        self._until = until
        self._guard = Guard("KILL")
        self._environment = self._guard.environment(without_secrets(environment))
        self._running: list[Process] = []
        self._watch = _CombinedWatch(self._running)

    def start(
        self, name: str, argv: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> Process:
        """Start a program. Raises BenchmarkFailed when that is impossible."""
        # the tool's name, without nsenter and taskset before it
        command = list(argv)
        if "--" in command and command[0] == "nsenter":
            command = command[command.index("--") + 1 :]
        program = Path(command[3 if command[0] == "taskset" else 0]).name
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
            raise BenchmarkFailed(
                Failure.NO_BINARY, f"{program} cannot be started: {error.strerror}"
            ) from error
        if watch:
            watch.start(popen.pid)
        process = Process(name, program, popen, self._logs, watch)
        self._running.append(process)
        return process

    def prepare(self, name: str, task: Task, folder: Path, enter: Sequence[str] = ()) -> None:
        """Write the files of a task, and run the commands before it. Raises BenchmarkFailed.

        enter: command prefix that runs a command on its node.
        """
        for path, text in task.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
        for argv in task.before:
            before = self.start(f"{name}-before", [*enter, *argv], folder, task.environment)
            parsing.check_exit(self.finish(before), argv[0])

    def finish(self, process: Process) -> ToolOutput:
        """Wait for its end. Raises BenchmarkFailed when the time is over."""
        is_in_time = wait_child(process.popen, self._until, watch=self._watch)
        self._end(process)
        output = process.output()
        if not is_in_time:
            raise BenchmarkFailed(
                Failure.TIMED_OUT,
                f"{process.program} did not end in time",
                parsing.last_lines(output),
            )
        return output

    def wait_ready(self, process: Process, task: Task) -> None:
        """Wait until a server is ready. BenchmarkFailed when it ends, or the time is over."""
        while not process.ready(task):
            if has_exited(process.popen):
                process.popen.wait()
                output = process.output()
                parsing.check_exit(output, process.program)
                raise BenchmarkFailed(
                    Failure.EXIT,
                    f"{process.program} ended before it was ready",
                    parsing.last_lines(output),
                )
            if time.monotonic() >= self._until:
                raise BenchmarkFailed(
                    Failure.TIMED_OUT,
                    f"{process.program} was not ready in time",
                    parsing.last_lines(process.output()),
                )
            time.sleep(LOOK_S)
            self._watch.look()

    def dead(self) -> list[Process]:
        """List the programs that ended by themselves."""
        dead = [process for process in self._running if has_exited(process.popen)]
        for process in dead:
            process.popen.wait()
        return dead

    def close(self) -> None:
        """End all, the last started first."""
        try:
            while self._running:
                self._end(self._running[-1])
        finally:
            self._guard.close()

    def _end(self, process: Process) -> None:
        usage = end_group(process.popen, GRACE_S, self._watch)
        self._running.remove(process)
        activity = process.watch.close(usage) if process.watch else None
        if activity is not None:
            self.activities[process.name] = activity


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
