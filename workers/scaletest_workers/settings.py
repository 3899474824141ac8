"""Settings of a worker: what it runs and how, and how it serves its queue."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from scaletest.model import checks
from scaletest.model.errors import InvalidValue
from scaletest.model.quantities import SECONDS, in_base_units
from scaletest_workers.devices import DeviceOptions
from scaletest_workers.workloads import registry
from scaletest_workers.workloads.base import DEFAULT_KILL_GRACE_S, ProgramOptions

# Before the name of an option, where a stock RQ worker reads it from its environment.
VARIABLE_PREFIX = "SCALETEST_WORKER_"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker runs, and how."""

    # program and arguments; or the name of a workload that is built in, or MODULE:NAME of one in
    # Python, with its options; empty for the built-in sleep
    command: tuple[str, ...] = ()
    time_limit_s: float = 0.0  # 0 for none
    devices: DeviceOptions = field(default_factory=DeviceOptions)
    program: ProgramOptions = field(default_factory=ProgramOptions)
    ignore_arguments: bool = False  # of requests
    allow_commands: bool = False  # let a benchmark's document decide what runs on this node
    no_causes: bool = False  # do not sample where programs spend their time
    sample_interval_s: float = 1.0  # between samples of the node's resources
    # names of the environment variables that hold the names of node and pod; "" for the host's name
    node_env: str = ""
    pod_env: str = ""

    def __post_init__(self) -> None:
        checks.arguments(self.command, 65536)
        checks.seconds(self.time_limit_s, "time limit")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read settings of a stock worker from SCALETEST_WORKER_<OPTION>; COMMAND in shell syntax.

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

        workload = (registry.resolve_name(text("WORKLOAD")),) if text("WORKLOAD") else ()
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
    """How a worker serves its queue."""

    queue: str
    redis_url: str
    name: str | None  # None for a new one
    burst: bool  # end when the queue is empty
    allow_function: tuple[str, ...]  # prefixes of functions that may be executed
    heartbeat_s: float
    max_attempts: int  # workers that may die with a request before it fails as lost
    grace_s: float  # what a running request gets when the worker is told to stop
    log_messages: bool
    with_scheduler: bool  # enqueue delayed and repeated jobs when they are due

    def __post_init__(self) -> None:
        if self.name:
            checks.worker_name(self.name)
        checks.seconds(self.heartbeat_s, "heartbeat", maximum=600.0, zero=False)
        checks.count(self.max_attempts, "max attempts", minimum=1)
        checks.seconds(self.grace_s, "grace")
