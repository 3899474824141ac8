"""Runs on disk: one folder a run, written as it goes, read again by reports, comparisons and a
resumed run.

Knows files and the model, nothing of Redis, of statistics or of how a run is made.
"""

from scaletest.archive.folder import RunFolder, Stored, default_root
from scaletest.archive.runs import find

__all__ = ["RunFolder", "Stored", "default_root", "find"]
