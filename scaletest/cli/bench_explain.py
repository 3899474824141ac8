"""What scaletest bench explain prints: a kind's fields, numbers, columns and an example."""

from __future__ import annotations

from typing import Any

import yaml

from scaletest.kinds import fields
from scaletest.kinds.registry import API_VERSION, KINDS, kind_of


def kinds() -> tuple[list[dict[str, str]], str]:
    """All kinds."""
    rows = [{"kind": kind.name, "help": kind.help} for kind in KINDS.values()]
    width = max(len(row["kind"]) for row in rows)
    return rows, "\n".join(f"{row['kind']:{width}}  {row['help']}" for row in rows)


def explained(name: str) -> tuple[dict[str, Any], str]:
    """One kind, as data and as text."""
    kind = kind_of(name)
    rows = [_row(one) for one in fields.fields_of(kind.spec)]
    example = {
        "apiVersion": API_VERSION,
        "kind": kind.name,
        "metadata": {"name": kind.name.lower()},
    }
    own = {row["field"]: row["default"] for row in rows if row["own"]}
    document = yaml.safe_dump({**example, "spec": own}, sort_keys=False)
    data = {
        "kind": kind.name,
        "help": kind.help,
        "fields": rows,
        "headlines": [
            {"name": one.name, "unit": one.unit, "help": one.help} for one in kind.headlines
        ],
        "example": document,
    }
    width = max(len(row["field"]) for row in rows)
    lines = [f"{kind.name}: {kind.help}", *kind.notes, "", "spec"]
    for row in rows:
        lines.append(
            f"  {row['field']:{width}}  {row['type']}, {_default(row['default'])}."
            f" {row['help']}{_limits(row)}"
        )
    lines += ["", "numbers"]
    lines += [f"  {one.name}  {one.unit or 'a number'}. {one.help}" for one in kind.headlines]
    return data, "\n".join(
        [*lines, "", "example", *(f"  {line}" for line in document.splitlines())]
    )


def _row(one: fields.SpecField) -> dict[str, Any]:
    default = fields.written(one.default, defaults=False) if one.nested else one.default
    rule = one.rule
    return {
        "field": one.name,
        "type": one.kind,
        "default": list(default) if isinstance(default, tuple) else default,
        "help": rule.help,
        "choices": list(rule.choices),
        "minimum": rule.minimum,
        "maximum": rule.maximum,
        "own": one.name not in _COMMON,
    }


def _limits(row: dict[str, Any]) -> str:
    if row["choices"]:
        return f" One of {', '.join(map(str, row['choices']))}."
    low, high = row["minimum"], row["maximum"]
    if low is None and high is None:
        return ""
    return (
        f" {low:g} to {high:g}."
        if low is not None and high is not None
        else f" From {low if low is not None else 0:g}."
    )


def _default(value: Any) -> str:
    if value in ("", None) or value in ([], {}):
        return "not set"
    return (
        "default"
        f" {yaml.safe_dump(value, default_flow_style=True).removesuffix('...' + chr(10)).strip()}"
    )


def _common() -> frozenset[str]:
    from scaletest.kinds.common import CrowdSpec, MpiSpec, PairSpec

    return frozenset(
        one.name for spec in (PairSpec, CrowdSpec, MpiSpec) for one in fields.fields_of(spec)
    ) - {"transport"}


_COMMON = _common()
