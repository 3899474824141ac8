"""The main job: plan -> steps -> records -> verdict. The algorithm knows neither where workers run nor who loads."""

from scaletest.validation.interfaces import Backend, Load, ValidationProgress
from scaletest.validation.local import LocalBackend, WorkerOptions
from scaletest.validation.runner import READY_TIMEOUT_S, ValidationRunner, complete
from scaletest.validation.samples import ReadSamples

__all__ = [
    "Backend",
    "Load",
    "LocalBackend",
    "ValidationProgress",
    "READY_TIMEOUT_S",
    "ReadSamples",
    "ValidationRunner",
    "WorkerOptions",
    "complete",
]
