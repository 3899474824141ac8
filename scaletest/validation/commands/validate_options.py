"""Where the settings of a plan of scaletest validate come from.

A setting comes from a flag, the environment, a plan file, or its default, in this order. A plan
file is YAML; its keys are the names of the options with underscores, and `command`, `thresholds`
and `background`. A list given on the command line replaces the file's. The plan.json of a run is a
plan file too.
"""

from typing import Any

import click
from click.core import ParameterSource

from scaletest.documents import reader
from scaletest.model.errors import UsageError
from scaletest.model.file_documents import file_values, read_members
from scaletest.validation.options import new_queue
from scaletest.validation.plan import FILE_MEMBERS, Plan

FIRST_SOURCES = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def read_plan(context: click.Context) -> tuple[Plan, bool]:
    """Return the plan that all sources make together, and whether one of them gives the limit.

    The default does not count for that. InvalidValue for an unknown key, or a
    value of the wrong type.
    """
    file = context.params["file"]
    from_file = read_plan_file(file) if file else {}
    is_limited = False
    values = {}
    for key, member in FILE_MEMBERS.items():
        name = member.attribute
        values[name] = context.params.get(key, member.default)
        from_options = context.get_parameter_source(key) in FIRST_SOURCES
        if name in from_file and not from_options:
            values[name] = from_file[name]
        if name == "limit":
            is_limited = from_options or name in from_file
    return Plan(queue=new_queue(), **values), is_limited


def read_plan_file(name: str) -> dict[str, Any]:
    """Return the values of a plan file by the plan's attributes; - is standard input."""
    label = "the plan on standard input" if name == "-" else name
    document = reader.read_file(name, label, "give a plan file; see: scaletest schema plan-file")
    if document is None:
        raise UsageError(
            f"{label} is empty",
            hint="write one KEY: VALUE per line; see: scaletest schema plan-file",
        )
    if isinstance(document, dict) and "schema_version" in document:
        document = file_values(Plan.from_dict(document))
    return read_members(Plan, document, label)
