"""A measurement: that one step was measured, for how long and why it ended. Its records carry the same two numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Measurement:
    """workers, repeat: which step, counted from 0, it was.

    scale_s: seconds from the order to scale until all workers served the queue.
    measured_s: seconds under load. stop: why it ended, a value of analysis.stopping.Stop.
    requests: how many of its records were written, so that a lost one is noticed; None where that was not counted.
    warm_at_s: from when on it counts, on Redis's clock, by the look that ended it, 0: from the beginning; None where no
    look ended it, or where the plan says.
    """

    workers: int
    repeat: int = 0
    scale_s: float = 0.0
    measured_s: float = 0.0
    stop: str = ""
    requests: int | None = None
    warm_at_s: float | None = None

    def __post_init__(self) -> None:
        checks.count(self.workers, "workers", minimum=1)
        checks.count(self.repeat, "repeat")
        checks.seconds(self.scale_s, "scale_s")
        checks.seconds(self.measured_s, "measured_s")
        if self.requests is not None:
            checks.count(self.requests, "requests")
        if self.warm_at_s is not None:
            checks.number(self.warm_at_s, "warm_at_s", maximum=1e12, zero=True)

    @property
    def key(self) -> tuple[int, int]:
        """Workers and repeat, by which records are found."""
        return self.workers, self.repeat

    def to_json(self) -> str:
        """One line of JSON."""
        return wire.dump({**asdict(self), "schema_version": wire.SCHEMA_VERSION})

    @classmethod
    def from_json(cls, text: str | bytes) -> Measurement:
        """Read what `to_json` wrote; InvalidValue on anything else."""
        number = (int, float)
        data = wire.load(text, "the measurement")
        known: dict[str, type | tuple[type, ...]] = {
            "workers": int,
            "repeat": int,
            "scale_s": number,
            "measured_s": number,
            "stop": str,
            "requests": (int, type(None)),
            "warm_at_s": (*number, type(None)),
        }
        try:
            return cls(**wire.take(data, "the measurement", known))
        except TypeError as error:
            raise InvalidValue(f"the measurement cannot be read: {error}") from error
