"""Generates the chart's values.schema.json and README.md from values.yaml.

Types come from the values, texts from the comments. RULES has what the type of a value does not
tell: alternatives, values that may be null, maps with free keys.
"""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from scaletest.benchmarks.documents import custom_resources

CHART = Path(__file__).parents[1] / "charts" / "scaletest"
REDIS = CHART / "charts" / "redis"
DRAFT = "http://json-schema.org/draft-07/schema#"

COUNT = {"type": "integer", "minimum": 0}
AT_LEAST_ONE = {"type": "integer", "minimum": 1}
SECONDS = {"type": "number", "minimum": 0}
WINDOW = {"type": "number", "exclusiveMinimum": 0, "maximum": 620}
SHARE = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
OBJECTS = {"type": "array", "items": {"type": "object"}}
STRINGS = {"type": "array", "items": {"type": "string"}}
TEXT = {"type": "string"}
DIGEST = {"type": "string", "pattern": "^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})?$"}
NAME = {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"}
KINDS = ["none", "hpa", "hpa-external", "hpa-custom", "keda", "job", "cron"]

# By the path of a value, with queueDefaults for values of queues: its schema, where the default
# does not tell it.
RULES: dict[str, Any] = {
    "imagePullSecrets": OBJECTS,
    "image.repository": {"type": "string", "minLength": 1},
    "nameOverride": NAME,
    "fullnameOverride": NAME,
    "image.digest": DIGEST,
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "extraObjects": OBJECTS,
    "operator.namespaces": STRINGS,
    "networkPolicy.from": OBJECTS,
    "queueDefaults.maximum": COUNT,
    "queueDefaults.timeLimit": SECONDS,
    "queueDefaults.graceSeconds": {"type": ["integer", "null"], "minimum": 1},
    "queueDefaults.replicas": COUNT,
    "queueDefaults.image": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "repository": {"type": "string", "minLength": 1},
            "tag": TEXT,
            "digest": DIGEST,
        },
    },
    "queueDefaults.device.count": AT_LEAST_ONE,
    "queueDefaults.env": OBJECTS,
    "queueDefaults.volumes": OBJECTS,
    "queueDefaults.volumeMounts": OBJECTS,
    "queueDefaults.supplementalGroups": {"type": "array", "items": COUNT},
    "queueDefaults.runAsUser": {"type": ["integer", "null"], "minimum": 1},
    "queueDefaults.tolerations": OBJECTS,
    "queueDefaults.topologySpreadConstraints": {
        "type": ["array", "null"],
        "items": {"type": "object"},
    },
    "queueDefaults.maxUnavailable": {
        "anyOf": [
            {"type": ["integer", "null"], "minimum": 0},
            {"type": "string", "pattern": "^[0-9]+%$"},
        ]
    },
    "queueDefaults.device.resource": {
        "type": "string",
        "pattern": "^([a-z0-9.-]+/[A-Za-z0-9._-]+)?$",
    },
    "queueDefaults.autoscaling.kind": {"enum": KINDS},
    "queueDefaults.autoscaling.minReplicas": COUNT,
    "queueDefaults.autoscaling.maxReplicas": AT_LEAST_ONE,
    "queueDefaults.autoscaling.metric": {
        "enum": ["waiting", "running", "demand", "desired_workers", "max_wait"]
    },
    "queueDefaults.autoscaling.targetType": {"enum": ["AverageValue", "Value"]},
    "queueDefaults.autoscaling.target": {
        "type": ["string", "number"],
        "pattern": "^(0*[1-9][0-9]*([.][0-9]+)?|0+[.][0-9]*[1-9][0-9]*)$",
        "exclusiveMinimum": 0,
    },
    "queueDefaults.autoscaling.source": {"enum": ["redis", "exporter"]},
    "queueDefaults.autoscaling.schedule": {
        "type": "string",
        "pattern": "^(@[a-z]+|@every [0-9a-z.]+|([^ ]+ +){4}[^ ]+)$",
    },
    "queueDefaults.autoscaling.strategy": {"enum": ["default", "accurate", "eager"]},
    "queueDefaults.autoscaling.pollingInterval": AT_LEAST_ONE,
    "queueDefaults.autoscaling.cooldownPeriod": COUNT,
    "queueDefaults.autoscaling.exporter": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"utilisation": SHARE, "waitTarget": SECONDS, "window": WINDOW},
    },
    "queueDefaults.client.parallel": COUNT,
    "queueDefaults.client.maxParallel": AT_LEAST_ONE,
    "queueDefaults.client.keepRecords": COUNT,
    "queueDefaults.client.ingress.path": {"type": "string", "pattern": "^/"},
    "queueDefaults.client.ingress.tls": OBJECTS,
    "exporter.window": WINDOW,
    "exporter.waitTarget": SECONDS,
    "exporter.utilisation": SHARE,
    "exporter.tolerations": OBJECTS,
    "ui.runAsUser": {"type": ["integer", "null"], "minimum": 1},
    "ui.tolerations": OBJECTS,
    "ui.archive.subPath": {"type": "string", "pattern": "^([^/].*)?$"},
    "ui.ingress.path": {"type": "string", "pattern": "^/"},
    "ui.ingress.tls": OBJECTS,
    "externalRedis.port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "externalRedis.database": COUNT,
    "externalRedis.keyPrefix": {"type": "string", "pattern": "^[A-Za-z0-9_.:{}-]+$"},
    "test.limit": AT_LEAST_ONE,
    "test.scale": {"type": "number", "minimum": 1, "maximum": 2},
    "test.stepTime": SECONDS,
    "user": AT_LEAST_ONE,
    "persistence.size": {"type": "string", "pattern": "^[0-9]+([.][0-9]+)?([KMGTPE]i|[kMGTPE])?$"},
    "maxmemory": {"type": ["string", "integer", "null"]},
    "graceSeconds": COUNT,
    "tolerations": OBJECTS,
}
# Maps with free keys, and those with string values, since the API server refuses 1 or true.
FREE = re.compile(r"(resources|affinity|behavior)$")
TEXTS = re.compile(
    r"(nodeSelector|labels|podLabels|annotations|podAnnotations|commonLabels|users)$"
)

ASSETS = Path(__file__).parent / "assets"
MEMORY = (ASSETS / "chart-memory.md").read_text("utf-8").splitlines()

GITOPS = (ASSETS / "chart-gitops.md").read_text("utf-8").splitlines()


def schema(values: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Build the schema of a block of values, in which unknown keys are errors."""
    properties = {key: _of(default, f"{path}.{key}".lstrip(".")) for key, default in values.items()}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _of(default: Any, path: str) -> dict[str, Any]:
    if path in RULES:
        return dict(RULES[path])
    if TEXTS.search(path):
        return {"type": "object", "additionalProperties": {"type": "string"}}
    if isinstance(default, dict):
        return {"type": "object"} if FREE.search(path) or not default else schema(default, path)
    if isinstance(default, list):
        return dict(STRINGS)
    return {
        "type": {bool: "boolean", int: "integer", float: "number", str: "string"}[type(default)]
    }


def chart_schema() -> str:
    """Write the chart's schema.

    Every queue has the schema of the defaults; the subchart has its own.
    """
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    whole = schema(values)
    queue = whole["properties"]["queueDefaults"]
    whole["definitions"] = {"queue": queue}
    whole["properties"] |= {
        "queueDefaults": {"$ref": "#/definitions/queue"},
        "queues": {
            "type": "object",
            "additionalProperties": {"$ref": "#/definitions/queue"},
        },
        "redis": {"type": "object"},
        "global": {"type": "object"},
    }
    return _dump(whole)


def redis_schema() -> str:
    """Write the schema of the Redis subchart."""
    whole = schema(yaml.safe_load((REDIS / "values.yaml").read_text("utf-8")))
    whole["properties"]["global"] = {"type": "object"}
    return _dump(whole)


def _dump(whole: dict[str, Any]) -> str:
    return json.dumps({"$schema": DRAFT, **whole}, indent=2) + "\n"


def crds() -> str:
    """Write the CRDs of benchmarks.

    They stay when a release is deleted: benchmarks would be deleted too.
    """
    definitions = custom_resources.make_definitions()
    for definition in definitions:
        definition["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    return yaml.safe_dump_all(definitions, sort_keys=False, explicit_start=True)


def readme() -> str:
    """Write the chart's README: first steps, and every value with its comment."""
    lines = [
        "# scaletest on Kubernetes",
        "",
        "Generated by `hack/docs` from the comments in `values.yaml`; do not edit.",
        "",
        "```",
        "helm install scaletest charts/scaletest -n scaletest --create-namespace",
        "helm test scaletest -n scaletest --logs",
        "```",
        "",
        (
            "How to go on: [docs/how-to/kubernetes.md](../../docs/how-to/kubernetes.md). Examples"
            " are in"
        ),
        (
            "[examples/](examples), one for each way to use it. A key that the chart does not know"
            " is an error."
        ),
        "",
        *MEMORY,
        "",
        *GITOPS,
        "",
        "## Values",
        "",
        *_table(CHART / "values.yaml", ""),
        "## Values of the Redis subchart",
        "",
        *_table(REDIS / "values.yaml", "redis."),
    ]
    return "\n".join(lines)


def _table(path: Path, prefix: str) -> list[str]:
    lines = ["| value | default | meaning |", "|---|---|---|"]
    for key, default, comment in described_values(path.read_text("utf-8")):
        meaning = comment.replace("|", "\\|")
        lines.append(f"| `{prefix}{key}` | {default} | {meaning} |")
    return [*lines, ""]


def described_values(text: str) -> list[tuple[str, str, str]]:
    """List key, default and comment of every value that has a comment."""
    values = yaml.safe_load(text)
    descriptions: list[tuple[str, str, str]] = []
    stack: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in text.splitlines():
        if match := re.match(r"\s*# ?(.*)", line):
            comment.append(match[1])
            continue
        if match := re.match(r"( *)([\w-]+):", line):
            depth = len(match[1])
            stack = [parent for parent in stack if parent[0] < depth]
            stack.append((depth, match[2]))
            if comment:
                key = ".".join(name for _, name in stack)
                descriptions.append(
                    (key, _default(values, [name for _, name in stack]), " ".join(comment))
                )
        comment = []
    return descriptions


def _default(values: Any, keys: list[str]) -> str:
    for key in keys:
        values = values[key]
    shown = json.dumps(values)
    return "" if isinstance(values, dict) and values else f"`{shown}`"
