"""The folder of a validation of a service."""

from typing import Any, ClassVar

from scaletest.runs.folder import STEPS, TypedFolder
from scaletest.validation.service.plan import KIND, ServicePlan
from scaletest.validation.service.visit import ServiceVisit


class ServiceFolder(TypedFolder[ServicePlan]):
    """A line for each visit of a step."""

    run_type = KIND
    plan_type = ServicePlan
    readers: ClassVar[dict[str, Any]] = {STEPS: ServiceVisit.from_json}
