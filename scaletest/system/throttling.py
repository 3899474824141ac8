"""How long a CPU limit held this container's processes back, for both versions of cgroups."""

from __future__ import annotations

from pathlib import Path

from scaletest.system import control_groups, proc
from scaletest.system.control_groups import CGROUPS, OWN


class Throttling:
    """Counts from its creation, for the limits at that time; reads nothing without a limit."""

    def __init__(self, root: Path = CGROUPS, own: Path = OWN) -> None:
        self._files = limited(root, own)
        self._began_s = self._sum_s()
        self._periods = [_periods(path) for path in self._files]

    def seconds(self) -> float:
        """Throttled seconds since creation, summed over CPUs; nested limits add up."""
        return max(0.0, self._sum_s() - self._began_s)

    def part(self) -> float:
        """Share of throttled periods since creation, of the limit with the highest share."""
        now = [_periods(path) for path in self._files]
        return max(
            (_part(before, after) for before, after in zip(self._periods, now, strict=True)),
            default=0.0,
        )

    def _sum_s(self) -> float:
        return sum(_throttled_s(path) for path in self._files)


def limited(root: Path, own: Path) -> list[str]:
    """The cpu.stat of every control group around us that has a CPU limit."""
    try:
        around = control_groups.folders(control_groups.CPU, root, own)
        return [
            str(folder / "cpu.stat")
            for folder in around
            if control_groups.cpu_limit(folder) is not None
        ]
    except OSError:  # a folder that may not even be looked for
        return []


def _periods(path: str) -> tuple[int, int]:
    """In how many it was held back, and how many there were."""
    try:
        rows = proc.parse_table(proc.read_all(path))
    except OSError:
        rows = {}
    return rows.get("nr_throttled", 0), rows.get("nr_periods", 0)


def _part(before: tuple[int, int], after: tuple[int, int]) -> float:
    held, periods = after[0] - before[0], after[1] - before[1]
    return min(1.0, held / periods) if held > 0 and periods > 0 else 0.0


def _throttled_s(path: str) -> float:
    try:
        throttled = proc.parse_limited(proc.read_all(path))
    except OSError:
        return 0.0
    return throttled[1] if throttled else 0.0
