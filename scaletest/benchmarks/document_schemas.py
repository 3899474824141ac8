"""CustomResourceDefinitions and JSON Schema of all kinds and of the set, made from their specs.

Pure. The status of a definition is bounded: it has headlines, counts and network, not the parsed
result.

The JSON Schema (draft 2020-12) is for editors. The reader checks more, as fields that exclude each
other. All documents that it accepts fit this schema, except null in place of a default.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from scaletest.benchmarks import kube_perftest
from scaletest.benchmarks.benchmark import NAME, BenchmarkPhase
from scaletest.benchmarks.benchmark_set import SetSpec
from scaletest.benchmarks.kinds.kind import Failure, Headline, Kind
from scaletest.benchmarks.kinds.registry import API_VERSION, GROUP, KINDS, SET, VERSION
from scaletest.model.json_schema import DRAFT, Form, Schema
from scaletest.model.verdict import JUDGEMENTS

CATEGORIES = ("scaletest", "perftest")
MOST_MESSAGE = 2000
# Limit for names of benchmarks: its Jobs and pods have longer ones, which must be valid host names.
# Names of a set's benchmarks are cut to it.
MOST_NAME = 40
NAMES = "^[a-z]([a-z0-9-]*[a-z0-9])?$"
_CAN_BE_NAME = f"size(self.metadata.name) <= {MOST_NAME} && self.metadata.name.matches('{NAMES}')"
_FORM = Form(is_file=True)
_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_OBJECTS: Schema = {
    "type": "array",
    "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_CONDITIONS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": _TEXT,
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": _TEXT,
            "message": {"type": "string", "maxLength": MOST_MESSAGE},
            "lastTransitionTime": _TIME,
        },
    },
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}


def definitions(perftest_group: str = "") -> list[dict[str, Any]]:
    """All definitions: one for each kind, the set last; then those of kube-perftest's group."""
    own = [*map(definition, KINDS.values()), set_definition()]
    names = (*kube_perftest.KINDS, SET) if perftest_group else ()
    return own + [
        {
            **each,
            "metadata": {"name": f"{each['spec']['names']['plural']}.{perftest_group}"},
            "spec": {**each["spec"], "group": perftest_group},
        }
        for each in own
        if each["spec"]["names"]["kind"] in names
    ]


def definition(kind: Kind) -> dict[str, Any]:
    """The definition of one kind."""
    spec = _openapi(_FORM.object(kind.spec))
    types = {name: field["type"] for name, field in spec["properties"].items()}
    columns = [
        _column("Host Network", ".spec.hostNetwork", "boolean"),
        _column("Network Name", ".spec.networkName"),
        {**_column("MTU", ".spec.mtu", "integer"), "priority": 1},
        *(
            {**_column(f"{role.title()} IP", f".status.pods.{role}[0].podIp"), "priority": 1}
            for role in ("server", "client", "master")
            if role in types
        ),
        *(_column(_title(name), f".spec.{name}", types[name]) for name in kind.columns),
        _column("Status", ".status.phase"),
        _column("Started", ".status.startedAt", "date"),
        _column("Finished", ".status.finishedAt", "date"),
        _column("Result", ".status.summary"),
        {**_column("Message", ".status.message"), "priority": 1},
    ]
    for headline in kind.headlines:
        columns.append(
            {**_column(_title(headline.name), f".status.headlines.{headline.name}"), "priority": 1}
        )
    return _object(kind.name, kind.plural, spec, _status(kind), columns)


def set_definition() -> dict[str, Any]:
    """The definition of BenchmarkSet."""
    spec = _openapi(_FORM.object(SetSpec))
    spec["properties"]["template"] = {
        "type": "object",
        "description": "apiVersion, kind and spec: the fixed part.",
        "required": ["kind"],
        "properties": {
            "apiVersion": _TEXT,
            "kind": {"type": "string", "enum": list(KINDS)},
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    counts = ("permutationCount", "count", "benchmarksCreated", "running", "succeeded", "failed")
    status = {
        "phase": _TEXT,
        **dict.fromkeys(counts, _COUNT),
        "permutations": _OBJECTS,
        "results": _OBJECTS,
        "summary": _TEXT,
        "verdict": {"type": "string", "enum": [*map(str, JUDGEMENTS)]},
        "verdictReason": {"type": "string", "maxLength": MOST_MESSAGE},
        "startedAt": _TIME,
        "finishedAt": _TIME,
        "observedGeneration": _COUNT,
        "conditions": _CONDITIONS,
    }
    columns = [
        _column("Permutations", ".status.permutationCount", "integer"),
        _column("Repetitions", ".spec.repetitions", "integer"),
        _column("Count", ".status.count", "integer"),
        _column("Running", ".status.running", "integer"),
        _column("Succeeded", ".status.succeeded", "integer"),
        _column("Failed", ".status.failed", "integer"),
        _column("Verdict", ".status.verdict"),
        _column("Result", ".status.summary"),
        _column("Finished", ".status.finishedAt", "date"),
    ]
    return _object(SET, "benchmarksets", spec, {"type": "object", "properties": status}, columns)


def _object(
    name: str, plural: str, spec: Schema, status: Schema, columns: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": name,
                "listKind": f"{name}List",
                "plural": plural,
                "singular": name.lower(),
                "categories": list(CATEGORIES),
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "required": ["spec"],
                            "properties": {"spec": spec, "status": status},
                            "x-kubernetes-validations": [_NAMED],
                        }
                    },
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                }
            ],
        },
    }


# for names of new objects only: existing ones must accept changes, and deletion
_NAMED: Schema = {
    "rule": f"oldSelf.hasValue() || ({_CAN_BE_NAME})",
    "optionalOldSelf": True,
    "message": (
        f"the name must have a-z, 0-9 and '-' only, a letter first, {MOST_NAME} characters at most"
    ),
}
_PLACE: Schema = {
    "type": "object",
    "properties": {"name": _TEXT, "podIp": _TEXT, "nodeName": _TEXT, "nodeIp": _TEXT},
}


def _status(kind: Kind) -> Schema:
    properties: dict[str, Schema] = {
        "phase": {"type": "string", "enum": [*map(str, BenchmarkPhase)]},
        "failure": {"type": "string", "enum": [*map(str, Failure)]},
        "message": {"type": "string", "maxLength": MOST_MESSAGE},
        "lines": {"type": "array", "maxItems": 8, "items": _TEXT},
        "remedy": {"type": "string", "maxLength": MOST_MESSAGE},
        "summary": _TEXT,
        # headlines are texts with units for people, values are numbers in base units
        "headlines": {
            "type": "object",
            "properties": {
                headline.name: {"type": "string", "description": headline.help}
                for headline in kind.headlines
            },
        },
        "values": {"type": "object", "properties": dict(map(_number, kind.headlines))},
        "network": {
            "type": "object",
            "properties": {
                "interface": _TEXT,
                "family": _TEXT,
                "mtu": {"type": "integer"},
                "address": _TEXT,
                "peer": _TEXT,
            },
        },
        "resultConfigMap": _TEXT,
        "pods": {"type": "object", "additionalProperties": {"type": "array", "items": _PLACE}},
        "startedAt": _TIME,
        "finishedAt": _TIME,
        "observedGeneration": _COUNT,
        "conditions": _CONDITIONS,
    }
    return {"type": "object", "properties": properties}


def _column(title: str, path: str, kind: str = "string") -> dict[str, Any]:
    return {"name": title, "type": kind, "jsonPath": path}


def _number(headline: Headline) -> tuple[str, Schema]:
    unit = f"In {headline.unit}." if headline.unit else "A plain number."
    return headline.name, {"type": "number", "description": unit}


def _title(name: str) -> str:
    """The title of a column: hostNetwork as Host Network."""
    spaced = re.sub("([A-Z])", r" \1", name)
    return spaced[:1].upper() + spaced[1:]


_VERSION = "[a-z0-9]+"


def schema() -> Schema:
    """The schema of one document: a benchmark of any kind, or a set."""
    versions = "|".join(
        [API_VERSION, *(f"{group}/{_VERSION}" for group in kube_perftest.GROUPS)]
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
                "properties": {"name": {"type": "string", "pattern": f"^{NAME.pattern}$"}},
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
                name: {**_FORM.object(kind.spec), "description": kind.help}
                for name, kind in KINDS.items()
            },
            SET: _set(),
        },
    }


def _set() -> Schema:
    closed = {**_FORM.object(SetSpec), "description": "A sweep over one benchmark."}
    closed["properties"]["template"] = {
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
    closed["allOf"] = [
        {
            "if": {
                "not": {"required": ["matrix"]},
                "properties": {"template": {"properties": {"kind": {"const": name}}}},
            },
            "then": {"properties": {"template": {"properties": {"spec": _ref(name)}}}},
        }
        for name in KINDS
    ]
    return closed


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _openapi(schema: Any) -> Any:
    """Translate a JSON Schema into a structural one of OpenAPI v3, as Kubernetes requires."""
    made = dict(schema)
    if "properties" in made:
        made["properties"] = {name: _openapi(part) for name, part in made["properties"].items()}
        del made["additionalProperties"]
        if not made["required"]:
            del made["required"]
    if "items" in made:
        made["items"] = _openapi(made["items"])
    if made.get("additionalProperties") == {}:
        del made["additionalProperties"]
        made["x-kubernetes-preserve-unknown-fields"] = True
    if isinstance(made["type"], list):
        made["type"] = made["type"][0]
        made["nullable"] = True
        # null is as good as no default
        del made["default"]
    return made


DOCUMENTS: Mapping[str, Callable[[], Schema]] = {"benchmark": schema}
