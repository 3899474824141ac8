"""The chart, rendered by Helm: examples look as they looked, are restricted; mistakes are errors
that name a key.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scaletest.cli.main import cli
from scaletest.pages.site import check_prefix_and_hosts
from tests.cluster.charts import (
    BOTH_HELMS,
    CHART,
    EXAMPLES,
    HELMS,
    MAIN_HELM,
    NEWEST,
    ROOT,
    objects,
    refusal,
    render,
    template,
)
from tests.cluster.conftest import helm_program
from tests.conftest import missing

# These need no cluster, and whoever changes a template breaks them first: not only weekly with the
# second Helm.
with_both_helms = pytest.mark.parametrize("helm", BOTH_HELMS, indirect=True)

GOLDEN = Path(__file__).parent / "golden" / "chart"
LONG = "a-name-of-a-release-that-is-long-enough-to-be-cut"


@pytest.fixture(scope="session", params=HELMS)
def helm(request: pytest.FixtureRequest) -> str:
    """Every Helm that was built. The machine's own will do for the main one."""
    build = subprocess.run(
        [ROOT / "hack" / "tool", "--path", request.param],
        capture_output=True,
        text=True,
        check=False,
    )
    path = f"{build.stdout.strip()}/helm" if build.returncode == 0 else None
    if path is None and request.param == MAIN_HELM:
        path = shutil.which("helm")
    if path is None:
        missing(f"{request.param} (hack/tool {request.param})")
    return path


def without_chance(text: str) -> str:
    """Passwords are drawn anew each time."""
    drawn = r"^( +(?:password-\w+|generation|scaletest/redis-passwords): ).*$"
    text = re.sub(drawn, r"\1DRAWN", text, flags=re.MULTILINE)
    return re.sub(r"#[0-9a-f]{64}", "#HASH", text)


def pod_specs(rows: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    specs = []
    for row in rows:
        spec = row.get("spec", {})
        for key in ("jobTemplate", "jobTargetRef"):
            spec = spec.get(key, spec)
        template = (
            row
            if row["kind"] == "Pod"
            else spec.get("spec", spec).get("template") or spec.get("template")
        )
        if template:
            specs.append((f"{row['kind']}/{row['metadata']['name']}", template["spec"]))
    return specs


@pytest.mark.parametrize(
    "example", [None, *EXAMPLES], ids=lambda path: path.stem if path else "default"
)
@with_both_helms
def test_examples_render_as_in_the_golden_files(helm: str, example: Path | None) -> None:
    text = without_chance(render(helm, *(["-f", str(example)] if example else [])))
    golden = GOLDEN / f"{example.stem if example else 'default'}.yaml"
    if os.environ.get("REGENERATE"):
        golden.write_text(text, "utf-8")

    # the order of objects is not Helm's promise
    def key(row: dict[str, Any]) -> str:
        return json.dumps(row, sort_keys=True)

    expected = objects(golden.read_text("utf-8"))
    assert sorted(objects(text), key=key) == sorted(expected, key=key)


@pytest.mark.parametrize(
    "example", [None, *EXAMPLES], ids=lambda path: path.stem if path else "default"
)
def test_pods_meet_the_restricted_pod_security_standard(helm: str, example: Path | None) -> None:
    rows = objects(render(helm, *(["-f", str(example)] if example else [])))
    specs = pod_specs(rows)
    assert specs
    for name, spec in specs:
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            rules = container["securityContext"]
            assert rules["allowPrivilegeEscalation"] is False, name
            assert rules["readOnlyRootFilesystem"] is True, name
            assert rules["capabilities"] == {"drop": ["ALL"]}, name
        assert not any("hostPath" in volume for volume in spec.get("volumes", [])), name


def test_tokens_are_mounted_only_where_they_are_needed(helm: str) -> None:
    rows = objects(render(helm, "-f", str(CHART / "examples" / "keda-redis.yaml")))
    with_token = {name for name, spec in pod_specs(rows) if spec["automountServiceAccountToken"]}
    assert with_token == {"Pod/trial-scaletest-test"}


def test_commands_have_the_options_that_the_chart_gives(helm: str) -> None:
    commands = set()
    for example in EXAMPLES:
        for _, spec in pod_specs(objects(render(helm, "-f", str(example)))):
            for container in [*spec.get("initContainers", []), *spec["containers"]]:
                arguments = container.get("args", [])
                command = cli
                while (
                    arguments
                    and not arguments[0].startswith("-")
                    and hasattr(command, "get_command")
                ):
                    command = command.get_command(None, arguments[0])
                    arguments = arguments[1:]
                    assert command is not None, container["args"]
                known = {name for option in command.params for name in option.opts}
                before_workload = {
                    word.split("=")[0]
                    for word in arguments[: arguments.index("--") if "--" in arguments else None]
                }
                options = {word for word in before_workload if word.startswith("--")}
                assert options <= known, (container["args"], options - known)
                commands.add(command.name)
    assert {"worker", "client", "exporter", "ui", "add", "validate"} <= commands


def test_object_names_are_made_from_queue_names(helm: str) -> None:
    rows = objects(render(helm, "--set", "queues.A_b.note=x", "--set", "queues.a-b.note=x"))
    names = [row["metadata"]["name"] for row in rows if row["kind"] == "Deployment"]
    assert len(names) == len(set(names))
    assert "trial-scaletest-a-b-worker" in names
    assert any(re.fullmatch("trial-scaletest-a-b-[0-9a-f]{6}-worker", name) for name in names)


def test_no_name_of_an_object_begins_with_that_of_another_queues_workers(helm: str) -> None:
    # given names that begin with each other, that hold the words of the chart, and the longest ones
    names = ("med", "med-hd", "med-worker", "med-client", "med-worker-2", "MED_Client.x", "worker")
    long = ("a" * 20, "a" * 21, "abcdef-worker-and-more", "a-client-" * 11)
    queues = {name: {"client": {"enabled": True, "arguments": ["1"]}} for name in (*names, *long)}
    rows = objects(
        render(helm, "--set-json", f"queues={json.dumps(queues)}", "--set", f"nameOverride={LONG}")
    )
    deployments = [row["metadata"] for row in rows if row["kind"] == "Deployment"]
    workers = {row["name"] for row in deployments if row["name"].endswith("-worker")}
    assert len(workers) == len(queues) + 1  # and the one of the chart
    for worker in workers:
        # a pod is named after its Deployment, a dash and more, all cut after 58 characters
        assert len(worker) < 58
        same = [row["metadata"]["name"] for row in rows if row["metadata"]["name"] != worker]
        assert not [name for name in same if name.startswith(f"{worker}-")], worker
    clients = [row["name"] for row in deployments if row["name"].endswith("-client")]
    assert len(clients) == len(set(clients)) == len(workers)


def test_names_of_cron_jobs_have_at_most_52_characters(helm: str) -> None:
    cron = json.dumps({"autoscaling": {"kind": "cron"}})
    queues = ["--set-json", f"queues.{'a' * 20}={cron}", "--set-json", f"queues.{'B' * 90}={cron}"]
    rows = objects(render(helm, *queues, "--set", f"nameOverride={LONG}"))
    lengths = [len(row["metadata"]["name"]) for row in rows if row["kind"] == "CronJob"]
    assert len(lengths) == 2
    assert max(lengths) <= 52


@pytest.mark.parametrize("name", ["exporter", "operator", "sleep-client", "ui"])
def test_a_queue_takes_no_name_of_another_object(helm: str, name: str) -> None:
    all_objects = f"operator.enabled=true,ui.enabled=true,queues.{name}.note=x"
    rows = objects(render(helm, "--set", all_objects))
    names = [(row["kind"], row["metadata"]["name"]) for row in rows]
    assert len(names) == len(set(names))


def test_large_numbers_are_rendered_without_an_exponent(helm: str) -> None:
    specs = dict(pod_specs(objects(render(helm, "--set", "queues.sleep.maximum=1000000"))))
    assert (
        "1000000" in specs["Deployment/trial-scaletest-sleep-worker"]["initContainers"][0]["args"]
    )


def test_a_new_chart_version_alone_restarts_no_pod(helm: str, tmp_path: Path) -> None:
    shutil.copytree(CHART, tmp_path / "chart")
    file = tmp_path / "chart" / "Chart.yaml"
    file.write_text(
        re.sub("^version: .*", "version: 99.0.0", file.read_text("utf-8"), flags=re.MULTILINE),
        "utf-8",
    )
    newer = subprocess.run(
        [
            helm,
            "template",
            "trial",
            str(tmp_path / "chart"),
            "-n",
            "bench",
            "--kube-version",
            NEWEST,
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "scaletest-99.0.0" in newer

    def templates(text: str) -> dict[str, Any]:
        return {
            f"{row['kind']}/{row['metadata']['name']}": row["spec"]["template"]
            for row in objects(without_chance(text))
            if row["kind"] in ("Deployment", "StatefulSet")
        }

    assert templates(newer) == templates(render(helm))


def test_a_client_accepts_the_host_names_of_its_service_and_ingress(helm: str) -> None:
    ingress = {
        "enabled": True,
        "host": "bench.example.org",
        "tls": [{"hosts": ["tls.example.org", "*.example.org"]}],
    }
    rows = objects(render(helm, "--set-json", f"queues.sleep.client.ingress={json.dumps(ingress)}"))
    arguments = dict(pod_specs(rows))["Deployment/trial-scaletest-sleep-client"]["containers"][0][
        "args"
    ]
    names = [word.partition("=")[2] for word in arguments if word.startswith("--allow-host=")]
    service = "trial-scaletest-sleep-client"
    assert names == [service, f"{service}.bench", "bench.example.org", "tls.example.org"]
    # the client itself takes them
    check_prefix_and_hosts("", names)
    # and the exporter that of its Service
    exporter = dict(pod_specs(rows))["Deployment/trial-scaletest-exporter"]["containers"][0]
    assert "--allow-host=trial-scaletest-exporter" in exporter["args"]
    assert "--allow-host=trial-scaletest-exporter.bench" in exporter["args"]


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize(
    ("key", "option"),
    [("allowCommands", "--allow-commands"), ("scheduler", "--with-scheduler")],
)
def test_a_worker_takes_commands_of_benchmarks_or_schedules_only_where_the_values_say_so(
    helm: str, key: str, option: str, wanted: bool
) -> None:
    value = json.dumps({"command": ["bench"], **({key: True} if wanted else {})})
    rows = objects(render(helm, "--set-json", f"queues.bench={value}"))
    arguments = dict(pod_specs(rows))["Deployment/trial-scaletest-bench-worker"]["containers"][0][
        "args"
    ]
    assert (option in arguments) == wanted
    assert arguments[-2:] == ["--", "bench"]


@pytest.mark.parametrize(
    "example", [None, *EXAMPLES], ids=lambda path: path.stem if path else "default"
)
@with_both_helms
def test_helm_lint_finds_nothing_in_the_chart(helm: str, example: Path | None) -> None:
    options = ["-f", str(example)] if example else []
    line = [helm, "lint", "--strict", "--kube-version", NEWEST, str(CHART), *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout
    assert "[ERROR]" not in done.stdout


@pytest.mark.parametrize(
    ("limit", "grace", "expected", "option"),
    [
        ("0", None, 60, "--grace=50s"),
        ("300", None, 320, "--grace=310s"),
        ("300", "30", 30, "--grace=20s"),
    ],
)
def test_the_grace_period_follows_from_the_time_limit(
    helm: str, limit: str, grace: str | None, expected: int, option: str
) -> None:
    settings = ["--set", f"queues.sleep.timeLimit={limit}"]
    if grace:
        settings += ["--set", f"queues.sleep.graceSeconds={grace}"]
    specs = dict(pod_specs(objects(render(helm, *settings))))
    worker = specs["Deployment/trial-scaletest-sleep-worker"]
    assert worker["terminationGracePeriodSeconds"] == expected
    assert option in worker["containers"][0]["args"]


def test_the_chart_takes_the_values_that_autoscale_prints(helm: str, tmp_path: Path) -> None:
    recommendation = subprocess.run(
        ["scaletest", "autoscale", "--format", "json", "--duration", "10m"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    values = tmp_path / "values.yaml"
    block = json.loads(recommendation.stdout)["values"]
    values.write_text(yaml.safe_dump({"queues": {"sleep": block}}), "utf-8")
    rows = objects(render(helm, "-f", str(values)))
    scaler = next(row for row in rows if row["kind"] == "HorizontalPodAutoscaler")
    assert scaler["spec"]["behavior"] == block["autoscaling"]["behavior"]
    deployment = next(
        row for row in rows if row["metadata"]["name"] == scaler["spec"]["scaleTargetRef"]["name"]
    )
    assert "replicas" not in deployment["spec"]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (["queues.sleep.replica=2"], "replica"),
        (["queues.sleep.autoscaling.kind=magic"], "kind"),
        (["exporter.intelname=true"], "intelname"),
        (["redis.persistance.size=1Gi"], "persistance"),
        (["redis.enabled=false"], "externalRedis.host"),
        (
            ["queues.sleep.autoscaling.kind=keda", "queues.sleep.autoscaling.metric=max_wait"],
            "source: exporter",
        ),
        (
            ["queues.sleep.autoscaling.kind=keda", "queues.sleep.autoscaling.minReplicas=11"],
            "minReplicas",
        ),
        (
            ["queues.sleep.device.resource=a/b", "queues.sleep.device.deviceClass=c"],
            "exclude each other",
        ),
        (["queues.sleep.autoscaling.kind=hpa", "exporter.enabled=false"], "exporter.enabled"),
        (["queues.sleep.autoscaling.target=0"], "/queues/sleep/autoscaling/target"),
        (
            ["queues.sleep.client.ingress.hostt=x"],
            "/queues/sleep/client/ingress': additional properties 'hostt'",
        ),
        (["queues.sleep.client.parallel=600"], "parallel is more than maxParallel"),
        (
            ["queues.sleep.client.arguments=null", "queues.other.client.enabled=true"],
            "queues.other.client.arguments",
        ),
        (["queues.sleep.device.resource=gpu"], "/queues/sleep/device/resource"),
        (["queues.sleep.nodeSelector.gpu=true"], "/queues/sleep/nodeSelector/gpu"),
        (["queues.sleep.maxUnavailable=half"], "/queues/sleep/maxUnavailable"),
        (["queues.a b.note=x"], "queues.a b"),
        (["commonLabels.team=1"], "/commonLabels/team"),
        (["fullnameOverride=Upper_Case"], "/fullnameOverride"),
        (["image.repository="], "/image/repository"),
        (["test.queue=typo"], "test.queue is typo"),
        (["test.queue=sleep", "queues.sleep.autoscaling.kind=cron"], "test.queue is sleep"),
        (
            ["queues.sleep.autoscaling.kind=cron", "queues.sleep.autoscaling.schedule=nightly"],
            "/autoscaling/schedule",
        ),
        (["fullnameOverride=trial-redis"], "fullnameOverride: trial-redis"),
        (["redis.persistence.size=lots"], "/persistence/size"),
        (
            ["queues.sleep.autoscaling.exporter.window=0"],
            "/queues/sleep/autoscaling/exporter/window",
        ),
        (["image.digest=latest"], "/image/digest"),
        (["queues.sleep.image.digest=sha256:1"], "/queues/sleep/image/digest"),
        (
            [
                f"queues.sleep.autoscaling.{setting}"
                for setting in ("kind=keda", "metric=running", "minReplicas=0")
            ],
            "queues.sleep.autoscaling.metric is running",
        ),
        (
            [r"commonLabels.app\.kubernetes\.io/component=x"],
            "commonLabels: app.kubernetes.io/component",
        ),
        (["queues.sleep.podLabels.scaletest/redis=no"], "queues.sleep.podLabels: scaletest/redis"),
        (
            ["monitoring.rules.enabled=true", r"monitoring.rules.labels.helm\.sh/chart=x"],
            "monitoring.rules.labels: helm.sh/chart",
        ),
        (
            [
                f"queues.sleep.autoscaling.{setting}"
                for setting in ("kind=job", "metric=waiting", "target=0.5")
            ],
            "queues.sleep.autoscaling.target is 0.5",
        ),
        (["ui.enabled=true", "ui.archive.subPath=runs"], "ui.archive.existingClaim"),
        (["ui.archive.subPath=/runs"], "/ui/archive/subPath"),
        (["ui.ingress.path=pages"], "/ui/ingress/path"),
        (
            ["redis.enabled=false", "externalRedis.host=h", "externalRedis.username=u"],
            "externalRedis.existingSecret",
        ),
        (["redis.enabled=false", "externalRedis.urlKey=url"], "externalRedis.existingSecret"),
        (
            [
                *("queues.sleep.autoscaling.kind=keda", "queues.sleep.autoscaling.minReplicas=0"),
                *("queues.sleep.client.enabled=false", "exporter.enabled=false"),
            ],
            "nobody declares the queue",
        ),
        (
            ["redis.resources.limits.memory=1GB"],
            'redis.resources.limits.memory is "1GB", which is not a quantity',
        ),
        (["redis.resources.limits.memory=lots"], 'redis.resources.limits.memory is "lots"'),
        (["redis.resources.limits.memory=-1"], 'redis.resources.limits.memory is "-1"'),
        (
            ["redis.resources.limits.memory=512m"],
            "redis.resources.limits.memory is 512m, 0 bytes: too little",
        ),
        (["redis.maxmemory=1gb"], 'redis.maxmemory is "1gb", which is not a quantity'),
        (["redis.requireExistingSecret=true"], "redis.existingSecret is empty"),
        (
            ["redis.enabled=false", "externalRedis.host=shared", "externalRedis.keyPrefix=a b"],
            "keyPrefix",
        ),
        (["externalRedis.keyPrefix=lab"], "externalRedis.keyPrefix is lab"),
    ],
)
@with_both_helms
def test_mistakes_are_errors_that_name_the_key(helm: str, settings: list[str], named: str) -> None:
    assert named in refusal(helm, *[word for setting in settings for word in ("--set", setting)])


@pytest.mark.parametrize("schedule", ["@hourly", "@every 10m", "*/15 * * * *"])
def test_a_schedule_is_any_that_a_cronjob_takes(helm: str, schedule: str) -> None:
    cron = [
        "--set",
        "queues.sleep.autoscaling.kind=cron",
        "--set",
        f"queues.sleep.autoscaling.schedule={schedule}",
    ]
    (cron_job,) = (row for row in objects(render(helm, *cron)) if row["kind"] == "CronJob")
    assert cron_job["spec"]["schedule"] == schedule


def test_an_hpa_goes_to_zero_from_1_37_on(helm: str) -> None:
    zero = [
        "--set",
        "queues.sleep.autoscaling.kind=hpa",
        "--set",
        "queues.sleep.autoscaling.minReplicas=0",
    ]
    rows = objects(render(helm, *zero, version="1.37.0"))
    assert any(
        row["kind"] == "HorizontalPodAutoscaler" and row["spec"]["minReplicas"] == 0 for row in rows
    )
    assert "set kind: keda" in refusal(helm, *zero, version="1.36.3")


def test_a_password_is_in_no_argument_and_in_no_note(helm: str) -> None:
    text = render(helm)
    secrets = {
        row["metadata"]["name"]: row["stringData"]
        for row in objects(text)
        if row["kind"] == "Secret"
    }
    for key, password in secrets["trial-redis"].items():
        if key.startswith("password-"):
            assert text.count(password) == 1


def test_without_cluster_read_there_is_no_cluster_role_binding(helm: str) -> None:
    kinds = {row["kind"] for row in objects(render(helm))}
    assert not kinds & {"ClusterRole", "ClusterRoleBinding"}
    more = {row["kind"] for row in objects(render(helm, "--set", "rbac.clusterRead=true"))}
    assert {"ClusterRole", "ClusterRoleBinding"} <= more


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
    # its probes ask its event loop, which an answer with metrics does not tell about
    (container,) = dict(pod_specs(rows))["Deployment/trial-scaletest-operator"]["containers"]
    assert {"name": "health", "containerPort": 9995} in container["ports"]
    assert "--health-port=9995" in container["args"]
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": "health"}


def test_the_notes_of_an_operator_ask_for_no_queue() -> None:
    # Helm 3 shows notes with a cluster only
    line = [helm_program(), "install", "trial", str(CHART), "--dry-run=client", "--set"]
    done = subprocess.run([*line, OPERATOR_ALONE], capture_output=True, text=True, check=True)
    notes = done.stdout.split("NOTES:")[1]
    assert "Benchmarks in all namespaces are measured" in notes and "queue" not in notes


GI, MI = 1 << 30, 1 << 20


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


NAME = "trial-scaletest-ui"
INGRESS = {
    "enabled": True,
    "host": "bench.example.org",
    "path": "/pages",
    "tls": [{"hosts": ["tls.example.org", "*.example.org"]}],
}


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


def test_the_names_of_service_and_ingress_are_allowed_without_a_token(helm: str) -> None:
    names = hosts(rendered(helm, ingress=INGRESS))
    assert names == [NAME, f"{NAME}.bench", "bench.example.org", "tls.example.org"]
    # the pages themselves take them
    check_prefix_and_hosts("/pages", names)


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
