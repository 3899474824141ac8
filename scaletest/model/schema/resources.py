"""Use of the nodes in a validation's result: values of `analysis`, which cannot be imported."""

from __future__ import annotations

from scaletest.model.node_sample import FIGURES
from scaletest.model.schema.parts import (
    Schema,
    closed,
    count,
    maybe,
    number,
    one_of,
    rows,
    table,
    text,
)

INTERFERENCE = ("other programs", "steal", "pressure", "heat", "clock", "device")


def resources() -> Schema:
    """The resources of every step that has samples."""
    energy = closed(
        {
            "joules": number("the difference of the device's counter"),
            "seconds": number("between its two readings"),
            "requests": number("of the whole step in these seconds, with fractions"),
            "joules_per_request": number(),
            "power_w": number("the mean, from the counter"),
            "idle_w": maybe(number("power before the first request")),
            "source": text("where the counter was read"),
        }
    )
    node = closed(
        {
            "node": text("its name in replies"),
            "samples": count("samples within the step", 1),
            "resources": table(
                table(number()), f"means by resource and figure; kinds: {', '.join(FIGURES)}"
            ),
            "energy": table(energy, "by the device's name"),
            "cores_busy": maybe(number("cores that run programs or the kernel")),
            "requests_cpu": maybe(number("cores that the requests themselves used")),
            "sources": table(text(), "where the figures of a device were read"),
        }
    )
    step = closed(
        {
            "workers": count("", 1),
            "per_device": count("workers on each device, in a run that compares that; else 0"),
            "cores": maybe(number("of all nodes that served the step")),
            "cores_busy": maybe(number()),
            "joules_per_request": maybe(
                number("of all devices that requests ran on; null where one is unknown")
            ),
            "joules_per_unit": table(number(), "by unit of work: joules per frame, sample or byte"),
            "nodes": rows(node),
        }
    )
    return rows(step, "use of the nodes while a step was measured; empty without samples")


def interference() -> Schema:
    """Disturbances of the run from outside."""
    spell = closed(
        {
            "kind": one_of(INTERFERENCE),
            "node": text(),
            "begin_s": number("on Redis's clock, as in records"),
            "end_s": number(),
            "cost": number("how much of the node it took, a part of 1"),
            "text": text("the disturbance with its figure"),
            "sentence": text("the disturbance with its figure and time"),
        }
    )
    return rows(spell, "disturbances of the run from outside, in the order of time")
