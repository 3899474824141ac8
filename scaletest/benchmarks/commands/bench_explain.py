"""scaletest bench explain: the kinds of benchmarks, their fields and their numbers."""

import click
import cloup
import yaml

from scaletest.benchmarks.commands.bench import complete_kind
from scaletest.benchmarks.kinds import API_VERSION, CrowdSpec, MpiSpec, PairSpec, registry
from scaletest.cli import options as shared
from scaletest.cli.output import Output, echo
from scaletest.model import json_schema, wording, writing
from scaletest.plugins import BUILT_IN

HELP = """
Explain a KIND: its fields with defaults, its numbers with units, an example. Without KIND:
list them.

\b
scaletest bench explain
scaletest bench explain Fio
"""
# Fields that not one kind alone has; transport is of two, and matters for both.
_COMMON = {
    field.name
    for spec in (PairSpec, CrowdSpec, MpiSpec)
    for field in writing.document_members(spec)
} - {"transport"}


def list_kinds() -> tuple[list[dict[str, str]], str]:
    """List all kinds, and the packages that those come from which are not built in."""
    for problem in registry.KINDS.problems:
        echo(f"warning: {problem}", err=True)
    width = max(map(len, registry.KINDS))
    rows, lines = [], []
    for kind in registry.KINDS.values():
        package = registry.KINDS.package(kind.name)
        source = "" if package == BUILT_IN else f" ({package})"
        rows.append({"kind": kind.name, "help": kind.help, "package": package})
        lines.append(f"{kind.name:{width}}  {kind.help}{source}")
    return rows, "\n".join(lines)


def explain_kind(name: str) -> tuple[dict[str, object], str]:
    """Explain a kind, as data and as text."""
    kind = registry.kind_of(name)
    spec = writing.document_members(kind.spec)
    example = yaml.safe_dump(
        {
            "apiVersion": API_VERSION,
            "kind": kind.name,
            "metadata": {"name": kind.name.lower()},
            "spec": {field.name: field.usual for field in spec if field.name not in _COMMON},
        },
        sort_keys=False,
    )
    explanation: dict[str, object] = {
        "kind": kind.name,
        "help": kind.help,
        # own: the kind alone has the field, others do not
        "fields": [
            {
                "field": field.name,
                "type": json_schema.json_type(field.hint),
                "default": field.usual,
                "help": field.rule.description,
                "choices": list(field.rule.choices),
                "minimum": field.rule.limits.get("ge"),
                "maximum": field.rule.limits.get("le"),
                "own": field.name not in _COMMON,
            }
            for field in spec
        ],
        "headlines": [
            {
                "name": headline.name,
                "label": headline.label,
                "unit": headline.unit,
                "help": headline.help,
            }
            for headline in kind.headlines
        ],
        "example": example,
    }
    width = max(len(field.name) for field in spec)
    lines = [
        *(f"{kind.name}: {kind.help}", *map(wording.as_options, kind.notes), "", "spec"),
        *(f"  {field.name:{width}}  {_describe_field(field)}" for field in spec),
        *("", "numbers"),
        *(
            f"  {headline.name}  {headline.label}, {headline.unit or 'a number'}. {headline.help}"
            for headline in kind.headlines
        ),
        *("", "example"),
        *(f"  {line}" for line in example.splitlines()),
    ]
    return explanation, "\n".join(lines)


def _describe_field(field: writing.DocumentMember) -> str:
    """Write type, default, description and limits of a field in words."""
    usual = "not set"
    if field.usual not in ("", None, [], {}):
        # YAML ends a document of one scalar with dots
        written = yaml.safe_dump(field.usual, default_flow_style=True).removesuffix("...\n")
        usual = f"default {written.strip()}"
    type_and_default = f"{json_schema.json_type(field.hint)}, {usual}"
    return f"{type_and_default}. {field.rule.description} {field.rule.allowed}".rstrip()


@cloup.command(help=HELP)
@click.argument("kind", required=False, shell_complete=complete_kind)
@shared.output()
def explain(kind: str | None, output: Output) -> None:
    """Explain a kind, or list all of them."""
    data, text = explain_kind(kind) if kind else list_kinds()
    output.show(data, [text])
