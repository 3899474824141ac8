"""What scaletest bench explain prints: a kind's fields, numbers, columns and an example."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import yaml

from scaletest.kinds import fields
from scaletest.kinds.common import CrowdSpec, MpiSpec, PairSpec
from scaletest.kinds.registry import API_VERSION, KINDS, kind_of


def kinds() -> tuple[list[dict[str, str]], str]:
    """All kinds."""
    rows = [{"kind": kind.name, "help": kind.help} for kind in KINDS.values()]
    width = max(len(row["kind"]) for row in rows)
    return rows, "\n".join(f"{row['kind']:{width}}  {row['help']}" for row in rows)


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a kind's spec. own: the kind alone has it, others do not."""

    field: str
    type: str
    default: object
    help: str
    choices: list[str]
    minimum: float | None
    maximum: float | None
    own: bool


def explained(name: str) -> tuple[dict[str, object], str]:
    """One kind, as data and as text."""
    kind = kind_of(name)
    spec = [_field(field) for field in fields.fields_of(kind.spec)]
    example = {
        "apiVersion": API_VERSION,
        "kind": kind.name,
        "metadata": {"name": kind.name.lower()},
        "spec": {field.field: field.default for field in spec if field.own},
    }
    document = yaml.safe_dump(example, sort_keys=False)
    headlines = [
        {"name": headline.name, "unit": headline.unit, "help": headline.help}
        for headline in kind.headlines
    ]
    explanation: dict[str, object] = {
        "kind": kind.name,
        "help": kind.help,
        "fields": [asdict(field) for field in spec],
        "headlines": headlines,
        "example": document,
    }
    width = max(len(field.field) for field in spec)
    lines = [f"{kind.name}: {kind.help}", *kind.notes, "", "spec"]
    for field in spec:
        lines.append(
            f"  {field.field:{width}}  {field.type}, {_default(field.default)}."
            f" {field.help}{_limits(field)}"
        )
    lines += ["", "numbers"]
    for headline in kind.headlines:
        lines.append(f"  {headline.name}  {headline.unit or 'a number'}. {headline.help}")
    lines += ["", "example", *(f"  {line}" for line in document.splitlines())]
    return explanation, "\n".join(lines)


def _field(field: fields.SpecField) -> _Field:
    default, rule = field.default, field.rule
    if field.nested:
        default = fields.written(default, defaults=False)
    return _Field(
        field.name,
        field.kind,
        list(default) if isinstance(default, tuple) else default,
        rule.help,
        list(rule.choices),
        rule.minimum,
        rule.maximum,
        field.name not in _COMMON,
    )


def _limits(field: _Field) -> str:
    if field.choices:
        return f" One of {', '.join(map(str, field.choices))}."
    low, high = field.minimum, field.maximum
    if low is None and high is None:
        return ""
    if low is not None and high is not None:
        return f" {low:g} to {high:g}."
    return f" From {low or 0:g}."


def _default(default: object) -> str:
    if default in ("", None) or default in ([], {}):
        return "not set"
    text = yaml.safe_dump(default, default_flow_style=True).removesuffix("...\n").strip()
    return f"default {text}"


def _common() -> frozenset[str]:
    names: set[str] = set()
    for spec in (PairSpec, CrowdSpec, MpiSpec):
        names.update(field.name for field in fields.fields_of(spec))
    return frozenset(names - {"transport"})


_COMMON = _common()
