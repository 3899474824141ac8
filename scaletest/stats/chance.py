"""The random numbers that resampling and simulations draw."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

_T = TypeVar("_T")


class Chance(Protocol):
    """The part of random.Random that resampling and simulations use."""

    def choice(self, seq: Sequence[_T], /) -> _T:
        """Draw a member of the sequence, each equally likely."""

    def expovariate(self, lambd: float, /) -> float:
        """Draw an exponential variable with this rate."""

    def gauss(self, mu: float, sigma: float, /) -> float:
        """Draw a normal variable."""

    def lognormvariate(self, mu: float, sigma: float, /) -> float:
        """Draw a log-normal variable."""

    def random(self) -> float:
        """Draw a uniform variable from 0 to 1, 1 excluded."""
