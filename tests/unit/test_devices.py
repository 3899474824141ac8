"""Devices: who they are by a made sysfs, which one a worker gets, and what is said when there is
none.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from scaletest.model import Outcome, Reason
from scaletest.model.errors import InvalidValue, NoDevice
from scaletest.model.presets import PRESETS, Preset, preset
from scaletest.model.workload import Device
from scaletest.system.wake import Wake
from workers import devices
from workers.devices import Chosen, DeviceChooser, DeviceOptions, by_number, identify
from workers.runtime import Runtime, Settings

# a device node that every Linux has, and that every user may open
NULL, NULL_NUMBER = "/dev/null", "1:3"


def made_sysfs(root: Path, number: str, pci: str, vendor: str, **attributes: str) -> Path:
    """A tree as the kernel's: dev/char/<number> is a link into the device's folder below its PCI
    function.
    """
    function = root / "devices/pci0000:00" / pci
    folder = function / "drm/renderD128"
    folder.mkdir(parents=True)
    for name, text in {"vendor": vendor, "device": "0x56c0", **attributes}.items():
        (function / name).write_text(text + "\n")
    (folder / "device").symlink_to("../../../" + pci)
    (root / "dev/char").mkdir(parents=True, exist_ok=True)
    (root / "dev/char" / number).symlink_to(f"../../devices/pci0000:00/{pci}/drm/renderD128")
    return root


def files(folder: Path, *names: str) -> str:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).touch()
    return str(folder / "renderD*")


# -- identity
# --------------------------------------------------------------------------------------------------


def test_a_device_is_known_by_its_pci_address(tmp_path: Path) -> None:
    sysfs = made_sysfs(tmp_path, NULL_NUMBER, "0000:03:00.0", "0x8086", label="Flex 170")
    device = identify(NULL, sysfs, tmp_path)
    assert device == Device(NULL, "0000:03:00.0", "0000:03:00.0", "0x8086", "Intel", "Flex 170")
    assert Chosen(device).info() == {
        "id": "0000:03:00.0",
        "pci": "0000:03:00.0",
        "vendor": "Intel",
        "model": "Flex 170",
    }


def test_without_a_name_the_pci_numbers_are_the_model(tmp_path: Path) -> None:
    assert (
        identify(NULL, made_sysfs(tmp_path, NULL_NUMBER, "0000:03:00.0", "0x8086"), tmp_path).model
        == "8086:56c0"
    )


def test_without_sysfs_the_device_number_is_the_name(tmp_path: Path) -> None:
    assert identify(NULL, tmp_path, tmp_path) == Device(NULL, NULL_NUMBER)


def test_an_ordinary_file_is_known_by_its_path_and_links_lead_to_it(tmp_path: Path) -> None:
    (tmp_path / "renderD128").touch()
    (tmp_path / "by-path").symlink_to("renderD128")
    assert identify(str(tmp_path / "by-path")).id == str(tmp_path / "renderD128")


def test_a_missing_device_has_no_identity(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        identify(str(tmp_path / "gone"))


def test_nvidia_is_found_in_its_drivers_own_list(tmp_path: Path) -> None:
    folder = tmp_path / "driver/nvidia/gpus/0000:4F:00.0"
    folder.mkdir(parents=True)
    (folder / "information").write_text(
        "Model: \t\t NVIDIA H200\nIRQ:   \t\t 321\nGPU UUID: \t"
        " GPU-6a5c1bd2-0000-1111-2222-333344445555\nBus Location: \t 0000:4f:00.0\nDevice Minor:"
        " \t 3\n"
    )
    device = by_number("/dev/nvidia3", "195:3", tmp_path, tmp_path)
    assert (device.id, device.model, device.vendor) == ("0000:4f:00.0", "NVIDIA H200", "NVIDIA")
    assert device.unique == "GPU-6a5c1bd2-0000-1111-2222-333344445555"


# -- choice without leases
# --------------------------------------------------------------------------------------------------


def test_devices_are_counted_round_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    pattern = files(tmp_path, "renderD9", "renderD10")
    names = [DeviceChooser(DeviceOptions(pattern, index)).choose() for index in range(3)]
    assert [Path(slot.device.path).name for slot in names if slot] == [
        "renderD9",
        "renderD10",
        "renderD9",
    ]


def test_a_device_without_a_lease_is_known_when_it_was_used(tmp_path: Path) -> None:
    chooser = DeviceChooser(DeviceOptions(files(tmp_path, "renderD9"), 0))
    assert chooser.current == ""
    chooser.choose()
    assert chooser.current == str(tmp_path / "renderD9")


def test_no_pattern_is_no_device() -> None:
    assert not DeviceChooser(DeviceOptions()).wanted


def test_two_nodes_of_one_device_are_one_device(tmp_path: Path) -> None:
    pattern = files(tmp_path, "renderD128")
    (tmp_path / "renderD129").symlink_to("renderD128")
    assert len(DeviceChooser(DeviceOptions(pattern)).devices()) == 1


@pytest.mark.parametrize(
    "options",
    [{"device_index": -1}, {"per_device": 0}, {"preset": "voodoo"}],
    ids=str,
)
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        DeviceOptions("x", **options)  # type: ignore[arg-type]


def test_no_match_says_pattern_and_what_to_request(tmp_path: Path) -> None:
    with pytest.raises(NoDevice, match=r"none\*") as error:
        DeviceChooser(DeviceOptions(str(tmp_path / "none*"), preset="nvidia")).choose()
    assert "nvidia.com/gpu" in error.value.hint


def test_paths_are_known_by_address(tmp_path: Path) -> None:
    sysfs = made_sysfs(tmp_path, NULL_NUMBER, "0000:03:00.0", "0x8086")
    assert DeviceChooser(DeviceOptions(NULL), sysfs).paths() == {"0000:03:00.0": NULL}
    # files have no address, and a device that is not there is no error
    assert DeviceChooser(DeviceOptions(files(tmp_path / "dri", "renderD1"))).paths() == {}
    assert DeviceChooser(DeviceOptions(str(tmp_path / "missing*"))).paths() == {}
    assert DeviceChooser(DeviceOptions()).paths() == {}


def test_a_preset_leaves_other_vendors_out_and_names_them(tmp_path: Path) -> None:
    sysfs = made_sysfs(tmp_path, NULL_NUMBER, "0000:03:00.0", "0x1002")
    options = DeviceOptions(NULL, preset="intel")
    with pytest.raises(NoDevice, match="/dev/null of AMD"):
        DeviceChooser(options, sysfs).devices()
    assert DeviceChooser(DeviceOptions(NULL, preset="amd"), sysfs).devices()[0].vendor == "AMD"


@pytest.mark.parametrize(
    ("group", "kind", "expected"),
    [
        (60001, None, "supplementalGroups: [60001]"),
        (60001, preset("intel"), "60001 (usually render or video)"),
        # nobody should be told to join root's group
        (0, preset("intel"), "its group is root: let udev on the node give it to a group, usually"),
    ],
)
def test_permission_denied_names_the_group(
    monkeypatch: pytest.MonkeyPatch, group: int, kind: Preset | None, expected: str
) -> None:
    monkeypatch.setattr(os, "stat", lambda path: SimpleNamespace(st_gid=group))
    error = devices.denied("/dev/dri/renderD128", kind)
    monkeypatch.undo()
    assert error.message == "permission denied on /dev/dri/renderD128"
    assert expected in error.hint


@pytest.mark.parametrize(
    ("number", "problem", "todo"),
    [
        (1, "device rules forbid", "docker run --device"),
        (13, "permission denied", "the node"),
        (6, "no device behind", "driver"),
    ],
)
def test_a_device_that_cannot_be_opened_names_the_setting_to_change(
    monkeypatch: pytest.MonkeyPatch, number: int, problem: str, todo: str
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NoDevice, match=problem) as error:
        devices.check_open(NULL)
    assert todo in error.value.hint


# -- choice with leases
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    device: str
    number: int


@dataclass
class FakeLeases:
    """Gives slot 0 of the devices in `free`."""

    free: list[str] = field(default_factory=list)
    slot: Slot | None = None
    claims: int = 0

    def claim(self, devices: list[str], per_device: int) -> Slot | None:
        self.claims += 1
        self.slot = next((Slot(device, 0) for device in devices if device in self.free), None)
        return self.slot


def test_a_held_slot_costs_no_call(tmp_path: Path) -> None:
    pattern = files(tmp_path, "renderD128", "renderD129")
    leases = FakeLeases([str(tmp_path / "renderD129")])
    chooser = DeviceChooser(DeviceOptions(pattern))
    first = chooser.attach(leases)
    assert first.device.path.endswith("renderD129")
    assert first.info()["slot"] == "0"
    assert all(chooser.choose() == first for _ in range(10))
    assert leases.claims == 1


def test_a_lost_slot_is_asked_for_again(tmp_path: Path) -> None:
    pattern = files(tmp_path, "renderD128", "renderD129")
    leases = FakeLeases([str(tmp_path / "renderD128")])
    chooser = DeviceChooser(DeviceOptions(pattern))
    assert chooser.current == ""
    chooser.attach(leases)
    assert chooser.current == str(tmp_path / "renderD128")
    leases.slot, leases.free = None, [str(tmp_path / "renderD129")]
    assert chooser.current == ""
    again = chooser.choose()
    assert again is not None
    assert chooser.current == str(tmp_path / "renderD129")
    assert (again.device.path[-3:], again.index, leases.claims) == ("129", 1, 2)


def test_a_device_that_went_away_is_replaced(tmp_path: Path) -> None:
    pattern = files(tmp_path, "renderD128", "renderD129")
    chooser = DeviceChooser(DeviceOptions(pattern))
    chooser.attach(FakeLeases([str(tmp_path / "renderD128"), str(tmp_path / "renderD129")]))
    (tmp_path / "renderD128").unlink()
    again = chooser.choose()
    assert again is not None
    assert again.device.path.endswith("129")


def test_without_a_free_device_the_error_counts_them_and_names_the_option(tmp_path: Path) -> None:
    pattern = files(tmp_path, "renderD128", "renderD129")
    looks = iter([True, True, False])
    leases = FakeLeases()
    with pytest.raises(NoDevice, match="2 of 2 slots of 2 devices are leased") as error:
        DeviceChooser(DeviceOptions(pattern)).attach(leases, lambda: next(looks))
    assert "<per_device> 2" in error.value.hint
    assert leases.claims == 3


# -- presets and the workload's environment
# --------------------------------------------------------------------------------------------------


def test_presets_know_pattern_resource_groups_and_variable() -> None:
    for name, preset_of_name in PRESETS.items():
        assert preset(name) is preset_of_name
        assert preset_of_name.name == name
        assert preset_of_name.resources
        assert preset_of_name.groups
    with pytest.raises(InvalidValue, match="no preset 'voodoo'"):
        preset("voodoo")


@pytest.mark.parametrize(
    ("name", "vendor", "expected"),
    [
        ("intel", "0x8086", {"ZE_AFFINITY_MASK": "0", "ZE_ENABLE_PCI_ID_DEVICE_ORDER": "1"}),
        ("amd", "0x1002", {"ROCR_VISIBLE_DEVICES": "GPU-1234abcd"}),
        ("nvidia", "0x10de", {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
    ],
)
def test_the_workload_sees_one_device_only(
    tmp_path: Path, name: str, vendor: str, expected: dict[str, str]
) -> None:
    more = {"unique_id": "1234abcd"} if name == "amd" else {}
    sysfs = made_sysfs(tmp_path, NULL_NUMBER, "0000:03:00.0", vendor, **more)
    chooser = DeviceChooser(DeviceOptions(NULL, preset=name), sysfs)
    chosen = chooser.choose()
    assert chosen is not None
    variables = chooser.environment(chosen)
    assert variables == {
        "SCALETEST_DEVICE": NULL,
        "SCALETEST_DEVICE_ID": "0000:03:00.0",
        **expected,
    }


# -- in replies
# --------------------------------------------------------------------------------------------------


def test_every_reply_says_the_device_also_of_sleep(tmp_path: Path) -> None:
    wake = Wake()
    runtime = Runtime(
        Settings(command=("sleep", "0"), devices=DeviceOptions(files(tmp_path, "renderD128"))), wake
    )
    result, run_s = runtime.run((), 0.0)
    text, _ = runtime.reply_json("r", "w", result, run_s, 0, 0, 1)
    assert f'"device":"{tmp_path}/renderD128"' in text
    assert f'"device_info":{{"id":"{tmp_path}/renderD128"}}' in text
    wake.close()


def test_a_device_that_goes_away_during_a_run_is_the_reason(tmp_path: Path) -> None:
    pattern = files(tmp_path, "renderD128")
    wake = Wake()
    runtime = Runtime(
        Settings(command=("sh", "-c", "rm FILENAME; exit 1"), devices=DeviceOptions(pattern)), wake
    )
    result, _ = runtime.run((), 0.0)
    runtime.close()
    wake.close()
    assert (result.outcome, result.reason) == (Outcome.FAILED, Reason.NO_DEVICE)
    assert "went away during the run" in result.error


@pytest.mark.parametrize(
    ("vendor", "model", "product"),
    [
        ("NVIDIA", "NVIDIA H200", "NVIDIA H200"),
        ("Intel", "8086:56a0", "Intel 8086:56a0"),
        ("Intel", "", "Intel"),
        ("", "", ""),
    ],
)
def test_the_product_of_a_device_names_its_vendor_once(
    vendor: str, model: str, product: str
) -> None:
    assert Device("/dev/x", "x", vendor=vendor, model=model).product == product
