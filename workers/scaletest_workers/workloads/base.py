"""The interface of a workload, and what it is made from.

A workload runs one request and returns how it ended. It never raises for a bad request, and knows
nothing of queues and Redis. While it waits, `interrupt` can end the run, so that a worker that must
stop now can put the request back. The runtime chooses its device and adds it to the result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scaletest.model import Activity, Outcome, Reason, checks
from scaletest.model.errors import ScaletestError
from scaletest.model.record import Figures
from scaletest.model.wording import as_options
from scaletest.processes.wake import Wake
from scaletest_workers.devices import ChosenDevice, DeviceChooser

if TYPE_CHECKING:  # it takes a while to import, and options need none of it
    from scaletest.observe.sampler import RequestSampler

DEFAULT_KILL_GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class Result:
    """How one run ended."""

    outcome: Outcome
    reason: Reason = Reason.NONE
    exit_code: int | None = None
    error: str = ""  # one line, empty when it succeeded
    timeout_s: float = 0.0  # the limit that was exceeded
    device: str = ""  # path
    device_info: dict[str, str] = field(default_factory=dict)
    figures: Figures = field(default_factory=dict)
    # what a class or function of Python returned, where it is more than figures
    value: Any = None
    # how its processes spent the time; None when nothing was sampled
    activity: Activity | None = None


# What most runs end with: shared, so that they make no object of their own.
SUCCEEDED = Result(Outcome.SUCCEEDED, exit_code=0)


class Interrupted(Exception):
    """The run was ended from outside before it was done; the request must go back to its queue."""


def failed_result(error: ScaletestError, reason: Reason = Reason.EXIT) -> Result:
    """Return the result of a run that could not begin, with what to do."""
    hint = f" ({error.hint})" if error.hint else ""
    return Result(Outcome.FAILED, reason, error=as_options(f"{error.message}{hint}"))


def timed_out_result(limit_s: float, program: str = "") -> Result:
    """Return the result of a run that exceeded its limit."""
    return Result(
        Outcome.TIMED_OUT,
        error=f"{program} timed out after {limit_s:g} s".lstrip(),
        timeout_s=limit_s,
    )


class ServedWorkload(ABC):
    """Runs requests of one type."""

    @abstractmethod
    def run(
        self, arguments: tuple[str, ...], limit_s: float, device: ChosenDevice | None
    ) -> Result:
        """Run once. limit_s: seconds, 0 for none. Raises Interrupted, nothing for bad requests."""

    def close(self) -> None:  # noqa: B027 - most keep none
        """End the processes that it keeps."""


class PreparedWorkload(ServedWorkload):
    """A workload that gets ready before the first request."""

    @abstractmethod
    def prepare(self, device: ChosenDevice | None) -> None:
        """Get ready. UsageError when that fails; raises Interrupted."""


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
class WorkloadSetup:
    """What a worker hands to a workload when it makes it."""

    command: tuple[str, ...]  # the worker's words, the workload's name first
    interrupt: Wake  # ends a run from outside
    devices: DeviceChooser
    program: ProgramOptions
    sampler: RequestSampler | None  # None to leave out where the time went
    allow_commands: bool  # let a benchmark's document decide what runs on this node
    node: str  # its name

    @property
    def options(self) -> tuple[str, ...]:
        """The words behind the workload's name."""
        return self.command[1:]
