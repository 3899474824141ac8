"""JSON Schemas of a saturation run's documents."""

from collections.abc import Callable, Mapping

from scaletest.model.json_schema import Schema
from scaletest.saturation.commands import plan_file, saturate

DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    plan_file.NAME: lambda: plan_file.plan_file_schema(saturate.command),
}
