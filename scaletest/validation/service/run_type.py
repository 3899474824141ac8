"""The RunType of validations of services."""

import os
import random

from scaletest.runs.folder import ENVIRONMENT, RESULT, STEPS, RunFolder
from scaletest.runs.places import default_root, run_reference
from scaletest.validation.imported.run_type import ImportedRun, ImportedType
from scaletest.validation.judging.growth import SEED
from scaletest.validation.service.folder import ServiceFolder
from scaletest.validation.service.judging import evaluate_service


class ServiceType(ImportedType):
    """Validations of services."""

    folder = ServiceFolder

    def judge(self, folder: RunFolder) -> ImportedRun:
        """Judge the run in a folder; UsageError when it cannot be read."""
        stored = ServiceFolder(folder.path)
        with folder.readable():
            plan, visits = stored.plan(), list(stored.rows(STEPS))
            environment, result = stored.read(ENVIRONMENT), stored.read(RESULT)
        interrupted = result.get("interrupted")
        return ImportedRun(
            run_reference(folder.path, default_root(os.environ)),
            str(folder.path),
            evaluate_service(
                plan,
                visits,
                random.Random(SEED),
                interrupted if isinstance(interrupted, str) else "",
            ),
            environment,
        )


RUN_TYPE = ServiceType()
