"""Errors when there is no device for a worker: each with what it means and what to do."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from scaletest.model.errors import NoDevice
from scaletest.model.presets import Preset


class NoneFree(NoDevice):
    """All slots are leased."""


def gone(path: str) -> str:
    """The error text when the device has disappeared; "" while it exists."""
    return "" if Path(path).exists() else f"the device {path} went away during the run"


def nothing(pattern: str, kind: Preset | None, others: dict[str, str]) -> NoDevice:
    """The error when nothing matches the pattern. others: devices of other vendors that match."""
    resource = kind.resources[0] if kind else "the device plugin's resource"
    text = f"no device matches {pattern!r} on this node"
    if others and kind:
        text += (
            f" for the preset {kind.name} (there are:"
            f" {', '.join(f'{k} of {v}' for k, v in others.items())})"
        )
    return NoDevice(
        text,
        hint=(
            f"in a pod request {resource}, in a container give it with --device, else check the"
            " driver"
        ),
    )


def none_free(devices: int, per_device: int) -> NoneFree:
    """The error when every slot is leased."""
    slots = devices * per_device
    return NoneFree(
        f"no device is free: {slots} of {slots} slots of {devices}"
        f" device{'s' if devices > 1 else ''} are leased",
        hint=(
            f"share a device among more workers with --per-device {per_device + 1}, or start fewer"
            " workers"
        ),
    )


def check_open(path: str, kind: Preset | None = None) -> None:
    """Raise NoDevice when a device cannot be opened, as in containers; skips ordinary files."""
    try:
        if not stat.S_ISCHR(os.stat(path).st_mode):  # noqa: PTH116
            return
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EPERM:
            raise NoDevice(
                f"this container may not open {path}: its device rules forbid it",
                hint=(
                    "let the runtime add it: request the device plugin's resource, or docker run"
                    " --device"
                ),
            ) from error
        if error.errno == errno.EACCES:
            raise denied(path, kind) from error
        if error.errno in (errno.ENXIO, errno.ENODEV):
            raise NoDevice(
                f"there is no device behind {path}", hint="check that its driver is loaded"
            ) from error


def denied(path: str, kind: Preset | None = None) -> NoDevice:
    """The error when a file's mode denies access. kind: preset with usual names of the group."""
    return NoDevice(
        f"permission denied on {path}",
        hint=_permission(path, " or ".join(kind.groups) if kind else ""),
    )


def _group_of(path: str) -> int:
    return os.stat(path).st_gid  # noqa: PTH116


def _permission(path: str, usual: str) -> str:
    try:
        import grp

        number = _group_of(path)
        try:
            name = grp.getgrgid(number).gr_name
        except KeyError:
            name = f"no name here, {usual} on most nodes" if usual else "no name here"
    except (ImportError, OSError):
        return f"add this user to the group that owns it{f', usually {usual}' if usual else ''}"
    if number == 0:
        # nobody should join root's group for this; on nodes without udev devices belong to it
        return (
            f"its group is root: let udev on the node give it to {usual or 'a group of its own'},"
            " or let the container runtime set the owner (device_ownership_from_security_context)"
        )
    return (
        f"add this user to the group that owns it, {number} ({name}); in a pod:"
        f" securityContext.supplementalGroups: [{number}], or let the container runtime set the"
        " owner (device_ownership_from_security_context)"
    )
