"""Workloads in Python: what they are made of, and how one is named."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, Protocol

from scaletest.model.errors import UsageError

# PACKAGE.MODULE:NAME, or FILE.py:NAME.
REFERENCE = re.compile(r"(?:[A-Za-z_][\w.]*|[^:]*[^/:]\.py):[A-Za-z_][\w.]*")

# The module that a worker starts as the process of a workload.
WORKLOAD_PROCESS = "scaletest_workers.python_child"
# The child's exit code when PyTorch cannot be loaded, as EX_UNAVAILABLE of sysexits.h.
UNAVAILABLE = 69


@dataclass(frozen=True, slots=True)
class Device:
    """The device of a worker, for a workload in Python.

    Text is empty where the system does not know. A parameter of this type gets it; where that is
    `Device | None`, a worker without a device runs the workload, too.

    Example:
        def decode(file: Path, device: scaletest.Device) -> dict[str, float]:
            return {"frames": decoder.run(file, device.path)}

    Raises: nothing
    """

    path: Annotated[str, "of its device file."]
    id: Annotated[
        str, "PCI address, else device number as major:minor, else the path of an ordinary file."
    ]
    pci: Annotated[str, "PCI address."] = ""
    vendor_id: Annotated[str, "as sysfs writes it, 0x8086."] = ""
    vendor: Annotated[str, "name of its vendor."] = ""
    model: Annotated[str, "name of its model."] = ""
    unique: Annotated[str, "the name by which the vendor's own libraries know it."] = ""

    @property
    def product(self) -> str:
        """Vendor and model, as far as known; models that NVIDIA's driver names have the vendor."""
        names = () if self.model.startswith(self.vendor) else (self.vendor,)
        return " ".join(filter(None, (*names, self.model)))


class Workload(Protocol):
    """What a class has that is a workload in Python; it need not inherit from this one.

    A worker makes it once, in a process of its own, from the words behind its --workload NAME; a
    request's arguments are those of `run`. Parameters are of type int, float, str, bool, Path, an
    Enum or a Literal, and any of these or None; one of type Device gets the worker's device. A
    function that does it all is a workload too.

    Example:
        class Thumbnails:
            def __init__(self, width: int = 320, device: scaletest.Device | None = None) -> None:
                self.scaler = Scaler(width, device)

            def run(self, file: Path) -> dict[str, float]:
                return {"pixels": self.scaler.scale(file)}

    Raises:
        NoDevice: raise it where the device cannot be used; any exception is a failed request.
    """

    @property
    def run(self) -> Callable[..., Mapping[str, float | int | str] | None]:
        """Runs one request, and returns figures by name, or None."""


def reference_of(workload: Callable[..., Any]) -> str:
    """Return the name by which a worker finds a class or function.

    It is MODULE:NAME, or FILE.py:NAME for one of the program that runs. UsageError for one that no
    other process can import by it.
    """
    kind = type(workload)
    module = getattr(workload, "__module__", kind.__module__)
    name = getattr(workload, "__qualname__", f"<{kind.__qualname__}>")
    module_or_file = module
    if module == "__main__":
        # the module that `python -m` names, else the file of the program that runs
        main = sys.modules[module]
        spec = getattr(main, "__spec__", None)
        module_or_file = getattr(main, "__file__", "")
        if spec is not None and spec.name != "__main__":
            module_or_file = spec.name
    reference = f"{module_or_file}:{name}"
    # a method of an object, or what a decorator returned, may have the name of something else
    try:
        is_named = bool(attrgetter(name)(sys.modules.get(module)) == workload)
    except AttributeError:
        is_named = False
    if not is_named or not REFERENCE.fullmatch(reference):
        raise UsageError(
            f"{name} cannot be imported by another process",
            hint="write it into a module or file, outside of any function, as a function or class"
            " under its own name",
        )
    return reference
