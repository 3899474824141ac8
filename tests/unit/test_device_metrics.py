"""Devices of which an exporter tells, over a real HTTP server: names, units, and all that an answer
may be.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.samples import Sample

from scaletest.model import checks
from scaletest.model.errors import InvalidValue
from scaletest.model.measurement import DEVICE, FIGURES, NodeSample
from scaletest.system.devices import metrics
from scaletest.system.devices.metrics import (
    AGAIN_S,
    LONGEST_S,
    SHORTEST_S,
    DeviceNames,
    figures_of,
    pci_address,
)
from scaletest.system.devices.reader import DeviceReader
from tests.unit.test_device_reader import SAMPLES, XE, Time, plant

MIB = 1024**2
NVIDIA = {
    "busy": 0.95,
    "busy.encoder": 0.95,
    "busy.decoder": 0.03,
    "memory_busy": 0.12,
    "memory_used": 1024.0 * MIB,
    "memory_total": 23033.0 * MIB,
    "energy_j": 4742.776,
    "power": 16.365,
    "temperature": 31.0,
}
INTEL = {
    "busy": 0.75,
    "busy.compute": 0.75,
    "busy.media": 0.25,
    "memory_used": 8589934592.0,
    "memory_total": 25669140480.0,
    "energy_j": 98765.5,
    "power": 31.5,
    "frequency": 0.5,
    "throttled": 1.0,
    "temperature": 36.0,
}


class Exporter:
    """A server whose answer a test sets."""

    def __init__(self) -> None:
        self.answer: Callable[[BaseHTTPRequestHandler], None] = lambda handler: handler.send_error(
            404
        )
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                outer.answer(self)

            def log_message(self, format: str, *arguments: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.url = f"http://{self.host}/metrics"

    def text(self, text: str) -> None:
        """Answer with a text."""
        data = text.encode()

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)

        self.answer = answer

    def sample(self, name: str) -> None:
        """Answer with a recorded one."""
        self.text((SAMPLES / f"{name}.prom").read_text())


@contextmanager
def serving() -> Iterator[Exporter]:
    """A server that answers while the context lasts."""
    exporter = Exporter()
    thread = threading.Thread(
        target=exporter.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield exporter
    finally:
        exporter.server.shutdown()
        exporter.server.server_close()
        thread.join()


@pytest.fixture
def server() -> Iterator[Exporter]:
    with serving() as exporter:
        yield exporter


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def reader(server: Exporter, tmp_path: Path, time: Time, warnings: list[str]) -> DeviceReader:
    return DeviceReader(
        lambda _, text: warnings.append(text), server.url, root=tmp_path, clock=time
    )


# -- what exporters say
# --------------------------------------------------------------------------------------------------


def test_metrics_of_nvidia_dcgm_give_figures(
    server: Exporter, reader: DeviceReader, warnings: list[str]
) -> None:
    server.sample("dcgm")
    resources, sources = reader.read()
    assert resources == {"device:/dev/nvidia0": pytest.approx(NVIDIA)}
    assert sources == {"device:/dev/nvidia0": server.host}
    assert warnings == []


def test_metrics_of_intel_xpu_manager_give_figures(server: Exporter, reader: DeviceReader) -> None:
    server.sample("xpumd")
    resources, sources = reader.read()
    assert resources == {
        "device:0000:03:00.0": pytest.approx(INTEL),
        "device:0000:05:00.0": {"busy": 0.0},
    }
    assert set(sources.values()) == {server.host}
    for figures in resources.values():
        assert {name for name in figures if not name.startswith("busy.")} <= FIGURES[DEVICE].keys()


def test_metrics_with_opentelemetry_names_give_figures(
    server: Exporter, reader: DeviceReader
) -> None:
    server.sample("otel")
    expected = {
        "busy": 0.9,
        "busy.encoder": 0.9,
        "memory_used": 1000.0,
        "memory_total": 4000.0,
        "energy_j": 12.5,
        "power": 7.0,
    }
    assert reader.read()[0] == {"device:gpu-a": expected}


def test_figures_of_the_kernel_come_first_and_others_are_added(
    server: Exporter, reader: DeviceReader, tmp_path: Path
) -> None:
    plant(tmp_path, "xe")
    server.sample("xpumd")
    resources, sources = reader.read()
    assert set(resources) == {XE, "device:0000:05:00.0"}
    assert resources[XE] == pytest.approx(
        {**INTEL, "energy_j": 987.654321, "temperature": 61.0, "frequency": 0.8, "throttled": 0.0}
    )
    assert sources[XE] == f"sysfs, hwmon, {server.host}"


def rows(name: str, value: float, **labels: str) -> list[Sample]:
    return [Sample(name, {"pci_bus_id": "00000000:31:00.0", "device": "nvidia0", **labels}, value)]


def test_figures_of_instances_are_not_taken_for_a_partitioned_device() -> None:
    whole = rows("DCGM_FI_DEV_FB_USED", 10) + rows("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.5)
    part = rows("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.9, GPU_I_ID="1") + rows(
        "DCGM_FI_DEV_FB_USED", 99, GPU_I_ID="1"
    )
    assert figures_of(whole + part, DeviceNames().of) == {
        "/dev/nvidia0": {"memory_used": 10.0 * MIB, "busy": 0.5}
    }
    assert figures_of(part, DeviceNames().of) == {}


def test_a_device_that_several_pods_share_counts_once() -> None:
    shared = [row for pod in ("a", "b") for row in rows("DCGM_FI_DEV_FB_USED", 10, pod=pod)]
    assert figures_of(shared, DeviceNames().of) == {"/dev/nvidia0": {"memory_used": 10.0 * MIB}}


def test_tiles_of_a_card_are_summed_where_the_card_has_no_counter() -> None:
    labels = {"pci_bdf": "0000:03:00.0", "hw_sensor_location": "gpu"}
    tiles = [
        Sample("hw_energy_joules_total", {**labels, "com_intel_subdevice_id": tile}, 10.0)
        for tile in "01"
    ]
    assert figures_of(tiles, DeviceNames().of) == {"0000:03:00.0": {"energy_j": 20.0}}
    card = [Sample("hw_energy_joules_total", labels, 25.0)]
    assert figures_of([tiles[0], *card, tiles[1]], DeviceNames().of) == {
        "0000:03:00.0": {"energy_j": 25.0}
    }


def test_rows_without_a_device_or_a_number_are_left_out() -> None:
    assert figures_of([Sample("DCGM_FI_DEV_GPU_UTIL", {}, 50.0)], DeviceNames().of) == {}
    for value in (float("nan"), float("inf"), -1.0):
        assert figures_of(rows("DCGM_FI_DEV_GPU_UTIL", value), DeviceNames().of) == {}


def test_names_and_engines_are_bounded() -> None:
    labels = {"hw_id": "x\x1b" * 1000}
    many = [
        Sample("hw_gpu_utilization_ratio", {**labels, "hw_gpu_task": f"t{number}"}, 0.5)
        for number in range(100)
    ]
    ((name, figures),) = figures_of(many, DeviceNames().of).items()
    assert len(name) <= 160 - len("device:") and name.isprintable()
    assert len(figures) == 17 and figures["busy"] == 0.5
    NodeSample.from_dict(NodeSample("n", "w", 1.0, 1.0, {f"device:{name}": figures}, {}).to_dict())


def test_older_exporters_tell_no_address() -> None:
    row = Sample("DCGM_FI_DEV_GPU_UTIL", {"gpu": "0", "device": "nvidia0", "UUID": "GPU-1"}, 50.0)
    assert figures_of([row], DeviceNames().of) == {"/dev/nvidia0": {"busy": 0.5}}


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("00000000:31:00.0", "0000:31:00.0"),
        ("0000:3A:00.1", "0000:3a:00.1"),
        ("10000:01:00.0", "10000:01:00.0"),
        ("gpu-1", "gpu-1"),
    ],
)
def test_addresses_are_written_as_sysfs_does(written: str, address: str) -> None:
    assert pci_address(written) == address


# -- what else an answer may be
# --------------------------------------------------------------------------------------------------


def test_a_metrics_server_is_asked_every_few_seconds(
    server: Exporter, reader: DeviceReader, time: Time
) -> None:
    server.sample("dcgm")
    for _ in range(2):
        assert reader.read()[0]
        time.now_s += SHORTEST_S - 0.1
        assert reader.read() == ({}, {})
        # however much it cost
        time.now_s += LONGEST_S
    assert server.asked == 2


def not_http(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")


def cut_short(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"hw_power")


def cut_without_length(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(b'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{device="nvidia0"} 47')


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(10):
            handler.wfile.write(b"x" * MIB)
    except OSError:
        """Nobody reads any more."""


ANSWERS: dict[str, tuple[Callable[[Exporter], None], str]] = {
    "missing": (lambda server: None, "cannot be read: Not Found"),
    "not HTTP": (lambda server: setattr(server, "answer", not_http), "cannot be read: SSH-2.0"),
    "cut short": (
        lambda server: setattr(server, "answer", cut_short),
        "cannot be read: the answer was cut short",
    ),
    "cut without length": (
        lambda server: setattr(server, "answer", cut_without_length),
        "has no known metrics of devices: it needs those of DCGM",
    ),
    "endless": (
        lambda server: setattr(server, "answer", endless),
        "cannot be read: the answer has more than 4 MiB",
    ),
    "a page": (
        lambda server: server.text("<html>DCGM</html>"),
        "has no known metrics of devices: it needs those of DCGM",
    ),
    "empty": (
        lambda server: server.text(""),
        "has no known metrics of devices: it needs those of DCGM",
    ),
    "others": (
        lambda server: server.text("node_load1 0.5\n"),
        "has no known metrics of devices: it needs those of DCGM",
    ),
    "no device": (
        lambda server: server.text("DCGM_FI_DEV_GPU_UTIL 1\n"),
        "has no known metrics of devices: it needs those of DCGM",
    ),
    "damaged": (lambda server: server.text('DCGM_FI_DEV_GPU_UTIL{gpu="0" x\n'), "cannot be read: "),
    "a damaged name": (
        lambda server: server.text('hw_power_watts x{hw_id="0"} 1\n'),
        "has no known metrics of devices: it needs those of DCGM",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_unusable_answer_gives_one_warning_and_is_asked_for_again(
    name: str, server: Exporter, reader: DeviceReader, warnings: list[str], time: Time
) -> None:
    prepare, text = ANSWERS[name]
    prepare(server)
    for _ in range(3):
        assert reader.read() == ({}, {})
        assert reader.read() == ({}, {})
        time.now_s += AGAIN_S
    assert server.asked == 3
    assert len(warnings) == 1 and server.url in warnings[0] and text in warnings[0]
    server.sample("dcgm")
    assert reader.read()[0]


def test_an_absent_metrics_server_gives_one_warning(
    tmp_path: Path, warnings: list[str], time: Time
) -> None:
    with socket.socket() as reserved:
        # bound, so that nobody else takes it, and not listening
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/metrics"
        reader = DeviceReader(lambda _, text: warnings.append(text), url, root=tmp_path, clock=time)
        for _ in range(3):
            assert reader.read() == ({}, {})
            time.now_s += AGAIN_S
    assert len(warnings) == 1 and "Connection refused" in warnings[0]


def test_a_silent_metrics_server_is_not_waited_for(
    server: Exporter, reader: DeviceReader, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "TIMEOUT_S", 0.05)
    released = threading.Event()

    def wait(_: BaseHTTPRequestHandler) -> None:
        released.wait(60)

    server.answer = wait
    assert reader.read() == ({}, {})
    released.set()
    assert len(warnings) == 1 and "timed out" in warnings[0]


def test_an_answer_that_trickles_is_not_waited_for(
    server: Exporter, reader: DeviceReader, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_DEADLINE_S", 0.0)
    server.sample("dcgm")
    assert reader.read() == ({}, {})
    assert len(warnings) == 1 and "takes longer than" in warnings[0]


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        figures_of(
            metrics._rows(f"DCGM_FI_DEV_GPU_UTIL{text}\nhw_power_watts {text}"), DeviceNames().of
        )
    except ValueError:
        pass


# -- the option
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["http://localhost:9400/metrics", "https://[::1]/", "http://10.0.0.1"]
)
def test_addresses_that_can_be_asked(url: str) -> None:
    assert checks.http_url(url, "it") == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:9400",
        "ftp://h/",
        "http://",
        "http://h:0/",
        "http://h:99999/",
        "http://a b/",
        "file:///etc",
    ],
)
def test_addresses_that_cannot_be_asked(url: str) -> None:
    with pytest.raises(InvalidValue, match="not an HTTP URL"):
        checks.http_url(url, "it")


def test_a_password_does_not_belong_into_an_address() -> None:
    assert checks.http_url("http://u:secret@h/", "it")
    with pytest.raises(InvalidValue, match="user name or password") as raised:
        checks.http_url("http://u:secret@h/", "it", credentials=False)
    assert "secret" not in str(raised.value)
