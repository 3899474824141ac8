"""JSON Schemas of a saturation run's documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scaletest.model.json_schema import Schema
from scaletest.saturation.commands import saturate, saturate_options

DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    saturate_options.NAME: lambda: saturate_options.schema(saturate.command),
}
