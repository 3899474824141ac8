"""A reading of a resource of the node, and the figures of two readings."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ResourceReading:
    """What a resource's files said at one time, by figure."""

    # figures as they are
    levels: Mapping[str, float] = field(default_factory=dict)
    # what only grows, in the figure's unit times seconds; its growth in a second is the figure
    counters: Mapping[str, float] = field(default_factory=dict)
    # two counters, of which the first one's growth in units of the second one's is the figure
    quotients: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def interval_figures(
    before: ResourceReading | None, now: ResourceReading, interval_s: float
) -> dict[str, float]:
    """Return the figures of an interval; a new counter, or one that was reset, gives none."""
    resource_figures = dict(now.levels)
    if before is None or interval_s <= 0:
        return resource_figures
    for name, counter in now.counters.items():
        grown = counter - before.counters.get(name, float("inf"))
        if grown >= 0:
            resource_figures[name] = grown / interval_s
    for name, (counter, unit) in now.quotients.items():
        counter_before, unit_before = before.quotients.get(name, (0.0, float("inf")))
        if counter >= counter_before and unit > unit_before:
            resource_figures[name] = (counter - counter_before) / (unit - unit_before)
    return resource_figures
