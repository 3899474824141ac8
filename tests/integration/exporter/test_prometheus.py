"""A real Prometheus scrapes a real exporter with load on: every query of the dashboard returns
data.
"""

import json
import math
import re
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scaletest.broker import Client, Queues
from scaletest.exporter import metrics
from scaletest.model import Request
from tests.conftest import eventually, need
from tests.integration.conftest import Export

ROOT = Path(__file__).parents[3]
DASHBOARD = ROOT / "charts" / "scaletest" / "dashboards" / "scaletest.json"
RULES = ROOT / "charts" / "scaletest" / "alerts" / "scaletest.rules.yaml"


def expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    expressions = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert len(expressions) > 25
    return expressions


def get(url: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=120) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        # while it starts it answers 503 with plain text
        return {"status": "away"} if error.code == 503 else json.load(error)
    except OSError:
        return {"status": "away"}


@pytest.fixture
def exporter(url: str, queues: Queues, export: Export) -> str:
    """The address of an exporter."""
    return export(url).removeprefix("http://")


@pytest.fixture
def prometheus(exporter: str, tmp_path: Path) -> Iterator[str]:
    """Prometheus with our alert rules and an exporter to scrape every half second; its URL."""
    server = need("prometheus")
    config = {
        "global": {
            "scrape_interval": "500ms",
            "scrape_timeout": "500ms",
            "evaluation_interval": "1s",
        },
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "scaletest", "static_configs": [{"targets": [exporter]}]}],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    line = [
        server,
        f"--config.file={tmp_path}/prometheus.yml",
        f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(line, stdout=log, stderr=log)
        yield f"http://127.0.0.1:{port}/api/v1/"
        process.terminate()
        process.communicate(timeout=60)


def values(base: str, expression: str) -> list[float]:
    query = re.sub(r"\$__rate_interval", "5s", expression).replace("$queue", ".*")
    answer = get(f"{base}query?{urllib.parse.urlencode({'query': query})}")
    if answer["status"] == "away":
        return []
    assert answer["status"] == "success", (query, answer)
    numbers = [float(row["value"][1]) for row in answer["data"]["result"]]
    return [number for number in numbers if not math.isnan(number)]


# Of devices, CPU limits and pressures, which not every machine has.
NOT_EVERYWHERE = re.compile(r"scaletest_device_|_throttled_ratio|_pressure_ratio")


def test_every_query_of_the_dashboard_returns_data(
    prometheus: str, client: Client, start: Any
) -> None:
    # given a worker with work for longer than this test
    start("--", "sleep", "0.05")
    client.submit([Request(client.new_id(), "q") for _ in range(20_000)])
    # expect data from every query, the moment Prometheus has seen a few scrapes
    for expression in expressions():
        if NOT_EVERYWHERE.search(expression):
            continue
        eventually(lambda expression=expression: values(prometheus, expression))
    eventually(
        lambda: (
            max(
                values(prometheus, 'sum(rate(scaletest_requests_total{queue=~"$queue"}[5s]))'),
                default=0,
            )
            > 1
        )
    )
    # and the alert rules loaded, each of them evaluated without an error
    rules = eventually(lambda: get(prometheus + "rules").get("data"))["groups"][0]["rules"]
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    assert len(rules) == 11


def test_the_rules_pass_promtool(tmp_path: Path) -> None:
    promtool = need("promtool")
    text = (ROOT / "tests" / "integration" / "alerts.test.yaml").read_text("utf-8")
    (tmp_path / "test.yaml").write_text(text.replace("RULES", str(RULES)))
    for line in (
        [promtool, "check", "rules", str(RULES)],
        [promtool, "test", "rules", str(tmp_path / "test.yaml")],
    ):
        result = subprocess.run(line, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


def test_the_exposition_passes_promtool(exporter: str) -> None:
    promtool = need("promtool")
    with urllib.request.urlopen(f"http://{exporter}/metrics", timeout=120) as answer:
        text = answer.read()
    result = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_several_exporters_are_counted_once() -> None:
    # expect no sum over what two exporters of one Redis give twice
    for expression in expressions():
        assert not re.search(r"sum[^()]*(\([^()]*\) *)?\((rate\()?scaletest", expression), (
            expression
        )


def test_rules_and_dashboard_name_only_metrics_that_there_are() -> None:
    known = {metric.name for metric in metrics.QUEUE_METRICS} | {
        name for name, _, _ in metrics.GLOBAL_METRICS
    }
    text = " ".join([*expressions(), RULES.read_text("utf-8")])
    sampled = {name for name in known if name.startswith(("scaletest_node_", "scaletest_device_"))}
    assert len(sampled) == 9 and all(name in " ".join(expressions()) for name in sampled)
    for name in re.findall(r"\bscaletest_[a-z_]+", text):
        assert re.sub(r"_bucket$", "", name) in known
    for rule in yaml.safe_load(RULES.read_text("utf-8"))["groups"][0]["rules"]:
        assert {"summary", "runbook"} <= set(rule["annotations"])
