"""What attribution needs to know of a step, whatever run measured it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from scaletest.model import Measurement, Record
from scaletest.stats.completions import Completions

# (workers, repeat) -> records
Rows = Mapping[tuple[int, int], Sequence[Record]]
# Steps of one run differ by this relative standard deviation for reasons that no interval within a
# step can show.
UNSEEN = 0.01


class HasRate(Protocol):
    """A throughput."""

    @property
    def per_s(self) -> float:
        """Requests per second."""


class MeasuredOnce(Protocol):
    """One measurement of a step."""

    @property
    def measurement(self) -> Measurement:
        """When it was measured, and with how many workers."""

    @property
    def counted(self) -> Sequence[Record]:
        """The records behind its throughput."""

    @property
    def counted_completions(self) -> Completions:
        """The completions of these records."""

    @property
    def throughput(self) -> HasRate:
        """Successful requests per second."""

    @property
    def began_s(self) -> float:
        """When its first request was submitted, by the clock of Redis."""

    @property
    def starved(self) -> object:
        """The worker that others kept waiting; None without one."""


class MeasuredStep(Protocol):
    """One number of workers, all its measurements together."""

    @property
    def workers(self) -> int:
        """Workers, and requests in flight."""

    @property
    def per_device(self) -> int:
        """Workers on each device, in a run that compares that; else 0."""

    @property
    def samples(self) -> Sequence[MeasuredOnce]:
        """Its measurements."""

    @property
    def used_repeats(self) -> Collection[int]:
        """The repeats of the measurements that its throughput uses."""

    @property
    def overhead_share(self) -> float:
        """The part of a request's total time that the tester itself cost."""
