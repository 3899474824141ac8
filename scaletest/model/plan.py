"""A plan: everything a validation needs to know before it starts, checked as a whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue

MAX_WORKERS = 100_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What a validation does.

    limit: the largest number of workers; the steps are 1, 2, 4, ... and the limit itself.
    scale: the ratio of throughput wanted from every doubling.
    seconds: expected run time of one request: the sleep length for sleep, an estimate for a command.
    step_s: seconds of measuring in each step; 0 lets `seconds` decide.
    command: the workload's program and arguments; empty for sleep.
    tolerate_failures: failed requests that do not fail the run.
    """

    limit: int = 8
    scale: float = 1.8
    seconds: float = 1.0
    step_s: float = 0.0
    queue: str = "validate"
    command: tuple[str, ...] = ()
    device_glob: str = ""
    time_limit_s: float = 0.0
    tolerate_failures: int = 0

    def __post_init__(self) -> None:
        checks.count(self.limit, "limit", minimum=1, maximum=MAX_WORKERS)
        checks.queue_name(self.queue)
        checks.arguments(self.command)
        checks.seconds(self.seconds, "seconds")
        checks.seconds(self.step_s, "step time")
        checks.seconds(self.time_limit_s, "time limit")
        checks.count(self.tolerate_failures, "tolerated failures")
        if isinstance(self.scale, bool) or not isinstance(self.scale, int | float) or not 1.0 <= self.scale <= 2.0:
            raise InvalidValue(f"scale is {self.scale!r}", hint="give the ratio wanted per doubling, from 1 to 2")

    @property
    def steps(self) -> tuple[int, ...]:
        """Numbers of workers: 1, 2, 4, ... and the limit even when it is no power of two."""
        counts = [1]
        while counts[-1] * 2 <= self.limit:
            counts.append(counts[-1] * 2)
        if counts[-1] != self.limit:
            counts.append(self.limit)
        return tuple(counts)

    @property
    def measure_s(self) -> float:
        """Seconds of measuring a step: ten requests a worker, at least 5 s, unless `step_s` says otherwise."""
        return self.step_s or max(5.0, 10.0 * self.seconds)

    @property
    def estimate_s(self) -> float:
        """Expected seconds of the whole run: measuring, one request of warm-up and one of drain a step, scaling."""
        return len(self.steps) * (self.measure_s + 2.0 * self.seconds + 1.0) + 0.2 * self.limit

    @property
    def workload(self) -> str:
        """The workload in words."""
        return " ".join(self.command) if self.command else f"sleep {self.seconds:g}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, schema version 1."""
        return {"schema_version": wire.SCHEMA_VERSION, **asdict(self), "command": list(self.command)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Plan:
        """Read what `to_dict` wrote; InvalidValue on anything else."""
        number = (int, float)
        row = wire.take(
            data,
            "the plan",
            {
                "limit": int,
                "scale": number,
                "seconds": number,
                "step_s": number,
                "queue": str,
                "command": list,
                "device_glob": str,
                "time_limit_s": number,
                "tolerate_failures": int,
            },
        )
        return cls(**{**row, "command": tuple(row.get("command", ()))})
