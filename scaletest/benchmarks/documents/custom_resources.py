"""CustomResourceDefinitions of all kinds and of the set, made from their specs.

The status of a definition is bounded: it has headlines, counts and network, not the parsed result.
"""

import re
from typing import Any

from scaletest.benchmarks.documents import (
    MOST_MESSAGE,
    MOST_NAME,
    BenchmarkPhase,
    benchmark_set,
    json_schema,
    kube_perftest,
)
from scaletest.benchmarks.kinds import GROUP, VERSION, Failure, Kind, registry
from scaletest.model.json_schema import Schema
from scaletest.model.verdict import JUDGEMENTS

# for names of new objects only: existing ones must accept changes, and deletion
_VALID_NAME: Schema = {
    "rule": (
        f"oldSelf.hasValue() || (size(self.metadata.name) <= {MOST_NAME}"
        " && self.metadata.name.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$'))"
    ),
    "optionalOldSelf": True,
    "message": (
        f"the name must have a-z, 0-9 and '-' only, a letter first, {MOST_NAME} characters at most"
    ),
}
_TEXT: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
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


def make_definitions(perftest_group: str = "") -> list[dict[str, Any]]:
    """Return all definitions: one for each kind, the set last; then those of kube-perftest's group.

    perftest_group: the API group for documents of kube-perftest, or "" for none.
    """
    definitions = [*map(_kind_definition, registry.KINDS.values()), _set_definition()]
    copied = (*kube_perftest.KINDS, registry.SET) if perftest_group else ()
    for definition in list(definitions):
        spec = definition["spec"]
        if spec["names"]["kind"] in copied:
            definitions.append(
                {
                    **definition,
                    "metadata": {"name": f"{spec['names']['plural']}.{perftest_group}"},
                    "spec": {**spec, "group": perftest_group},
                }
            )
    return definitions


def _kind_definition(kind: Kind) -> dict[str, Any]:
    """Return the definition of one kind."""
    spec = _openapi(json_schema.FORM.object(kind.spec))
    types = {name: field["type"] for name, field in spec["properties"].items()}
    columns = [
        _column("Host Network", ".spec.hostNetwork", "boolean"),
        _column("Network Name", ".spec.networkName"),
        _column("MTU", ".spec.mtu", "integer", wide=True),
        *(
            _column(f"{role.title()} IP", f".status.pods.{role}[0].podIp", wide=True)
            for role in ("server", "client", "master")
            if role in types
        ),
        *(_column(_title(name), f".spec.{name}", types[name]) for name in kind.columns),
        _column("Status", ".status.phase"),
        _column("Started", ".status.startedAt", "date"),
        _column("Finished", ".status.finishedAt", "date"),
        _column("Result", ".status.summary"),
        _column("Message", ".status.message", wide=True),
        *(
            _column(_title(headline.name), f".status.headlines.{headline.name}", wide=True)
            for headline in kind.headlines
        ),
    ]
    status: dict[str, Schema] = {
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
        "values": {
            "type": "object",
            "properties": {
                headline.name: {
                    "type": "number",
                    "description": f"In {headline.unit}." if headline.unit else "A plain number.",
                }
                for headline in kind.headlines
            },
        },
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
        # by role, where each pod is
        "pods": {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": _TEXT,
                        "podIp": _TEXT,
                        "nodeName": _TEXT,
                        "nodeIp": _TEXT,
                    },
                },
            },
        },
        "startedAt": _TIME,
        "finishedAt": _TIME,
        "conditions": _CONDITIONS,
    }
    return _definition(kind.name, kind.plural, spec, status, columns)


def _set_definition() -> dict[str, Any]:
    """Return the definition of BenchmarkSet."""
    spec = _openapi(json_schema.FORM.object(benchmark_set.SetSpec))
    spec["properties"]["template"] = {
        "type": "object",
        "description": "apiVersion, kind and spec: the fixed part.",
        "required": ["kind"],
        "properties": {
            "apiVersion": _TEXT,
            "kind": {"type": "string", "enum": list(registry.KINDS)},
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    counts = ("permutationCount", "count", "benchmarksCreated", "running", "succeeded", "failed")
    status: dict[str, Schema] = {
        "phase": _TEXT,
        **dict.fromkeys(counts, _COUNT),
        "results": {
            "type": "array",
            "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
        "summary": _TEXT,
        "verdict": {"type": "string", "enum": [*map(str, JUDGEMENTS)]},
        "verdictReason": {"type": "string", "maxLength": MOST_MESSAGE},
        "startedAt": _TIME,
        "finishedAt": _TIME,
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
    return _definition(registry.SET, "benchmarksets", spec, status, columns)


def _definition(
    name: str, plural: str, spec: Schema, status: dict[str, Schema], columns: list[dict[str, Any]]
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
                "categories": ["scaletest", "perftest"],
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
                            "properties": {
                                "spec": spec,
                                "status": {"type": "object", "properties": status},
                            },
                            "x-kubernetes-validations": [_VALID_NAME],
                        }
                    },
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                }
            ],
        },
    }


def _column(title: str, path: str, kind: str = "string", *, wide: bool = False) -> dict[str, Any]:
    """Return a column of `kubectl get`; wide: only with `-o wide`."""
    column = {"name": title, "type": kind, "jsonPath": path}
    return {**column, "priority": 1} if wide else column


def _title(name: str) -> str:
    """Return the title of a column: hostNetwork as Host Network."""
    spaced = re.sub("([A-Z])", r" \1", name)
    return spaced[:1].upper() + spaced[1:]


def _openapi(schema: Any) -> Any:
    """Translate a JSON Schema into a structural one of OpenAPI v3, as Kubernetes requires."""
    structural = dict(schema)
    if "properties" in structural:
        structural["properties"] = {
            name: _openapi(part) for name, part in structural["properties"].items()
        }
        del structural["additionalProperties"]
        if not structural["required"]:
            del structural["required"]
    if "items" in structural:
        structural["items"] = _openapi(structural["items"])
    if structural.get("additionalProperties") == {}:
        del structural["additionalProperties"]
        structural["x-kubernetes-preserve-unknown-fields"] = True
    if isinstance(structural["type"], list):
        structural["type"] = structural["type"][0]
        structural["nullable"] = True
        # null is as good as no default
        del structural["default"]
    return structural
