"""The chart with values that are odd and allowed: words that look like numbers, large numbers,
addresses of IPv6.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.charts import CHART, HELMS, NEWEST, objects, render
from tests.cluster.conftest import helm_program


@pytest.fixture(params=HELMS)
def helm(request: pytest.FixtureRequest) -> str:
    """Every Helm."""
    return helm_program(request.param)


# What somebody may call a queue, a secret or a namespace, and YAML would read as a number, a truth
# value or nothing.
ODD = ("123", "1e3", "true", "null", "0x10", "2001-01-01")


@pytest.mark.parametrize("word", ODD)
def test_values_that_look_like_numbers_or_booleans_are_rendered_as_text(
    helm: str, word: str
) -> None:
    values = {
        "queues": {
            word: {
                "client": {"enabled": True, "arguments": ["2"], "tokenSecret": word},
                "autoscaling": {"kind": "keda", "minReplicas": 0},
                "priorityClassName": word,
                "runtimeClassName": word,
                "podLabels": {"team": word},
                "device": {"deviceClass": word},
            }
        },
        "redis": {
            "existingSecret": word,
            "networkPolicy": {"kedaNamespace": word},
            "server": word,
            "persistence": {"storageClass": word},
        },
        "operator": {"enabled": True, "namespaces": [word, word]},
        "ui": {
            "enabled": True,
            "token": {"existingSecret": word, "key": word},
            "archive": {"existingClaim": word, "subPath": word},
            "nodeSelector": {"disk": word},
            "ingress": {"enabled": True, "className": word, "host": word},
        },
        "commonLabels": {"owner": word},
        "fullnameOverride": word,
    }
    options = [
        text
        for key, value in values.items()
        for text in ("--set-json", f"{key}={json.dumps(value)}")
    ]
    external = {
        "host": "h",
        "existingSecret": word,
        "username": word,
        "tls": {"enabled": True, "existingSecret": word},
    }
    other = ["--set-json", f"externalRedis={json.dumps(external)}", "--set", "redis.enabled=false"]
    for more in ([], other):
        rows = objects(render(helm, *options, *more, "-n", word))
        assert list(no_words(rows)) == []
        names = [
            (row["kind"], row["metadata"].get("namespace"), row["metadata"]["name"]) for row in rows
        ]
        assert len(names) == len(set(names))


NAMED = ("name", "namespace", "key", "secretName", "username", "claimName", "subPath", "host")


def no_words(value: Any, path: str = "") -> Iterator[str]:
    """Where something else than text stands where the API wants text."""
    if isinstance(value, dict):
        texts = path.endswith(("abels", "selector", "annotations", "Data"))
        for key, inner in value.items():
            named = key in NAMED or key.endswith("ClassName")
            if (texts or named) and not isinstance(inner, str | dict):
                yield f"{path}.{key}: {inner!r}"
            if key != "openAPIV3Schema":
                yield from no_words(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if path.endswith(("args", "command")) and not isinstance(inner, str):
                yield f"{path}[{index}]: {inner!r}"
            yield from no_words(inner, f"{path}[{index}]")


def test_the_name_of_a_release_may_be_a_number(helm: str) -> None:
    line = [helm, "template", "123", str(CHART), "--kube-version"]
    text = subprocess.run([*line, NEWEST], capture_output=True, text=True, check=True).stdout
    assert list(no_words(objects(text))) == []
    # but no Service may begin with a digit where Kubernetes is older
    old = subprocess.run([*line, "1.35.0"], capture_output=True, text=True, check=False)
    assert old.returncode and "begin with a letter" in old.stderr


@pytest.mark.parametrize(
    ("source", "target", "lists", "wanted"),
    [
        ("redis", "1000000", "1000000", "1000000"),
        ("redis", "0.5", "1", "0.5"),
        ("exporter", "1000000", None, "1000000"),
    ],
)
def test_targets_are_numbers_that_keda_reads(
    helm: str, source: str, target: str, lists: str | None, wanted: str
) -> None:
    settings = ["kind=keda", f"source={source}", f"target={target}"]
    text = render(
        helm,
        *[
            word
            for setting in settings
            for word in ("--set", f"queues.sleep.autoscaling.{setting}")
        ],
    )
    (scaled,) = (row["spec"] for row in objects(text) if row["kind"] == "ScaledObject")
    assert {trigger["metadata"].get("listLength") for trigger in scaled["triggers"]} == {lists}
    modifiers = scaled.get("advanced", {}).get("scalingModifiers", {})
    assert wanted in (modifiers.get("target"), scaled["triggers"][0]["metadata"].get("targetValue"))


@pytest.mark.parametrize("host", ["fd00::1", "[fd00::1]"])
def test_an_address_of_ipv6_stands_in_brackets(helm: str, host: str) -> None:
    text = render(
        helm,
        "--set",
        "redis.enabled=false",
        "--set",
        f"externalRedis.host={host}",
        "--set",
        "queues.sleep.autoscaling.kind=keda",
    )
    assert "redis://[fd00::1]:6379/0" in text
    assert 'address: "[fd00::1]:6379"' in text


OPERATOR_ALONE = (
    "operator.enabled=true,operator.everywhere=true,"
    "queues.sleep=null,redis.enabled=false,exporter.enabled=false"
)


def test_the_operator_can_be_all_that_is_installed(helm: str) -> None:
    rows = objects(render(helm, "--set", OPERATOR_ALONE))
    parts = {
        row["kind"]: row["metadata"]["name"] for row in rows if "replicas" in row.get("spec", ())
    }
    assert parts == {"Deployment": "trial-scaletest-operator"}


def test_the_notes_of_an_operator_ask_for_no_queue() -> None:
    # Helm 3 shows notes with a cluster only
    line = [helm_program(), "install", "trial", str(CHART), "--dry-run=client", "--set"]
    done = subprocess.run([*line, OPERATOR_ALONE], capture_output=True, text=True, check=True)
    notes = done.stdout.split("NOTES:")[1]
    assert "Benchmarks in all namespaces are measured" in notes and "queue" not in notes
