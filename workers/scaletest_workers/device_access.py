"""Say why this process may not use a device, and what to do about it."""

import errno
import os
import stat

from scaletest.model.errors import NoDevice
from scaletest.model.presets import Preset


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
            raise permission_denied(path, kind) from error
        if error.errno in (errno.ENXIO, errno.ENODEV):
            raise NoDevice(
                f"there is no device behind {path}", hint="check that its driver is loaded"
            ) from error


def permission_denied(path: str, kind: Preset | None = None) -> NoDevice:
    """Return the error when a file's mode denies access. kind: preset with names of its group."""
    usual = f"usually {' or '.join(kind.groups)}" if kind else "that of its driver"
    number = os.stat(path).st_gid  # noqa: PTH116
    if number == 0:
        # nobody should join root's group for this; on nodes without udev devices belong to it
        hint = f"its group is root: let udev on the node give it to a group, {usual}"
    else:
        hint = (
            f"add this user to the group that owns it, {number} ({usual}); in a pod:"
            f" securityContext.supplementalGroups: [{number}]"
        )
    return NoDevice(
        f"permission denied on {path}",
        hint=f"{hint}; or let the container runtime set the owner"
        " (device_ownership_from_security_context)",
    )
