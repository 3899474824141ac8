"""scaletest bench explain: the kinds of benchmarks, their fields and their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import click
import cloup
import yaml

from scaletest.benchmarks.commands.bench import complete_kind
from scaletest.benchmarks.kinds.kind import CrowdSpec, MpiSpec, PairSpec
from scaletest.benchmarks.kinds.registry import API_VERSION, KINDS, kind_of
from scaletest.cli import options as shared
from scaletest.cli.output import Output, echo
from scaletest.model.json_schema import json_type
from scaletest.model.wording import as_options
from scaletest.model.writing import DocumentMember, members
from scaletest.plugins import BUILT_IN


def kinds() -> tuple[list[dict[str, str]], str]:
    """All kinds, and the packages that those come from which are not built in."""
    for problem in KINDS.problems:
        echo(f"warning: {problem}", err=True)
    rows = [
        {"kind": kind.name, "help": kind.help, "package": KINDS.package(kind.name)}
        for kind in KINDS.values()
    ]
    width = max(len(row["kind"]) for row in rows)
    return rows, "\n".join(f"{row['kind']:{width}}  {row['help']}{_source(row)}" for row in rows)


def _source(row: Mapping[str, str]) -> str:
    return "" if row["package"] == BUILT_IN else f" ({row['package']})"


def explained(name: str) -> tuple[dict[str, object], str]:
    """One kind, as data and as text."""
    kind = kind_of(name)
    spec = members(kind.spec)
    example = {
        "apiVersion": API_VERSION,
        "kind": kind.name,
        "metadata": {"name": kind.name.lower()},
        "spec": {field.name: field.usual for field in spec if field.name not in _COMMON},
    }
    document = yaml.safe_dump(example, sort_keys=False)
    explanation: dict[str, object] = {
        "kind": kind.name,
        "help": kind.help,
        "fields": list(map(_row_of_field, spec)),
        "headlines": [
            {
                "name": headline.name,
                "label": headline.label,
                "unit": headline.unit,
                "help": headline.help,
            }
            for headline in kind.headlines
        ],
        "example": document,
    }
    width = max(len(field.name) for field in spec)
    lines = [
        *(f"{kind.name}: {kind.help}", *map(as_options, kind.notes), "", "spec"),
        *(f"  {field.name:{width}}  {_described(field)}" for field in spec),
        *("", "numbers"),
        *(
            f"  {headline.name}  {headline.label}, {headline.unit or 'a number'}. {headline.help}"
            for headline in kind.headlines
        ),
        *("", "example"),
        *(f"  {line}" for line in document.splitlines()),
    ]
    return explanation, "\n".join(lines)


def _row_of_field(field: DocumentMember) -> dict[str, object]:
    """A field of a kind's spec as data. own: the kind alone has it, others do not."""
    rule = field.rule
    return {
        "field": field.name,
        "type": json_type(field.hint),
        "default": field.usual,
        "help": rule.description,
        "choices": list(rule.choices),
        "minimum": rule.limits.get("ge"),
        "maximum": rule.limits.get("le"),
        "own": field.name not in _COMMON,
    }


def _described(field: DocumentMember) -> str:
    """Type, default, description and limits of a field, in words."""
    default = field.usual
    usual = "not set"
    if default not in ("", None, [], {}):
        written = yaml.safe_dump(default, default_flow_style=True).removesuffix("...\n").strip()
        usual = f"default {written}"
    sentences = f"{field.rule.description} {field.rule.allowed}".rstrip()
    return f"{json_type(field.hint)}, {usual}. {sentences}"


# Fields that not one kind alone has.
_SHARED = chain(*(members(spec) for spec in (PairSpec, CrowdSpec, MpiSpec)))
_COMMON = {field.name for field in _SHARED} - {"transport"}


@cloup.command()
@click.argument("kind", required=False, shell_complete=complete_kind)
@shared.output()
def explain(kind: str | None, output: Output) -> None:
    """Explain a KIND: its fields with defaults, its numbers with units, an example. Without KIND:
    list them.

    \b
    scaletest bench explain
    scaletest bench explain Fio
    """
    data, text = explained(kind) if kind else kinds()
    output.show(data, [text])
