"""The chart, rendered by Helm: examples look as they looked, are restricted; mistakes are errors
that name a key.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from scaletest.cli.main import cli
from scaletest.pages.site import checked
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
)
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
    assert with_token == {"Deployment/trial-scaletest-exporter", "Pod/trial-scaletest-test"}


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
    checked("", names)
    # and the exporter that of its Service
    exporter = dict(pod_specs(rows))["Deployment/trial-scaletest-exporter"]["containers"][0]
    assert "--allow-host=trial-scaletest-exporter" in exporter["args"]
    assert "--allow-host=trial-scaletest-exporter.bench" in exporter["args"]


@pytest.mark.parametrize("allowed", [False, True])
def test_a_worker_takes_benchmark_commands_only_where_the_values_allow_it(
    helm: str, allowed: bool
) -> None:
    value = json.dumps({"command": ["bench"], **({"allowCommands": True} if allowed else {})})
    rows = objects(render(helm, "--set-json", f"queues.bench={value}"))
    arguments = dict(pod_specs(rows))["Deployment/trial-scaletest-bench-worker"]["containers"][0][
        "args"
    ]
    assert ("--allow-commands" in arguments) == allowed
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


def test_metrics_have_the_node_of_the_exporter_as_in_the_original(helm: str) -> None:
    rows = objects(render(helm, "--set", "monitoring.serviceMonitor.enabled=true"))
    (monitor,) = (row for row in rows if row["kind"] == "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["relabelings"] == [
        {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
    ]
    # what the exporter itself says of a node stays
    assert endpoint["honorLabels"] is True


def test_keda_asks_sentinels_for_the_master(helm: str) -> None:
    settings = [
        "redis.enabled=false",
        "externalRedis.sentinel.nodes={a:1,b:2}",
        "queues.sleep.autoscaling.kind=keda",
    ]
    rows = objects(render(helm, *[word for setting in settings for word in ("--set", setting)]))
    (scaled,) = (row for row in rows if row["kind"] == "ScaledObject")
    waiting, running = scaled["spec"]["triggers"]
    assert waiting["type"] == running["type"] == "redis-sentinel"
    assert (waiting["metadata"]["addresses"], waiting["metadata"]["sentinelMaster"]) == (
        "a:1,b:2",
        "mymaster",
    )


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
