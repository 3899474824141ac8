"""Objects that a run changes, on an API server that is played."""

from collections.abc import Iterator

import pytest

from scaletest.cluster.api_calls import Cluster
from scaletest.cluster.changes import (
    Changes,
)
from scaletest.cluster.deployment import Deployment
from tests.unit.fake_api import Answer
from tests.unit.fake_objects import FakeObjects

BUSY: Answer = (503, {}, {"message": "the API server is being replaced"})


@pytest.fixture
def objects() -> FakeObjects:
    return FakeObjects()


@pytest.fixture
def cluster(objects: FakeObjects) -> Iterator[Cluster]:
    with objects.served() as cluster:
        yield cluster


def changes_of(cluster: Cluster) -> Changes:
    return Changes(cluster, Deployment(cluster, "model"), sleep=lambda seconds: None)


@pytest.fixture
def changes(cluster: Cluster) -> Changes:
    """What a run changes."""
    return changes_of(cluster)
