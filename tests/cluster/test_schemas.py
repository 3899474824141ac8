"""Every example against the schemas of the oldest and the newest Kubernetes, of KEDA and of the Prometheus operator.

Strict: a field that no schema knows is an error, and so is a kind without a schema. The Kubernetes schemas are those of
the package kubernetes-validate; the others are in the definitions that hack/tool takes out of the Go modules.
"""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import NotBuilt, tool
from tests.cluster.charts import EXAMPLES, NEWEST, OLDEST, objects, refusal, render
from tests.conftest import missing

NEWER = {"dra": "needs Kubernetes 1.34"}
MORE = (
    "rbac.clusterRead",
    "operator.enabled",
    "monitoring.serviceMonitor.enabled",
    "monitoring.podMonitor.enabled",
    "monitoring.rules.enabled",
    "monitoring.dashboard.enabled",
    "queueDefaults.client.ingress.enabled",
)


def found(name: str, program: str) -> str:
    try:
        return tool(name, program)
    except NotBuilt as error:
        missing(str(error))
        raise


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of schemas by version, and of those of the definitions."""
    package = find_spec("kubernetes_validate")
    if package is None or not package.submodule_search_locations:
        missing("kubernetes-validate (pip install scaletest[dev])")
        raise AssertionError
    folder = tmp_path_factory.mktemp("schemas")
    source = Path(package.submodule_search_locations[0]) / "kubernetes-json-schema"
    for version in (OLDEST, NEWEST):
        (folder / f"v{version}").mkdir()
        for file in (source / f"v{version}-local-strict").glob("*.json"):
            # they name a web server, where kubeconform would look for what they refer to
            schema = json.loads(file.read_text("utf-8").replace("/api/_definitions.json", "_definitions.json"))
            schema.pop("$id", None)
            (folder / f"v{version}" / file.name).write_text(json.dumps(schema), "utf-8")
    crds = objects(Path(found("crds", "crds.yaml")).read_text("utf-8"))
    (folder / "crds").mkdir()
    for one in crds:
        names, group = one["spec"]["names"], one["spec"]["group"].split(".")[0]
        for version in one["spec"]["versions"]:
            name = f"{names['kind']}-{group}-{version['name']}.json".lower()
            schema = strict(version["schema"]["openAPIV3Schema"])
            # every object has these, whatever its definition says of them
            schema["properties"] |= {"apiVersion": {}, "kind": {}, "metadata": {"type": "object"}}
            (folder / "crds" / name).write_text(json.dumps(schema), "utf-8")
    return folder


def strict(schema: Any) -> Any:
    """A definition's schema as a JSON schema: unknown fields are refused where the API server would drop them."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    known = isinstance(made.get("properties"), dict) and made.get("type") == "object"
    if known and not made.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    if made.pop("x-kubernetes-int-or-string", False):
        made.pop("type", None)
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return made


def check(schemas: Path, version: str, text: str) -> dict[str, Any]:
    """kubeconform's summary and what it found."""
    line = [found("kubeconform", "kubeconform"), "-strict", "-output", "json", "-summary", "-verbose"]
    line += ["-kubernetes-version", version]
    for place in ("{{.NormalizedKubernetesVersion}}", "crds"):
        line += ["-schema-location", f"{schemas}/{place}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"]
    done = subprocess.run(line, input=text, capture_output=True, text=True, check=False)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("example", [None, *EXAMPLES], ids=lambda path: path.stem if path else "default")
def test_examples_are_valid(schemas: Path, example: Path | None, version: str) -> None:
    helm = found("helm4", "helm")
    options = ["-f", str(example)] if example else []
    if example and example.stem in NEWER and version == OLDEST:
        # its kinds do not exist there, and the chart says so itself
        assert NEWER[example.stem] in refusal(helm, *options, version=version)
        return
    # when everything that is off by default is on too
    options += [word for key in MORE for word in ("--set", f"{key}=true")]
    text = render(helm, *options, version=version)
    # expect that each object has a schema and fits it
    answer = check(schemas, version, text)
    bad = [row for row in answer["resources"] if row["status"] != "statusValid"]
    assert bad == []
    assert answer["summary"]["valid"] == text.count("\nkind: ") > 8


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replica: 1}}", "statusInvalid"),
        ("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: a}, spec: {x: 1}}", "statusInvalid"),
        ("{apiVersion: example.org/v1, kind: Unknown, metadata: {name: a}}", "statusError"),
    ],
)
def test_a_wrong_or_unknown_object_is_found(schemas: Path, text: str, status: str) -> None:
    assert [row["status"] for row in check(schemas, NEWEST, text)["resources"]] == [status]
