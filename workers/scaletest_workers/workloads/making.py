"""What workloads are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scaletest.model import checks
from scaletest.processes.wake import Wake
from scaletest_workers.devices import DeviceChooser

if TYPE_CHECKING:  # it takes a while to import, and options need none of it
    from scaletest.observe.sampler import RequestSampler

DEFAULT_KILL_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """How programs are run."""

    directory: str = ""  # to work in; "" for the worker's
    null_input: bool = False
    null_output: bool = False
    kill_grace_s: float = DEFAULT_KILL_GRACE_S  # between TERM and KILL, after the time limit

    def __post_init__(self) -> None:
        checks.seconds(self.kill_grace_s, "kill grace")


@dataclass(frozen=True, slots=True)
class Making:
    """What a worker's workload is made from."""

    command: tuple[str, ...]  # the worker's words, the workload's name first
    interrupt: Wake  # ends a run from outside
    devices: DeviceChooser
    program: ProgramOptions
    sampler: RequestSampler | None  # None to leave out where the time went
    allow_commands: bool  # let a benchmark's document decide what runs on this node
    node: str  # names of where the worker runs
    pod: str

    @property
    def options(self) -> tuple[str, ...]:
        """The words behind the workload's name."""
        return self.command[1:]
