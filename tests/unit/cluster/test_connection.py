"""Connections to a cluster, and references to Services."""

import json
from pathlib import Path

import pytest

from scaletest.cluster.api_calls import Cluster, connect_cluster
from scaletest.cluster.service import Service
from scaletest.model.errors import InvalidValue


def test_a_kubeconfig_that_is_named_later_is_the_one_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given that the client library was imported when another was named
    import kubernetes.config  # noqa: F401

    for name in ("one", "two"):
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": f"http://{name}.invalid"}}],
            "users": [],
            "contexts": [{"name": name, "context": {"cluster": name, "namespace": f"of-{name}"}}],
            "current-context": name,
        }
        (tmp_path / name).write_text(json.dumps(document))
    for name in ("one", "two"):
        # when it is named
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / name))
        cluster = connect_cluster()
        # expect it, and its namespace
        assert (cluster.client.configuration.host, cluster.namespace) == (
            f"http://{name}.invalid",
            f"of-{name}",
        )


@pytest.mark.parametrize("text", ["model", "svc/", "svc/Model", "svc/a:b:c", "svc/a b", "pod/a"])
def test_an_invalid_service_reference_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        Service(Cluster(None, "n"), text)
