"""The search for saturation as a run type."""

from __future__ import annotations

from typing import Any

from scaletest.model.saturation import KIND, SaturationPlan
from scaletest.runs.folder import COMMON, RunFolder
from scaletest.saturation.folder import SaturationFolder


class SaturationType:
    """What the rest of the product asks about them."""

    name = KIND
    layout = COMMON

    def plan(self, document: dict[str, Any]) -> SaturationPlan:
        """Read and check a plan; InvalidValue names the field."""
        return SaturationPlan.from_dict(document)

    def check(self, folder: RunFolder) -> None:
        """UsageError or InvalidValue unless the whole run can be read."""
        SaturationFolder(folder).check()


RUN_TYPE = SaturationType()
