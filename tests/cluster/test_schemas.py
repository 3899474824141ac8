"""Every example against the schemas of the oldest and the newest Kubernetes, of KEDA and of the
Prometheus operator.

Strict: a field that no schema knows is an error, and so is a kind without a schema. The Kubernetes
schemas are those of the package kubernetes-validate; the others are in the definitions that
hack/tool takes out of the Go modules.
"""

import functools
import json
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import NotBuilt, tool
from tests.cluster.charts import EXAMPLES, MAIN_HELM, NEWEST, OLDEST, objects, refusal, render
from tests.conftest import missing

NEWER = {"dra": "needs Kubernetes 1.34"}
MORE = (
    "rbac.clusterRead",
    "operator.enabled",
    "ui.enabled",
    "ui.ingress.enabled",
    "monitoring.serviceMonitor.enabled",
    "monitoring.podMonitor.enabled",
    "monitoring.rules.enabled",
    "monitoring.dashboard.enabled",
    "queueDefaults.client.ingress.enabled",
)


def built_tool(name: str, program: str) -> str:
    try:
        return tool(name, program)
    except NotBuilt as error:
        missing(str(error))


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of schemas by version, and of those of the definitions."""
    package = find_spec("kubernetes_validate")
    if package is None or not package.submodule_search_locations:
        missing("kubernetes-validate (pip install scaletest[dev])")
    folder = tmp_path_factory.mktemp("schemas")
    source = Path(package.submodule_search_locations[0]) / "kubernetes-json-schema"
    for version in (OLDEST, NEWEST):
        (folder / f"v{version}").mkdir()
        for file in (source / f"v{version}-local-strict").glob("*.json"):
            # they name a web server, where kubeconform would look for what they refer to
            schema = json.loads(
                file.read_text("utf-8").replace("/api/_definitions.json", "_definitions.json")
            )
            schema.pop("$id", None)
            (folder / f"v{version}" / file.name).write_text(json.dumps(schema), "utf-8")
    crds = objects(Path(built_tool("crds", "crds.yaml")).read_text("utf-8"))
    (folder / "crds").mkdir()
    for definition in crds:
        names, group = definition["spec"]["names"], definition["spec"]["group"].split(".")[0]
        for version in definition["spec"]["versions"]:
            name = f"{names['kind']}-{group}-{version['name']}.json".lower()
            schema = strict(version["schema"]["openAPIV3Schema"])
            # every object has these, whatever its definition says of them
            schema["properties"] |= {"apiVersion": {}, "kind": {}, "metadata": {"type": "object"}}
            (folder / "crds" / name).write_text(json.dumps(schema), "utf-8")
    return folder


def strict(schema: Any) -> Any:
    """A definition's schema as a JSON schema: unknown fields are refused where the API server would
    drop them.
    """
    if isinstance(schema, list):
        return [strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    known = isinstance(closed.get("properties"), dict) and closed.get("type") == "object"
    if known and not closed.get("x-kubernetes-preserve-unknown-fields"):
        closed.setdefault("additionalProperties", False)
    if closed.pop("x-kubernetes-int-or-string", False):
        closed.pop("type", None)
        closed["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return closed


def check(schemas: Path, version: str, *files: Path) -> list[dict[str, Any]]:
    """What kubeconform says of every object of the files."""
    line = [built_tool("kubeconform", "kubeconform"), "-strict", "-output", "json", "-verbose"]
    line += ["-kubernetes-version", version]
    for place in ("{{.NormalizedKubernetesVersion}}", "crds"):
        line += [
            "-schema-location",
            f"{schemas}/{place}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json",
        ]
    done = subprocess.run([*line, *files], capture_output=True, text=True, check=False)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["resources"]
    return rows


def name_of(example: Path | None) -> str:
    return example.stem if example else "default"


@pytest.fixture(scope="module")
def rows(
    schemas: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], dict[str, list[dict[str, Any]]]]:
    """What kubeconform says of each example for a version: it reads that one's schemas once for all
    of them.
    """

    @functools.cache
    def by_example(version: str) -> dict[str, list[dict[str, Any]]]:
        folder = tmp_path_factory.mktemp("rendered")
        rows_of: dict[str, list[dict[str, Any]]] = {}
        for example in (None, *EXAMPLES):
            if not too_new(example, version):
                (folder / f"{name_of(example)}.yaml").write_text(
                    render(*whole(example), version=version), "utf-8"
                )
                rows_of[name_of(example)] = []
        for row in check(schemas, version, *sorted(folder.iterdir())):
            rows_of[Path(row["filename"]).stem].append(row)
        return rows_of

    return by_example


def whole(example: Path | None) -> list[str]:
    """The options of an example where everything that is off by default is on too."""
    options = ["-f", str(example)] if example else []
    return [
        built_tool(MAIN_HELM, "helm"),
        *options,
        *(word for key in MORE for word in ("--set", f"{key}=true")),
    ]


def too_new(example: Path | None, version: str) -> bool:
    return example is not None and example.stem in NEWER and version == OLDEST


@pytest.mark.parametrize(
    "version", [pytest.param(OLDEST, marks=pytest.mark.weekly(part="schemas")), NEWEST]
)
@pytest.mark.parametrize("example", [None, *EXAMPLES], ids=name_of)
def test_examples_are_valid(
    rows: Callable[[str], dict[str, list[dict[str, Any]]]], example: Path | None, version: str
) -> None:
    if example is not None and too_new(example, version):
        # its kinds do not exist there, and the chart says so itself
        assert NEWER[example.stem] in refusal(
            built_tool(MAIN_HELM, "helm"), "-f", str(example), version=version
        )
        return
    # expect that each object has a schema and fits it
    mine = rows(version)[name_of(example)]
    assert [row for row in mine if row["status"] != "statusValid"] == []
    assert len(mine) == render(*whole(example), version=version).count("\nkind: ") > 8


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replica: 1}}",
            "statusInvalid",
        ),
        (
            "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: a}, spec: {x: 1}}",
            "statusInvalid",
        ),
        ("{apiVersion: example.org/v1, kind: Unknown, metadata: {name: a}}", "statusError"),
    ],
)
def test_wrong_and_unknown_objects_are_reported(
    schemas: Path, tmp_path: Path, text: str, status: str
) -> None:
    (tmp_path / "one.yaml").write_text(text, "utf-8")
    assert [row["status"] for row in check(schemas, NEWEST, tmp_path / "one.yaml")] == [status]
