"""The chart's values.schema.json and README.md, made from values.yaml: types from the values, text from the comments.

What a type cannot say (alternatives, what may be null, maps with free keys) is in RULES.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from scaletest.kinds import crd

CHART = Path(__file__).parents[1] / "charts" / "scaletest"
REDIS = CHART / "charts" / "redis"
DRAFT = "http://json-schema.org/draft-07/schema#"

COUNT = {"type": "integer", "minimum": 0}
SOME = {"type": "integer", "minimum": 1}
SECONDS = {"type": "number", "minimum": 0}
WINDOW = {"type": "number", "exclusiveMinimum": 0, "maximum": 620}
PART = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
OBJECTS = {"type": "array", "items": {"type": "object"}}
WORDS = {"type": "array", "items": {"type": "string"}}
TEXT = {"type": "string"}
DIGEST = {"type": "string", "pattern": "^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})?$"}
NAME = {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"}
KINDS = ["none", "hpa", "hpa-external", "hpa-custom", "keda", "job", "cron"]

# Path of a value, with queueDefaults for a queue's -> its schema, where the value does not tell.
RULES: dict[str, Any] = {
    "imagePullSecrets": OBJECTS,
    "image.repository": {"type": "string", "minLength": 1},
    "nameOverride": NAME,
    "fullnameOverride": NAME,
    "image.digest": DIGEST,
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "extraObjects": OBJECTS,
    "operator.namespaces": WORDS,
    "networkPolicy.from": OBJECTS,
    "queueDefaults.maximum": COUNT,
    "queueDefaults.timeLimit": SECONDS,
    "queueDefaults.graceSeconds": {"type": ["integer", "null"], "minimum": 1},
    "queueDefaults.replicas": COUNT,
    "queueDefaults.image": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"repository": {"type": "string", "minLength": 1}, "tag": TEXT, "digest": DIGEST},
    },
    "queueDefaults.device.count": SOME,
    "queueDefaults.env": OBJECTS,
    "queueDefaults.volumes": OBJECTS,
    "queueDefaults.volumeMounts": OBJECTS,
    "queueDefaults.supplementalGroups": {"type": "array", "items": COUNT},
    "queueDefaults.runAsUser": {"type": ["integer", "null"], "minimum": 1},
    "queueDefaults.tolerations": OBJECTS,
    "queueDefaults.topologySpreadConstraints": {"type": ["array", "null"], "items": {"type": "object"}},
    "queueDefaults.maxUnavailable": {
        "anyOf": [{"type": ["integer", "null"], "minimum": 0}, {"type": "string", "pattern": "^[0-9]+%$"}]
    },
    "queueDefaults.device.resource": {"type": "string", "pattern": "^([a-z0-9.-]+/[A-Za-z0-9._-]+)?$"},
    "queueDefaults.autoscaling.kind": {"enum": KINDS},
    "queueDefaults.autoscaling.minReplicas": COUNT,
    "queueDefaults.autoscaling.maxReplicas": SOME,
    "queueDefaults.autoscaling.metric": {"enum": ["waiting", "running", "demand", "desired_workers", "max_wait"]},
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
    "queueDefaults.autoscaling.pollingInterval": SOME,
    "queueDefaults.autoscaling.cooldownPeriod": COUNT,
    "queueDefaults.autoscaling.exporter": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"utilisation": PART, "waitTarget": SECONDS, "window": WINDOW},
    },
    "queueDefaults.client.parallel": COUNT,
    "queueDefaults.client.maxParallel": SOME,
    "queueDefaults.client.keepRecords": COUNT,
    "queueDefaults.client.ingress.path": {"type": "string", "pattern": "^/"},
    "queueDefaults.client.ingress.tls": OBJECTS,
    "exporter.window": WINDOW,
    "exporter.waitTarget": SECONDS,
    "exporter.utilisation": PART,
    "exporter.tolerations": OBJECTS,
    "externalRedis.port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "externalRedis.database": COUNT,
    "externalRedis.keyPrefix": {"type": "string", "pattern": "^[A-Za-z0-9_.:{}-]+$"},
    "test.limit": SOME,
    "test.scale": {"type": "number", "minimum": 1, "maximum": 2},
    "test.stepTime": SECONDS,
    "user": SOME,
    "persistence.size": {"type": "string", "pattern": "^[0-9]+([.][0-9]+)?([KMGTPE]i|[kMGTPE])?$"},
    "maxmemory": {"type": ["string", "integer", "null"]},
    "graceSeconds": COUNT,
    "tolerations": OBJECTS,
}
# Maps whose keys are somebody else's; those of texts, where 1 or true would be refused by the API server.
FREE = re.compile(r"(resources|affinity|behavior)$")
TEXTS = re.compile(r"(nodeSelector|labels|podLabels|annotations|podAnnotations|commonLabels|users)$")

MEMORY = """\
## Memory

Redis keeps everything that waits in memory. The chart gives it half of its memory limit
(`redis.resources.limits.memory`) as `maxmemory`; `redis.maxmemory` says otherwise. Half, since rewriting the
append-only file forks the server, and every page that is written meanwhile lies in memory twice. Measured with
Redis 7.0, all requests changed during a rewrite: with half the server used 80 % of its limit at the highest,
with three fifths 86 %; at three quarters the kernel ended it, and would again after each restart. With
`maxmemory` a submission that does not fit is an error or waits, and nothing that was accepted is lost. The last
tenth of it is kept for workers.

| arguments of a request | memory of a waiting request | 100,000 requests | fit into the default (1Gi: 512 MiB) |
|---|---|---|---|
| 10 bytes | 0.45 KB | 45 MB | 1,070,000 |
| 300 bytes | 1.4 KB | 136 MB | 350,000 |
| 4,000 bytes, about the most | 5.1 KB | 509 MB | 95,000 |

Hence `queueDefaults.maximum` is 100,000: the default Redis holds three full queues of usual requests. A queue
that is full refuses what comes next, and no other queue notices. With more queues, longer arguments or less
memory give queues less; 0 is no limit.
""".splitlines()

GITOPS = """\
## GitOps

Without `redis.existingSecret` the chart draws passwords, and keeps those that are there: `helm upgrade` looks
into the cluster. `helm template`, Argo CD and whatever else renders without the cluster cannot look: each
rendering has new passwords. Pods carry the annotation `scaletest/redis-passwords`, which changes with them, so
that Redis and all that use it start again and nobody is locked out; but they do so with each synchronisation.
So make the secret once, yourself:

1. Let the chart write it, with another name and without Helm's labels, and put it where you keep secrets
   (sealed, encrypted, or in a vault):

   ```
   helm template scaletest charts/scaletest -n scaletest -f values.yaml --show-only charts/redis/templates/secret.yaml |
     sed -e 's/name: "scaletest-redis"/name: "scaletest-redis-users"/' \\
         -e '/^  labels:/,/^[^ ]/{/^[^ ]/!d}' > secret.yaml
   kubectl apply -n scaletest -f secret.yaml
   ```

2. Name it, and have every rendering fail that would draw passwords:

   ```
   redis:
     existingSecret: scaletest-redis-users
     requireExistingSecret: true
   ```

3. What is in that secret the chart does not see. After you changed it, or `redis.users`, whose rights stand in
   its `users.acl`, start everything again:

   ```
   kubectl -n scaletest rollout restart statefulset,deployment -l app.kubernetes.io/instance=scaletest
   ```
""".splitlines()


def schema(values: dict[str, Any], path: str = "") -> dict[str, Any]:
    """The schema of a block of values. A key that is not there is an error."""
    found = {key: _of(value, f"{path}.{key}".lstrip(".")) for key, value in values.items()}
    return {"type": "object", "additionalProperties": False, "properties": found}


def _of(value: Any, path: str) -> dict[str, Any]:
    if path in RULES:
        return dict(RULES[path])
    if TEXTS.search(path):
        return {"type": "object", "additionalProperties": {"type": "string"}}
    if isinstance(value, dict):
        return {"type": "object"} if FREE.search(path) or not value else schema(value, path)
    if isinstance(value, list):
        return dict(WORDS)
    return {"type": {bool: "boolean", int: "integer", float: "number", str: "string"}[type(value)]}


def chart_schema() -> str:
    """Of the chart: the subchart checks its own values, and every queue has the schema of the defaults."""
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
    """Of the subchart."""
    whole = schema(yaml.safe_load((REDIS / "values.yaml").read_text("utf-8")))
    whole["properties"]["global"] = {"type": "object"}
    return _dump(whole)


def _dump(whole: dict[str, Any]) -> str:
    return json.dumps({"$schema": DRAFT, **whole}, indent=2) + "\n"


def crds() -> str:
    """The definitions of benchmarks, which stay when a release goes: benchmarks would go with them."""
    rows = crd.definitions()
    for row in rows:
        row["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    return yaml.safe_dump_all(rows, sort_keys=False, explicit_start=True)


def readme() -> str:
    """The chart's README: how to begin, and every value with its comment."""
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
        "How to go on: [docs/how-to/kubernetes.md](../../docs/how-to/kubernetes.md). Examples are in",
        "[examples/](examples), one for each way to use it. A key that the chart does not know is an error.",
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
    for key, default, comment in described(path.read_text("utf-8")):
        meaning = comment.replace("|", "\\|")
        lines.append(f"| `{prefix}{key}` | {default} | {meaning} |")
    return [*lines, ""]


def described(text: str) -> list[tuple[str, str, str]]:
    """Key, default and comment of every value that has a comment."""
    values = yaml.safe_load(text)
    rows: list[tuple[str, str, str]] = []
    stack: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in text.splitlines():
        if found := re.match(r"\s*# ?(.*)", line):
            comment.append(found[1])
            continue
        if found := re.match(r"( *)([\w-]+):", line):
            depth = len(found[1])
            stack = [*(row for row in stack if row[0] < depth), (depth, found[2])]
            if comment:
                key = ".".join(name for _, name in stack)
                rows.append((key, _default(values, [name for _, name in stack]), " ".join(comment)))
        comment = []
    return rows


def _default(values: Any, keys: list[str]) -> str:
    for key in keys:
        values = values[key]
    shown = json.dumps(values)
    return "" if isinstance(values, dict) and values else f"`{shown}`"
