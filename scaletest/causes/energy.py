"""Energy that devices used in a step, from their counters."""

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.causes.windows import MeasuredWindow
from scaletest.model.declared import called
from scaletest.model.node_sample import DEVICE, NodeSample
from scaletest.model.writing import Written

ENERGY_J = "energy_j"


@dataclass(frozen=True, slots=True)
class Energy(Written):
    """Energy that a device used in a step, by the difference of its counter."""

    joules: Annotated[float, "the difference of the device's counter"]
    seconds: Annotated[float, "between its two readings"]
    requests: Annotated[float, "of the whole step in these seconds, with fractions"]

    @property
    def per_request_j(self) -> Annotated[float, called("joules_per_request")]:
        """Joules that the device used for each request of the step."""
        return self.joules / self.requests

    @property
    def power_w(self) -> Annotated[float, "the mean, from the counter"]:
        """The mean power, from the counter."""
        return self.joules / self.seconds


def energies(
    node: str, samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow]
) -> tuple[dict[str, Energy], list[str]]:
    """Return the energy of every device with a counter, and a warning for each unusable counter."""
    # device -> (time, joules) of every reading
    readings: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for sample in samples:
        for name, figures in sample.of_kind(DEVICE).items():
            if ENERGY_J in figures:
                readings[name].append((sample.at_s, figures[ENERGY_J]))
    by_name: dict[str, Energy] = {}
    warnings: list[str] = []
    for name in sorted(readings):
        inside = [
            [each for each in readings[name] if window.includes(each[0])] for window in windows
        ]
        # where a counter fell, the difference of its ends is not the energy used
        falls = (
            after[1] < before[1] for part in inside for before, after in itertools.pairwise(part)
        )
        if any(falls):
            warnings.append(
                f"the energy counter of {name} on {node} was reset: no joules are reported"
            )
            continue
        joules, seconds, requests = [], [], []
        for part, window in zip(inside, windows, strict=True):
            if len(part) > 1:
                (first_s, first_j), (last_s, last_j) = part[0], part[-1]
                joules.append(last_j - first_j)
                seconds.append(last_s - first_s)
                requests.append(sum(window.completions.progress((first_s, last_s))))
        if math.fsum(requests) > 0:
            by_name[name] = Energy(math.fsum(joules), math.fsum(seconds), math.fsum(requests))
    return by_name, warnings
