"""Workloads in Python: what they are made of, and how one is named."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from scaletest.model.errors import UsageError

# PACKAGE.MODULE:NAME, or FILE.py:NAME.
REFERENCE = re.compile(r"(?:[A-Za-z_][\w.]*|[^:]*[^/:]\.py):[A-Za-z_][\w.]*")


@dataclass(frozen=True, slots=True)
class Device:
    """One device. Text is empty where the system does not know.

    path: of its device file. id: PCI address, else device number as major:minor, else the path of
    an ordinary file. vendor_id: as sysfs writes it, 0x8086. unique: the name by which the vendor's
    own libraries know this one device.

    A parameter of this type gets the worker's device:

        def decode(file: Path, device: Device) -> dict[str, float]:
            return {"frames": decoder.run(file, device.path)}
    """

    path: str
    id: str
    pci: str = ""
    vendor_id: str = ""
    vendor: str = ""
    model: str = ""
    unique: str = ""

    def info(self) -> dict[str, str]:
        """Fields of a reply that describe the device, besides its path."""
        row = {"id": self.id, "pci": self.pci, "vendor": self.vendor, "model": self.model}
        return {name: value for name, value in row.items() if value}


class Workload(Protocol):
    """A workload in Python. A worker makes it once, in a process of its own, from the words behind
    its --workload NAME; a request's arguments are those of `run`.

        class Thumbnails:
            def __init__(self, width: int = 320, device: Device | None = None) -> None:
                self.scaler = Scaler(width, device)

            def run(self, file: Path) -> dict[str, float]:
                return {"pixels": self.scaler.scale(file)}

    It need not inherit from this class. Parameters are of type int, float, str, bool, Path, an
    Enum or a Literal, and any of these or None; one of type Device gets the worker's device. `run`
    returns figures by name, or None. An exception is a failed request; NoDevice means that the
    device cannot be used. A function that does it all is a workload too.
    """

    @property
    def run(self) -> Callable[..., Mapping[str, float | int | str] | None]:
        """Runs one request."""


def reference(workload: Callable[..., Any]) -> str:
    """The name by which a worker finds a class or function: MODULE:NAME, or FILE.py:NAME for one of
    the program that runs. UsageError for one that no other process can import.
    """
    module, name = workload.__module__, workload.__qualname__
    if module == "__main__":
        module = str(getattr(sys.modules[module], "__file__", ""))
    text = f"{module}:{name}"
    if not REFERENCE.fullmatch(text):
        raise UsageError(
            f"{name} cannot be imported by another process",
            hint="write it into a module or file of its own, outside of any function",
        )
    return text
