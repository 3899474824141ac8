"""The chart's pages: what they may reach, under which names they answer, and what they read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scaletest.pages.site import checked
from tests.cluster.charts import HELMS, objects, render
from tests.cluster.conftest import helm_program

NAME = "trial-scaletest-ui"
INGRESS = {
    "enabled": True,
    "host": "bench.example.org",
    "path": "/pages",
    "tls": [{"hosts": ["tls.example.org", "*.example.org"]}],
}


@pytest.fixture(params=HELMS)
def helm(request: pytest.FixtureRequest) -> str:
    """Every Helm."""
    return helm_program(request.param)


def rendered(helm: str, *pairs: str, **ui: Any) -> dict[str, dict[str, Any]]:
    """The objects of the pages by kind, with these values of the pages and more `--set-json`."""
    values = [f"ui={json.dumps({'enabled': True, **ui})}", *pairs]
    options = [word for pair in values for word in ("--set-json", pair)]
    rows = objects(render(helm, *options))
    return {row["kind"]: row for row in rows if row["metadata"]["name"] == NAME}


def pod(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return dict(rows["Deployment"]["spec"]["template"]["spec"])


def arguments(rows: dict[str, dict[str, Any]]) -> list[str]:
    return list(pod(rows)["containers"][0]["args"])


def hosts(rows: dict[str, dict[str, Any]]) -> list[str]:
    options = [word.partition("=") for word in arguments(rows)]
    return [value for option, _, value in options if option == "--allow-host"]


def test_there_are_no_pages_unless_they_are_wanted(helm: str) -> None:
    assert not [row for row in objects(render(helm)) if row["metadata"]["name"] == NAME]
    wanted = {"ServiceAccount", "Deployment", "Service", "NetworkPolicy"}
    assert set(rendered(helm)) == wanted
    assert set(rendered(helm, ingress=INGRESS)) == {*wanted, "Ingress"}


def test_the_pages_have_no_rights_in_the_cluster(helm: str) -> None:
    rows = rendered(helm)
    assert rows["ServiceAccount"]["automountServiceAccountToken"] is False
    assert pod(rows)["automountServiceAccountToken"] is False
    assert pod(rows)["serviceAccountName"] == NAME
    bindings = [
        row for row in objects(render(helm, "--set", "ui.enabled=true")) if "subjects" in row
    ]
    assert bindings
    assert NAME not in json.dumps(bindings)


def test_the_names_of_service_and_ingress_are_allowed_without_a_token(helm: str) -> None:
    names = hosts(rendered(helm, ingress=INGRESS))
    assert names == [NAME, f"{NAME}.bench", "bench.example.org", "tls.example.org"]
    # the pages themselves take them
    checked("/pages", names)


def test_with_a_token_the_name_of_the_ingress_needs_it(helm: str) -> None:
    rows = rendered(helm, ingress=INGRESS, token={"existingSecret": "own", "key": "word"})
    assert hosts(rows) == [NAME, f"{NAME}.bench"]
    assert "--prefix=/pages" in arguments(rows)
    (variable,) = (row for row in pod(rows)["containers"][0]["env"] if "TOKEN" in row["name"])
    assert variable == {
        "name": "SCALETEST_UI_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "own", "key": "word"}},
    }


def test_an_archive_is_only_read(helm: str) -> None:
    rows = rendered(helm, archive={"existingClaim": "runs", "subPath": "a/b"}, runAsUser=1234)
    (volume,) = (row for row in pod(rows)["volumes"] if row["name"] == "archive")
    assert volume["persistentVolumeClaim"] == {"claimName": "runs", "readOnly": True}
    (mount,) = (
        row for row in pod(rows)["containers"][0]["volumeMounts"] if row["name"] == "archive"
    )
    path = {"mountPath": "/archive", "subPath": "a/b"}
    assert mount == {"name": "archive", "readOnly": True, **path}
    assert "--archive=/archive" in arguments(rows)
    assert pod(rows)["securityContext"]["runAsUser"] == 1234
    # a volume for one node at a time does not keep the next pod waiting; a Deployment that had
    # another strategy before it got a volume could not be upgraded
    for either in (rows, rendered(helm)):
        assert either["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}


def test_without_an_archive_none_is_named(helm: str) -> None:
    rows = rendered(helm)
    assert not [word for word in arguments(rows) if word.startswith("--archive")]
    assert [row["name"] for row in pod(rows)["volumes"]] == ["tmp"]


def test_the_pages_reach_names_and_redis_and_nothing_else(helm: str) -> None:
    policy = rendered(helm)["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == [{"ports": [{"port": 9995, "protocol": "TCP"}]}]
    dns, redis = policy["egress"]
    assert {(row["port"], row["protocol"]) for row in dns["ports"]} == {
        (port, protocol) for port in (53, 5353) for protocol in ("TCP", "UDP")
    }
    assert redis["ports"] == [{"port": 6379, "protocol": "TCP"}]
    labels = {"app.kubernetes.io/name": "redis", "app.kubernetes.io/instance": "trial"}
    assert redis["to"] == [{"podSelector": {"matchLabels": labels}}]


@pytest.mark.parametrize(
    ("external", "ports"),
    [
        ({"host": "shared", "port": 6380}, [6380]),
        ({"sentinel": {"nodes": ["a:1", "b:2"]}}, None),
        ({"urlKey": "url", "existingSecret": "own"}, None),
    ],
)
def test_an_external_redis_is_reached_where_the_chart_knows_its_port(
    helm: str, external: dict[str, Any], ports: list[int] | None
) -> None:
    own = ("redis.enabled=false", f"externalRedis={json.dumps(external)}")
    policy = rendered(helm, *own)["NetworkPolicy"]["spec"]
    if ports is None:
        assert policy["policyTypes"] == ["Ingress"]
        assert "egress" not in policy
    else:
        assert [row["port"] for row in policy["egress"][1]["ports"]] == ports


def test_who_may_come_to_the_pages_is_who_may_come_to_the_clients(helm: str) -> None:
    peers = [{"podSelector": {"matchLabels": {"guest": "yes"}}}]
    rows = rendered(helm, f"networkPolicy.from={json.dumps(peers)}")
    assert rows["NetworkPolicy"]["spec"]["ingress"][0]["from"] == peers


def test_pods_are_placed_as_the_values_say(helm: str) -> None:
    toleration = {"key": "spot", "operator": "Exists"}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    place = {"nodeSelector": {"a": "b"}, "tolerations": [toleration], "affinity": affinity}
    spec = pod(rendered(helm, **place))
    assert {key: spec[key] for key in place} == place


def test_the_chart_names_the_probes_that_the_pages_answer(helm: str) -> None:
    container = pod(rendered(helm))["containers"][0]
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    for probe in ("livenessProbe", "startupProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container["ports"] == [{"name": "http", "containerPort": 9995}]
