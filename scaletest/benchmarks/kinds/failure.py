"""Why a benchmark failed, and what to do about it."""

from collections.abc import Sequence
from enum import StrEnum

_LOGS = "in logs/ of the run's folder"


class Failure(StrEnum):
    """Why a benchmark failed, as documents and metrics name it."""

    NONE = ""
    NO_DEVICE = "no_device"
    NO_BINARY = "no_binary"
    EXIT = "exit"
    BAD_OUTPUT = "bad_output"
    MISMATCH = "mismatch"
    TIMED_OUT = "timed_out"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"

    @property
    def unmeasured(self) -> bool:
        """Whether the subject was not measured at all, so that the run is INVALID."""
        return self in (
            Failure.NO_DEVICE,
            Failure.NO_BINARY,
            Failure.REFUSED,
            Failure.INTERRUPTED,
        )


# What to do in general, where an error has no remedy of its own.
ADVICE = {
    Failure.NONE: "",
    Failure.NO_DEVICE: "run it where there is such a device, or set another device in the spec",
    Failure.NO_BINARY: (
        "install the program wherever the benchmark runs, or name an image that has it"
    ),
    Failure.EXIT: f"correct what the tool complains about, {_LOGS}, and run it again",
    Failure.BAD_OUTPUT: (
        f"read the whole output, {_LOGS}; another version of the tool may be needed"
    ),
    Failure.MISMATCH: "change the spec, or what made the tool use other settings",
    Failure.TIMED_OUT: "raise timeLimit or startLimit, or measure less",
    Failure.REFUSED: "change the spec, or run it elsewhere",
    Failure.INTERRUPTED: "run it again",
}


class BenchmarkFailed(Exception):
    """A benchmark failed.

    lines: the relevant ones of the tool's output. remedy: what to do, "" for the failure's
    general advice.
    """

    def __init__(
        self, failure: Failure, message: str, lines: Sequence[str] = (), remedy: str = ""
    ) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message
        # a tool's output may have any length
        self.lines = tuple(line.strip()[:200] for line in lines if line.strip())[:8]
        self.remedy = remedy


def fail_if(
    wrong: object,
    message: str,
    lines: Sequence[str] = (),
    failure: Failure = Failure.BAD_OUTPUT,
    remedy: str = "",
) -> None:
    """Raise BenchmarkFailed where something is wrong: output contradicts itself, or the spec."""
    if wrong:
        raise BenchmarkFailed(failure, message, lines, remedy)
