"""JSON Schema of the result of a validation of a service."""

from collections.abc import Callable, Mapping
from functools import partial

from scaletest.model.json_schema import Schema, class_schema
from scaletest.validation.service.judging import ServiceEvaluation

DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    "service-result": partial(
        class_schema,
        "service-result",
        "How a service scales when its replicas are doubled. Unknown values are null.",
        ServiceEvaluation,
    ),
}
