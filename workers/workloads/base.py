"""What a workload is: it runs one request to an end and says how that went. It never raises for a bad request.

A workload knows nothing of queues and Redis. It waits only on what `interrupt` can end, so that a worker that must
stop now can put the request back. Its device was chosen before; the worker's runtime adds it to the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from scaletest.model import Activity, Outcome, Reason
from scaletest.model.reply import Figures
from workers.devices import Chosen


@dataclass(frozen=True, slots=True)
class Result:
    """How one run ended. error: one clear text, empty when it succeeded. timeout_s: the limit that was exceeded.

    activity: where its processes spent the time; None when nothing was sampled.
    """

    outcome: Outcome
    reason: Reason = Reason.NONE
    exit_code: int | None = None
    error: str = ""
    timeout_s: float = 0.0
    device: str = ""
    device_info: dict[str, str] = field(default_factory=dict)
    figures: Figures = field(default_factory=dict)
    activity: Activity | None = None


SUCCEEDED = Result(Outcome.SUCCEEDED, exit_code=0)


class Interrupted(Exception):
    """The run was ended from outside before it was done; the request must go back to its queue."""


class Interrupt(Protocol):
    """A readable descriptor that becomes ready when the run must end at once."""

    def fileno(self) -> int:
        """The descriptor to wait on."""


class Workload(Protocol):
    """One way to work."""

    def run(self, arguments: tuple[str, ...], limit_s: float, device: Chosen | None) -> Result:
        """Run once. limit_s: seconds, 0 for no limit. Raises Interrupted, and nothing else for a bad request."""

    def close(self) -> None:
        """Leave nothing behind."""
