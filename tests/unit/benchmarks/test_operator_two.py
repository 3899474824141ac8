"""Two operators in one namespace, by mistake or because one of them is on a node that nobody
reaches any more.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from scaletest.benchmarks.objects.manifests import Document
from scaletest.cluster.objects import Resource
from scaletest.model.errors import ScaletestError
from tests.unit.fake_cluster import FakeCluster, asked, cluster_with, look, requests_of_a_whole_run

ORDER = ("Preparing", "Running", "Summarising", "Completed")


class Shared(FakeCluster):
    """A cluster in which the other operator looks `looks` times after a request of the first
    one.
    """

    at = looks = 0

    def _count(self) -> None:
        super()._count()
        if self.requests == self.at:
            for _ in range(self.looks):
                tried(self)


def tried(cluster: FakeCluster) -> Mapping[str, Any]:
    """A look as the handlers have it: what fails is repeated."""
    try:
        return look(cluster)
    except ScaletestError:
        state: Mapping[str, Any] = cluster.objects["iperfs", "one"].get("status", {})
        return state


@pytest.mark.parametrize("looks", [1, 2, 3, 6])
@pytest.mark.parametrize("at", range(1, requests_of_a_whole_run() + 1))
def test_two_operators_bring_one_result_and_leave_no_object(at: int, looks: int) -> None:
    # given an operator that was interrupted between any two requests by all that another one does
    cluster = Shared()
    cluster.at, cluster.looks = at, looks
    asked(cluster)
    phases = [str(tried(cluster).get("phase", "Preparing")) for _ in range(12)]
    # expect its end, which is never taken back, one result, and nothing left
    assert phases[-1] == "Completed" and phases == sorted(phases, key=ORDER.index)
    assert cluster.made.count("configmaps/one-result") == 1
    assert not [key for key in cluster.objects if key[0] in ("jobs", "pods", "services")]
    assert ("configmaps", "one-peers") not in cluster.objects


def test_a_changed_annotation_causes_no_lost_reconcile(monkeypatch: pytest.MonkeyPatch) -> None:
    # given somebody who writes a note on the object whenever its status is about to be written
    cluster = cluster_with()
    patch, notes = cluster.patch, iter(range(3))

    def noted(
        resource: Resource, namespace: str, name: str, body: Document, part: str = ""
    ) -> Document:
        if part == "status" and (note := next(notes, None)) is not None:
            patch(resource, namespace, name, {"metadata": {"annotations": {"note": str(note)}}})
        return patch(resource, namespace, name, body, part)

    monkeypatch.setattr(cluster, "patch", noted)
    # expect the status written all the same
    assert look(cluster)["phase"] == "Preparing"
    assert next(notes, None) is None
