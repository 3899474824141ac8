"""A worker's runtime: its settings, its workload, and requests to replies, without Redis."""

from __future__ import annotations

import math
import os
import resource
import shlex
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaletest.model import Outcome, Reason, checks, wire
from scaletest.model.errors import InvalidValue, NoDevice
from scaletest.model.quantities import SECONDS, in_base_units
from scaletest.model.record import effective_limit
from scaletest.processes.wake import Wake
from scaletest_workers.devices import DeviceChooser, DeviceOptions, NoneFree
from scaletest_workers.workloads import registry
from scaletest_workers.workloads.base import SUCCEEDED, PreparedWorkload, Result, failed
from scaletest_workers.workloads.making import DEFAULT_KILL_GRACE_S, Making, ProgramOptions

if TYPE_CHECKING:
    from scaletest.observe.sampler import RequestSampler

VARIABLE_PREFIX = "SCALETEST_WORKER_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a worker: what it runs and how. Times in seconds; empty text means not set.

    command: program and arguments; or the name of a workload that is built in, or MODULE:NAME of
        one in Python, with its options; empty for the built-in sleep.
    allow_commands: let a benchmark's document decide what runs on this node.
    no_causes: do not sample where programs spend their time.
    node_env, pod_env: names of the environment variables that hold node and pod name.
    """

    command: tuple[str, ...] = ()
    time_limit_s: float = 0.0
    devices: DeviceOptions = field(default_factory=DeviceOptions)
    program: ProgramOptions = field(default_factory=ProgramOptions)
    ignore_arguments: bool = False
    allow_commands: bool = False
    no_causes: bool = False
    node_env: str = ""
    pod_env: str = ""

    def __post_init__(self) -> None:
        checks.arguments(self.command, 65536)
        checks.seconds(self.time_limit_s, "time limit")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Settings of a stock worker from SCALETEST_WORKER_<OPTION>; COMMAND in shell syntax.

        WORKLOAD stands before COMMAND, as with --workload. UsageError for an unknown one.
        """

        def text(name: str) -> str:
            return environment.get(VARIABLE_PREFIX + name, "")

        def number(name: str, default: float, units: Mapping[str, float] | None = None) -> float:
            value = in_base_units(text(name) or str(default), {"": 1.0, **(units or {})})
            if value is None:
                raise InvalidValue(f"{VARIABLE_PREFIX}{name} is {text(name)!r}, not a number")
            return value

        def flag(name: str) -> bool:
            return text(name).lower() in ("1", "true", "yes", "on")

        workload = (registry.resolved(text("WORKLOAD")),) if text("WORKLOAD") else ()
        return cls(
            command=(*workload, *shlex.split(text("COMMAND"))),
            time_limit_s=number("TIME_LIMIT", 0.0, SECONDS),
            devices=DeviceOptions(
                device_glob=text("DEVICE_GLOB"),
                device_index=int(number("DEVICE_INDEX", 0)) if text("DEVICE_INDEX") else None,
                preset=text("PRESET"),
                per_device=int(number("PER_DEVICE", 1)),
            ),
            program=ProgramOptions(
                directory=text("DIRECTORY"),
                null_input=flag("NULL_INPUT"),
                null_output=flag("NULL_OUTPUT"),
                kill_grace_s=number("KILL_GRACE", DEFAULT_KILL_GRACE_S, SECONDS),
            ),
            ignore_arguments=flag("IGNORE_ARGUMENTS"),
            allow_commands=flag("ALLOW_COMMANDS"),
            no_causes=flag("NO_CAUSES"),
            node_env=text("NODE_ENV"),
            pod_env=text("POD_ENV"),
        )


@dataclass(frozen=True, slots=True)
class Serving:
    """How a worker serves its queue. Times in seconds.

    name: None for a new one. allow_function: prefixes of functions that may be executed.
    """

    queue: str
    redis_url: str
    name: str | None
    burst: bool
    allow_function: tuple[str, ...]
    heartbeat_s: float
    max_attempts: int
    grace_s: float
    log_messages: bool

    def __post_init__(self) -> None:
        if self.name:
            checks.worker_name(self.name)
        checks.seconds(self.heartbeat_s, "heartbeat", maximum=600.0, zero=False)
        checks.count(self.max_attempts, "max attempts", minimum=1)
        checks.seconds(self.grace_s, "grace")


@dataclass(frozen=True, slots=True)
class SingleRun:
    """A run without Redis. own_memory: the most bytes that this process had before it."""

    result: Result
    run_s: float
    own_memory: int

    def to_dict(self) -> dict[str, object]:
        """Plain values, named as in a reply."""
        result = self.result
        return {
            "outcome": result.outcome.value,
            "reason": result.reason.value,
            "exit_code": result.exit_code,
            "error": result.error,
            "run_s": self.run_s,
            "timeout_s": result.timeout_s,
            "device": result.device,
            "device_info": result.device_info,
            "figures": result.figures,
            "activity": result.activity.to_dict() if result.activity else None,
        }


def _sampler() -> RequestSampler:
    # it takes a while to import, and --help needs none of it
    from scaletest.observe.sampler import RequestSampler

    return RequestSampler()


class Runtime:
    """The workload of one worker, and the names of its node and pod."""

    def __init__(
        self, settings: Settings, interrupt: Wake, environment: Mapping[str, str] | None = None
    ) -> None:
        names = os.environ if environment is None else environment
        self.settings = settings
        self.node = names.get(settings.node_env, "") or socket.gethostname()
        self.pod = names.get(settings.pod_env, "") or socket.gethostname()
        self.devices = DeviceChooser(settings.devices)
        # a benchmark is its argument
        self._takes_arguments = not settings.ignore_arguments or settings.command[:1] == ("bench",)
        self._workload = registry.make(
            Making(
                settings.command or (registry.SLEEP,),
                interrupt,
                self.devices,
                settings.program,
                None if settings.no_causes else _sampler(),
                settings.allow_commands,
                self.node,
                self.pod,
            )
        )

    def prepare(self) -> None:
        """Get ready before the first request, where the workload can. UsageError when it cannot
        work; raises Interrupted.
        """
        if isinstance(self._workload, PreparedWorkload):
            self._workload.prepare(self.devices.choose() if self.devices.wanted else None)

    def run(self, arguments: tuple[str, ...], limit_s: float) -> tuple[Result, float]:
        """Run one request; its result and the monotonic seconds it took.

        Raises Interrupted, and NoneFree when this worker's slot was lost and no other is free:
        nothing ran then.
        """
        began = time.monotonic()
        limit = effective_limit(self.settings.time_limit_s, limit_s)
        try:
            chosen = self.devices.choose() if self.devices.wanted else None
            result = self._workload.run(arguments if self._takes_arguments else (), limit, chosen)
            if chosen is not None:
                # a failure whose device has disappeared has that reason
                path = chosen.device.path
                if result.outcome is Outcome.FAILED and not Path(path).exists():
                    text = f"the device {path} went away during the run: {result.error}"
                    result = replace(result, reason=Reason.NO_DEVICE, error=text)
                result = replace(result, device=path, device_info=chosen.info())
        except NoneFree:
            raise
        except NoDevice as error:
            result = failed(error, Reason.NO_DEVICE)
        except (ValueError, OSError) as error:
            # A workload that breaks is a failed request with its text, never a dead worker.
            result = Result(Outcome.FAILED, Reason.EXIT, error=f"{type(error).__name__}: {error}")
        return result, time.monotonic() - began

    def close(self) -> None:
        """End the processes of the workload."""
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
        """The reply as JSON without its end time, which Redis stamps; and the wait in seconds."""
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
            row["device_info"] = result.device_info
            # a figure that a tool printed as nan or inf is unknown
            row["figures"] = {
                name: figure
                for name, figure in result.figures.items()
                if not isinstance(figure, float) or math.isfinite(figure)
            }
            if result.activity is not None:
                row["activity"] = result.activity.to_dict()
        return wire.dump(row), wait_s


def run_once(settings: Settings, arguments: tuple[str, ...] = ()) -> SingleRun:
    """Run the workload once as a worker does, with its standard output on standard error.

    arguments: those of the request.
    """
    if settings.command[:1] == ("bench",):
        # the document of a benchmark is never the worker's own
        arguments = (*settings.command[1:], *arguments)
        settings = replace(settings, command=("bench",))
    own_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    runtime = Runtime(settings, Wake())
    sys.stdout.flush()
    original = os.dup(1)
    os.dup2(2, 1)
    try:
        runtime.prepare()
        result, run_s = runtime.run(arguments, 0.0)
    finally:
        sys.stdout.flush()
        os.dup2(original, 1)
        os.close(original)
        runtime.close()
    return SingleRun(result, run_s, own_memory)
