"""Validations as a run type."""

from __future__ import annotations

from typing import Any

from scaletest.model import Plan
from scaletest.runs.folder import COMMON, VALIDATION, RunFolder
from scaletest.validation.folder import ValidationFolder


class ValidationType:
    """What the rest of the product asks about them."""

    name = VALIDATION
    layout = COMMON

    def plan(self, document: dict[str, Any]) -> Plan:
        """Read and check a plan; InvalidValue names the field."""
        return Plan.from_dict(document)

    def check(self, folder: RunFolder) -> None:
        """UsageError or InvalidValue unless the whole run can be read."""
        ValidationFolder(folder).check()


RUN_TYPE = ValidationType()
