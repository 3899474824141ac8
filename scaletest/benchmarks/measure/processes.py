"""Start the processes of one benchmark on this machine, watch them until a deadline, end them.

A guard process ends them when this process dies. Their output goes into files, so that no pipe can
fill up and the logs can be kept.
"""

import contextlib
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scaletest.benchmarks.kinds import BenchmarkFailed, Failure, Task, ToolOutput, fail_if, parsing
from scaletest.model import masking
from scaletest.processes import children, guard
from scaletest.runs.private_files import open_private

READY_POLL_S = 0.02
GRACE_S = 3.0  # between SIGTERM and SIGKILL
MOST_LOG = 64 * 1024**2  # bytes, more than any of the tools writes
LISTENS = "0A"  # the state of a socket in /proc/net/tcp


@dataclass(frozen=True, slots=True)
class Process:
    """One running program."""

    name: str
    program: str  # the tool's name
    popen: subprocess.Popen[bytes]
    logs: Path

    def output(self) -> ToolOutput:
        """Return its output so far and its exit code, 0 while it runs."""
        return ToolOutput(
            _read_text(self.logs / f"{self.name}.out"),
            _read_text(self.logs / f"{self.name}.err"),
            self.popen.returncode or 0,
        )

    def is_ready(self, task: Task) -> bool:
        """Check whether it listens on its task's TCP port, or has printed its task's text."""
        if not task.port:
            return task.ready_text in self.output().text
        # the sockets of its network namespace that listen on the port
        sockets = set()
        for name in ("tcp", "tcp6"):
            for line in _read_text(Path(f"/proc/{self.popen.pid}/net/{name}")).splitlines()[1:]:
                columns = line.split()  # 1 is the local address, 3 the state, 9 the inode
                if columns[1].endswith(f":{task.port:04X}") and columns[3] == LISTENS:
                    sockets.add(f"socket:[{columns[9]}]")
        # one of them is a file of this very process, and not of one that was there before
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{self.popen.pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(descriptor.readlink()) in sockets:
                        return True
        return False


class Processes:
    """All processes of one benchmark."""

    def __init__(self, logs: Path, until_s: float, environment: Mapping[str, str]) -> None:
        """Begin without any; `until_s` is the monotonic time at which all must have ended."""
        self._logs = logs
        self._until_s = until_s
        self._guard = guard.Guard("KILL")
        self._environment = self._guard.environment(masking.without_secrets(environment))
        self._running: list[Process] = []

    def start(
        self, name: str, argv: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> Process:
        """Start a program. Raises BenchmarkFailed when that is impossible."""
        # the tool's name, without nsenter and taskset before it
        command = list(argv)
        if "--" in command and command[0] == "nsenter":
            command = command[command.index("--") + 1 :]
        program = Path(command[3 if command[0] == "taskset" else 0]).name
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
        process = Process(name, program, popen, self._logs)
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
        is_in_time = children.wait_child(process.popen, self._until_s)
        self._end(process)
        output = process.output()
        fail_if(
            not is_in_time,
            f"{process.program} did not end in time",
            parsing.last_lines(output),
            failure=Failure.TIMED_OUT,
        )
        return output

    def wait_ready(self, process: Process, task: Task) -> None:
        """Wait until a server is ready. BenchmarkFailed when it ends, or the time is over."""
        while not process.is_ready(task):
            if children.has_exited(process.popen):
                process.popen.wait()
                output = process.output()
                parsing.check_exit(output, process.program)
                raise BenchmarkFailed(
                    Failure.EXIT,
                    f"{process.program} ended before it was ready",
                    parsing.last_lines(output),
                )
            if time.monotonic() >= self._until_s:
                raise BenchmarkFailed(
                    Failure.TIMED_OUT,
                    f"{process.program} was not ready in time",
                    parsing.last_lines(process.output()),
                )
            time.sleep(READY_POLL_S)

    def exited(self) -> list[Process]:
        """List the programs that ended by themselves."""
        exited = [process for process in self._running if children.has_exited(process.popen)]
        for process in exited:
            process.popen.wait()
        return exited

    def close(self) -> None:
        """End all, the last started first."""
        try:
            while self._running:
                self._end(self._running[-1])
        finally:
            self._guard.close()

    def _end(self, process: Process) -> None:
        children.end_group(process.popen, GRACE_S)
        self._running.remove(process)


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_LOG).decode(errors="replace")
    except OSError:
        return ""
