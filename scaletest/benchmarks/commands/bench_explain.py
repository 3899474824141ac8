"""scaletest bench explain: the kinds of benchmarks, their fields and their numbers."""

import click
import cloup
import yaml

from scaletest.benchmarks.kinds import API_VERSION, CrowdSpec, Kind, MpiSpec, PairSpec, registry
from scaletest.cli.output import echo
from scaletest.model import json_schema, wording, writing
from scaletest.plugins import BUILT_IN

HELP = """
Explain a KIND: its fields with defaults, its numbers with units, an example. Without KIND:
list them.

\b
scaletest bench explain
scaletest bench explain Fio
"""
# Fields that several kinds have, which examples leave out; transport is of two kinds, and matters
# for both.
_COMMON = {
    field.name
    for spec in (PairSpec, CrowdSpec, MpiSpec)
    for field in writing.document_members(spec)
} - {"transport"}


@cloup.command(help=HELP)
@click.argument("kind", required=False)
def explain(kind: str | None) -> None:
    """Explain a kind, or list all of them."""
    if kind:
        explain_kind(registry.kind_of(kind))
    else:
        list_kinds()


def list_kinds() -> None:
    """List all kinds, and the packages that those come from which are not built in."""
    for problem in registry.KINDS.problems:
        echo(f"warning: {problem}", err=True)
    width = max(map(len, registry.KINDS))
    for kind in registry.KINDS.values():
        package = registry.KINDS.package(kind.name)
        source = "" if package == BUILT_IN else f" ({package})"
        echo(f"{kind.name:{width}}  {kind.help}{source}")


def explain_kind(kind: Kind) -> None:
    """Show the fields of a kind, its numbers, and an example."""
    echo(f"{kind.name}: {kind.help}")
    for note in kind.notes:
        echo(wording.as_options(note))
    echo("\nspec")
    fields = writing.document_members(kind.spec)
    width = max(len(field.name) for field in fields)
    for field in fields:
        echo(f"  {field.name:{width}}  {_describe_field(field)}")
    echo("\nnumbers")
    for headline in kind.headlines:
        unit = headline.unit or "a number"
        echo(f"  {headline.name}  {headline.label}, {unit}. {headline.help}")
    echo("\nexample")
    for line in write_example(kind).splitlines():
        echo(f"  {line}")


def write_example(kind: Kind) -> str:
    """Write a document of a kind, with the defaults of the fields that are its own."""
    fields = writing.document_members(kind.spec)
    document = {
        "apiVersion": API_VERSION,
        "kind": kind.name,
        "metadata": {"name": kind.name.lower()},
        "spec": {field.name: field.usual for field in fields if field.name not in _COMMON},
    }
    return yaml.safe_dump(document, sort_keys=False)


def _describe_field(field: writing.DocumentMember) -> str:
    """Write type, default, description and limits of a field in words."""
    usual = "not set"
    if field.usual not in ("", None, [], {}):
        # YAML ends a document of one scalar with dots
        written = yaml.safe_dump(field.usual, default_flow_style=True).removesuffix("...\n")
        usual = f"default {written.strip()}"
    type_and_default = f"{json_schema.json_type(field.hint)}, {usual}"
    return f"{type_and_default}. {field.rule.description} {field.rule.allowed}".rstrip()
