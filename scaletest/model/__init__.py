"""Pure data and rules: what a request, a reply, a record, a plan and a verdict are.

The lowest package. Nothing here reads a clock, a file, a socket or the environment, or imports
another package of the project. Values that cross a process border are checked here, once.
"""

from scaletest.model.activity import Activity, State, Wait
from scaletest.model.errors import ScaletestError
from scaletest.model.measurement import Measurement
from scaletest.model.node_sample import NodeSample
from scaletest.model.plan import Background, Plan
from scaletest.model.record import Record
from scaletest.model.reply import Outcome, Reason, Reply
from scaletest.model.request import Request
from scaletest.model.verdict import Verdict, VerdictKind

__all__ = [
    "Activity",
    "Background",
    "Measurement",
    "NodeSample",
    "Outcome",
    "Plan",
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
