"""Devices: who they are by a made sysfs, which one a worker gets, and what is said when there is
none. Checks before a run on this machine: its programs and devices, those of background loads too.
"""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from scaletest.broker.devices import Slot
from scaletest.model import Outcome, Reason
from scaletest.model.errors import InvalidValue, NoDevice, UsageError
from scaletest.model.presets import Preset, preset_of
from scaletest.model.workload import Device
from scaletest.processes.wake import Wake
from scaletest.validation.before_run import check_plan
from scaletest.validation.plan import Background, Plan
from scaletest_workers import before_run, devices
from scaletest_workers.device_identity import identify, identify_number
from scaletest_workers.devices import ChosenDevice, DeviceChooser, DeviceOptions
from scaletest_workers.runtime import Runtime
from scaletest_workers.settings import Settings
from scaletest_workers.workloads.base import ProgramOptions

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
    assert ChosenDevice(device).info() == {
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
    device = identify_number("/dev/nvidia3", "195:3", tmp_path, tmp_path)
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


def test_a_preset_leaves_other_vendors_out(tmp_path: Path) -> None:
    sysfs = made_sysfs(tmp_path, NULL_NUMBER, "0000:03:00.0", "0x1002")
    options = DeviceOptions(NULL, preset="intel")
    with pytest.raises(NoDevice, match="no device of the preset intel matches"):
        DeviceChooser(options, sysfs).devices()
    assert DeviceChooser(DeviceOptions(NULL, preset="amd"), sysfs).devices()[0].vendor == "AMD"


@pytest.mark.parametrize(
    ("group", "kind", "expected"),
    [
        (60001, None, "supplementalGroups: [60001]"),
        (60001, preset_of("intel"), "60001 (usually render or video)"),
        # nobody should be told to join root's group
        (
            0,
            preset_of("intel"),
            "its group is root: let udev on the node give it to a group, usually",
        ),
    ],
)
def test_permission_denied_names_the_group(
    monkeypatch: pytest.MonkeyPatch, group: int, kind: Preset | None, expected: str
) -> None:
    monkeypatch.setattr(os, "stat", lambda path: SimpleNamespace(st_gid=group))
    error = devices.permission_denied("/dev/dri/renderD128", kind)
    monkeypatch.undo()
    assert error.message == "permission denied on /dev/dri/renderD128"
    assert expected in error.hint


def test_a_device_that_cannot_be_opened_names_the_setting_to_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NoDevice, match="device rules forbid") as error:
        devices.check_open(NULL)
    assert "docker run --device" in error.value.hint


# -- choice with leases
# --------------------------------------------------------------------------------------------------


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


def test_a_lost_slot_is_asked_for_again(tmp_path: Path) -> None:
    pattern = files(tmp_path, "renderD128", "renderD129")
    leases = FakeLeases([str(tmp_path / "renderD128")])
    chooser = DeviceChooser(DeviceOptions(pattern))
    assert chooser.current == ""
    chooser.attach(leases)
    chooser.choose()
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
    chooser.choose()
    (tmp_path / "renderD128").unlink()
    assert chooser.choose().device.path.endswith("129")


# -- presets and the workload's environment
# --------------------------------------------------------------------------------------------------


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


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    """That of two devices."""
    for name in ("card0", "card1"):
        (tmp_path / name).touch()
    return str(tmp_path / "card*")


def test_a_program_is_looked_for_where_it_will_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "work.sh"
    script.write_text("#!/bin/sh\n")
    options = ProgramOptions(directory=str(tmp_path))
    with pytest.raises(UsageError, match="it is not executable") as caught:
        before_run.check_program(("./work.sh",), options)
    assert caught.value.hint.startswith("chmod +x ")
    script.chmod(0o755)
    before_run.check_program(("./work.sh",), options)
    with pytest.raises(UsageError, match="there is no such program"):
        before_run.check_program(("./work.sh",))
    monkeypatch.chdir(tmp_path)
    before_run.check_program(("./work.sh",))
    before_run.check_program((f"../{tmp_path.name}/work.sh",))


@pytest.mark.parametrize(
    ("command", "reason", "hint"),
    [
        (("nosuchprogram",), "there is no such program", "install it, or give its path"),
        (("sleep 1 | cat",), "there is no such program", "for a line of a shell: sh -c 'sleep 1"),
    ],
)
def test_a_word_that_is_no_program_is_refused_with_what_to_write(
    command: tuple[str, ...], reason: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=f"cannot be started: {reason}") as refused:
        before_run.check_program(command)
    assert refused.value.hint.startswith(hint)


@pytest.mark.parametrize("command", [(), ("sleep", "1"), ("transcode",), ("FILENAME",), ("sh",)])
def test_what_needs_no_program_of_its_own_passes(command: tuple[str, ...]) -> None:
    before_run.check_program(command)


def test_the_devices_that_workers_will_use_must_be_open_to_this_user(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path.endswith("card0"))
    options = DeviceOptions(pattern)
    before_run.check_devices(options, 1)
    for most in (2, None):
        with pytest.raises(NoDevice, match="card1"):
            before_run.check_devices(options, most)


def test_background_loads_are_checked_too(pattern: str) -> None:
    check_plan(Plan(limit=2, queue="q", device_glob=pattern))
    for load in (Background("b", command=("nosuchprogram",)), Background("b", device_glob="/no*")):
        with pytest.raises(UsageError, match=r"nosuchprogram|/no"):
            check_plan(Plan(limit=2, queue="q", background=(load,)))


def test_workers_that_lease_slots_may_get_any_device(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path.endswith("card0"))
    check_plan(Plan(limit=1, queue="q", device_glob=pattern))
    with pytest.raises(NoDevice, match="card1"):
        check_plan(Plan(limit=1, queue="q", device_glob=pattern, per_device=(2,)))


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
