"""Validations: plan -> steps -> records -> verdict, independent of where workers and load run."""

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
