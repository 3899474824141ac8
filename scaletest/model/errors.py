"""All errors a user can meet, in one tree, named for what the user can do about them.

    ScaletestError            1   a bug of scaletest, when this class itself is raised
    +-- UsageError            2   the command or its options cannot work as given
    |   +-- InvalidValue      2   one value breaks its rule
    |   +-- UndeclaredQueue   2   the queue was never declared
    |   +-- NoDevice          2   no device matches, is free, or may be used
    +-- RequestsFailed        5   requests failed in a command that gives no verdict
    |   +-- QueueFull         5   the queue holds its maximum already
    +-- WaitTimeout           6   something that was waited for did not happen in time
    +-- NotPassed             3   the verdict of a run is FAIL; 4 where there is none
    +-- AgentLost             4   a load agent ended early, so the measurement is INVALID
    +-- Unreachable           7   Redis or Kubernetes cannot be reached, or refuses
                                  access
        +-- NoServer          7   this machine has no Redis server to embed

Each message says what happened and why; `hint` says what to do. A class names its exit code, so
that no caller has to map errors to codes. Programming mistakes are ordinary Python errors and do
not belong here.
"""

import difflib
from collections.abc import Iterable

# Two names are alike with this part of their letters in common, in order. With less, every short
# name is like some long one: foo like fioPort.
LEAST_SIMILARITY = 0.65


class ScaletestError(Exception):
    """Something went wrong inside scaletest.

    message: what happened and why.
    hint: what to do; may be empty.
    exit_code: that of a command which it ends.

    Example:
        try:
            client.run("media", "in.mp4")
        except scaletest.UndeclaredQueue as error:
            print(error.message, error.hint)
    """

    exit_code = 1

    def __init__(self, message: str | None = None, *, hint: str = "") -> None:
        self.message = message or (type(self).__doc__ or "").splitlines()[0]
        self.hint = hint
        super().__init__(self.message)
        if hint:
            # Python shows it below the message of an uncaught error
            self.add_note(hint)


class UsageError(ScaletestError):
    """The command cannot work as it was given."""

    exit_code = 2


class InvalidValue(UsageError):
    """A value breaks its rule."""


class UndeclaredQueue(UsageError):
    """The queue was never declared."""

    def __init__(self, name: str, declared: list[str]) -> None:
        known = ", ".join(sorted(declared)) or "none"
        near = nearest_name(name, declared)
        hint = f"declare it with: scaletest queue add {name}"
        self.queue = name
        super().__init__(
            f"queue {name!r} is not declared (declared: {known})",
            hint=f"did you mean {near}? If not, {hint}" if near else hint,
        )


class NoDevice(UsageError):
    """There is no device for this worker."""


class RequestsFailed(ScaletestError):
    """Requests failed."""

    exit_code = 5


class QueueFull(RequestsFailed):
    """The queue holds its maximum of waiting requests."""

    def __init__(self, name: str, maximum: int) -> None:
        super().__init__(
            f"queue {name!r} is full: {maximum} requests wait, its maximum",
            hint=(
                f"start more workers, wait, or raise it with: scaletest queue add {name}"
                " --maximum N"
            ),
        )


class WaitTimeout(ScaletestError):
    """What was waited for did not happen in time."""

    exit_code = 6


class NotPassed(ScaletestError, AssertionError):
    """The verdict of a run is not PASS."""

    exit_code = 3


class AgentLost(ScaletestError):
    """A load agent ended before its work was done, so the measurement is INVALID."""

    exit_code = 4


class Unreachable(ScaletestError):
    """Redis cannot be reached."""

    exit_code = 7


class NoServer(Unreachable):
    """No Redis server was found on this machine."""


def nearest_name(name: object, known: Iterable[str]) -> str:
    """Return the known name most like this one; "" when none is like it."""
    by_lower_case = {option.lower(): option for option in known}
    text = str(name).lower()
    nearest = difflib.get_close_matches(text, by_lower_case, n=1, cutoff=LEAST_SIMILARITY)
    if not nearest:
        # a part of a name, as p99 of run.p99
        similar = difflib.get_close_matches(text, by_lower_case)
        nearest = [option for option in similar if text in option]
    return by_lower_case[nearest[0]] if nearest else ""


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return a hint: the nearest name, else all names."""
    names = list(known)
    near = nearest_name(name, names)
    return f"did you mean {near}?" if near else f"there are {', '.join(names) or 'none'}"
