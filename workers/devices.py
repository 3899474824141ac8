"""From a glob to one device for this worker. Looks anew for every request, since devices come and go."""

from __future__ import annotations

import glob
import os

from scaletest.model.errors import InvalidValue


class NoDevice(Exception):
    """No device matches, or it may not be used; the text says which and why."""


class DeviceChooser:
    """Chooses the `index`-th device that matches `pattern`, counting round, so that workers 0, 1, 2, ... spread."""

    def __init__(self, pattern: str = "", index: int = 0) -> None:
        if index < 0:
            raise InvalidValue(f"device index is {index}", hint="give a number from 0")
        self._pattern = pattern
        self._index = index

    def choose(self, *, required: bool) -> str:
        """Path of the device, or "" when none is needed. Raises NoDevice."""
        if not self._pattern:
            if required:
                raise NoDevice("FILENAME is used, but no --device-glob was given")
            return ""
        matches = sorted(glob.glob(self._pattern))  # noqa: PTH207 - absolute patterns are the rule here
        if not matches:
            raise NoDevice(f"no device matches {self._pattern!r} on this node")
        path = matches[self._index % len(matches)]
        if not os.access(path, os.R_OK | os.W_OK):
            raise NoDevice(f"permission denied on {path}: add this user to the group that owns it{_group(path)}")
        return path


def _group(path: str) -> str:
    try:
        import grp

        return f" ({grp.getgrgid(os.stat(path).st_gid).gr_name})"  # noqa: PTH116
    except (ImportError, KeyError, OSError):
        return ""
