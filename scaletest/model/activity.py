"""The activity of a request: where its processes spent its time.

It has seconds by state, the longest waits with their objects, and sums. At every instant a request
is in one state: the state of its most active thread, in the order of `State`.
"""

import heapq
from dataclasses import dataclass, field
from enum import StrEnum
from operator import itemgetter
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from scaletest.model import checks
from scaletest.model.document import Document, check_fields
from scaletest.model.writing import document_members

# Lengths of an object's name, tried until the activity fits; without objects it always fits.
_NAME_LENGTHS = (120, 90, 60, 40, 20)

# Behind the name of a pipe that the process that waits for it can write to itself: it holds tokens
# that requests take and put back.
TOKENS = " (tokens)"

MAX_OBJECT_CHARACTERS = 160
MAX_WAITS = 4
MAX_ENGINES = 8
MAX_ENGINE_CHARACTERS = 60
MAX_BYTES = 1024
MAX_CPUS = 32
Spent = Annotated[float, Meta(ge=0, le=1e9, extra={"unit": "s"})]
SHORT = Meta(extra={"schema": {"maxLength": MAX_OBJECT_CHARACTERS}})
Counted = Annotated[int, Meta(ge=0, le=10**15)]


class State(StrEnum):
    """What a request does at one instant.

    The most active thread of its processes decides: the first state in this list wins.
    NOT_OBSERVED is the time that no look at the processes covers.
    """

    ON_CPU = "on_cpu"
    CPU_WAIT = "cpu_wait"
    THROTTLED = "throttled"
    DISK = "disk"
    MEMORY = "memory"
    DEVICE = "device"
    FILE_LOCK = "file_lock"
    NETWORK = "network"
    LOCK = "lock"
    PIPE = "pipe"
    SLEEP = "sleep"
    CHILD = "child"
    IDLE = "idle"
    NOT_OBSERVED = "not_observed"

    # Enum's own hash is Python code, and each request looks up states some hundred times.
    __hash__ = str.__hash__


@dataclass(frozen=True, slots=True)
class Wait:
    """Seconds in one state because of one object: a path, host:port or a device; "" if unknown."""

    state: State
    object: Annotated[str, SHORT, "path, host:port or device; empty when it is unknown"]
    seconds: Annotated[Spent, Meta(title="seconds of a wait")]

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.object) > MAX_OBJECT_CHARACTERS or not self.object.isprintable():
            object.__setattr__(self, "object", checks.cut_text(self.object, MAX_OBJECT_CHARACTERS))


@dataclass(frozen=True, slots=True)
class Activity(Document):
    """Where the processes of one request spent its time."""

    document_name = "the activity"
    always = frozenset({"seconds"})

    seconds: Annotated[dict[State, Spent], "by state; they sum to the run time of the program."]
    waits: Annotated[
        tuple[Wait, ...],
        Meta(max_length=MAX_WAITS),
        "the longest waits for one object, the longest first, at most 4.",
    ] = ()
    cpu_s: Annotated[
        Spent, "CPU time of all processes of the request that were waited for, user and system."
    ] = 0.0
    memory_bytes: Annotated[
        Counted,
        "largest resident memory of one of them; never less than the worker that started it.",
    ] = 0
    read_blocks: Annotated[Counted, "of 512 bytes, from and to block devices."] = 0
    written_blocks: Annotated[Counted, "of 512 bytes, from and to block devices."] = 0
    major_faults: Annotated[Counted, "pages that were read from a disk."] = 0
    switches: Annotated[Counted, "how often a process gave up its CPU to wait."] = 0
    involuntary_switches: Annotated[Counted, "how often the kernel took it away."] = 0
    throttled_s: Annotated[
        Spent,
        "seconds that the container's CPU limit kept its processes off the CPUs, while this "
        "request ran.",
    ] = 0.0
    waited_before_s: Annotated[
        Spent,
        "seconds that the worker itself waited for a CPU before this request, to send its last "
        "reply and to take this one.",
    ] = 0.0
    cpus: Annotated[
        tuple[Counted, ...],
        Meta(max_length=MAX_CPUS),
        "CPUs that its processes are pinned to, where these are not all of the machine.",
    ] = ()
    engines: Annotated[
        dict[str, Spent],
        Meta(extra={"schema": {"maxProperties": MAX_ENGINES}}),
        "seconds that its processes kept the engines of devices busy, by the device's PCI "
        'address and the kind of engine ("0000:03:00.0 video"); of a kind of which a device '
        "has two, half the sum of both.",
    ] = field(default_factory=dict)
    device_memory_bytes: Annotated[
        Counted, "most memory that its processes had on devices at one time."
    ] = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.engines:
            object.__setattr__(
                self,
                "engines",
                {
                    checks.cut_text(name, MAX_ENGINE_CHARACTERS): busy_s
                    for name, busy_s in self.engines.items()
                },
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values without zeros, seconds with 4 decimals, at most 1 KB as JSON.

        To fit, the shortest waits are left out first, so that an object has the same name in all
        requests. If one wait alone is too long, its name loses its middle. At most 8 engines are
        kept, the busiest; if these alone are too much, no waits and fewer engines.
        """
        seconds = {str(state): round(self.seconds.get(state, 0.0), 4) for state in State}
        fields: dict[str, Any] = {
            "seconds": {name: number for name, number in seconds.items() if number}
        }
        numbers = [member.name for member in document_members(Activity) if member.default == 0]
        for name in numbers:
            if number := round(getattr(self, name), 4):
                fields[name] = number
        if self.cpus:
            fields["cpus"] = list(self.cpus)
        rounded = ((name, round(busy_s, 4)) for name, busy_s in self.engines.items())
        busiest = heapq.nlargest(MAX_ENGINES, filter(itemgetter(1), rounded), key=itemgetter(1))
        # what is left out to fit, step by step: so many waits stay, with names of such a length,
        # and so many engines
        lengths = [(count, MAX_OBJECT_CHARACTERS) for count in range(len(self.waits), 0, -1)]
        lengths += [(1, length) for length in _NAME_LENGTHS]
        bounds = [(*length, MAX_ENGINES) for length in lengths]
        bounds += [(0, 0, count) for count in range(len(busiest), 0, -1)]
        for wait_count, name_length, engine_count in bounds:
            bounded = dict(fields)
            if self.waits[:wait_count]:
                bounded["waits"] = [
                    {
                        "state": wait.state.value,
                        "object": checks.cut_text(wait.object, name_length),
                        "seconds": round(wait.seconds, 4),
                    }
                    for wait in self.waits[:wait_count]
                ]
            if busiest:
                bounded["engines"] = dict(busiest[:engine_count])
            if len(msgspec.json.encode(bounded)) <= MAX_BYTES:
                return bounded
        return fields
