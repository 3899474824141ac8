"""A worker's runtime: its settings, its workload, and from a request to a reply. Knows nothing of Redis."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.model import Outcome, Reason, checks, wire
from scaletest.model.errors import InvalidValue
from scaletest.model.request import effective_limit
from workers.devices import DeviceChooser
from workers.workloads.base import SUCCEEDED, Interrupt, Result, Workload
from workers.workloads.command import DEFAULT_KILL_GRACE_S, Command, CommandOptions
from workers.workloads.sleep import Sleep

VARIABLE_PREFIX = "SCALETEST_WORKER_"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker runs and how. Times in seconds; empty text means not set.

    command: program and arguments; empty, or the word `sleep` with optional seconds, for the built-in sleep.
    node_variable, pod_variable: names of the environment variables that hold node and pod name.
    """

    command: tuple[str, ...] = ()
    time_limit_s: float = 0.0
    device_glob: str = ""
    device_index: int = 0
    directory: str = ""
    null_input: bool = False
    null_output: bool = False
    ignore_arguments: bool = False
    kill_grace_s: float = DEFAULT_KILL_GRACE_S
    node_variable: str = ""
    pod_variable: str = ""

    def __post_init__(self) -> None:
        checks.arguments(self.command, 65536)
        checks.seconds(self.time_limit_s, "time limit")
        checks.seconds(self.kill_grace_s, "kill grace")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Settings of a stock worker, from SCALETEST_WORKER_<OPTION>; COMMAND is split as a shell splits words."""
        import shlex

        def text(name: str) -> str:
            return environment.get(VARIABLE_PREFIX + name, "")

        def number(name: str, default: float) -> float:
            try:
                return float(text(name) or default)
            except ValueError as error:
                raise InvalidValue(f"{VARIABLE_PREFIX}{name} is {text(name)!r}, not a number") from error

        def flag(name: str) -> bool:
            return text(name).lower() in ("1", "true", "yes", "on")

        return cls(
            command=tuple(shlex.split(text("COMMAND"))),
            time_limit_s=number("TIME_LIMIT", 0.0),
            device_glob=text("DEVICE_GLOB"),
            device_index=int(number("DEVICE_INDEX", 0)),
            directory=text("DIRECTORY"),
            null_input=flag("NULL_INPUT"),
            null_output=flag("NULL_OUTPUT"),
            ignore_arguments=flag("IGNORE_ARGUMENTS"),
            kill_grace_s=number("KILL_GRACE", DEFAULT_KILL_GRACE_S),
            node_variable=text("NODE_ENV"),
            pod_variable=text("POD_ENV"),
        )


class Runtime:
    """The workload of one worker, and who this worker is."""

    def __init__(self, settings: Settings, interrupt: Interrupt, environment: Mapping[str, str] | None = None) -> None:
        names = os.environ if environment is None else environment
        self.settings = settings
        self.node = names.get(settings.node_variable, "") or socket.gethostname()
        self.pod = names.get(settings.pod_variable, "") or socket.gethostname()
        self._workload = _workload(settings, interrupt)

    def run(self, arguments: tuple[str, ...], limit_s: float) -> tuple[Result, float]:
        """Run one request; its result and the monotonic seconds it took. Raises Interrupted."""
        began = time.monotonic()
        limit = effective_limit(self.settings.time_limit_s, limit_s)
        try:
            result = self._workload.run(arguments, limit)
        except (ValueError, OSError) as error:
            # A workload that breaks is a failed request with its text, never a dead worker.
            result = Result(Outcome.FAILED, Reason.EXIT, error=f"{type(error).__name__}: {error}")
        return result, time.monotonic() - began

    def close(self) -> None:
        """Leave nothing behind."""
        self._workload.close()

    def reply_json(
        self,
        request: str,
        worker: str,
        result: Result,
        run_s: float,
        enqueued_us: int,
        started_us: int,
        attempt: int,
    ) -> tuple[str, float]:
        """The reply as JSON, all but its end, which Redis stamps; and the wait in seconds."""
        wait_s = max(0, started_us - enqueued_us) / 1e6 if enqueued_us else 0.0
        row: dict[str, Any] = {
            "id": request,
            "outcome": result.outcome.value,
            "exit_code": result.exit_code,
            "wait_s": wait_s,
            "run_s": run_s,
            "attempts": attempt,
            "worker": worker,
            "node": self.node,
            "pod": self.pod,
            "enqueued_s": enqueued_us / 1e6,
            "started_s": started_us / 1e6,
        }
        if result is not SUCCEEDED:
            row["reason"] = result.reason.value
            row["error"] = checks.cut(result.error)
            row["timeout_s"] = result.timeout_s
            row["device"] = result.device
            row["figures"] = result.figures
        return wire.dump(row), wait_s


def _workload(settings: Settings, interrupt: Interrupt) -> Workload:
    command = settings.command
    if not command or command[0] == "sleep":
        return Sleep(command[1:], interrupt, ignore_arguments=settings.ignore_arguments)
    options = CommandOptions(
        command=command,
        directory=settings.directory,
        null_input=settings.null_input,
        null_output=settings.null_output,
        ignore_arguments=settings.ignore_arguments,
        kill_grace_s=settings.kill_grace_s,
    )
    return Command(options, DeviceChooser(settings.device_glob, settings.device_index), interrupt)
