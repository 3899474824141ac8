"""The main job: plan -> steps -> records -> verdict. The algorithm knows neither where workers run nor who loads."""

from scaletest.validation.interfaces import Backend, Load, Progress
from scaletest.validation.local import LocalBackend, WorkerOptions
from scaletest.validation.runner import READY_TIMEOUT_S, Runner, complete
from scaletest.validation.samples import ReadSamples

__all__ = [
    "Backend",
    "Load",
    "LocalBackend",
    "Progress",
    "READY_TIMEOUT_S",
    "ReadSamples",
    "Runner",
    "WorkerOptions",
    "complete",
]
