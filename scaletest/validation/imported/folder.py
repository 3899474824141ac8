"""The folder of a validation whose numbers come from load tools."""

from typing import Any, ClassVar

from scaletest.runs.folder import STEPS, TypedFolder
from scaletest.validation.imported.plan import KIND, ImportedPlan
from scaletest.validation.imported.result import ToolResult


class ImportedFolder(TypedFolder[ImportedPlan]):
    """The results as they were read, so that the run is judged again without the tools' files."""

    run_type = KIND
    plan_type = ImportedPlan
    readers: ClassVar[dict[str, Any]] = {STEPS: ToolResult.from_json}
