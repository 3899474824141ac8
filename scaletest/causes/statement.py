"""The main cause of a run for people in a hurry: in one sentence, and in two or three words."""

from scaletest.causes.causes import NO_CAUSE_HEADLINES, Causes
from scaletest.causes.places import GAP, PLACE_TEXTS, seconds_text
from scaletest.model import State
from scaletest.model.activity import TOKENS

# What requests wait for, by place: the words before the name of an object, and where none is known.
_AWAITED: dict[str, tuple[str, str]] = {
    State.CPU_WAIT: ("", "a CPU"),
    State.THROTTLED: ("", "the CPU limit of their container"),
    State.DISK: ("the disk ", "a disk"),
    State.MEMORY: ("", "memory"),
    State.DEVICE: ("the device ", "a device"),
    State.FILE_LOCK: ("the lock ", "a file lock"),
    State.NETWORK: ("", "a peer"),
    State.LOCK: ("", "a lock in memory"),
    State.PIPE: ("the pipe ", "a pipe"),
    State.CHILD: ("", "a child process"),
    State.IDLE: ("", "an event"),
}


def cause_statement(causes: Causes) -> str:
    """Return the main cause in one sentence without an end; "" where none is named.

    As in "4 workers wait 0.2 s of each request for the lock /tmp/the.lock".
    """
    if causes.headline or not causes.causes:
        return ""
    cause = causes.causes[0]
    workers = "1 worker" if causes.after == 1 else f"{causes.after} workers"
    time = seconds_text(cause.after_s)
    if cause.state == GAP:
        return f"{workers} are idle for {time} before each request"
    if cause.state == State.ON_CPU:
        added = seconds_text(cause.grown_s.value)
        return f"with {workers} each request computes {added} longer"
    if cause.state == State.SLEEP:
        statement = f"{workers} sleep {time} of each request"
        return f"{statement} between attempts to lock {cause.object}" if cause.object else statement
    before_object, awaited = _AWAITED[cause.state]
    if cause.object.endswith(TOKENS):
        awaited = f"a token in the pipe {cause.object.removesuffix(TOKENS)}"
    elif cause.object:
        awaited = f"{before_object}{cause.object}"
    return f"{workers} wait {time} of each request for {awaited}"


def short_cause(causes: Causes | None) -> str:
    """Return the main cause in a few words, as in "file lock the.lock"; "" where nothing grew."""
    if causes is None or causes.headline in NO_CAUSE_HEADLINES:
        return ""
    if causes.slow:
        return f"slow {causes.slow.kind} {causes.slow.name}"
    if causes.headline:
        return "cause unknown"
    first = causes.causes[0]
    last_part = first.object.removesuffix(TOKENS).rstrip("/").rpartition("/")[2]
    return f"{PLACE_TEXTS[first.state].label} {last_part}".strip()
