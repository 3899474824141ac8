"""What resources say of the causes of each place: each has its own questions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scaletest.causes.places import GAP
from scaletest.causes.resources import NodeResource, StepResources, cores_text
from scaletest.model import State
from scaletest.model.node_sample import CONTAINER, CPU, DEVICE, DISK, MEMORY, NETWORK, PRESSURE
from scaletest.render.numbers import format_quantity

# A resource is full from the first share of its time on, and has room below the second.
FULL_SHARE, ROOM_SHARE = 0.9, 0.5
# Disks slow down long before they are always busy.
DISK_FULL_SHARE, DISK_ROOM_SHARE = 0.8, 0.2
# Pressure that confirms a cause, and so little of it that it contradicts.
HIGH_PRESSURE, LOW_PRESSURE = 0.2, 0.05
# A container is throttled in this share of its periods, or in hardly any.
THROTTLED_SHARE, UNTHROTTLED_SHARE = 0.1, 0.02
# Clocks that fell by this part, and steal of this part of the cores, slow requests down.
CLOCK_FALL, STOLEN_PART = 0.05, 0.03
# Below this part of the clock of others, or with a lowered clock for this share of the time, a
# device is slow.
LOW_CLOCK, LOWERED_SHARE = 0.8, 0.5
# Cores that other programs use are worth a line from this part of all cores on.
OTHERS_PART = 0.2
FREE_CORES = "stop the other programs, then add cores or lower <limit>"
SLOW_DEVICE_REMEDY = "cool the device, raise its power limit or its clock, or measure without it"


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

    def before_text(
        self, figure: Callable[[StepResources], float | None], form: str = ".0%"
    ) -> str:
        """Return a figure of the first step, as in " (12% before)"; "" where it is unknown."""
        value = figure(self.before) if self.before else None
        return "" if value is None else f" ({value:{form}} before)"

    def busy_before(self, kind: str, place: NodeResource) -> float | None:
        """Return for which share of the first step a disk or device was busy; None for unknown."""
        same = self.before.place(kind, place.node, place.name) if self.before else None
        return same.figures.get("busy") if same else None

    def busy_text(self, kind: str, place: NodeResource) -> str:
        """Return for which share of the time a disk or device is busy, and was before."""
        text = f"{place.figures['busy']:.0%} of the time"
        before = self.busy_before(kind, place)
        return text if before is None else f"{text} ({before:.0%} before)"


def _cpu_wait(pair: ComparedResources, _: str) -> Evidence:
    pressure = pair.after.highest(PRESSURE, "cpu_some")
    lines = [*_steal_lines(pair), *_pressure_lines(pair, "cpu_some")]
    busy_lines = _busy_cores_lines(pair)
    busiest_share = pair.after.busiest_cores_share
    if not busy_lines or busiest_share is None:
        return Evidence(tuple(lines), _agreement(_is_high(pressure)))
    (busy_line,) = busy_lines
    others = pair.after.cores_of_others
    if others >= OTHERS_PART * (pair.after.cores or 0.0):
        busy_line += f", {others:.1f} of them by other programs or scaletest itself"
    if busiest_share < ROOM_SHARE:
        return Evidence(
            (f"only {busy_line}", *lines),
            False,
            "there are idle cores: look for CPU pinning (taskset, cpusets) or a CPU limit",
        )
    is_full = busiest_share >= FULL_SHARE or _is_high(pressure)
    has_others = others >= OTHERS_PART * (pair.after.cores or 0.0)
    if has_others and others > 0.5 * (pair.after.cores_busy or 0.0):
        return Evidence((busy_line, *lines), _agreement(is_full), FREE_CORES, of_others=is_full)
    return Evidence((busy_line, *lines), _agreement(is_full))


def _throttled(pair: ComparedResources, _: str) -> Evidence:
    share = pair.after.highest(CONTAINER, "throttled_periods")
    if share is None:
        return Evidence()
    limit = pair.after.highest(CONTAINER, "cpu_limit")
    container = "the container is"
    if limit is not None:
        container = f"the container's CPU limit is {limit:.3g},"
    before = pair.before_text(lambda step: step.highest(CONTAINER, "throttled_periods"))
    line = f"{container} throttled in {share:.0%} of its periods{before}"
    return Evidence((line,), _agreement(share >= THROTTLED_SHARE, share < UNTHROTTLED_SHARE))


def _disk(pair: ComparedResources, _: str) -> Evidence:
    disk, pressure = pair.after.busiest(DISK), pair.after.highest(PRESSURE, "io_some")
    lines = _pressure_lines(pair, "io_some")
    if disk is None:
        return Evidence(tuple(lines), _agreement(_is_high(pressure)))
    place = f"{disk.name}{pair.after.on_node(disk)}"
    rates = {name: disk.figures.get(name) for name in ("read", "written")}
    moved = [f"{format_quantity(per_s, 'B/s', 3)} {name}" for name, per_s in rates.items() if per_s]
    if moved:
        lines.append(f"{place}: {', '.join(moved)}")
    busy = disk.figures["busy"]
    if busy < DISK_ROOM_SHARE and (pressure is None or pressure < LOW_PRESSURE):
        return Evidence(
            (f"no disk is busy for more than {busy:.0%} of the time", *lines),
            False,
            "look for a network file system, or a lock of the file system",
        )
    return Evidence(
        (f"{place} is busy for {pair.busy_text(DISK, disk)}", *lines),
        _agreement(busy >= DISK_FULL_SHARE or _is_high(pressure)),
    )


def _memory(pair: ComparedResources, _: str) -> Evidence:
    after = pair.after
    lines = _pressure_lines(pair, "memory_some")
    reclaims = after.highest(CONTAINER, "reclaims")
    if reclaims:
        lines.append(
            f"memory is reclaimed {reclaims:.1f} times per second because of the container's limit"
        )
    swapped_in, swapped_out = after.highest(MEMORY, "swap_in"), after.highest(MEMORY, "swap_out")
    is_swapping = bool(swapped_in or swapped_out)
    if is_swapping:
        rates = [format_quantity(rate or 0.0, "B/s", 3) for rate in (swapped_in, swapped_out)]
        lines.append(f"swap: {rates[0]} in, {rates[1]} out")
    pressure = after.highest(PRESSURE, "memory_some")
    is_short = _is_high(pressure) or bool(reclaims) or is_swapping
    # low pressure alone is no evidence: all of these must have been read
    is_calm = pressure is not None and pressure < LOW_PRESSURE
    is_calm = is_calm and (reclaims, swapped_in, swapped_out) == (0, 0, 0)
    return Evidence(tuple(lines), _agreement(is_short, is_calm))


def _network(pair: ComparedResources, _: str) -> Evidence:
    """Return evidence about the fullest link.

    A full one explains the wait, one with room leaves the peer, of which nothing is measured.
    """
    # for each way of each network whose speed is known: its share of that, and its bytes a second
    ways: list[tuple[float, float, NodeResource]] = []
    for network in pair.after.places(NETWORK):
        speed = network.figures.get("speed")
        rates = [network.figures.get(way) for way in ("received", "sent")]
        if speed:
            ways += [(rate / speed, rate, network) for rate in rates if rate is not None]
    if not ways:
        return Evidence()
    share, rate, fullest = max(ways, key=lambda way: way[0])
    moved = [format_quantity(per_s, "B/s", 3) for per_s in (rate, fullest.figures["speed"])]
    line = f"{fullest.name}{pair.after.on_node(fullest)} moves {moved[0]} of {moved[1]}"
    dropped = fullest.figures.get("dropped")
    lines = (f"{dropped:.1f} packets per second are dropped there",) if dropped else ()
    if share >= FULL_SHARE:
        remedy = "a faster link, or less data in each request"
        return Evidence((f"{line}: a full link", *lines), True, remedy)
    if share < ROOM_SHARE:
        line += ", so the peer is the limit, not the link"
    return Evidence((line, *lines))


def _device(pair: ComparedResources, device_name: str) -> Evidence:
    """Return evidence about a device, or about all of them where none is named."""
    devices = pair.after.places(DEVICE)
    waited_for = [device for device in devices if device.name == device_name] or devices
    lines: list[str] = []
    for device in waited_for:
        lines += slow_device_lines(device, devices, pair.after)
    is_slow = bool(lines)
    with_use = [device for device in waited_for if "busy" in device.figures]
    busiest = max(with_use, key=lambda device: device.figures["busy"], default=None)
    busy = None
    if busiest is not None:
        busy = busiest.figures["busy"]
        only = "only " if busy < ROOM_SHARE and not is_slow else ""
        place = f"{busiest.name}{pair.after.on_node(busiest)}"
        lines.append(f"{place} is busy for {only}{pair.busy_text(DEVICE, busiest)}")
    if is_slow:
        return Evidence(tuple(lines), True, SLOW_DEVICE_REMEDY)
    if busy is not None and busy < ROOM_SHARE:
        remedy = "look for a lock in its driver, and for copies to and from the device"
        return Evidence(tuple(lines), False, remedy)
    return Evidence(tuple(lines), _agreement(busy is not None and busy >= FULL_SHARE))


def _on_cpu(pair: ComparedResources, _: str) -> Evidence:
    """Say why equal work may need more CPU seconds: slower clocks, or a hypervisor's steal."""
    steal_lines = _steal_lines(pair)
    if steal_lines:
        remedy = "ask for dedicated cores: another machine of the same host uses these"
        return Evidence(tuple(steal_lines), True, remedy)
    clock = pair.after.lowest(CPU, "frequency")
    clock_before = pair.before.lowest(CPU, "frequency") if pair.before else None
    if clock and clock_before and clock <= clock_before * (1.0 - CLOCK_FALL):
        return Evidence(
            (f"clocks fell to {clock:.0%} of the highest ({clock_before:.0%} before)",),
            True,
            "clocks fall as more cores work: compare with a fixed clock rate, and look at cooling"
            " and power",
        )
    return Evidence(tuple(_busy_cores_lines(pair)))


def _gap(pair: ComparedResources, _: str) -> Evidence:
    """Look at idle workers: a client and a Redis here lack a CPU when all cores are busy."""
    share = pair.after.busiest_cores_share
    is_full = share is not None and share >= FULL_SHARE
    return Evidence(tuple(_busy_cores_lines(pair)), _agreement(is_full))


# Finds the evidence about a cause of each place, by the name of the object that it waits for.
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


def slow_device_lines(
    device: NodeResource, devices: Sequence[NodeResource], after: StepResources
) -> list[str]:
    """Return why a device is slow by itself, however many share it; nothing where it is not.

    devices: all of them, with which its clock is compared.
    """
    place = f"{device.name}{after.on_node(device)}"
    lowered, clock = device.figures.get("throttled"), device.figures.get("frequency")
    lines = []
    if lowered is not None and lowered >= LOWERED_SHARE:
        lines.append(
            f"heat, power or another limit lowers the clock of {place} for {lowered:.0%} of the"
            " time"
        )
    clocks = [other.figures.get("frequency") for other in devices if other != device]
    lowest = min([other for other in clocks if other is not None], default=0.0)
    if clock is not None and clock < LOW_CLOCK * lowest:
        lines.append(
            f"the clock of {place} is at {clock:.0%} of its highest, at {lowest:.0%} elsewhere"
        )
    elif clock is not None and lines:
        lines.append(f"its clock is at {clock:.0%} of its highest")
    return lines


def _steal_lines(pair: ComparedResources) -> list[str]:
    stolen, cores = pair.after.total(CPU, "steal"), pair.after.cores
    if stolen is None or not cores or stolen < STOLEN_PART * cores:
        return []
    before = pair.before_text(lambda step: step.total(CPU, "steal"), ".1f")
    return [f"the hypervisor takes {cores_text(stolen, cores)}{before}"]


def _pressure_lines(pair: ComparedResources, figure: str) -> list[str]:
    share = pair.after.highest(PRESSURE, figure)
    if share is None:
        return []
    return [f"pressure {share:.0%}{pair.before_text(lambda step: step.highest(PRESSURE, figure))}"]


def _is_high(pressure: float | None) -> bool:
    return pressure is not None and pressure >= HIGH_PRESSURE


def _agreement(is_busy: bool, is_idle: bool = False) -> bool | None:
    """Return whether a resource confirms a cause: None where it is neither busy nor idle."""
    if is_busy:
        return True
    return False if is_idle else None


def _busy_cores_lines(pair: ComparedResources) -> list[str]:
    cores, busy = pair.after.cores, pair.after.cores_busy
    if not cores or busy is None:
        return []
    before = pair.before_text(lambda step: step.cores_busy, ".1f")
    return [f"{cores_text(busy, cores)} are busy{before}"]
