"""JSON Schema (draft 2020-12) of a benchmark's document, for editors.

The reader checks more, as fields that exclude each other. All documents that it accepts fit this
schema, except null in place of a default.
"""

from collections.abc import Callable, Mapping

from scaletest.benchmarks.documents import benchmark, benchmark_set, kube_perftest
from scaletest.benchmarks.kinds import API_VERSION
from scaletest.benchmarks.kinds.registry import KINDS, SET
from scaletest.model.json_schema import DRAFT, Form, Schema

FORM = Form(is_file=True)


def benchmark_schema() -> Schema:
    """Return the schema of one document: a benchmark of any kind, or a set."""
    # a set's spec, with the kind's own one for the template's spec
    sweep = {**FORM.object(benchmark_set.SetSpec), "description": "A sweep over one benchmark."}
    sweep["properties"]["template"] = {
        "type": "object",
        "description": "apiVersion, kind and spec: the fixed part.",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"enum": [*KINDS]},
            "spec": {"type": "object"},
        },
        "required": ["kind"],
    }
    # with a matrix any field may be a text with placeholders
    sweep["allOf"] = [
        {
            "if": {
                "not": {"required": ["matrix"]},
                "properties": {"template": {"properties": {"kind": {"const": name}}}},
            },
            "then": {"properties": {"template": {"properties": {"spec": _ref(name)}}}},
        }
        for name in KINDS
    ]
    versions = "|".join(
        [API_VERSION, *(f"{group}/[a-z0-9]+" for group in kube_perftest.GROUPS)]
    ).replace(".", r"\.")
    return {
        "$schema": DRAFT,
        "$id": "urn:scaletest:benchmark:1",
        "title": "scaletest benchmark",
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string", "pattern": f"^({versions})$", "default": API_VERSION},
            "kind": {"enum": [*KINDS, SET]},
            "metadata": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "pattern": f"^{benchmark.NAME_PATTERN.pattern}$"}
                },
            },
            "spec": {"type": "object"},
            "status": {"type": "object"},
        },
        "required": ["kind"],
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
                "then": {"properties": {"spec": _ref(name)}},
            }
            for name in (*KINDS, SET)
        ],
        "$defs": {
            **{
                name: {**FORM.object(kind.spec), "description": kind.help}
                for name, kind in KINDS.items()
            },
            SET: sweep,
        },
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


# what `scaletest schema` shows of benchmarks
DOCUMENTS: Mapping[str, Callable[[], Schema]] = {"benchmark": benchmark_schema}
