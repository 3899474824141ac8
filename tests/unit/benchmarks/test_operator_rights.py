"""The roles of the chart: every right has a user in the code, and everything that is asked for has
a right.

The templates' rules are read as they are written, since no Helm is needed for that; a test of a
cluster compares what is installed to the pages, and works with these rights alone.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from scaletest.benchmarks.documents import BenchmarkPhase, BenchmarkResult, frame_result
from scaletest.benchmarks.kinds import GROUP
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.operator import benchmark_reconciler
from scaletest.cluster import rights
from scaletest.cluster.resources import Resource
from tests.unit.fake_cluster import FakeCluster, asked, look, settings, until_set_ended

ROOT = Path(__file__).parents[3]
TEMPLATES = ROOT / "charts" / "scaletest" / "templates"
RULE = re.compile(r"^ *- (\{apiGroups: .*\})$", re.MULTILINE)
PLURALS = {kind.plural for kind in KINDS.values()}
# API group, resource and verb.
Rights = set[tuple[str, str, str]]
# kopf, for whom no call of ours speaks: it lists and watches, puts its finalizer on, and posts
# events.
KOPF: Rights = {
    (GROUP, plural, verb)
    for plural in (*PLURALS, "benchmarksets")
    for verb in ("list", "watch", "patch")
}
KOPF |= {("", "events", "create")}


def role(file: str, kind: str, name: str) -> Rights:
    """The rights that a role of a template has always."""
    documents = (TEMPLATES / file).read_text("utf-8").split("\n---\n")
    (text,) = [
        text for text in documents if f"\nkind: {kind}\n" in text and f"\n  name: {name}\n" in text
    ]
    return granted(text.partition("\nrules:\n")[2].partition("with $operator.perftestGroup")[0])


def granted(rules: str) -> Rights:
    """The rights of rules that are written in a line each."""
    rows = [yaml.safe_load(row) for row in RULE.findall(rules)]
    assert rows, "there are no rules"
    return {
        (group, resource, verb)
        for row in rows
        for group in row["apiGroups"]
        for resource in row["resources"]
        for verb in row["verbs"]
    }


def documented(page: str, heading: str) -> Rights:
    text = (ROOT / "docs" / "how-to" / page).read_text("utf-8").split(heading)[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([\w.]*) ?\| ([\w/, ]+) \| ([\w, ]+) \| .* \|$", text, re.MULTILINE)
    return {
        (group, resource, verb)
        for group, resources, verbs in rows
        if group != "group"  # the head of the table
        for resource in resources.split(", ")
        for verb in verbs.split(", ")
    }


def declared(wanted: Iterable[rights.Right]) -> Rights:
    return {(right.group, right.resource, right.verb) for right in wanted}


class Recording(FakeCluster):
    """A cluster that remembers which rights its callers needed."""

    def __init__(self) -> None:
        super().__init__()
        self.used: Rights = set()

    def __getattribute__(self, name: str) -> Any:
        attribute = super().__getattribute__(name)
        if name == "log":
            # a log is read of a pod that was looked at before
            self.used |= {("", "pods", "get"), ("", "pods/log", "get")}
        elif name in ("find", "list", "create", "delete", "patch"):
            return partial(self._asked, name, attribute)
        return attribute

    def _asked(
        self, name: str, ask: Any, resource: Resource, *arguments: Any, **options: Any
    ) -> Any:
        group = (
            resource.api.removeprefix("/apis/").rpartition("/")[0]
            if resource.api.startswith("/apis/")
            else ""
        )
        part = f"/{arguments[3]}" if name == "patch" and len(arguments) > 3 else ""
        self.used.add((group, resource.plural + part, "get" if name == "find" else name))
        return ask(resource, *arguments, **options)


def measured_and_deleted(cluster: FakeCluster, kind: str, name: str, **spec: Any) -> None:
    """A benchmark from its beginning to its end, and away."""
    asked(cluster, name, kind, **spec)
    plural = KINDS[kind].plural
    for _ in range(20):
        benchmark_reconciler.reconcile(KINDS[kind], cluster, "ns", name, settings(cluster))
        for pod in [
            pod
            for (resource, pod) in cluster.objects
            if resource == "pods" and KINDS[kind].measures in pod
        ]:
            cluster.logs[pod] = frame_result(
                BenchmarkResult(name, BenchmarkPhase.COMPLETED, started_s=1.0, finished_s=2.0)
            )
        status: Mapping[str, Any] = cluster.objects[plural, name].get("status", {})
        if status.get("phase") in ("Completed", "Failed"):
            break
    assert status["phase"] == "Completed", status
    benchmark_reconciler.clean_up(KINDS[kind], cluster, "ns", cluster.objects.pop((plural, name)))


def everything(cluster: FakeCluster) -> None:
    """Every kind measured, a set, and Jobs whose pods are refused."""
    for kind in KINDS:
        measured_and_deleted(cluster, kind, kind.lower())
    measured_and_deleted(
        cluster, "Fio", "disk", volumeClaimTemplate={"accessModes": ["ReadWriteMany"]}
    )
    asked(cluster, "set", "BenchmarkSet", template={"kind": "IPerf", "spec": {}}, repetitions=1)
    until_set_ended(cluster)
    cluster.runs = False
    asked(cluster, "bare")
    look(cluster, "bare")
    look(cluster, "bare")


def test_the_operator_may_do_what_it_does_and_nothing_else() -> None:
    cluster = Recording()
    everything(cluster)
    # a set makes benchmarks of any kind, and the kind whose benchmark holds the lock is looked at
    of_the_set = {(GROUP, plural, "create") for plural in PLURALS} & cluster.used
    assert of_the_set, "the set made nothing"
    used = cluster.used | KOPF | {(GROUP, plural, "create") for plural in PLURALS}
    used |= {(GROUP, "benchmarksets/status", "patch")}
    allowed = role("operator.yaml", "{{ .kind }}", "{{ .name }}")
    assert used == allowed
    assert documented("operator.md", "## Rights of the operator") == allowed


def test_a_validation_may_do_what_is_declared_and_nothing_else() -> None:
    needed = (
        *rights.NEEDED,
        rights.PROXY,
        *rights.HOLD,
        rights.KEDA,
        *rights.PAUSE,
        *rights.EXPLAIN,
        *rights.QUOTA,
    )
    allowed = role("rbac.yaml", "Role", "{{ $name }}-validate")
    assert allowed == declared(needed) == documented("kubernetes.md", "## Rights")
    everywhere = role("rbac.yaml", "ClusterRole", "{{ .Release.Namespace }}-{{ $name }}-read")
    assert everywhere == declared(rights.CAPACITY)
