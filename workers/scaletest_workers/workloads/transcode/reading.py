"""What the output of a tool that transcodes tells: figures, and why it failed.

Figures are frames (encoded, of all outputs), fps (the tool's own rate, also summed), sessions
(encoders) and encode_errors. Unknown numbers are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from scaletest.model.record import Figures

# Messages of drivers and libraries without a usable device; from real runs without one.
_NO_DEVICE = (
    "No implementation was found",
    "No VA display found",
    "Failed to initialise VAAPI",
    "Cannot load libcuda",
    "Cannot load libnvidia-encode",
    "Could not dynamically load CUDA",
    "No capable devices found",
    "no CUDA-capable device",
    "CUDA_ERROR_NO_DEVICE",
    "Error initializing an internal MFX session",
    "Error creating a MFX session",
)
# Messages of a driver that limits the encoding sessions of a device.
_TOO_MANY = ("OpenEncodeSessionEx failed: out of memory", "incompatible client key")
# Messages of oneVPL, CUDA and the system without enough memory, of the device or the container.
_NO_MEMORY = ("MFX_ERR_MEMORY_ALLOC", "CUDA_ERROR_OUT_OF_MEMORY", "Cannot allocate memory")


@dataclass(frozen=True, slots=True)
class TranscodeReading:
    """A parsed output."""

    figures: Figures = field(default_factory=dict)
    no_device: bool = False
    complaint: str = ""  # explains the failure; "" if there is nothing beyond the text

    @classmethod
    def explain(cls, figures: Figures, text: str) -> TranscodeReading:
        """Return these figures with what the messages in the text complain of."""
        for message in _NO_DEVICE:
            if message in text:
                complaint = f"its libraries found no usable device ({message})"
                return cls(figures, no_device=True, complaint=complaint)
        if any(message in text for message in _TOO_MANY):
            complaint = (
                "the driver allows no more encoding sessions on the device; use fewer workers"
            )
            return cls(figures, complaint=complaint)
        if any(message in text for message in _NO_MEMORY):
            return cls({**figures, "memory_limit_hits": 1}, complaint="memory ran out")
        return cls(figures)


def frames_per_s(reported: str, frames: int, seconds: str) -> float:
    """Return frames/s as the tool reported them, else by number and time; 0 if unknown."""
    rate = read_number(reported)
    elapsed_s = read_number(seconds)
    return rate if rate or elapsed_s <= 0 else round(frames / elapsed_s, 3)


def read_number(text: str) -> float:
    """Return the number that a tool printed; 0 for anything else."""
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and 0 <= number < 1e12 else 0.0
