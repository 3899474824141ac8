"""Pure data and rules: what a request, a reply, a record and a verdict are.

The lowest package. Nothing here reads a clock, a file, a socket or the environment, or imports
another package of the project. Values that cross a process border are checked here, once.

Names are imported from their modules when they are asked for: errors and checks, which `--help`
needs, do not pay for the documents.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scaletest.model.activity import Activity, State, Wait
    from scaletest.model.errors import ScaletestError
    from scaletest.model.measurement import Measurement
    from scaletest.model.node_sample import NodeSample
    from scaletest.model.record import Outcome, Reason, Record, Reply, Request
    from scaletest.model.verdict import Verdict, VerdictKind

__all__ = [
    "Activity",
    "Measurement",
    "NodeSample",
    "Outcome",
    "Reason",
    "Record",
    "Reply",
    "Request",
    "ScaletestError",
    "State",
    "Verdict",
    "VerdictKind",
    "Wait",
]

_MODULES = {
    "activity": ("Activity", "State", "Wait"),
    "errors": ("ScaletestError",),
    "measurement": ("Measurement",),
    "node_sample": ("NodeSample",),
    "record": ("Outcome", "Reason", "Record", "Reply", "Request"),
    "verdict": ("Verdict", "VerdictKind"),
}


def __getattr__(name: str) -> object:
    """Return the class of that name, from its module."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
