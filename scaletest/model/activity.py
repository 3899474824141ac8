"""Where the processes of one request spent its time.

Seconds by state, the longest waits with their objects, and sums. At every instant a request is in
one state: the state of its most active thread, in the order of `State`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import itemgetter
from typing import Any

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue

MAX_OBJECT_CHARACTERS = 160
MAX_WAITS = 4
MAX_ENGINES = 8
MAX_ENGINE_CHARACTERS = 60
MAX_BYTES = 1024
_MAX_SECONDS = 1e9
_MAX_COUNT = 10**15


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
    object: str
    seconds: float

    def __post_init__(self) -> None:
        checks.seconds(self.seconds, "seconds of a wait", maximum=_MAX_SECONDS)

    @classmethod
    def from_dict(cls, data: Any) -> Wait | None:
        """Read what `Activity.to_dict` wrote; InvalidValue on anything else.

        None for a state that only newer versions know.
        """
        fields = _complete(data, "a wait", {"state": str, "object": str, "seconds": (int, float)})
        if fields["state"] not in _STATES:
            return None
        name = checks.cut(fields["object"], MAX_OBJECT_CHARACTERS)
        return cls(State(fields["state"]), name, float(fields["seconds"]))


@dataclass(frozen=True, slots=True)
class Activity:
    """Where the processes of one request spent its time.

    seconds: by state; they sum to the run time of the program.
    waits: the longest waits for one object, the longest first, at most 4.
    cpu_s: CPU time of all processes of the request that were waited for, user and system.
    memory_bytes: largest resident memory of one of them; never less than the worker that started
    it. read_blocks, written_blocks: of 512 bytes, from and to block devices.
    major_faults: pages that were read from a disk.
    switches: how often a process gave up its CPU to wait.
    involuntary_switches: how often the kernel took it away.
    throttled_s: seconds that the container's CPU limit kept its processes off the CPUs, while this
    request ran.
    engines: seconds that its processes kept the engines of devices busy, by the device's PCI
    address and the kind of
        engine ("0000:03:00.0 video"); of a kind of which a device has two, half the sum of both.
    device_memory_bytes: most memory that its processes had on devices at one time.
    """

    seconds: dict[State, float]
    waits: tuple[Wait, ...] = ()
    cpu_s: float = 0.0
    memory_bytes: int = 0
    read_blocks: int = 0
    written_blocks: int = 0
    major_faults: int = 0
    switches: int = 0
    involuntary_switches: int = 0
    throttled_s: float = 0.0
    engines: dict[str, float] = field(default_factory=dict)
    device_memory_bytes: int = 0

    def __post_init__(self) -> None:
        for state, seconds in self.seconds.items():
            # building the name for a good number would cost more than the check
            if not 0.0 <= seconds <= _MAX_SECONDS:
                checks.seconds(seconds, f"seconds of {state}", maximum=_MAX_SECONDS)
        for name in _SUMS:
            checks.seconds(getattr(self, name), name, maximum=_MAX_SECONDS)
        for name, seconds in self.engines.items():
            checks.seconds(seconds, f"seconds of the engine {name}", maximum=_MAX_SECONDS)
        for name in COUNTS:
            checks.count(getattr(self, name), name, maximum=_MAX_COUNT)
        checks.count(len(self.waits), "the number of waits", maximum=MAX_WAITS)

    def to_dict(self) -> dict[str, Any]:
        """Plain values without zeros, seconds with 4 decimals, at most 1 KB as JSON.

        To fit, the shortest waits are left out first, so that an object has the same name in all
        requests. If one wait alone is too long, its name loses its middle. At most 8 engines are
        kept, the busiest; if these alone are too much, no waits and fewer engines.
        """
        seconds = {
            str(state): round(self.seconds[state], 4) for state in State if state in self.seconds
        }
        fields: dict[str, Any] = {
            "seconds": {name: number for name, number in seconds.items() if number}
        }
        sums = {name: round(getattr(self, name), 4) for name in _SUMS}
        counts = {name: getattr(self, name) for name in COUNTS}
        fields.update({name: number for name, number in {**sums, **counts}.items() if number})
        for waits, engines in self._shorter():
            bounded = dict(fields)
            if waits:
                bounded["waits"] = waits
            if engines:
                bounded["engines"] = engines
            if len(wire.dump(bounded).encode()) <= MAX_BYTES:
                return bounded
        return fields

    def _shorter(self) -> Iterator[tuple[list[dict[str, Any]], dict[str, float]]]:
        """Waits and engines as plain values, shorter each time."""
        rounded = {
            checks.cut(name, MAX_ENGINE_CHARACTERS): round(busy_s, 4)
            for name, busy_s in self.engines.items()
        }
        largest = heapq.nlargest(MAX_ENGINES, rounded.items(), key=itemgetter(1))
        busiest = [(name, busy_s) for name, busy_s in largest if busy_s]
        for count in range(len(self.waits), 0, -1):
            yield (
                [_wait_row(wait, MAX_OBJECT_CHARACTERS) for wait in self.waits[:count]],
                dict(busiest),
            )
        for limit in _CUTS:
            yield [_wait_row(wait, limit) for wait in self.waits[:1]], dict(busiest)
        for count in range(len(busiest), 0, -1):
            yield [], dict(busiest[:count])

    @classmethod
    def from_dict(cls, data: Any) -> Activity:
        """Read what `to_dict` wrote; InvalidValue on anything else.

        States that only newer versions know count as not observed, and waits in them are left out.
        """
        fields = _typed(data, "the activity", _TYPES)
        if "seconds" not in fields:
            raise InvalidValue("the activity lacks seconds")
        waits = [Wait.from_dict(wait) for wait in fields.get("waits", ())]
        sums: dict[str, Any] = {name: float(fields.get(name, 0.0)) for name in _SUMS}
        sums.update({name: fields.get(name, 0) for name in COUNTS})
        engines = {
            checks.cut(name, MAX_ENGINE_CHARACTERS): busy_s
            for name, busy_s in fields.get("engines", {}).items()
        }
        return cls(
            _known(fields["seconds"]),
            tuple(wait for wait in waits if wait),
            **sums,
            engines=engines,
        )


def _wait_row(wait: Wait, limit: int) -> dict[str, Any]:
    return {
        "state": wait.state.value,
        "object": checks.cut(wait.object, limit),
        "seconds": round(wait.seconds, 4),
    }


def _typed(
    data: Any, document: str, types: Mapping[str, type | tuple[type, ...]]
) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise InvalidValue(f"{document} is not a JSON object")
    return wire.take(data, document, types)


def _complete(
    data: Any, document: str, types: Mapping[str, type | tuple[type, ...]]
) -> dict[str, Any]:
    fields = _typed(data, document, types)
    missing = types.keys() - fields.keys()
    if missing:
        raise InvalidValue(f"{document} lacks {', '.join(sorted(missing))}")
    return fields


def _known(data: Mapping[str, Any]) -> dict[State, float]:
    """Seconds by state; states that only newer versions know count as not observed."""
    seconds: dict[State, float] = {}
    for name, spent_s in data.items():
        state = State(name) if name in _STATES else State.NOT_OBSERVED
        label = f"seconds of {checks.cut(repr(name), 60)}"
        seconds[state] = seconds.get(state, 0.0) + checks.seconds(
            spent_s, label, maximum=_MAX_SECONDS
        )
    return seconds


_STATES = frozenset(State)
COUNTS = (
    "memory_bytes",
    "read_blocks",
    "written_blocks",
    "major_faults",
    "switches",
    "involuntary_switches",
    "device_memory_bytes",
)
_SUMS = ("cpu_s", "throttled_s")
# Lengths of an object's name, tried until the activity fits; without objects it always fits.
_CUTS = (120, 90, 60, 40, 20)
_TYPES: dict[str, type | tuple[type, ...]] = {
    "seconds": dict,
    "waits": list,
    "engines": dict,
    **dict.fromkeys(_SUMS, (int, float)),
    **dict.fromkeys(COUNTS, int),
}
