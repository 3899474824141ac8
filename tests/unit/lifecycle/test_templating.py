"""Templates of submitted objects."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.lifecycle import kinds
from scaletest.lifecycle.measure.templating import Workloads, text_of
from scaletest.model.errors import InvalidValue
from tests.unit.lifecycles import plan


@pytest.mark.parametrize("name", [*kinds.KINDS, *kinds.ALIASES])
def test_defect_02_every_type_has_a_template_that_works(name: str) -> None:
    kind = kinds.find_kind(name)
    typed_plan = plan(workload_type=name, workers=3, template=text_of(kind.name, None))
    body = Workloads(typed_plan).make("j-1")
    assert body["metadata"]["name"] == "j-1"
    assert body["metadata"]["labels"]["scaletest/workload"] == "j-1"
    assert "{{" not in json.dumps(body)


def test_defect_15_a_claim_changes_only_the_pods_of_a_template() -> None:
    text = text_of("job", None).replace(
        "backoffLimit: 0", "backoffLimit: 0\n  # status:\n  suspend: false"
    )
    text = text.replace("metadata:\n", 'metadata:\n  annotations: {note: "status: here"}\n', 1)
    workloads = Workloads(plan(template=text, pvc=True))
    body = workloads.make("j-1")
    assert body["metadata"]["annotations"] == {"note": "status: here"}
    assert body["spec"]["suspend"] is False
    spec = body["spec"]["template"]["spec"]
    volume = spec["volumes"][0]["ephemeral"]["volumeClaimTemplate"]
    assert volume["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert volume["metadata"]["labels"]["scaletest/workload"] == "j-1"
    assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/path-new"


def test_any_yaml_passes_through_and_gets_our_labels() -> None:
    text = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: theirs, labels: {team: a}}
spec:
  queue: gold
  tasks:
    - name: worker
      replicas: "{{ workers }}"
      note: "{{ workers | string | toyaml }}"
      template: {spec: {containers: [{name: c, command: ["echo", "${HOME} {{ gpus }}"]}]}}
"""
    body = Workloads(plan(template=text, workers=4)).make("j-1")
    assert body["metadata"]["labels"] == {
        "team": "a",
        "scaletest/run": "0a1b2c",
        "scaletest/workload": "j-1",
    }
    task = body["spec"]["tasks"][0]
    assert (body["spec"]["queue"], task["replicas"], task["note"]) == ("gold", 4, "4")
    assert task["template"]["spec"]["containers"][0]["command"] == ["echo", "${HOME} 1"]
    assert task["template"]["metadata"]["labels"]["scaletest/run"] == "0a1b2c"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "not valid YAML in line 1"),
        ("- 1", "not a Kubernetes object"),
        ("kind: Job", "not a Kubernetes object"),
        ("[" * 5000, "nests too deeply"),
        ("kind: A\napiVersion: v1\n---\nkind: B\napiVersion: v1", "2 documents"),
        ("", "not a Kubernetes object"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: '{{ nmae }}'}]}", "nothing fills"),
    ],
)
def test_bad_templates_are_explained(text: str, problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem):
        Workloads(plan(template=text))


def test_placeholders_become_numbers_or_text() -> None:
    text = """
apiVersion: v1
kind: Pod
metadata: {name: x}
spec:
  number: "{{ workers }}"
  product: "{{ workers * 2 }}"
  text: "{{ workers | string | toyaml }}"
  joined: "{{ name }}-{{ workers }}"
  theirs: "{{ name }} ${theirs} {% raw %}{{ theirs }}{% endraw %}"
  "{{ resource }}": 1
  part: "{{ gpus }}"
  containers: [{name: c}]
"""
    made = Workloads(plan(template=text, workers=4, gpus="0.5", resource="x/y"))
    assert made.make("j-1")["spec"] == {
        "number": 4,
        "product": 8,
        "text": "4",
        "joined": "j-1-4",
        "theirs": "j-1 ${theirs} {{ theirs }}",
        "x/y": 1,
        "part": 0.5,
        "containers": [{"name": "c"}],
    }


@pytest.mark.parametrize(
    ("kind", "workers", "pods"),
    [
        ("indexed-job", 7, 7),
        ("deployment", 3, 3),
        ("runai-distributed", 7, 8),
    ],
)
def test_the_pods_of_a_gang_are_known(kind: str, workers: int, pods: int) -> None:
    body = Workloads(plan(template=text_of(kind, None), workers=workers)).make("j")
    assert kinds.pods_needed(body) == pods


@pytest.mark.parametrize(
    ("kind", "spec", "pods"),
    [
        ("StatefulSet", "{replicas: N, template: POD}", 7),
        (
            "JobSet",
            "{replicatedJobs: [{template: {spec: {parallelism: N, template: POD}}}]}",
            7,
        ),
        (
            "PyTorchJob",
            "{xReplicaSpecs: {Master: {template: POD}, Worker: {replicas: N, template: POD}}}",
            8,
        ),
        ("ScaledJob", "{jobTargetRef: {template: POD}}", None),
    ],
)
def test_a_template_labels_and_counts_the_pods_of_other_kinds(
    kind: str, spec: str, pods: int | None
) -> None:
    labelled = spec.count("POD") + 1
    spec = spec.replace("N,", '"{{ workers }}",').replace(
        "POD", "{spec: {containers: [{name: c}]}}"
    )
    text = f"apiVersion: example.org/v1\nkind: {kind}\nspec: {spec}\n"
    body = Workloads(plan(template=text, workers=7)).make("j-1")
    assert kinds.pods_needed(body) == pods
    assert json.dumps(body).count('"scaletest/workload": "j-1"') == labelled


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_any_object_has_some_number_of_pods(spec: object) -> None:
    for kind in ("Job", "JobSet", "PyTorchJob", "Deployment", "DistributedWorkload"):
        pods = kinds.pods_needed({"kind": kind, "spec": spec if isinstance(spec, dict) else {}})
        assert pods is None or isinstance(pods, int)
