"""Options of sampling: which workers sample, and which exporter they ask."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scaletest.model import Record
from tests.conftest import call


@pytest.mark.parametrize(("options", "sampled"), [((), True), (("--no-causes",), False)])
def test_records_of_a_local_validation_carry_activities(
    tmp_path: Path, options: tuple[str, ...], sampled: bool
) -> None:
    folder = tmp_path / "run"
    line = [
        "--local",
        "--limit",
        "1",
        "--step-time",
        "2",
        "--run-dir",
        str(folder),
        *options,
        "--",
        "/bin/sleep",
        "0.2",
    ]
    done = call("validate", *line)
    assert done.returncode in (0, 3, 4), done.stderr
    records = [
        Record.from_json(line)
        for line in (folder / "records.jsonl").read_text("utf-8").splitlines()
    ]
    assert records and any(record.reply.activity is not None for record in records) is sampled


@pytest.mark.parametrize("option", ["--no-causes", "--device-metrics-url=http://h/"])
def test_sampling_options_are_refused_for_workers_of_a_deployment(option: str) -> None:
    done = call("validate", "--deployment", "d", option)
    assert (
        done.returncode == 2 and f"{option.partition('=')[0]} is for local workers" in done.stderr
    )


def test_local_workers_get_the_address_of_device_metrics(tmp_path: Path) -> None:
    line = ["--local", "--limit", "1", "--step-time", "1", "--run-dir", str(tmp_path / "run")]
    url, arguments = "http://127.0.0.1:9/metrics", tmp_path / "words"
    done = call(
        "validate",
        *line,
        "--device-metrics-url",
        url,
        "--",
        "sh",
        "-c",
        f"cat /proc/$PPID/cmdline > {arguments}",
    )
    assert done.returncode in (0, 3, 4), done.stderr
    worker = arguments.read_text().split("\0")
    assert worker[worker.index("--device-metrics-url") + 1] == url
    # nothing listens there: it is said once, and stays with the run
    assert done.stderr.count(f"warning: the device metrics at {url} cannot be read: ") == 1
    warnings = json.loads((tmp_path / "run" / "result.json").read_text())["warnings"]
    assert [line for line in warnings if line.endswith("or correct --device-metrics-url")]


def test_once_warns_when_device_metrics_name_no_device() -> None:
    with injected_metrics("up 1\n") as url:
        done = call("worker", "--once", "--device-metrics-url", url, "--", "true")
    assert done.returncode == 0
    assert f"warning: {url} has no known metrics of devices" in done.stderr
    assert "or correct --device-metrics-url" in done.stderr
    with injected_metrics('DCGM_FI_DEV_GPU_UTIL{gpu="0",pci_bus_id="00000000:03:00.0"} 7\n') as url:
        done = call("worker", "--once", "--device-metrics-url", url, "--", "true")
    assert done.returncode == 0 and "warning" not in done.stderr


@contextmanager
def injected_metrics(text: str) -> Iterator[str]:
    """The URL of an exporter that says this."""

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics"
        finally:
            server.shutdown()


@pytest.mark.parametrize("command", [("worker", "--once"), ("validate", "--local")])
def test_a_wrong_address_of_device_metrics_is_refused_at_once(command: tuple[str, ...]) -> None:
    done = call(*command, "--device-metrics-url", "node:9400")
    assert done.returncode == 2
    assert "--device-metrics-url is 'node:9400', not an HTTP URL" in done.stderr
    assert "give http://HOST[:PORT]/PATH" in done.stderr
