"""Every place where a worker's time can be spent, and how texts name it."""

from dataclasses import dataclass

from scaletest.model import State
from scaletest.model.activity import TOKENS
from scaletest.stats.estimate import Estimate

# What to try where requests wait for tokens in a pipe that they put there themselves.
TOKEN_REMEDY = "more tokens in this pipe, or hold each of them for a shorter time"
# What to try where they sleep while others have locked a file that they opened.
POLLING_REMEDY = (
    "this file is locked by others between two attempts: a file for each worker, or locks that are"
    " held for a shorter time"
)
# The time between two requests, in which a worker has nothing to do.
GAP = "gap"
# Every place where a worker's time can be spent; together they are its whole time.
PLACES: tuple[str, ...] = (*State, GAP)


@dataclass(frozen=True, slots=True)
class PlaceText:
    """How texts name a place."""

    label: str  # for tables and charts
    phrase: str  # what requests do there, for sentences
    remedy: str  # what to try when the time there grew


PLACE_TEXTS: dict[str, PlaceText] = {
    State.ON_CPU: PlaceText(
        "on a CPU",
        "computing: each request needs more CPU time",
        "caches, memory bandwidth, hyper-threads or clocks slow each worker down: spread them over"
        " more cores or nodes",
    ),
    State.CPU_WAIT: PlaceText(
        "waiting for a CPU", "waiting for a CPU", "more cores, or a lower <limit>"
    ),
    State.THROTTLED: PlaceText(
        "CPU limit",
        "throttled by the container's CPU limit",
        "a higher CPU limit of the container, or a lower <limit>",
    ),
    State.DISK: PlaceText(
        "disk", "waiting for a disk", "a faster disk, or fewer reads and writes in each request"
    ),
    State.MEMORY: PlaceText(
        "memory", "waiting for memory", "more memory, or a higher memory limit of the container"
    ),
    State.DEVICE: PlaceText(
        "device", "waiting for a device", "more devices, or fewer workers on each of them"
    ),
    State.FILE_LOCK: PlaceText(
        "file lock",
        "waiting for a file lock",
        "a lock file for each worker, or a lock that is held for a shorter time",
    ),
    State.NETWORK: PlaceText(
        "network",
        "waiting for a peer",
        "more capacity of the service that answers, or fewer calls in each request",
    ),
    State.LOCK: PlaceText(
        "lock",
        "waiting for a lock in memory",
        "look for the semaphore or mutex that the workers share, and hold it for a shorter time",
    ),
    State.PIPE: PlaceText(
        "pipe", "waiting for a pipe", "look at the process at the other end of the pipe"
    ),
    State.SLEEP: PlaceText("sleep", "sleeping", "look for pauses between attempts in the workload"),
    State.CHILD: PlaceText(
        "child process", "waiting for a child process", "look at what the workload starts"
    ),
    State.IDLE: PlaceText("idle", "waiting for an event", "look at what the workload waits for"),
    State.NOT_OBSERVED: PlaceText("not observed", "not observed", ""),
    GAP: PlaceText(
        "worker idle",
        "workers were idle: the queue, the client or scaletest itself",
        "run the client and Redis on machines of their own, or use longer requests",
    ),
}


def remedy_of(place: str, object_name: str) -> str:
    """Return what to try for a cause. object_name: what it waits for, "" for unknown."""
    if place == State.PIPE and object_name.endswith(TOKENS):
        return TOKEN_REMEDY
    if place == State.SLEEP and object_name:
        return POLLING_REMEDY
    return PLACE_TEXTS[place].remedy


def seconds_text(seconds: float) -> str:
    """Return a duration in words with two significant digits."""
    if abs(seconds) >= 10.0:
        return f"{seconds:.0f} s"
    if abs(seconds) >= 0.01:
        return f"{seconds:.2g} s"
    return f"{1000.0 * seconds:.2g} ms"


def cause_sentence(place: str, object_name: str, share: Estimate, added_s: float) -> str:
    """Return the sentence of a cause.

    object_name: what it waits for, "" for unknown. added_s: by how much a cycle grew.
    """
    on = f" ({object_name})" if object_name else ""
    return (
        f"{PLACE_TEXTS[place].phrase}{on}, {share.value:.0%} [{100.0 * share.low:.0f},"
        f" {100.0 * share.high:.0f}] of the added {seconds_text(added_s)}"
    )
