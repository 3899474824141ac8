"""The plan of a search for saturation, and the record of each of its steps. Pure, without I/O."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue
from scaletest.model.machine_use import MachineUse

KIND = "saturation"
MOST_RATE = 100_000.0
MOST_PARALLEL = 20_000
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_LIMIT = re.compile(r"(p50|p90|p95|p99)\s*<=?\s*(\d+(?:\.\d+)?)\s*(us|ms|s)")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


class LoadKind(StrEnum):
    """open: requests start when they are due; closed: N are kept in flight."""

    OPEN = "open"
    CLOSED = "closed"


class Mode(StrEnum):
    """search: find the saturation point. sweep: measure fixed levels (the original tool's
    autoScaling: false).
    """

    SEARCH = "search"
    SWEEP = "sweep"


class Phase(StrEnum):
    """Why a step is measured."""

    WARM = "warm"
    RAMP = "ramp"
    BISECT = "bisect"
    CONFIRM = "confirm"
    SWEEP = "sweep"
    OPERATE = "operate"


@dataclass(frozen=True, slots=True)
class SaturationPlan:
    """Levels are requests a second for open load, requests in flight for closed load.

    target: the service or queue, as people name it, without secrets.
    start: first level, 0: found by the warm-up probe. maximum: highest level, 0: no limit.
    factor: from one level of the ramp to the next. increment: of a sweep, or of a ramp instead of
    the factor. precision: the search ends when the bracket's ends differ by less than this part.
    most_steps: at most, before the bracket is confirmed. step_s, warm_s: seconds of a step, and of
    the single-thread probe before. count: requests of a step, 0: the step ends by time.
    confirm: how often the ends of the bracket are measured again, at most. repeats: of every level
    of a sweep. success: part of the requests that must succeed. limit: of a percentile, as
    "p95<200ms", or "". wanted: the saturation point that is required, in requests a second, 0:
    none.
    poisson: whether requests start at random times.
    """

    target: str
    load: str = LoadKind.OPEN
    mode: str = Mode.SEARCH
    start: float = 0.0
    maximum: float = 0.0
    factor: float = 2.0
    increment: float = 0.0
    precision: float = 0.02
    most_steps: int = 12
    confirm: int = 2
    repeats: int = 1
    step_s: float = 10.0
    warm_s: float = 2.0
    operate_s: float = 0.0
    count: int = 0
    success: float = 0.99
    limit: str = ""
    wanted: float = 0.0
    share: float = 0.7
    poisson: bool = True
    seed: int = 0
    timeout_s: float = 30.0
    retries: int = 0
    max_in_flight: int = 1000
    agents: int = 1
    client_name: str = "scaletest"

    def __post_init__(self) -> None:
        LoadKind(self.load), Mode(self.mode)
        for name in ("start", "maximum", "increment", "wanted"):
            checks.number(getattr(self, name), name.replace("_", " "), maximum=MOST_RATE, zero=True)
        if not (math.isfinite(self.factor) and 1.05 <= self.factor <= 10):
            raise InvalidValue(
                f"the ramp's factor is {self.factor}", hint="give a number from 1.05 to 10"
            )
        for name in ("precision", "success", "share"):
            checks.fraction(getattr(self, name), name)
        for name, least, most in _COUNTS:
            checks.count(getattr(self, name), name.replace("_", " "), minimum=least, maximum=most)
        checks.seconds(self.step_s, "step time", maximum=86400.0, zero=False)
        checks.seconds(self.timeout_s, "time-out", maximum=86400.0, zero=False)
        for name in ("warm_s", "operate_s"):
            checks.seconds(getattr(self, name), name, maximum=86400.0)
        if self.maximum and self.start > self.maximum:
            raise InvalidValue(
                f"the first level, {self.start:g}, is above the maximum, {self.maximum:g}",
                hint="give a lower --start",
            )
        if self.limit:
            latency_limit(self.limit)

    @property
    def open(self) -> bool:
        """Whether it is open load."""
        return self.load == LoadKind.OPEN

    @property
    def highest(self) -> float:
        """The highest level that is tried."""
        return self.maximum or (MOST_RATE if self.open else float(self.max_in_flight))

    @property
    def unit(self) -> str:
        """Unit of a level."""
        return "requests/s" if self.open else "in flight"

    @property
    def steps(self) -> tuple[int, ...]:
        """An empty tuple, because levels are chosen while the search runs."""
        return ()

    @property
    def workload(self) -> str:
        """Description of the run, in one line."""
        return f"{self.load} load on {self.target}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, schema version 1."""
        return {"schema_version": wire.SCHEMA_VERSION, "kind": KIND, **asdict(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SaturationPlan:
        """Read what `to_dict` wrote; InvalidValue on anything else."""
        types: dict[str, type | tuple[type, ...]] = {
            "float": (int, float),
            "str": str,
            "int": int,
            "bool": bool,
        }
        kinds = {plan_field.name: types[str(plan_field.type)] for plan_field in fields(cls)}
        try:
            return cls(**wire.take(data, "the plan", kinds))
        except (TypeError, ValueError) as error:
            raise InvalidValue(f"the plan cannot be read: {error}") from error


_COUNTS = (
    ("most_steps", 3, 100),
    ("confirm", 0, 20),
    ("repeats", 1, 1000),
    ("count", 0, 10_000_000),
    ("seed", 0, 1 << 53),
    ("retries", 0, 100),
    ("max_in_flight", 1, MOST_PARALLEL),
    ("agents", 1, 1000),
)


_STEP_FIGURES = (
    "level",
    "seconds",
    "warmup_s",
    "cpu",
    "beat_s",
    "throttled_s",
    "throttled_periods",
)


@dataclass(frozen=True, slots=True)
class SaturationStep:
    """One step that was measured. number: from 0. level: in the load's unit. load: open or closed.

    seconds: from its beginning until no request was due any more; requests that ended later count
    too.
    warmup_s: the beginning that does not count. cpu: cores that each tester process used, at most.
    beat_s: how late the tester's timers fired, 99th percentile. throttled_s: how long the tester's
    CPU limit kept it off the CPUs, summed over CPUs. throttled_periods: part of the limit's periods
    in which it did. unsent: requests that were due and never sent. extra: what else was known of
    the target. around: use of the tester's machine during the step; None when it was not read.
    """

    number: int
    phase: str
    load: str
    level: float
    seconds: float
    requests: int
    warmup_s: float = 0.0
    cpu: float = 0.0
    beat_s: float = 0.0
    throttled_s: float = 0.0
    unsent: int = 0
    began: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    around: MachineUse | None = None
    throttled_periods: float = 0.0

    def to_json(self) -> str:
        """One line of JSON."""
        fields = {**asdict(replace(self, around=None)), "schema_version": wire.SCHEMA_VERSION}
        del fields["around"]
        return wire.dump(
            fields if self.around is None else {**fields, "around": self.around.to_dict()}
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> SaturationStep:
        """Read what `to_json` wrote; InvalidValue on anything else."""
        number = (int, float)
        known: dict[str, type | tuple[type, ...]] = {
            **dict.fromkeys(("number", "requests", "unsent"), int),
            **dict.fromkeys(_STEP_FIGURES, number),
            **dict.fromkeys(("phase", "load", "began"), str),
            "extra": dict,
            "around": dict,
        }
        try:
            fields = wire.take(wire.load(text, "the step"), "the step", known)
            if "around" in fields:
                fields["around"] = MachineUse.from_dict(fields["around"])
            step = cls(**fields)
            Phase(step.phase), LoadKind(step.load)
        except (TypeError, ValueError) as error:
            raise InvalidValue(f"the step cannot be read: {error}") from error
        for name in _STEP_FIGURES:
            checks.seconds(getattr(step, name), name, maximum=1e12)
        return step


def latency_limit(text: str) -> tuple[str, float]:
    """Percentile and seconds of "p95<200ms"; InvalidValue on anything else."""
    match = _LIMIT.fullmatch(text.strip())
    if not match:
        raise InvalidValue(
            f"the latency limit is {checks.cut(text, 40)!r}",
            hint="write a percentile and a time, as in p95<200ms",
        )
    return match[1], float(match[2]) * _UNITS[match[3]]
