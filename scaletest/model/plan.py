"""The plan of a validation, checked as a whole before it starts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from scaletest.model import checks, threshold, wire
from scaletest.model.errors import InvalidValue
from scaletest.model.presets import POLICIES, preset

MAX_WORKERS = 100_000
MIRRORED, ASCENDING = "mirrored", "ascending"
ORDERS = (MIRRORED, ASCENDING)


@dataclass(frozen=True, slots=True)
class Background:
    """Constant load on another queue during all steps: `parallel` requests for `workers` workers.

    seconds: expected run time of one request: the sleep length for sleep, an estimate for a
    command.
    command: the workload's program and arguments; empty for sleep.
    """

    name: str
    workers: int = 1
    parallel: int = 1
    seconds: float = 1.0
    command: tuple[str, ...] = ()
    device_glob: str = ""
    time_limit_s: float = 0.0

    def __post_init__(self) -> None:
        checks.queue_name(self.name)
        checks.count(self.workers, "background workers", minimum=1, maximum=MAX_WORKERS)
        checks.count(self.parallel, "background parallel", minimum=1)
        checks.arguments(self.command)
        checks.seconds(self.seconds, "background seconds")
        checks.seconds(self.time_limit_s, "background time limit")

    @property
    def workload(self) -> str:
        """The command, or sleep with its seconds, as one text."""
        if self.command:
            return " ".join(self.command)
        return f"sleep {self.seconds:g}"

    @classmethod
    def from_dict(cls, data: Any) -> Background:
        """Read what `asdict` wrote; InvalidValue on anything else."""
        if not isinstance(data, dict) or "name" not in data:
            raise InvalidValue("a background queue of the plan has no name", hint="name each queue")
        fields = wire.take(
            data,
            "the background queue",
            {
                "name": str,
                "workers": int,
                "parallel": int,
                "seconds": (int, float),
                "command": list,
                "device_glob": str,
                "time_limit_s": (int, float),
            },
        )
        return cls(**{**fields, "command": tuple(fields.get("command", ()))})


@dataclass(frozen=True, slots=True)
class Plan:
    """What a validation does.

    limit: the largest number of workers; the steps are 1, 2, 4, ... and the limit itself.
    scale: the ratio of throughput that every doubling must reach.
    seconds: expected run time of one request: the sleep length for sleep, an estimate for a
    command.
    step_s: seconds of measuring in each step; 0: as long as the verdict needs.
    precision: relative half-width of a step's throughput at which it is measured precisely enough.
    max_step_s: seconds after which a step ends in any case; 0: 60 s, or the time of 30 requests if
    that is longer.
    warmup_s: seconds at the beginning of each step that do not count; None: they are found from the
    data.
    command: the workload's program and arguments; empty for sleep.
    queue: name of the queue, generated for every run.
    device_glob: device files; worker N uses the N-th and starts again after the last, unless
    per_device is set.
    preset: devices of one vendor, and the environment that restricts its libraries to one of them.
    per_device: workers that share one device, each with a leased slot; several numbers are
    compared, with all devices full, and the steps are then these numbers times the devices.
    device_policy: which device a worker gets a slot of: first, balanced or packed.
    devices: how many there are, counted when the run begins; 0 where they were not counted.
    time_limit_s: seconds after which a request is ended; 0: never.
    tolerate_failures: failed requests that do not fail the run.
    order: mirrored measures every step in two parts, with 1, 2, 4, ... workers and then with ...,
    4, 2, 1, so that a machine that slows down or speeds up steadily changes no ratio; ascending
    measures it once.
    repeats: how often every step is measured, in blocks of shuffled order; with more than 1,
    `order` is ignored.
    seed: of that shuffled order.
    thresholds: further conditions of a PASS, as in efficiency(8)>=0.8.
    background: load on other queues, present during every step and reported separately.
    """

    limit: int = 8
    scale: float = 1.8
    seconds: float = 1.0
    step_s: float = 0.0
    precision: float = 0.02
    max_step_s: float = 0.0
    warmup_s: float | None = None
    queue: str = "validate"
    command: tuple[str, ...] = ()
    device_glob: str = ""
    preset: str = ""
    per_device: tuple[int, ...] = ()
    device_policy: str = "balanced"
    devices: int = 0
    time_limit_s: float = 0.0
    tolerate_failures: int = 0
    # the command line's default is mirrored; plans stored before there was an order are ascending
    order: str = ASCENDING
    repeats: int = 1
    seed: int = 0
    thresholds: tuple[str, ...] = ()
    background: tuple[Background, ...] = ()

    def __post_init__(self) -> None:
        checks.count(self.limit, "limit", minimum=1, maximum=MAX_WORKERS)
        checks.queue_name(self.queue)
        checks.arguments(self.command)
        checks.seconds(self.seconds, "seconds")
        checks.seconds(self.step_s, "step time")
        checks.seconds(self.max_step_s, "longest step")
        self._check_warmup()
        checks.fraction(self.precision, "precision")
        self._check_devices()
        checks.one_of(self.order, ORDERS, "order")
        checks.count(self.repeats, "repeats", minimum=1, maximum=1000)
        checks.count(self.seed, "seed")
        if len({queue.name for queue in self.background}) < len(self.background):
            raise InvalidValue(
                "two background queues have the same name", hint="give each a name of its own"
            )
        checks.seconds(self.time_limit_s, "time limit")
        checks.count(self.tolerate_failures, "tolerated failures")
        if (
            isinstance(self.scale, bool)
            or not isinstance(self.scale, int | float)
            or not 1.0 <= self.scale <= 2.0
        ):
            raise InvalidValue(
                f"scale is {self.scale!r}", hint="give the ratio wanted per doubling, from 1 to 2"
            )
        for text in self.thresholds:
            if threshold.parse(text, self.steps).metric == "ratio" and self.compares:
                raise InvalidValue(
                    "a run that compares numbers of workers per device has no ratio",
                    hint="leave the threshold out",
                )

    def _check_warmup(self) -> None:
        if self.warmup_s is None:
            return
        checks.seconds(self.warmup_s, "warm-up")
        longest_s = self.step_s + self.seconds if self.step_s else self.longest_s
        if self.warmup_s >= longest_s:
            raise InvalidValue(
                f"the warm-up of {self.warmup_s:g} s leaves nothing of a step of {longest_s:g} s",
                hint="give a shorter --warmup, or a longer --max-step or --step-time",
            )

    def _check_devices(self) -> None:
        checks.count(self.devices, "devices")
        if self.preset:
            preset(self.preset)
        checks.one_of(self.device_policy, POLICIES, "device policy")
        if self.per_device:
            self._check_sharing()

    def _check_sharing(self) -> None:
        for count in self.per_device:
            checks.count(count, "workers per device", minimum=1, maximum=MAX_WORKERS)
        if list(self.per_device) != sorted(set(self.per_device)):
            raise InvalidValue(
                f"workers per device are {' '.join(map(str, self.per_device))}",
                hint="give each number once, the smallest first, as in --per-device 1,2,4",
            )
        if not self.device_glob and not self.preset:
            raise InvalidValue(
                "there is no device to share", hint="add --device-glob GLOB or --preset NAME"
            )
        slots = self.per_device[-1] * self.devices
        if self.devices and not self.compares and self.limit > slots:
            devices = "1 device" if self.devices == 1 else f"{self.devices} devices"
            raise InvalidValue(
                f"{self.limit} workers do not fit into {slots} slots of {devices}",
                hint=f"give --limit {slots}, or more workers with --per-device",
            )

    @property
    def mirrored(self) -> bool:
        """Whether every step is measured on the way up and again on the way down."""
        return self.order == MIRRORED and self.repeats == 1

    @property
    def parts(self) -> int:
        """Number of parts of a step's time."""
        return 2 if self.mirrored else 1

    @property
    def compares(self) -> bool:
        """Whether the steps compare numbers of workers per device."""
        return len(self.per_device) > 1

    def share(self, workers: int) -> int:
        """Workers per device in the step with this many workers; 0 when no slots are leased."""
        if self.compares:
            return workers // max(1, self.devices)
        return self.per_device[0] if self.per_device else 0

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of workers: 1, 2, 4, ... and the limit, also when it is not a power of two.

        In a run that compares numbers of workers per device: each number times the devices.
        """
        if self.compares:
            return tuple(count * max(1, self.devices) for count in self.per_device)
        counts = [1]
        while counts[-1] * 2 <= self.limit:
            counts.append(counts[-1] * 2)
        if counts[-1] != self.limit:
            counts.append(self.limit)
        return tuple(counts)

    @property
    def longest_s(self) -> float:
        """Seconds after which a step without a fixed length ends in any case."""
        return self.max_step_s or _longest_s(self.seconds)

    @property
    def longest_part_s(self) -> float:
        """Seconds after which the first part of a step ends; longer steps have further parts.

        Each part of a mirrored step has a warm-up of its own.
        """
        if not self.mirrored:
            return self.longest_s
        warmup_s = self.warmup_s or 0.0
        return (min(self.longest_s, _longest_s(self.seconds) + warmup_s) + warmup_s) / 2

    @property
    def fixed_part_s(self) -> float:
        """Seconds of each part of a step of fixed length, including the first request, a warm-up.

        Each part of a mirrored step has a warm-up of its own.
        """
        return (self.step_s + (self.parts - 1) * (self.warmup_s or 0.0)) / self.parts + self.seconds

    @property
    def workload(self) -> str:
        """The command, or sleep with its seconds."""
        if self.command:
            return " ".join(self.command)
        return f"sleep {self.seconds:g}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, schema version 1."""
        lists = {
            name: list(getattr(self, name)) for name in ("command", "thresholds", "per_device")
        }
        fields = {**asdict(self), **lists}
        fields["background"] = [
            {**asdict(queue), "command": list(queue.command)} for queue in self.background
        ]
        return {"schema_version": wire.SCHEMA_VERSION, **fields}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Plan:
        """Read what `to_dict` wrote; InvalidValue on anything else."""
        number = (int, float)
        fields = wire.take(
            data,
            "the plan",
            {
                "limit": int,
                "scale": number,
                "seconds": number,
                "step_s": number,
                "precision": number,
                "max_step_s": number,
                "warmup_s": (int, float, type(None)),
                "queue": str,
                "command": list,
                "device_glob": str,
                "preset": str,
                "per_device": list,
                "device_policy": str,
                "devices": int,
                "time_limit_s": number,
                "tolerate_failures": int,
                "order": str,
                "repeats": int,
                "seed": int,
                "thresholds": list,
                "background": list,
            },
        )
        fields["background"] = tuple(
            Background.from_dict(queue) for queue in fields.get("background", ())
        )
        lists = {
            name: tuple(fields.get(name, ())) for name in ("command", "thresholds", "per_device")
        }
        return cls(**{**fields, **lists})


def _longest_s(seconds: float) -> float:
    """The longest time of a step with requests of this length, unless the plan sets it."""
    return max(60.0, 30.0 * seconds)
