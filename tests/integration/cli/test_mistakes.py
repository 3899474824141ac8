"""What people type wrong: each line says at once, in two lines, what is wrong and what to do.

Commands that are right stand here too, where another tool's habits would make them wrong.
"""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from scaletest.broker import Queues, connect
from tests.conftest import call_here
from tests.unit.made_runs import make


class Typed(NamedTuple):
    """A command line and its answer: the exit code, the first line, and the line after it.

    STORED, REDIS and CLOSED in it stand for a stored run, a Redis, and an address where nothing
    listens.
    """

    line: str
    code: int
    first: str
    hint: str = ""


BAD_URL = "error: the Redis URL "
URL_HINT = "use redis://HOST:PORT/DB"
NO_CLUSTER = "error: no Kubernetes cluster is configured: Invalid kube-config file."
CLUSTER_HINT = "run it in a pod with a service account, or set KUBECONFIG"
NO_PLACE = "error: validate needs to know where to run"
NO_PROGRAM = "error: nosuchprogram cannot be started: there is no such program"
UNDECLARED = "error: queue 'slep' is not declared (declared: media, sleep)"

TYPED = [
    Typed(
        "run",
        2,
        "error: no such command 'run'",
        "did you mean runs?",
    ),
    Typed("validate", 2, NO_PLACE, "add --local, --deployment NAME, --redis-url URL, or -- COM"),
    Typed("validate --dry-run -- sleep 1", 0, "workload  sleep 1"),
    Typed("validate --local --limit 8 --dry-run sleep 1", 0, "workload  sleep 1"),
    Typed("validate --local --limit 0", 2, "error: limit is 0", "give a number from 1 to 100000"),
    Typed("validate --local --limit 6 --dry-run", 0, "workload  sleep 1", "steps     1, 2, 4, 6 "),
    Typed(
        "validate --local --scale 3 --dry-run", 2, "error: scale is 3.0", "give the ratio wanted"
    ),
    Typed("validate --local -- nosuchprogram", 2, NO_PROGRAM, "install it, or give its path"),
    Typed("validate -- nosuchprogram", 2, NO_PROGRAM, "install it, or give its path"),
    Typed("validate --local -- ./data", 2, "error: ./data cannot be started: it is not executable"),
    Typed("validate plan.yaml", 2, NO_PLACE, "for a plan file: -f plan.yaml; for a program: "),
    Typed("validate --local --seconds 500ms --dry-run", 0, "workload  sleep 0.5"),
    Typed(
        "validate --local --device-glob /dev/nope*",
        2,
        "error: no device matches '/dev/nope*' on this machine",
        "check the driver; a container needs it as --device",
    ),
    Typed(
        "validate --local --preset nvidia --device-glob /dev/nope*",
        2,
        "error: no device of the preset nvidia matches '/dev/nope*' on this machine",
        "check the driver; a container needs it as --device, and a pod must request nvidia.com/gpu",
    ),
    Typed(
        "validate --local -f missing.yaml",
        2,
        "error: missing.yaml cannot be read: No such file or directory",
        "give a plan file; see: scaletest schema plan-file",
    ),
    Typed("validate --local ls -f plan", 2, "error: plan cannot be read", "give a plan file"),
    Typed(
        "validate --local ffmpeg -i x",
        2,
        "error: no such option '-i'",
        "put -- before your command, if the option is one of its own: scaletest validate -- ",
    ),
    Typed(
        "validate --local --threshold p99<2s",
        2,
        "error: threshold 'p99<2s' names p99, which is not measured",
        "did you mean run.p99?",
    ),
    Typed("validate --local --threshold run.p99<2s --dry-run", 0, "workload  sleep 1"),
    Typed(
        "validate --limit x",
        2,
        "error: invalid value for '--limit': 'x' is not a valid integer",
        "see: scaletest",
    ),
    Typed(
        "report STORED --format html out.html",
        2,
        "error: got unexpected extra argument (out.html)",
        "see: scaletest report --help",
    ),
    Typed("report STORED -o report.html", 0, "report.html written; open it in a browser, or see"),
    Typed("report nosuch", 2, "error: there is no run 'nosuch'", "see: scaletest runs list"),
    Typed(
        "report STORED -o /nonexistent/x.html",
        2,
        "error: /nonexistent/x.html cannot be written",
        "give another -o FILE",
    ),
    Typed(
        "report STORED --format htm",
        2,
        "error: invalid value for '--format': 'htm' is not one of 'text', 'json', ",
        "see: scaletest report --help",
    ),
    Typed(
        "queue --redis-url redis://CLOSED list",
        7,
        "error: Redis at redis://CLOSED cannot be reached: ",
        "start it, or correct --redis-url (SCALETEST_REDIS_URL)",
    ),
    Typed(
        "queue --redis-url localhost:6379 list",
        2,
        "error: the Redis URL 'localhost:6379' cannot be read: ",
        "use redis://HOST:PORT/DB",
    ),
    Typed("queue --redis-url REDIS submit slep", 2, UNDECLARED, "did you mean sleep? If not, "),
    Typed("worker --queue slep --redis-url REDIS", 2, UNDECLARED, "did you mean sleep? If not, "),
    # options that a URL cannot have: silence would mean a connection without what was asked for
    Typed("queue --redis-url sentinel://h:1/main?foo=1 list", 2, BAD_URL, URL_HINT),
    Typed("queue --redis-url sentinel://h:1/main?ssl_ca_certs=/x list", 2, BAD_URL, URL_HINT),
    Typed("queue --redis-url sentinel://h:1/main?sentinel_foo=1 list", 2, BAD_URL, URL_HINT),
    Typed(
        "queue --redis-url sentinel://h:1/main?ssl=true&ssl_min_version=x list",
        2,
        BAD_URL,
        URL_HINT,
    ),
    Typed("exporter --redis-url redis://h/x", 2, BAD_URL, URL_HINT),
    Typed("exporter --redis-url redis://h/0?nonsense=1", 2, BAD_URL, URL_HINT),
    Typed("exporter --listen x", 2, "error: 'x' is not an address", "write ADDRESS:PORT"),
    Typed("exporter --window 9999s", 2, "error: window is 9999.0 s", "give "),
    Typed("exporter --utilisation 0", 2, "error: utilisation is 0.0", "give a share above 0"),
    Typed("exporter --redis-url REDIS --declare q -1 x", 2, "error: maximum is -1", "give a "),
    Typed("exporter --declare q many x", 2, "error: invalid value for '--declare': 'many'"),
    Typed("worker --format json", 2, "error: --argument, --format and --output need --once"),
    Typed("worker --argument x -- true", 2, "error: --argument, --format and", "submit a request"),
    Typed("worker --queue sleep -- nosuchprogram", 2, NO_PROGRAM, "install it, or give its path"),
    Typed(
        "worker --device-index 0 --device-glob /dev/nope*",
        2,
        "error: no device matches '/dev/nope*' on this machine",
        "check the driver; a container needs it",
    ),
    Typed(
        "worker --queu sleep",
        2,
        "error: no such option '--queu'",
        "did you mean --queue?",
    ),
    Typed(
        "validate --deployment d --no-causes",
        2,
        "error: --no-causes is for local workers",
        "set extraArguments: [--no-causes]",
    ),
    Typed(
        "validate --local --per-device 2 --limit 4 --device-glob /dev/null",
        2,
        "error: 4 workers do not fit into 2 slots of 1 device",
        "give --limit 2",
    ),
    Typed(
        "saturate --queue sleep --redis-url REDIS",
        2,
        "error: queue sleep has no worker",
        "start one: scaletest worker --queue sleep",
    ),
    Typed("saturate --queue slep --redis-url REDIS", 2, UNDECLARED, "did you mean sleep? If not, "),
    Typed("saturate http://127.0.0.1:8081/ --dry-run", 0, "target    http://127.0.0.1:8081/"),
    Typed(
        "saturate 127.0.0.1:8081",
        2,
        "error: the service's URL is '127.0.0.1:8081', not an HTTP URL",
        "give http://HOST[:PORT]/PATH",
    ),
    Typed(
        "saturate http://127.0.0.1:8081/ --latency-limit 200ms",
        2,
        "error: threshold '200ms' cannot be read",
        "write MEASURE[.STATISTIC]",
    ),
    Typed(
        "autoscale --rule waiting:foo=3",
        2,
        "error: there is no change of rule waiting 'foo'",
        "there are metric, target, min",
    ),
    Typed("queue", 2, "Usage: scaletest queue [OPTIONS] COMMAND [ARGS]..."),
    Typed("lifecycle run -n 10", 7, NO_CLUSTER, CLUSTER_HINT),
    Typed("cluster check", 7, NO_CLUSTER, CLUSTER_HINT),
    Typed(
        "bench run IPerf --set stream=2",
        2,
        "error: unknown key 'stream' in the spec of IPerf",
        "did you mean streams?",
    ),
    Typed(
        "bench run IPerf --set placement=differentNodes --queue sleep --redis-url REDIS",
        2,
        "error: iperf: a worker runs all parts on its own node",
        "leave placement differentNodes",
    ),
    Typed("bench run IPerf --queue slep --redis-url REDIS", 2, UNDECLARED, "did you mean sleep? "),
    Typed("bench run iprf", 2, "error: there is no kind 'iprf'", "did you mean IPerf?"),
    Typed(
        "bench run nosuch.yaml",
        2,
        "error: nosuch.yaml cannot be read: No such file or directory",
        "give a file with one benchmark or one BenchmarkSet",
    ),
    Typed(
        "compare LAST",
        2,
        "error: missing argument 'RUN...'",
        "see: scaletest compare --help",
    ),
    Typed("runs delete nosuch --yes", 2, "error: there is no run 'nosuch'", "see: scaletest runs"),
    Typed("runs lst", 2, "error: no such command 'lst'", "did you mean list?"),
    Typed("--halp", 2, "error: no such option '--halp'", "did you mean --help?"),
    Typed("runs", 2, "Usage: scaletest runs [OPTIONS] COMMAND [ARGS]..."),
]


@pytest.fixture
def closed() -> Iterator[str]:
    """An address of this machine where nothing listens, and nobody else can."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{reserved.getsockname()[1]}"


@pytest.mark.parametrize("typed", TYPED, ids=lambda typed: typed.line)
def test_a_mistake_is_explained_in_two_lines(
    typed: Typed, closed: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    make("pass", tmp_path)
    (tmp_path / "data").write_text("no program")
    redis = connect(url)
    for name in ("media", "sleep"):
        Queues(redis).add(name)
    redis.close()
    places = {"STORED": str(tmp_path / "pass"), "REDIS": url, "CLOSED": closed}

    def filled(text: str) -> str:
        for name, place in places.items():
            text = text.replace(name, place)
        return text

    result = call_here(*filled(typed.line).split())
    assert result.returncode == typed.code, result.stderr
    lines = [line.strip() for line in (result.stderr + result.stdout).splitlines()]
    assert lines[0].startswith(filled(typed.first))
    assert typed.code == 0 or lines[1].startswith(typed.hint)
    assert "Traceback" not in result.stderr


def test_a_run_of_benchmarks_that_is_not_complete_names_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "fio"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    result = call_here("bench", "run", "Fio", "--set", "paused=true")
    (run,) = (tmp_path / "scaletest" / "runs").iterdir()
    assert result.returncode == 4
    assert f"what to do: scaletest bench run --resume {run.name}" in result.stdout
