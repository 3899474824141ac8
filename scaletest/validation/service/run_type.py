"""The RunType of validations of services, and the folder of their runs."""

import random
from collections.abc import Sequence
from typing import Any, ClassVar

from scaletest.runs.folder import STEPS, TypedFolder
from scaletest.validation.imported.run_type import WORKLOAD_FIELDS, ImportedType
from scaletest.validation.judging.growth import SEED
from scaletest.validation.service.judging import ServiceEvaluation, evaluate_service
from scaletest.validation.service.plan import KIND, ServicePlan
from scaletest.validation.service.visit import ServiceVisit


class ServiceFolder(TypedFolder[ServicePlan]):
    """A line for each visit of a step."""

    run_type = KIND
    plan_type = ServicePlan
    readers: ClassVar[dict[str, Any]] = {STEPS: ServiceVisit.from_json}


class ServiceType(ImportedType):
    """Validations of services."""

    folder = ServiceFolder
    workload_fields = WORKLOAD_FIELDS | {"in_flight"}

    def evaluate(self, plan: Any, results: Sequence[Any], interrupted: str) -> ServiceEvaluation:
        """Judge what was measured. interrupted: what ended the run early."""
        return evaluate_service(plan, results, random.Random(SEED), interrupted)


RUN_TYPE = ServiceType()
