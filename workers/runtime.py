"""A worker's runtime: its settings, its workload, and requests to replies, without Redis."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scaletest.model import Outcome, Reason, checks, wire
from scaletest.model.errors import InvalidValue, NoDevice
from scaletest.model.request import effective_limit
from scaletest.system.devices.reader import DeviceReader
from scaletest.system.sampler import RequestSampler
from workers.device_faults import NoneFree, gone
from workers.devices import Chosen, DeviceChooser, DeviceOptions, Policy
from workers.workloads.base import SUCCEEDED, Interrupt, Result, Workload
from workers.workloads.bench import BenchWorkload
from workers.workloads.command import Command
from workers.workloads.fakedev import FakeDevice
from workers.workloads.program import DEFAULT_KILL_GRACE_S, Program, ProgramOptions
from workers.workloads.sleep import Sleep
from workers.workloads.torch import TorchWorkload
from workers.workloads.transcode import TranscodeWorkload

VARIABLE_PREFIX = "SCALETEST_WORKER_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a worker: what it runs and how. Times in seconds; empty text means not set.

    command: program and arguments; empty, or the word `sleep` with optional seconds, for the
    built-in sleep; the word
        `transcode`, `torch`, `fakedev` or `bench` with its options for those built in.
    device_index: use the N-th matching device and lease no slot; None to lease one where there is a
    broker.
    allow_commands: let a benchmark's document decide what runs on this node.
    no_causes: do not sample where programs spend their time.
    device_metrics_url: an exporter that has metrics of this node's devices.
    node_variable, pod_variable: names of the environment variables that hold node and pod name.
    """

    command: tuple[str, ...] = ()
    time_limit_s: float = 0.0
    device_glob: str = ""
    device_index: int | None = None
    preset: str = ""
    device_policy: str = Policy.BALANCED.value
    per_device: int = 1
    directory: str = ""
    null_input: bool = False
    null_output: bool = False
    ignore_arguments: bool = False
    allow_commands: bool = False
    kill_grace_s: float = DEFAULT_KILL_GRACE_S
    no_causes: bool = False
    device_metrics_url: str = ""
    node_variable: str = ""
    pod_variable: str = ""

    def __post_init__(self) -> None:
        checks.arguments(self.command, 65536)
        checks.seconds(self.time_limit_s, "time limit")
        checks.seconds(self.kill_grace_s, "kill grace")
        if self.device_metrics_url:
            checks.http_url(self.device_metrics_url, "the URL of device metrics", credentials=False)
        _ = self.devices

    @property
    def devices(self) -> DeviceOptions:
        """Which devices, and how they are shared."""
        return DeviceOptions(
            self.device_glob, self.device_index, self.preset, self.device_policy, self.per_device
        )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Settings of a stock worker from SCALETEST_WORKER_<OPTION>; COMMAND in shell syntax."""
        import shlex

        def text(name: str) -> str:
            return environment.get(VARIABLE_PREFIX + name, "")

        def number(name: str, default: float) -> float:
            try:
                return float(text(name) or default)
            except ValueError as error:
                raise InvalidValue(
                    f"{VARIABLE_PREFIX}{name} is {text(name)!r}, not a number"
                ) from error

        def flag(name: str) -> bool:
            return text(name).lower() in ("1", "true", "yes", "on")

        return cls(
            command=tuple(shlex.split(text("COMMAND"))),
            time_limit_s=number("TIME_LIMIT", 0.0),
            device_glob=text("DEVICE_GLOB"),
            device_index=int(number("DEVICE_INDEX", 0)) if text("DEVICE_INDEX") else None,
            preset=text("PRESET"),
            device_policy=text("DEVICE_POLICY") or Policy.BALANCED.value,
            per_device=int(number("PER_DEVICE", 1)),
            directory=text("DIRECTORY"),
            null_input=flag("NULL_INPUT"),
            null_output=flag("NULL_OUTPUT"),
            ignore_arguments=flag("IGNORE_ARGUMENTS"),
            allow_commands=flag("ALLOW_COMMANDS"),
            kill_grace_s=number("KILL_GRACE", DEFAULT_KILL_GRACE_S),
            no_causes=flag("NO_CAUSES"),
            device_metrics_url=text("DEVICE_METRICS_URL"),
            node_variable=text("NODE_ENV"),
            pod_variable=text("POD_ENV"),
        )


class Runtime:
    """The workload of one worker, and the names of its node and pod."""

    def __init__(
        self, settings: Settings, interrupt: Interrupt, environment: Mapping[str, str] | None = None
    ) -> None:
        names = os.environ if environment is None else environment
        self.settings = settings
        self.node = names.get(settings.node_variable, "") or socket.gethostname()
        self.pod = names.get(settings.pod_variable, "") or socket.gethostname()
        self.devices = DeviceChooser(settings.devices)
        self._workload = self._make_workload(interrupt)

    def run(self, arguments: tuple[str, ...], limit_s: float) -> tuple[Result, float]:
        """Run one request; its result and the monotonic seconds it took.

        Raises Interrupted, and NoneFree when this worker's slot was lost and no other is free:
        nothing ran then.
        """
        began = time.monotonic()
        limit = effective_limit(self.settings.time_limit_s, limit_s)
        try:
            chosen = self.devices.choose() if self.devices.wanted else None
            result = self._workload.run(arguments, limit, chosen)
            if chosen is not None:
                result = _on_device(result, chosen)
        except NoneFree:
            raise
        except NoDevice as error:
            hint = f" ({error.hint})" if error.hint else ""
            result = Result(Outcome.FAILED, Reason.NO_DEVICE, error=f"{error.message}{hint}")
        except (ValueError, OSError) as error:
            # A workload that breaks is a failed request with its text, never a dead worker.
            result = Result(Outcome.FAILED, Reason.EXIT, error=f"{type(error).__name__}: {error}")
        return result, time.monotonic() - began

    def device_reader(self, tell: Callable[[str, str], None]) -> DeviceReader:
        """Reads the devices of this node, under replies' names. tell: called once per error."""
        return DeviceReader(tell, self.settings.device_metrics_url, self.devices.paths)

    def close(self) -> None:
        """Close the workload."""
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
                name: figure for name, figure in result.figures.items() if _is_known(figure)
            }
            if result.activity is not None:
                row["activity"] = result.activity.to_dict()
        return wire.dump(row), wait_s

    def _make_workload(self, interrupt: Interrupt) -> Workload:
        settings, devices = self.settings, self.devices
        command, ignore = settings.command, settings.ignore_arguments
        sampler = None if settings.no_causes else RequestSampler()
        if not command or command[0] == "sleep":
            return Sleep(command[1:], interrupt, sampler, ignore_arguments=ignore)
        if command[0] == "fakedev":
            return FakeDevice(
                command[1:],
                interrupt,
                sampler,
                node=self.node,
                pod=self.pod,
                ignore_arguments=ignore,
            )
        if command[0] == "torch":
            grace_s = settings.kill_grace_s
            return TorchWorkload(
                command[1:], interrupt, devices, grace_s, sampler, ignore_arguments=ignore
            )
        options = ProgramOptions(
            settings.directory, settings.null_input, settings.null_output, settings.kill_grace_s
        )
        program = Program(options, interrupt, sampler)
        if command[0] == "bench":
            return BenchWorkload(
                program, allow_commands=settings.allow_commands, no_causes=settings.no_causes
            )
        if command[0] == "transcode":
            return TranscodeWorkload(
                command[1:], program, devices, settings.directory, ignore_arguments=ignore
            )
        return Command(command, program, devices, ignore_arguments=ignore)


def _is_known(figure: float | int | str) -> bool:
    return not isinstance(figure, float) or math.isfinite(figure)


def _on_device(result: Result, chosen: Chosen) -> Result:
    """The result with its device; a failure whose device has disappeared has that reason."""
    path = chosen.device.path
    if result.outcome is Outcome.FAILED and (text := gone(path)):
        result = replace(result, reason=Reason.NO_DEVICE, error=f"{text}: {result.error}")
    return replace(result, device=path, device_info=chosen.info())
