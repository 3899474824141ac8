"""A measurement of one step: how long it took and why it ended.

Its records carry the same number of workers and the same repeat.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Measurement:
    """workers, repeat: the step that was measured, and which of its measurements this is, from 0.

    scale_s: seconds from the request to scale until all workers served the queue.
    measured_s: seconds under load. stop: why it ended, a value of analysis.stopping.Stop.
    requests: how many of its records were written, so that a lost record is noticed; null where
    they were not counted. warm_at_s: when the warm-up ended, on Redis's clock, as the stopping rule
    found it; 0: it had none; null where the stopping rule found none, or where the plan sets the
    warm-up.
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
        """Workers and repeat, which the records carry too."""
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
