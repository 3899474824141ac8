"""Lifecycles as a run type."""

from __future__ import annotations

from typing import Any

from scaletest.lifecycle.folder import LAYOUT, LifecycleFolder
from scaletest.model.lifecycle_plan import KIND, LifecyclePlan
from scaletest.runs.folder import RunFolder


class LifecycleType:
    """What the rest of the product asks about them."""

    name = KIND
    layout = LAYOUT

    def plan(self, document: dict[str, Any]) -> LifecyclePlan:
        """Read and check a plan; InvalidValue names the field."""
        return LifecyclePlan.from_dict(document)

    def check(self, folder: RunFolder) -> None:
        """UsageError or InvalidValue unless the whole run can be read."""
        LifecycleFolder(folder.path).check()


RUN_TYPE = LifecycleType()
