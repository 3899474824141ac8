"""The devices of a node, from trees as sysfs has them: figures in the units of samples, and nothing
made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scaletest.model.measurement import DEVICE, FIGURES
from scaletest.system.devices.cards import CardSource, parse_levels
from scaletest.system.devices.reader import DeviceReader
from scaletest.system.devices.readings import AGAIN_S, pci_address
from tests.unit.fakes import Clock

SAMPLES = Path(__file__).parent / "samples" / "devices"
I915, XE, AMD = (
    "device:/dev/dri/renderD128",
    "device:/dev/dri/renderD129",
    "device:/dev/dri/renderD130",
)
CARD0 = "sys/devices/pci0000:00/0000:00:02.0"
CARD1 = "sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0"
CARD2 = "sys/devices/pci0000:60/0000:65:00.0"


def plant(root: Path, name: str) -> None:
    """A recorded tree, below a folder."""
    for line in (SAMPLES / f"{name}.tree").read_text().splitlines():
        path, arrow, target = line.partition(" -> ")
        if arrow:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(target)
        else:
            path, _, text = line.partition(": ")
            put(root, path.rstrip(":"), text.replace("|", "\n"))


def put(root: Path, path: str, text: str) -> None:
    """A file."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{text}\n")


@pytest.fixture
def time() -> Clock:
    return Clock(100.0)


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def reader(tmp_path: Path, time: Clock, warnings: list[str]) -> Iterator[DeviceReader]:
    yield DeviceReader(lambda _, text: warnings.append(text), root=tmp_path, clock=time)
    assert all(len(text) < 300 for text in warnings)


def only(reader: DeviceReader) -> dict[str, float]:
    """The figures of the only device."""
    resources = reader.read()
    assert len(resources) == 1
    (figures,) = resources.values()
    unknown = {
        name for name in figures if name not in FIGURES[DEVICE] and not name.startswith("busy.")
    }
    assert not unknown
    return figures


def test_figures_of_i915_are_read(reader: DeviceReader, tmp_path: Path, time: Clock) -> None:
    plant(tmp_path, "i915")
    resources = reader.read()
    # the whole card's energy, and of both parts the busier one
    assert resources == {
        I915: pytest.approx({"energy_j": 12.345678, "frequency": 0.5, "throttled": 1.0})
    }
    time.now += 2.0
    put(tmp_path, f"{CARD0}/drm/card0/gt/gt0/rc6_residency_ms", "5500")
    put(tmp_path, f"{CARD0}/drm/card0/gt/gt1/rc6_residency_ms", "11000")
    put(tmp_path, f"{CARD0}/drm/card0/gt/gt0/throttle_reason_status", "0")
    figures = only(reader)
    assert (figures["awake"], figures["throttled"]) == (0.75, 0.0)


def test_figures_of_i915_on_older_kernels_are_read(
    reader: DeviceReader, tmp_path: Path, time: Clock
) -> None:
    for name, target in (("class/drm/card0", f"../../../{CARD0}/drm/card0"), ("x", "y")):
        (tmp_path / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys" / name).symlink_to(target)
    put(tmp_path, f"{CARD0}/drm/card0/gt_act_freq_mhz", "350")
    put(tmp_path, f"{CARD0}/drm/card0/gt_RP0_freq_mhz", "1400")
    put(tmp_path, f"{CARD0}/drm/card0/power/rc6_residency_ms", "10")
    (tmp_path / CARD0 / "drm/card0/device").symlink_to("../..")
    (tmp_path / CARD0 / "driver").symlink_to("../../../bus/pci/drivers/i915")
    # without a render node it has its address
    assert reader.read() == {"device:0000:00:02.0": {"frequency": 0.25}}
    time.now += 1.0
    assert only(reader)["awake"] == 1.0


def test_figures_of_xe_are_read(reader: DeviceReader, tmp_path: Path, time: Clock) -> None:
    plant(tmp_path, "xe")
    resources = reader.read()
    expected = {"energy_j": 987.654321, "temperature": 61.0, "frequency": 0.8, "throttled": 0.0}
    assert resources == {XE: pytest.approx(expected)}
    put(tmp_path, f"{CARD1}/tile0/gt1/freq0/throttle/reason_thermal", "1")
    time.now += 1.0
    figures = only(reader)
    assert (figures["throttled"], figures["awake"]) == (1.0, 1.0)


def test_figures_of_amdgpu_are_read(reader: DeviceReader, tmp_path: Path) -> None:
    plant(tmp_path, "amdgpu")
    resources = reader.read()
    expected = {
        "busy": 0.87,
        "memory_busy": 0.12,
        "memory_used": 317939712,
        "memory_total": 17163091968,
        "frequency": 0.75,
        "power": 203.0,
        "temperature": 54.0,
    }
    assert resources == {AMD: pytest.approx(expected)}


def test_several_cards_are_read_side_by_side_under_the_names_of_replies(tmp_path: Path) -> None:
    for name in ("i915", "xe", "amdgpu"):
        plant(tmp_path, name)
    paths = {"0000:03:00.0": "/dev/dri/by-path/pci-0000:03:00.0-render"}
    resources = DeviceReader(paths=lambda: paths, root=tmp_path).read()
    assert set(resources) == {I915, AMD, "device:/dev/dri/by-path/pci-0000:03:00.0-render"}


def test_figures_that_cannot_be_read_are_absent(reader: DeviceReader, tmp_path: Path) -> None:
    plant(tmp_path, "amdgpu")
    assert "busy" in only(reader)
    (tmp_path / CARD2 / "gpu_busy_percent").unlink()
    put(tmp_path, f"{CARD2}/mem_busy_percent", "N/A")
    put(tmp_path, f"{CARD2}/pp_dpm_sclk", "")
    put(tmp_path, f"{CARD2}/hwmon/hwmon6/temp1_input", "-5000")
    assert set(only(reader)) == {"memory_used", "memory_total", "power"}


def test_a_card_that_is_gone_is_absent_and_comes_back(
    reader: DeviceReader, tmp_path: Path, time: Clock
) -> None:
    plant(tmp_path, "amdgpu")
    reader.read()
    (tmp_path / "sys").rename(tmp_path / "gone")
    assert reader.read() == {}
    time.now += AGAIN_S
    assert reader.read() == {}
    (tmp_path / "gone").rename(tmp_path / "sys")
    time.now += AGAIN_S
    assert only(reader)["busy"] == pytest.approx(0.87)


def test_a_card_that_sleeps_is_not_woken(reader: DeviceReader, tmp_path: Path, time: Clock) -> None:
    plant(tmp_path, "i915")
    reader.read()
    time.now += 1.0
    put(tmp_path, f"{CARD0}/power/runtime_status", "suspended")
    assert reader.read() == {I915: {"awake": 0.0}}
    # its counters stood still meanwhile
    time.now += 60.0
    put(tmp_path, f"{CARD0}/power/runtime_status", "active")
    assert "awake" not in only(reader)


def test_counters_that_go_back_give_no_figures(
    reader: DeviceReader, tmp_path: Path, time: Clock
) -> None:
    plant(tmp_path, "i915")
    reader.read()
    time.now += 1.0
    put(tmp_path, f"{CARD0}/hwmon/hwmon4/energy1_input", "1000000")
    for part in ("gt0", "gt1"):
        put(tmp_path, f"{CARD0}/drm/card0/gt/{part}/rc6_residency_ms", "0")
    assert {"energy_j", "awake"}.isdisjoint(only(reader))
    time.now += 1.0
    figures = only(reader)
    assert (figures["energy_j"], figures["awake"]) == (1.0, 1.0)


def test_files_that_may_not_be_read_are_left_out(
    reader: DeviceReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(tmp_path, "amdgpu")
    monkeypatch.setattr("os.access", lambda _path, _mode: False)
    assert reader.read() == {AMD: {"frequency": 0.75}}


def test_cards_of_other_drivers_and_platforms_are_left_out(
    reader: DeviceReader, tmp_path: Path
) -> None:
    put(tmp_path, "sys/class/drm/card0/uevent", "no device")
    put(tmp_path, "sys/devices/platform/simple-framebuffer.0/drm/card1/x", "")
    (tmp_path / "sys/class/drm/card1").symlink_to(
        "../../devices/platform/simple-framebuffer.0/drm/card1"
    )
    (tmp_path / "sys/devices/platform/simple-framebuffer.0/drm/card1/device").symlink_to("../..")
    put(tmp_path, f"{CARD0}/drm/card2/x", "")
    (tmp_path / "sys/class/drm/card2").symlink_to(f"../../../{CARD0}/drm/card2")
    (tmp_path / CARD0 / "drm/card2/device").symlink_to("../..")
    (tmp_path / CARD0 / "driver").symlink_to("../../../bus/pci/drivers/ast")
    assert reader.read() == {}


def test_without_devices_it_looks_again_rarely(
    tmp_path: Path, time: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Path] = []
    monkeypatch.setattr(CardSource, "find", lambda self: looks.append(self._root))
    reader = DeviceReader(root=tmp_path, clock=time)
    for _ in range(180):
        assert reader.read() == {}
        time.now += 1.0
    assert len(looks) == 3


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


def test_a_failing_source_gives_one_warning_and_is_left_out(
    reader: DeviceReader, tmp_path: Path, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(CardSource, "find", fail)
    assert [reader.read() for _ in range(3)] == [{}] * 3
    assert warnings == ["devices are not read any more (CardSource): RuntimeError: no such luck"]


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        ("0: 500Mhz\n1: 1000Mhz *\n", 1.0),
        ("0: 500Mhz *\n1: 1000Mhz\n", 0.5),
        ("S: 19Mhz *\n0: 500Mhz\n1: 1900Mhz\n", 0.01),
        ("0: 500Mhz\n", None),
        ("0: 0Mhz *\n", None),
        ("", None),
    ],
)
def test_the_current_level_of_an_amd_clock_is_read(text: str, ratio: float | None) -> None:
    assert parse_levels(text) == ratio
