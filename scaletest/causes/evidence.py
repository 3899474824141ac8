"""Whether the resources of the nodes agree with a cause: it must be busy.

States show where requests spend the added time, resources show from the other side how busy the
resource is. Each place has its own questions. A resource that was not sampled gives no line, and a
cause without a line for or against it stays open.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain

from scaletest.causes.causes import Cause, Causes
from scaletest.causes.places import GAP, PLACE_TEXTS, cause_sentence, seconds_text
from scaletest.causes.resource_texts import cores_text, on_node, unlike_nodes
from scaletest.causes.resources import NodeResource, StepResources
from scaletest.model import State
from scaletest.model.node_sample import CONTAINER, CPU, DEVICE, DISK, MEMORY, NETWORK, PRESSURE

# A resource is full from the first part of its time on, and has room below the second.
FULL, ROOM = 0.9, 0.5
# Disks slow down long before they are always busy.
DISK_FULL, DISK_ROOM = 0.8, 0.2
# Pressure that confirms a cause, and so little of it that it contradicts.
PRESSED, UNPRESSED = 0.2, 0.05
# A container is throttled in this part of its periods, or in hardly any.
THROTTLED, UNTHROTTLED = 0.1, 0.02
# Clocks that fell by this part, and steal of this part of the cores, slow requests down.
CLOCK_FELL, STOLEN = 0.05, 0.03
# Below this part of its highest clock, or throttled for this part of the time, a device is slow.
LOW_CLOCK, SLOWED = 0.8, 0.5
# Cores that other programs use are worth a line from this part on.
OTHERS = 0.2
FREE_CORES = "stop the other programs, then add cores or lower <limit>"
UNPIN = "widen the affinity of the workload (taskset, cpusets, numactl)"
SLOW_REMEDY = "cool the device, raise its power limit or its clock, or measure without it"
# States in which a wait for a device may hide: its driver waits in user space, or spins there as
# CUDA does, so that each request needs more CPU seconds.
HIDING = (State.LOCK, State.IDLE, State.SLEEP, State.ON_CPU)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Measurements about a cause."""

    lines: tuple[str, ...] = ()  # the most telling first
    confirmed: bool | None = None  # None for open
    remedy: str = ""  # "" for that of the place
    of_others: bool = False  # whether other programs or the tester took most of the resource


@dataclass(frozen=True, slots=True)
class ComparedResources:
    """The resources in the two steps that are compared."""

    before: StepResources | None  # None where nothing was sampled then
    after: StepResources

    def was(self, figure: Callable[[StepResources], float | None]) -> float | None:
        """Return a figure of the first step."""
        return figure(self.before) if self.before else None

    def earlier(self, kind: str, place: NodeResource) -> float | None:
        """Return the part of the time in which a disk or a device was busy in the first step."""
        same = self.before.place(kind, place.node, place.name) if self.before else None
        return same.figures.get("busy") if same else None


def add_evidence(causes: Causes | None, used: list[StepResources]) -> Causes | None:
    """Return the causes with the evidence of the resources of the two steps."""
    if causes is None:
        return None
    by_workers = {step.workers: step for step in used}
    after = by_workers.get(causes.after)
    if after is None:
        return causes
    pair = ComparedResources(by_workers.get(causes.before), after)
    ranked = tuple(_supported(cause, pair, causes) for cause in causes.causes)
    slow = causes.slow
    if slow:
        # differences of the slow device or node, or of the place of the slow worker
        name = slow.name
        lines: list[str] = []
        places = pair.after.places(DEVICE)
        if slow.kind == "node" or f"node {name}" in slow.place:
            lines += [
                line for line in unlike_nodes(pair.after.nodes) if line.startswith(f"{name}: ")
            ]
        for device in places:
            if (
                slow.kind == "device" and device.name == name
            ) or f"device {device.name}" in slow.place.split(", "):
                lines += _slow_device(device, places, pair.after)
        slow = replace(slow, evidence=tuple(lines))
    return replace(causes, causes=ranked, slow=slow)


def _supported(cause: Cause, pair: ComparedResources, causes: Causes) -> Cause:
    hidden = _hidden(cause, pair, causes)
    cause = hidden or cause
    evidence = EVIDENCE[cause.state](pair, cause.object) if cause.state in EVIDENCE else Evidence()
    if cause.state == State.CPU_WAIT and causes.pinned_cpus:
        evidence = _pinned(causes.pinned_cpus, pair, evidence)
    lines = evidence.lines
    if evidence.confirmed is False:
        lines = (f"but {lines[0]}", *lines[1:])
    if hidden:
        lines = (*lines, "its driver waits where no call to the device shows")
    return replace(
        cause,
        evidence=lines,
        confirmed=evidence.confirmed,
        remedy=evidence.remedy or cause.remedy,
        of_others=evidence.of_others,
    )


def _hidden(cause: Cause, pair: ComparedResources, causes: Causes) -> Cause | None:
    """Return the cause as a wait for a device whose driver waits in user space.

    None where it is not.
    """
    if cause.state not in HIDING or any(other.state == State.DEVICE for other in causes.causes):
        return None
    device = pair.after.busiest(DEVICE)
    if device is None or device.figures["busy"] < FULL:
        return None
    before = pair.earlier(DEVICE, device)
    if before is None:
        return None
    # one that no request names may be busy for somebody else all the time
    full_before = before >= FULL and any(device.name in node.devices for node in pair.after.nodes)
    if not full_before and device.figures["busy"] - before < 1.0 - FULL:
        return None
    return replace(
        cause,
        state=str(State.DEVICE),
        object=device.name,
        sentence=cause_sentence(State.DEVICE, device.name, cause.share, causes.grown_s.value),
        remedy=PLACE_TEXTS[State.DEVICE].remedy,
    )


def _cpu_wait(pair: ComparedResources, _: str) -> Evidence:
    after, cores, busy = pair.after, pair.after.cores, pair.after.cores_busy
    stolen = after.total(CPU, "steal") or 0.0
    pressure = after.highest(PRESSURE, "cpu_some")
    rest = [
        *_others(after),
        *_steal(pair),
        *_pressure(pair, "cpu_some"),
        *unlike_nodes(after.nodes),
    ]
    if not cores or busy is None:
        return Evidence(tuple(rest), _confirmed(_pressed(pressure)))
    taken = (busy + stolen) / cores
    line = _busy_line(pair, busy, cores)
    if taken < ROOM and not _one_full(after):
        return Evidence(
            (f"only {line}", *rest),
            False,
            "there are idle cores: look for CPU pinning (taskset, cpusets) or a CPU limit",
        )
    full = _confirmed(taken >= FULL or _one_full(after) or _pressed(pressure))
    own = after.requests_cpu
    if own is not None and own < busy - own and _others(after):
        others, *rest = rest
        return Evidence((f"{line}, {others}", *rest), full, FREE_CORES, of_others=full is True)
    return Evidence((line, *rest), full)


def _pinned(cpus: int, pair: ComparedResources, usual: Evidence) -> Evidence:
    """Evidence about the CPUs that requests are pinned to: more of others would not help them."""
    cores = pair.after.cores
    if cores is None or cpus >= cores:
        return usual
    return Evidence(
        (f"all workers share {_cores(cpus)} of {cores:.3g} (pinned)", *usual.lines), True, UNPIN
    )


def _throttled(pair: ComparedResources, _: str) -> Evidence:
    part, limit, used = (
        pair.after.highest(CONTAINER, name)
        for name in ("throttled_periods", "cpu_limit", "cpu_used")
    )
    if part is None:
        return Evidence()
    container = " is" if limit is None else f"'s limit is {_cores(limit)},"
    before = _before(pair.was(lambda step: step.highest(CONTAINER, "throttled_periods")))
    lines = [f"the container{container} throttled in {part:.0%} of its periods{before}"]
    lines += [] if used is None else [f"it uses {_cores(used)}"]
    return Evidence(tuple(lines), _confirmed(part >= THROTTLED, part < UNTHROTTLED))


def _disk(pair: ComparedResources, _: str) -> Evidence:
    disk, pressure = pair.after.busiest(DISK), pair.after.highest(PRESSURE, "io_some")
    rest = _pressure(pair, "io_some")
    if disk is None:
        return Evidence(tuple(rest), _confirmed(_pressed(pressure)))
    busy, earlier = disk.figures["busy"], _before(pair.earlier(DISK, disk))
    place = f"{disk.name}{on_node(disk.node, pair.after)}"
    moved = [
        f"{_bytes(disk.figures[name])} {name}"
        for name in ("read", "written")
        if disk.figures.get(name)
    ]
    rest += [f"{place}: {', '.join(moved)}"] if moved else []
    wait_s = disk.figures.get("wait_s")
    rest = [*([f"a read or write there takes {seconds_text(wait_s)}"] if wait_s else []), *rest]
    if busy < DISK_ROOM and (pressure is None or pressure < UNPRESSED):
        return Evidence(
            (f"no disk is busy for more than {busy:.0%} of the time", *rest),
            False,
            "look for a network file system, or a lock of the file system",
        )
    return Evidence(
        (f"{place} is busy for {busy:.0%} of the time{earlier}", *rest),
        _confirmed(busy >= DISK_FULL or _pressed(pressure)),
    )


def _memory(pair: ComparedResources, _: str) -> Evidence:
    after = pair.after
    pressure = after.highest(PRESSURE, "memory_some")
    reclaims = after.highest(CONTAINER, "reclaims")
    swap = [after.highest(MEMORY, name) for name in ("swap_in", "swap_out")]
    lines = _pressure(pair, "memory_some")
    if reclaims:
        lines.append(
            f"memory is reclaimed {reclaims:.1f} times per second because of the container's limit"
        )
    if any(swap):
        lines.append(f"swap: {_bytes(swap[0] or 0.0)} in, {_bytes(swap[1] or 0.0)} out")
    used, limit = after.highest(CONTAINER, "memory_used"), after.highest(CONTAINER, "memory_limit")
    if used is not None and limit:
        lines.append(f"the container uses {used / limit:.0%} of its memory limit")
    calm = pressure is not None and pressure < UNPRESSED and reclaims == 0 and swap == [0.0, 0.0]
    return Evidence(
        tuple(lines), _confirmed(_pressed(pressure) or bool(reclaims) or any(swap), calm)
    )


def _network(pair: ComparedResources, _: str) -> Evidence:
    """Evidence about a link: a full one explains the wait, one with room leaves the peer.

    Nothing of the peer is measured.
    """
    # each way of a network whose speed is known: its place, bytes/s and speed
    links = []
    for network in pair.after.places(NETWORK):
        speed = network.figures.get("speed")
        ways = [network.figures.get(name) for name in ("received", "sent")]
        if speed:
            links += [(network, rate, speed) for rate in ways if rate is not None]
    if not links:
        return Evidence()
    place, rate, speed = max(links, key=lambda link: link[1] / link[2])
    where = f"{place.name}{on_node(place.node, pair.after)} moves {_bytes(rate)} of {_bytes(speed)}"
    dropped = place.figures.get("dropped")
    rest = (f"{dropped:.1f} packets per second are dropped there",) if dropped else ()
    if rate >= FULL * speed:
        return Evidence(
            (f"{where}: a full link", *rest), True, "a faster link, or less data in each request"
        )
    if rate < ROOM * speed:
        return Evidence((f"{where}, so the peer is the limit, not the link", *rest))
    return Evidence((where, *rest))


def _device(pair: ComparedResources, named: str) -> Evidence:
    places = pair.after.places(DEVICE)
    own = [place for place in places if place.name == named] or places
    busy = [place for place in own if "busy" in place.figures]
    slow = list(chain.from_iterable(_slow_device(place, places, pair.after) for place in own))
    if not busy:
        return Evidence(tuple(slow), _confirmed(bool(slow)), SLOW_REMEDY if slow else "")
    device = max(busy, key=lambda place: place.figures["busy"])
    part, earlier = device.figures["busy"], _before(pair.earlier(DEVICE, device))
    only = "only " if part < ROOM and not slow else ""
    where = f"{device.name}{on_node(device.node, pair.after)}"
    line = f"{where} is busy for {only}{part:.0%} of the time{earlier}"
    if slow:
        return Evidence((*slow, line), True, SLOW_REMEDY)
    if only:
        return Evidence(
            (line,), False, "look for a lock in its driver, and for copies to and from the device"
        )
    lines = [line]
    used, total = device.figures.get("memory_used"), device.figures.get("memory_total")
    if used is not None and total:
        lines.append(f"{used / total:.0%} of its memory is used")
    return Evidence(tuple(lines), _confirmed(part >= FULL))


def _slow_device(
    device: NodeResource, all_of_them: list[NodeResource], after: StepResources
) -> list[str]:
    """Lines about a device that is slow by itself, however many share it."""
    where = f"{device.name}{on_node(device.node, after)}"
    throttled, clock = device.figures.get("throttled"), device.figures.get("frequency")
    lines = []
    if throttled is not None and throttled >= SLOWED:
        lines.append(
            f"heat, power or another limit lowers the clock of {where} for {throttled:.0%} of the"
            " time"
        )
    others = [
        place.figures["frequency"]
        for place in all_of_them
        if place != device and "frequency" in place.figures
    ]
    if clock is not None and others and clock < LOW_CLOCK * min(others):
        lines.append(
            f"the clock of {where} is at {clock:.0%} of its highest, at {min(others):.0%} elsewhere"
        )
    elif clock is not None and lines:
        lines.append(f"its clock is at {clock:.0%} of its highest")
    return lines


def _on_cpu(pair: ComparedResources, _: str) -> Evidence:
    """Why equal work may need more CPU seconds: slower clocks, or cores taken by a hypervisor."""
    clock = pair.after.lowest(CPU, "frequency")
    was = pair.was(lambda step: step.lowest(CPU, "frequency"))
    stolen, cores = pair.after.total(CPU, "steal"), pair.after.cores
    lines, signs = [], []
    if stolen is not None and cores and stolen >= STOLEN * cores:
        lines += _steal(pair)
        signs.append("ask for dedicated cores: another machine of the same host uses these")
    if clock is not None and was is not None and clock <= was * (1.0 - CLOCK_FELL):
        lines.append(f"clocks fell to {clock:.0%} of the highest ({was:.0%} before)")
        signs.append(
            "clocks fall as more cores work: compare with a fixed clock rate, and look at cooling"
            " and power"
        )
    if signs:
        return Evidence(tuple(lines), True, signs[0])
    busy = pair.after.cores_busy
    if cores and busy is not None:
        lines.append(_busy_line(pair, busy, cores))
    if clock is not None and stolen is not None:
        lines.append(
            "clocks and steal did not change: caches, memory bandwidth or hyper-threads are left"
        )
    return Evidence(tuple(lines))


def _gap(pair: ComparedResources, _: str) -> Evidence:
    """Idle workers: a client and a Redis on these nodes lack a CPU when all cores are busy."""
    cores, busy = pair.after.cores, pair.after.cores_busy
    if not cores or busy is None:
        return Evidence()
    return Evidence((_busy_line(pair, busy, cores),), _confirmed(busy >= FULL * cores))


EVIDENCE: dict[str, Callable[[ComparedResources, str], Evidence]] = {
    State.ON_CPU: _on_cpu,
    State.CPU_WAIT: _cpu_wait,
    State.THROTTLED: _throttled,
    State.DISK: _disk,
    State.MEMORY: _memory,
    State.DEVICE: _device,
    State.NETWORK: _network,
    GAP: _gap,
}


def _one_full(step: StepResources) -> bool:
    """Whether all cores of one of the nodes are busy, which makes its requests wait."""
    for node in step.nodes:
        busy, cores = node.cores_busy, node.value(CPU, "cores")
        stolen = node.value(CPU, "steal") or 0.0
        if busy is not None and cores and busy + stolen >= FULL * cores:
            return True
    return False


def _steal(pair: ComparedResources) -> list[str]:
    stolen, cores = pair.after.total(CPU, "steal"), pair.after.cores
    if stolen is None or not cores or stolen < STOLEN * cores:
        return []
    was = _before(pair.was(lambda step: step.total(CPU, "steal")), ".1f")
    return [f"the hypervisor takes {cores_text(stolen, cores)}{was}"]


def _others(after: StepResources) -> list[str]:
    """How many busy cores the requests do not use themselves, where that is a notable part."""
    cores, busy, own = after.cores, after.cores_busy, after.requests_cpu
    if not cores or busy is None or own is None or busy - own < OTHERS * cores:
        return []
    return [f"{busy - own:.1f} of them by other programs or scaletest itself"]


def _pressure(pair: ComparedResources, figure: str) -> list[str]:
    part = pair.after.highest(PRESSURE, figure)
    if part is None:
        return []
    return [f"pressure {part:.0%}{_before(pair.was(lambda step: step.highest(PRESSURE, figure)))}"]


def _pressed(pressure: float | None) -> bool:
    """Whether pressure is high. Low pressure alone is not evidence against a resource."""
    return pressure is not None and pressure >= PRESSED


def _confirmed(busy: bool, idle: bool = False) -> bool | None:
    """Whether a cause is confirmed: True for a busy resource, False for an idle one, else None."""
    if busy:
        return True
    return False if idle else None


def _busy_line(pair: ComparedResources, busy: float, cores: float) -> str:
    was = pair.was(lambda step: step.cores_busy)
    return f"{cores_text(busy, cores)} are busy{_before(was, '.1f')}"


def _before(was: float | None, form: str = ".0%") -> str:
    """Return a figure of the first step, in brackets; "" where it is unknown."""
    return "" if was is None else f" ({was:{form}} before)"


def _cores(count: float) -> str:
    return "1 core" if count == 1 else f"{count:.3g} cores"


def _bytes(per_s: float) -> str:
    """Bytes a second with a prefix."""
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if per_s >= size:
            return f"{per_s / size:.3g} {prefix}B/s"
    return f"{per_s:.3g} B/s"
