"""Whether the resources of the nodes agree with a cause: it must be busy.

States show where requests spend the added time, resources show from the other side how busy the
resource is. A resource that was not sampled gives no line, and a cause without a line for or
against it stays open.
"""

from dataclasses import replace

from scaletest.causes.causes import Cause, Causes
from scaletest.causes.place_evidence import (
    EVIDENCE,
    FULL_SHARE,
    ComparedResources,
    Evidence,
    slow_device_lines,
)
from scaletest.causes.places import PLACE_TEXTS, cause_sentence
from scaletest.causes.resources import StepResources
from scaletest.causes.slow_member import SlowMember
from scaletest.model import State
from scaletest.model.node_sample import DEVICE

# States in which a wait for a device may hide: its driver waits in user space, or spins there as
# CUDA does, so that each request needs more CPU seconds.
HIDING_STATES = (State.LOCK, State.IDLE, State.SLEEP, State.ON_CPU)

UNPIN_REMEDY = "widen the affinity of the workload (taskset, cpusets, numactl)"


def add_evidence(causes: Causes | None, resources: list[StepResources]) -> Causes | None:
    """Return the causes with the evidence of the resources of the two steps."""
    if causes is None:
        return None
    by_workers = {step.workers: step for step in resources}
    after = by_workers.get(causes.after)
    if after is None:
        return causes
    pair = ComparedResources(by_workers.get(causes.before), after)
    ranked = tuple(_with_evidence(cause, pair, causes) for cause in causes.causes)
    slow = _with_slow_devices(causes.slow, after) if causes.slow else None
    return replace(causes, causes=ranked, slow=slow)


def _with_evidence(cause: Cause, pair: ComparedResources, causes: Causes) -> Cause:
    device_name = _hidden_device(cause, pair, causes)
    if device_name:
        cause = replace(
            cause,
            state=str(State.DEVICE),
            object=device_name,
            sentence=cause_sentence(State.DEVICE, device_name, cause.share, causes.grown_s.value),
            remedy=PLACE_TEXTS[State.DEVICE].remedy,
        )
    find_evidence = EVIDENCE.get(cause.state)
    evidence = find_evidence(pair, cause.object) if find_evidence else Evidence()
    cores = pair.after.cores
    if cause.state == State.CPU_WAIT and cores is not None and 0 < causes.pinned_cpus < cores:
        # more of the other cores would not help
        shared = f"all workers share {causes.pinned_cpus} of {cores:.3g} cores (pinned)"
        evidence = Evidence((shared, *evidence.lines), True, UNPIN_REMEDY)
    lines = evidence.lines
    if evidence.confirmed is False:
        lines = (f"but {lines[0]}", *lines[1:])
    if device_name:
        lines = (*lines, "its driver waits where no call to the device shows")
    return replace(
        cause,
        evidence=lines,
        confirmed=evidence.confirmed,
        remedy=evidence.remedy or cause.remedy,
        of_others=evidence.of_others,
    )


def _hidden_device(cause: Cause, pair: ComparedResources, causes: Causes) -> str:
    """Return the device that a cause truly waits for, where its driver waits in user space.

    "" for none.
    """
    if cause.state not in HIDING_STATES:
        return ""
    if any(other.state == State.DEVICE for other in causes.causes):
        return ""
    device = pair.after.busiest(DEVICE)
    if device is None or device.figures["busy"] < FULL_SHARE:
        return ""
    busy_before = pair.busy_before(DEVICE, device)
    if busy_before is None:
        return ""
    got_busier = device.figures["busy"] - busy_before >= 1.0 - FULL_SHARE
    # one that no request names may be busy for somebody else all the time
    is_named = any(device.name in node.devices for node in pair.after.nodes)
    return device.name if got_busier or (is_named and busy_before >= FULL_SHARE) else ""


def _with_slow_devices(slow: SlowMember, after: StepResources) -> SlowMember:
    """Return a slow device, or the worker that is alone on one, with what makes it slow."""
    lines: list[str] = []
    devices = after.places(DEVICE)
    for device in devices:
        is_it = slow.kind == "device" and device.name == slow.name
        if is_it or f"device {device.name}" in slow.place.split(", "):
            lines += slow_device_lines(device, devices, after)
    return replace(slow, evidence=tuple(lines))
