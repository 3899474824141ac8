"""scaletest validate --per-device: this machine's devices, and how its workers share them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import click

from scaletest.model import Plan
from scaletest.model.errors import UsageError
from scaletest.model.presets import POLICIES, PRESETS
from workers.devices import DeviceChooser, DeviceOptions
from workers.identity import Device

F = TypeVar("F", bound=Callable[..., object])


def _numbers(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, value.split(","))) if value else ()
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no list of numbers such as 1,2,4", context, parameter
        ) from None


def options(function: F) -> F:
    """Add the options that say which devices local workers use, and how many share one."""
    for option in (
        click.option(
            "--device-policy",
            type=click.Choice(POLICIES),
            default="balanced",
            show_default=True,
            help=(
                "With --per-device: the first device with a free slot, the least used, or the most"
                " used."
            ),
        ),
        click.option(
            "--per-device",
            default="",
            callback=_numbers,
            metavar="K[,K...]",
            help=(
                "K workers may share one device, each with a slot of it. Several numbers: compare"
                " them, all devices full, and say which is best."
            ),
        ),
        click.option(
            "--preset", type=click.Choice(["", *PRESETS]), default="", help="Devices of one vendor."
        ),
        click.option(
            "--device-glob",
            default="",
            metavar="GLOB",
            help=(
                "Device files; worker N uses the N-th, counting round, unless --per-device is"
                " given."
            ),
        ),
    ):
        function = option(function)
    return function


def devices(plan: Plan) -> int:
    """How many devices a plan's workers share; 0 where no slots are leased. Raises NoDevice."""
    if not plan.per_device or not (plan.device_glob or plan.preset):
        return 0
    return len(_devices(plan))


def doubts(plan: Plan) -> list[str]:
    """Why a best number of workers per device may be one for no device at all."""
    if not plan.compares:
        return []
    kinds = Counter(f"{device.vendor} {device.model}".strip() for device in _devices(plan))
    if len(kinds) < 2:
        return []
    names = ", ".join(f"{count} {name or 'unknown'}" for name, count in kinds.most_common())
    return [
        f"the devices are not alike ({names}): compare on one kind, with a narrower --device-glob"
    ]


def same_devices(plan: Plan) -> None:
    """UsageError when there are not as many devices as when the run was begun."""
    if not plan.devices:
        return
    now = len(_devices(plan))
    if now != plan.devices:
        raise UsageError(
            f"the run was begun with {plan.devices} devices, and there are {now} now",
            hint="bring them back, or make a run of its own",
        )


def _devices(plan: Plan) -> list[Device]:
    return DeviceChooser(DeviceOptions(plan.device_glob, preset=plan.preset)).devices()
