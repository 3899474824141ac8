"""The RunType of validations of services."""

import random
from collections.abc import Sequence
from typing import Any

from scaletest.validation.imported.run_type import WORKLOAD_FIELDS, ImportedType
from scaletest.validation.judging.growth import SEED
from scaletest.validation.service.folder import ServiceFolder
from scaletest.validation.service.judging import ServiceEvaluation, evaluate_service


class ServiceType(ImportedType):
    """Validations of services."""

    folder = ServiceFolder
    workload_fields = WORKLOAD_FIELDS | {"in_flight"}

    def evaluate(self, plan: Any, results: Sequence[Any], interrupted: str) -> ServiceEvaluation:
        """Judge what was measured. interrupted: what ended the run early."""
        return evaluate_service(plan, results, random.Random(SEED), interrupted)


RUN_TYPE = ServiceType()
