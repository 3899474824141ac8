"""The chart's Redis: what memory it may use, and passwords that nobody is locked out by."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest

from tests.cluster.charts import CHART, HELMS, NEWEST, ROOT, objects, refusal, render, template
from tests.cluster.conftest import helm_program

GI, MI = 1 << 30, 1 << 20


@pytest.fixture(params=HELMS)
def helm(request: pytest.FixtureRequest) -> str:
    """Every Helm."""
    return helm_program(request.param)


def settings(text: str) -> list[list[str]]:
    """The lines of the server's configuration, in words."""
    conf = next(
        row["data"]["server.conf"] for row in objects(text) if "server.conf" in row.get("data", {})
    )
    return [line.split() for line in conf.splitlines() if line and not line.startswith("#")]


def maxmemory(helm: str, *pairs: str) -> list[int]:
    """What the server is told with these values."""
    text = render(helm, *[word for pair in pairs for word in ("--set-json", pair)])
    return [int(line[1]) for line in settings(text) if line[0] == "maxmemory"]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ('"1Gi"', GI // 2),
        ('"512Mi"', 256 * MI),
        ('"1.5Gi"', 3 * GI // 4),
        ('".5Gi"', GI // 4),
        ('"524288Ki"', 256 * MI),
        ('"2Ti"', 1 << 40),
        ('"1G"', 500_000_000),
        ('"500M"', 250_000_000),
        ('"500000k"', 250_000_000),
        ('"1e9"', 500_000_000),
        ('"1E9"', 500_000_000),
        ('"1073741824"', GI // 2),
        ("1073741824", GI // 2),
        ("12345678901", 6_172_839_450),
        ('"128974848000m"', 64_487_424),
    ],
)
def test_redis_gets_half_of_its_memory_limit(helm: str, limit: str, expected: int) -> None:
    assert maxmemory(helm, f"redis.resources.limits.memory={limit}") == [expected]


def test_the_value_maxmemory_overrides_the_share_of_the_limit(helm: str) -> None:
    assert maxmemory(helm) == [GI // 2]
    assert maxmemory(helm, 'redis.maxmemory="700M"') == [700_000_000]
    assert maxmemory(helm, "redis.maxmemory=700000000") == [700_000_000]
    assert maxmemory(helm, "redis.maxmemory=0") == [0]
    # a line of the configuration comes last, and the last of a setting counts
    text = render(helm, "--set", "redis.config=maxmemory 1gb")
    assert [line for line in settings(text) if line[0] == "maxmemory"][-1] == ["maxmemory", "1gb"]
    # the limit then does not have to be read
    assert maxmemory(helm, 'redis.maxmemory="1Gi"', 'redis.resources.limits.memory="512m"') == [GI]


def test_without_a_limit_there_is_no_maxmemory(helm: str) -> None:
    assert maxmemory(helm, "redis.resources.limits=null") == []
    assert maxmemory(helm, "redis.resources.limits.memory=null") == []


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        (
            "redis.resources.limits.memory=1GB",
            'redis.resources.limits.memory is "1GB", which is not a quantity',
        ),
        ("redis.resources.limits.memory=lots", 'redis.resources.limits.memory is "lots"'),
        ("redis.resources.limits.memory=-1", 'redis.resources.limits.memory is "-1"'),
        (
            "redis.resources.limits.memory=512m",
            "redis.resources.limits.memory is 512m, 0 bytes: too little",
        ),
        ("redis.maxmemory=1gb", 'redis.maxmemory is "1gb", which is not a quantity'),
        ("redis.requireExistingSecret=true", "redis.existingSecret is empty"),
    ],
)
def test_mistakes_are_errors_that_name_the_key(helm: str, setting: str, named: str) -> None:
    assert named in refusal(helm, "--set", setting)


def test_redis_restarts_when_maxmemory_changes(helm: str) -> None:
    def checksum(*options: str) -> str:
        (stateful_set,) = (
            row for row in objects(render(helm, *options)) if row["kind"] == "StatefulSet"
        )
        return str(stateful_set["spec"]["template"]["metadata"]["annotations"]["checksum/config"])

    assert checksum() != checksum("--set", "redis.maxmemory=700M")


def test_queues_have_a_maximum_unless_it_is_set_to_zero(helm: str) -> None:
    def declared(*options: str) -> set[str]:
        return set(re.findall(r'--maximum, "(\d+)"', render(helm, *options)))

    assert declared() == {"100000"}
    assert declared("--set", "queues.sleep.maximum=0") == {"0"}


def generations(rows: list[dict[str, Any]]) -> dict[str, str | None]:
    """Object -> which passwords its pods were made for, of all objects whose pods use Redis, and
    Redis itself.
    """
    generations = {}
    for row in rows:
        spec = row.get("spec", {})
        pod = (
            spec.get("jobTemplate", {}).get("spec", spec.get("jobTargetRef", spec)).get("template")
        )
        if pod and ("REDIS_PASSWORD" in str(pod) or row["kind"] == "StatefulSet"):
            name = f"{row['kind']}/{row['metadata']['name']}"
            generations[name] = (
                pod["metadata"].get("annotations", {}).get("scaletest/redis-passwords")
            )
    return generations


def test_pods_restart_when_passwords_change(helm: str) -> None:
    # given two renderings without a cluster, each of which draws passwords
    line = [helm, "template", "trial", str(CHART), "--kube-version", NEWEST]
    line += [
        "-f",
        str(CHART / "examples" / "jobs.yaml"),
        "--set",
        "queues.other.podAnnotations.mine=kept",
    ]
    drawn = []
    for _ in range(2):
        rows = objects(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
        secret = next(row["stringData"] for row in rows if row["kind"] == "Secret")
        # expect in each the same mark at everybody who uses them, and other annotations as they
        # were
        assert set(generations(rows).values()) == {secret["generation"]}
        assert {name.split("/")[0] for name in generations(rows)} >= {
            "StatefulSet",
            "Deployment",
            "CronJob",
            "ScaledJob",
        }
        assert "mine: kept" in str(rows).replace("'", "")
        # which tells nothing of a password
        assert not any(
            secret["generation"] in value for key, value in secret.items() if key != "generation"
        )
        drawn.append(secret)
    # and another one for other passwords
    assert not set(drawn[0].values()) & set(drawn[1].values())


def test_with_an_existing_secret_each_rendering_is_the_same(helm: str) -> None:
    own = ["--set", "redis.existingSecret=mine", "--set", "redis.requireExistingSecret=true"]
    text = render(helm, *own)
    template.cache_clear()
    assert render(helm, *own) == text
    assert set(generations(objects(text)).values()) == {None}
    assert not any(row["kind"] == "Secret" for row in objects(text))


def test_the_commands_of_the_readme_make_the_secret_that_the_chart_reads(helm: str) -> None:
    # given the first step of the chart's README
    readme = (CHART / "README.md").read_text("utf-8")
    (step,) = re.findall(r"^   (helm template.*?) > secret.yaml$", readme, re.DOTALL | re.MULTILINE)
    step = step.replace("-f values.yaml", f"--kube-version {NEWEST}").replace(
        "helm ", f"{helm} ", 1
    )
    # when it is done
    done = subprocess.run(
        ["bash", "-c", step], cwd=ROOT, capture_output=True, text=True, check=True
    )
    # expect a secret that nobody takes for Helm's, with every key that the chart reads
    (secret,) = objects(done.stdout)
    assert secret["metadata"] == {"name": "scaletest-redis-users"}
    own = objects(render(helm, "--set", "redis.existingSecret=scaletest-redis-users"))
    read = set(re.findall(r"'name': 'scaletest-redis-users', 'key': '([\w-]+)'", str(own)))
    assert {"password-worker", "password-client", "password-exporter"} <= read
    assert read | {"users.acl"} <= set(secret["stringData"])


def test_pods_and_keda_get_the_key_prefix_of_an_external_redis(helm: str) -> None:
    external = ("--set-json", "redis.enabled=false", "--set-json", 'externalRedis.host="shared"')
    prefix = ("--set-json", 'externalRedis.keyPrefix="{lab}"')
    scaling = ("--set-json", 'queues.a.autoscaling={"kind":"keda","metric":"demand"}')
    text = render(helm, *external, *prefix, *scaling)
    (scaled,) = [row for row in objects(text) if row["kind"] == "ScaledObject"]
    lists = [trigger["metadata"]["listName"] for trigger in scaled["spec"]["triggers"]]
    assert lists == ["{lab}:queue:a", "{lab}:scaletest:leases:a"]
    assert (
        text.count("name: SCALETEST_REDIS_URL")
        == text.count('name: RQ_KEY_PREFIX\n              value: "{lab}"')
        > 1
    )
    # expect nothing said where nothing was chosen
    assert "RQ_KEY_PREFIX" not in render(helm, *external, *scaling)


def test_the_chart_refuses_a_key_prefix_that_rq_refuses(helm: str) -> None:
    external = ("--set-json", "redis.enabled=false", "--set-json", 'externalRedis.host="shared"')
    assert "keyPrefix" in refusal(helm, *external, "--set-json", 'externalRedis.keyPrefix="a b"')


def test_a_prefix_without_an_external_redis_is_refused(helm: str) -> None:
    message = refusal(helm, "--set-json", 'externalRedis.keyPrefix="lab"')
    assert "externalRedis.keyPrefix is lab" in message and "set redis.enabled to false" in message
