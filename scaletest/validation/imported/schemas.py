"""JSON Schema of what is found in the results of load tools."""

from collections.abc import Callable, Mapping
from functools import partial

from scaletest.model.json_schema import Schema, class_schema
from scaletest.validation.imported.judging import ImportedEvaluation

DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    "judge-result": partial(
        class_schema,
        "judge-result",
        "How a service scales, by the results of a load tool. Unknown values are null.",
        ImportedEvaluation,
    ),
}
