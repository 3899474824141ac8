"""scaletest validate --service on an inference service whose replicas are processes."""

import json
import os
from pathlib import Path
from urllib import request

import pytest

from tests.conftest import call
from tests.integration.services import inference

FRONT = "hack.inference_front"


def replicas(url: str) -> int:
    """How many there are."""
    with request.urlopen(f"{url}/replicas", timeout=30) as answer:
        return len(json.loads(answer.read()))


def arguments(url: str) -> list[str]:
    """Of a run up to two replicas."""
    return [
        *("validate", "--service", url, "--openai", "completions", "--model", "m"),
        *("--output-tokens", "8", "--prompt-tokens", "32", "--replica-header", "X-Replica"),
        *("--set-replicas", f"curl -sf -X POST {url}/replicas/{{n}}", "--limit", "2"),
        *("--in-flight", "8", "--step-time", "2", "--progress", "plain"),
    ]


@pytest.mark.parametrize(
    ("switches", "kinds", "words"),
    [
        ((), ("PASS", "INVALID"), ""),
        (("--balance", "sticky"), ("FAIL", "INVALID"), "balance"),
    ],
)
def test_a_run_doubles_the_replicas_and_puts_them_back(
    switches: tuple[str, ...], kinds: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    root = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
    with inference(*switches, "--slots", "4", module=FRONT) as url:
        done = call(*arguments(url), "--format", "json", env=root)
        assert replicas(url) == 1
    assert done.returncode in (0, 3, 4), done.stderr
    result = json.loads(done.stdout)
    verdict = result["verdict"]
    # a busy machine may leave it open, but it never says the contrary
    assert verdict["kind"] in kinds, verdict
    assert verdict["kind"] != "FAIL" or words in verdict["reason"]
    assert [step["workers"] for step in result["steps"]] == [1, 2]
    for step in result["steps"]:
        for visit in step["results"]:
            assert visit["is_warm"]
            assert visit["output_tokens"] == 8
            assert visit["input_tokens"] == 32
    # and every report of it
    page = call("report", result["folder"], "-o", str(tmp_path / "page.html"), env=root)
    assert page.returncode == 0, page.stderr
    assert "Warm-up and client" in (tmp_path / "page.html").read_text()
    compared = call("compare", result["folder"], result["folder"], env=root)
    assert compared.returncode in (0, 4), compared.stderr


@pytest.mark.parametrize(
    ("switches", "words"),
    [
        (("--freeze", "6"), ("timed out", "not ready")),
        (("--crash", "4"), ("requests failed", "no request succeeded")),
        (("--reject", "2"), ("429",)),
        (("--half-close", "5"), ("requests failed",)),
    ],
)
def test_a_service_that_fails_ends_the_run_with_the_reason_and_its_replicas_back(
    switches: tuple[str, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    with inference(*switches, "--slots", "4", module=FRONT) as url:
        patience = ("--timeout", "3s", "--warm-limit", "10s", "--ready-timeout", "8s")
        environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}
        done = call(*arguments(url), *patience, env=environment)
        assert replicas(url) == 1
    assert done.returncode in (4, 6), done
    said = done.stdout + done.stderr
    assert any(word in said for word in words), said


def test_a_command_that_fails_ends_the_run_with_what_to_do(tmp_path: Path) -> None:
    with inference(module=FRONT) as url:
        line = arguments(url)
        line[line.index("--set-replicas") + 1] = "false {n}"
        done = call(*line, env={**os.environ, "XDG_DATA_HOME": str(tmp_path)})
    assert done.returncode == 2
    assert "false 1 failed with exit code 1" in done.stderr
    # a run of which nothing is known is not kept
    assert not list(tmp_path.glob("scaletest/runs/*/plan.json"))
